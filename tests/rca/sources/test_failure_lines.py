"""Failures as JSON lines."""

import msgspec

from interlock.rca.records import Failure
from interlock.rca.sources.envelope import read_failures


def test_what_we_write_we_read() -> None:
    failure = Failure(id="a", test_name="t", attributes={"k": "v"}, line=3, auto_analyzed=True)
    line = msgspec.json.encode(failure).decode()
    assert read_failures([line, "", "  "], "f.jsonl") == ([failure], [])


def test_null_is_unknown_and_numbers_are_words() -> None:
    line = (
        '{"id": 7, "test_name": null, "line": null, "attributes": {"n": 3, "x": null}, "label": 1}'
    )
    (failure,), notes = read_failures([line], "f.jsonl")
    assert (failure.id, failure.test_name, failure.line) == ("7", "", 0)
    assert failure.attributes == {"n": "3", "x": "null"}
    assert notes == []


def test_lines_that_are_no_failures_are_said_but_not_all_of_them() -> None:
    bad = [
        "[]",
        "{",
        '{"id": "a", "log": 3}',
        '{"id": "a", "attributes": 3}',
        '"\\ud800"',
        "[" * 5000,
    ]
    found, notes = read_failures([*bad, *bad, '{"id": "ok"}'], "f.jsonl")
    assert [failure.id for failure in found] == ["ok"]
    assert notes[0].startswith("f.jsonl:1: skipped, no failure: ")
    assert notes[-1] == "f.jsonl: 7 more lines are no failures"


def test_long_texts_are_cut_and_marked() -> None:
    line = msgspec.json.encode({"id": "a", "log": "x" * 1_000_000}).decode()
    (failure,), _ = read_failures([line], "f.jsonl")
    assert len(failure.log) < 300_000
    assert failure.log_truncated
