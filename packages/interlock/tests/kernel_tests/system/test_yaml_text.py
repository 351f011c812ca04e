"""YAML as it is read here, and everything hostile that looks like it."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock.system.errors import CircuitError
from interlock.system.yaml_text import MAX_CHARACTERS, MAX_DEPTH, read_yaml

BOMB = "a: &a [x, x]\n" + "".join(
    f"{name}: &{name} [*{before}, *{before}]\n" for before, name in pairwise("abcdefghi")
)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("a: 1", {"a": 1}),
        ("a: 1.5", {"a": 1.5}),
        ("a: -2e3", {"a": -2000.0}),
        ("a: 'true'", {"a": "true"}),
        (
            "a: true\nb: false\nc: null\nd: ~\ne:",
            {"a": True, "b": False, "c": None, "d": None, "e": None},
        ),
        ("on: yes\noff: no", {"on": "yes", "off": "no"}),
        ("a: 2026-01-01", {"a": "2026-01-01"}),
        ("a: 0x1F", {"a": "0x1F"}),
        ("a: 1_000", {"a": "1_000"}),
        ("a: .inf\nb: .nan\nc: 1e999", {"a": ".inf", "b": ".nan", "c": "1e999"}),
        ("a: [1, {b: c}]", {"a": [1, {"b": "c"}]}),
        ("a: |\n  two\n  lines\n", {"a": "two\nlines\n"}),
        ("\ufeffa: 1\r\nb: 2\r\n", {"a": 1, "b": 2}),
        ('{"a": ["json", 1]}', {"a": ["json", 1]}),
    ],
)
def test_value(text: str, value: object) -> None:
    assert read_yaml(text).value == value


def test_every_place_has_its_line() -> None:
    page = read_yaml("a: 1\nb:\n  - x\n  - c: 2\n    d: 3\n")
    assert page.line("b") == 2
    assert page.line("b", 1, "d") == 5
    assert page.line("b", 1, "nothing", "here") == 4
    assert page.line("nowhere") == 1


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        (BOMB, 1, "anchors and aliases"),
        ("x: 1\na: *b\n", 2, "anchors and aliases"),
        ("a: 1\nb: 2\na: 3\n", 3, "'a' is written twice"),
        ("a:\n  b: 1\n  c: {d: 1, d: 2}\n", 3, "'d' is written twice"),
        ("a:\n\tb: 1\n", 2, "there is a tab"),
        ("a: 1\nb: [1, 2\nc: 3\n", 3, "expected"),
        ("a: 1\n---\nb: 2\n", 2, "another document"),
        ("a: 1\nb: !!python/object/apply:os.system [ls]\n", 2, "tags"),
        ("a: !!binary aGk=\n", 1, "tags"),
        ("a: !own {b: 1}\n", 1, "tags"),
        ("a: 1\nb: x\x00y\n", 2, "not readable as YAML"),
        ("a: 1\nb: \x07\n", 2, "not readable as YAML"),
        ("a: 1\nb: \ud800\n", 2, "not readable as YAML"),
        ("a: 1\n? {b: 1}\n: 2\n", 2, "a key must be a word"),
        ("[" * 5_000, 1, f"nested deeper than {MAX_DEPTH} levels"),
        ("\n".join("  " * depth + "a:" for depth in range(60)), 41, "nested deeper"),
        ('a: "x\n', 2, "unexpected end of stream"),
        ("\x89PNG\r\n\x1a\n\x00\x00", 1, "not readable as YAML"),
    ],
)
def test_hostile_text_is_refused_by_file_and_line(text: str, line: int, words: str) -> None:
    with pytest.raises(CircuitError) as caught:
        read_yaml(text, "bad.yaml")
    assert (caught.value.file, caught.value.line) == ("bad.yaml", line)
    assert words in caught.value.problem
    assert str(caught.value).startswith(f"bad.yaml:{line}: ")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("a: " + "x" * 10_000_000, f"at most {MAX_CHARACTERS:,}"),
        ("", "the file is empty"),
        ("# only a comment\n", "the file is empty"),
    ],
)
def test_what_has_no_line_names_the_file(text: str, words: str) -> None:
    with pytest.raises(CircuitError) as caught:
        read_yaml(text, "bad.yaml")
    assert str(caught.value).startswith("bad.yaml: ")
    assert words in caught.value.problem


def refusal(text: str) -> str:
    try:
        read_yaml(text, "any.yaml")
    except CircuitError as error:
        return str(error)
    return "any.yaml: read"


@given(st.text(max_size=80))
def test_any_text_is_read_or_refused(text: str) -> None:
    assert refusal(text).startswith("any.yaml:")
