"""Intake: failures, labels and candidates from JSON lines, hostile ones included."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.failure_lines import read_candidates, read_failures, read_labelled
from interlock.system.errors import SourceError
from interlock_rca.records import Failure


def test_nulls_are_empty_and_the_unknown_is_let_be() -> None:
    line = b'{"id": "1", "message": null, "log": "x", "attributes": null, "colour": 7}'
    assert list(read_failures([line, b"\n", b" "], "f")) == [Failure(id="1", log="x")]


def test_numbers_are_written_as_they_are() -> None:
    line = b'\xef\xbb\xbf{"id": 7, "launch": 4711, "attributes": {"rerun": true}}\r\n'
    (found,) = read_failures([line], "f")
    assert found == Failure(id="7", launch="4711", attributes={"rerun": "true"})


@pytest.mark.parametrize(
    ("line", "message"),
    [(b'{"id":"1","message":"\xff!"}', "\ufffd!"), (b'{"id":"1","message":"\\ud800!"}', "?!")],
    ids=["not UTF-8", "half a pair"],
)
def test_broken_text_is_read_as_well_as_it_can_be(line: bytes, message: str) -> None:
    (found,) = read_failures([line], "f")
    assert found.message == message


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        (b"{", "f, line 2: is not JSON; write one object per line"),
        (b"[1]", "f, line 2: is not a JSON object; write one per line"),
        (b"{}", "f, line 2: a failure needs an `id`"),
        (b'{"id": null}', "f, line 2: a failure needs an `id`"),
        (b'{"id": "1", "log": []}', "f, line 2: `log` must be text"),
        (b'{"id": "1", "attributes": 7}', "f, line 2: `attributes` must be an object"),
        (b'{"id": "1", "attributes": {"a": {}}}', "f, line 2: `attributes` must be text"),
        (b"[" * 100_000, "f, line 2: is not JSON; write one object per line"),
    ],
)
def test_what_cannot_be_used(line: bytes, problem: str) -> None:
    with pytest.raises(SourceError) as caught:
        list(read_failures([b'{"id": "0"}', line], "f"))
    assert str(caught.value) == problem


def test_labels() -> None:
    line = b'{"id": "1", "message": "shut", "label": "LID"}'
    assert list(read_labelled([line], "f")) == [(Failure(id="1", message="shut"), "LID")]
    with pytest.raises(SourceError, match="f, line 1: a failure to learn from needs a `label`"):
        list(read_labelled([b'{"id": "1"}'], "f"))


def test_candidates() -> None:
    lines = [b'{"id": "1", "candidates": ["a", "b", "a", ""]}', b'{"id": "2", "candidates": null}']
    assert read_candidates(lines, "f") == {"1": ("a", "b"), "2": ()}
    with pytest.raises(SourceError, match="f, line 1: `candidates` must be a list of strings"):
        read_candidates([b'{"id": "1", "candidates": "a"}'], "f")


@given(st.lists(st.binary()))
def test_any_bytes_are_failures_or_one_sentence(lines: list[bytes]) -> None:
    problem = ""
    try:
        list(read_failures(lines, "f"))
    except SourceError as error:
        problem = str(error)
    assert not problem or problem.startswith("f, line ")
