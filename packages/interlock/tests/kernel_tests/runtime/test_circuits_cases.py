"""Case files: every line is a case, or the line that is none is named."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock.journal.runs import NewCase
from interlock.runtime.circuits import MAX_LINE, MAX_PRIORITY, parse_cases, read_case_file
from interlock.system.errors import SourceError

HINT = 'write one JSON object, for example {"id": "C1", "topic": "login"}'


def cases_in(folder: Path, content: bytes | str) -> list[NewCase]:
    path = folder / "cases.jsonl"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return parse_cases(read_case_file(path), str(path))


@pytest.mark.parametrize(
    ("content", "cases"),
    [
        pytest.param('{"id": "A"}', [NewCase("A", {"id": "A"})], id="no newline at the end"),
        pytest.param(
            '\n{"id": "A"}\r\n  \n{"id": "B"}\n',
            [NewCase("A", {"id": "A"}), NewCase("B", {"id": "B"})],
            id="blank lines and CRLF",
        ),
        pytest.param(
            '{"id": 7, "topic": "Züge"}',
            [NewCase("7", {"id": 7, "topic": "Züge"})],
            id="a number as id",
        ),
        pytest.param(
            '{"id": "A", "priority": -2, "after": ["B", "B", 3]}\n{"id": "B"}\n{"id": "3"}',
            [
                NewCase("A", {"id": "A"}, -2, ("B", "3")),
                NewCase("B", {"id": "B"}),
                NewCase("3", {"id": "3"}),
            ],
            id="priority and order",
        ),
        pytest.param(
            '{"id": "a.b_c#1-x"}', [NewCase("a.b_c#1-x", {"id": "a.b_c#1-x"})], id="all characters"
        ),
        pytest.param(
            f'{{"id": "{"x" * 128}"}}', [NewCase("x" * 128, {"id": "x" * 128})], id="128 characters"
        ),
    ],
)
def test_read(tmp_path: Path, content: str, cases: list[NewCase]) -> None:
    assert cases_in(tmp_path, content) == cases


@pytest.mark.parametrize(
    "name", ["../x", "a/b", "", " ", ".hidden", "-x", "a b", "ü", "a\n", "x" * 129, "x" * 10_000]
)
def test_bad_ids(tmp_path: Path, name: str) -> None:
    with pytest.raises(SourceError) as caught:
        cases_in(tmp_path, f'{{"id": "ok"}}\n{json.dumps({"id": name})}\n')
    assert str(caught.value) == (
        f"{tmp_path / 'cases.jsonl'}:2: {name[:60]!r} is not a case id: letters, digits, '.', '_', "
        "'#' and '-', at most 128, starting with a letter or digit"
    )


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        pytest.param("", ' has no cases; write one per line, for example {"id": "C1"}', id="empty"),
        pytest.param(
            "\n \n", ' has no cases; write one per line, for example {"id": "C1"}', id="only blanks"
        ),
        pytest.param(
            '{"id": "A"}\n\n{"id": "A"}', ":3: case 'A' is already in line 1", id="the same id"
        ),
        pytest.param(
            '{"id": "A"}\n{"id": "A',
            f":2: it is not valid JSON: Input data was truncated; {HINT}",
            id="cut off",
        ),
        pytest.param(
            "id: A", f":1: it is not valid JSON: invalid character (byte 0); {HINT}", id="no JSON"
        ),
        pytest.param('["A"]', f":1: it holds a list, not an object; {HINT}", id="an array"),
        pytest.param(
            '{"topic": "x"}', f":1: Object missing required field `id`; {HINT}", id="no id"
        ),
        pytest.param(
            '{"id": true}', f":1: Expected `int | str`, got `bool` - at `$.id`; {HINT}", id="bool"
        ),
        pytest.param(
            '{"id": "A", "id": "B"}', f":1: 'id' is written twice; {HINT}", id="two ids in one line"
        ),
        pytest.param(
            '{"id": "A", "after": "B"}',
            f":1: Expected `array`, got `str` - at `$.after`; {HINT}",
            id="after is no list",
        ),
        pytest.param(
            '{"id": "A", "after": ["A"]}',
            ": these cases wait for each other: A after A",
            id="after itself",
        ),
        pytest.param(
            '{"id": "A", "after": ["B"]}\n{"id": "B", "after": ["A"]}',
            ": these cases wait for each other: A after B after A",
            id="a circle",
        ),
        pytest.param(
            '{"id": "A", "after": ["Z"]}',
            ": case 'A' comes after 'Z', which is not in the file",
            id="after a stranger",
        ),
        pytest.param(
            '{"id": "A", "priority": 1e30}',
            None,
            id="priority is not a whole number",
        ),
        pytest.param(
            '{"id": "A", "priority": 99999999999999999999}',
            f":1: a priority is from -{MAX_PRIORITY:,} to {MAX_PRIORITY:,}",
            id="priority beyond 64 bit",
        ),
        pytest.param(
            '{"id": "A", "x": "' + "x" * MAX_LINE + '"}',
            f":1: a case has at most {MAX_LINE:,} bytes, this one {MAX_LINE + 20:,}",
            id="huge line",
        ),
        pytest.param(
            '{"id": "A", "x": ' + "[" * 100_000,
            f":1: it is nested deeper than 60 levels; {HINT}",
            id="deep",
        ),
        pytest.param(
            r'{"id": "A", "x": "\u0000"}',
            f":1: there is a NUL character in it; {HINT}",
            id="NUL",
        ),
        pytest.param('{"id": "A", "x": NaN}', None, id="NaN"),
        pytest.param(bytes(range(256)), None, id="binary"),
        pytest.param(b'{"id": "A", "x": "\xff"}', None, id="not UTF-8"),
        pytest.param('{"id": "A"}'.encode("utf-16"), None, id="UTF-16"),
    ],
)
def test_refused(tmp_path: Path, content: bytes | str, problem: str | None) -> None:
    with pytest.raises(SourceError) as caught:
        cases_in(tmp_path, content)
    start = str(tmp_path / "cases.jsonl")
    assert str(caught.value).startswith(f"{start}:1: " if problem is None else f"{start}{problem}")
    if problem is not None:
        assert str(caught.value) == f"{start}{problem}"


@pytest.mark.parametrize(
    ("name", "problem"), [("nosuch", "No such file or directory"), (".", "Is a directory")]
)
def test_a_file_that_cannot_be_read_is_told(tmp_path: Path, name: str, problem: str) -> None:
    with pytest.raises(SourceError) as caught:
        read_case_file(tmp_path / name)
    assert str(caught.value) == f"{tmp_path / name} cannot be read: {problem}"


@given(content=st.binary(max_size=60) | st.text(max_size=60).map(str.encode))
def test_whatever_a_file_holds_it_is_read_or_refused(
    tmp_path_factory: pytest.TempPathFactory, content: bytes
) -> None:
    folder = tmp_path_factory.getbasetemp()
    try:
        problem = "" if cases_in(folder, content) else "no cases and no error"
    except SourceError as error:
        problem = str(error).removeprefix(str(folder / "cases.jsonl"))[:1].strip(": ")
    assert problem == ""
