"""The envelope.

Failures as JSON lines.

Names for failures.
"""

import json
import re
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock.system.errors import SourceError
from interlock.system.test_output import TestCounts
from interlock_rca.records import Failure, Ticket
from interlock_rca.sources.envelope import FailureNamer, read_envelope, read_failures

PLAIN: dict[str, Any] = {
    "run_id": "4711",
    "launch_uuid": "0f0f",
    "name": "nightly",
    "launch_attributes": [
        {"key": "version", "value": "2.1", "system": False},
        {"key": "git.commit", "value": "abc", "system": True},
    ],
    "failure_list": [
        {"id": 1, "name": "lamps", "type": "TEST", "status": "FAILED", "path": "1"},
        {
            "id": 2,
            "uuid": "u2",
            "name": "glows",
            "type": "STEP",
            "status": "FAILED",
            "path": "1.2",
            "code_ref": "yard.Lamp.glows",
            "description": "dark",
            "parent_id": 1,
            "issue_type": "ti001",
            "issue_comment": "look",
            "auto_analyzed": True,
            "external_issues": [{"ticket_id": "Y-2", "url": "https://x/Y-2"}],
        },
    ],
}


def read(document: Any) -> Any:
    return read_envelope(json.dumps(document).encode(), "e.json")


def test_the_first_form() -> None:
    launch, (failure,), notes = read(PLAIN)
    assert (launch.launch_id, launch.uuid, launch.name) == ("4711", "0f0f", "nightly")
    assert (launch.version, launch.commit) == ("2.1", "abc")
    assert (failure.id, failure.item_id, failure.job) == ("yard.Lamp.glows", 2, "lamps")
    assert (failure.message, failure.issue_type, failure.auto_analyzed) == ("dark", "ti001", True)
    assert failure.tickets == (Ticket("Y-2", "https://x/Y-2"),)
    assert launch.tally == TestCounts(failed=1)
    assert [job.name for job in launch.jobs] == ["lamps"]
    assert notes == []


def test_what_richer_writers_add() -> None:
    launch, _, _ = read(
        PLAIN
        | {
            "number": 13,
            "status": "FAILED",
            "startTime": 1_760_000_000_000,
            "endTime_iso": "2025-10-09T09:00:00Z",
            "statistics": {"executions": {"total": 9, "failed": 1, "skipped": 2}},
            "attributes": {"build": "77", "gone": None},
            "git": {"branch": "main", "commit": None, "remote": "https://x/y.git"},
        }
    )
    assert (launch.number, launch.status) == (13, "FAILED")
    assert (launch.started_at, launch.ended_at) == ("2025-10-09T08:53:20Z", "2025-10-09T09:00:00Z")
    assert launch.tally == TestCounts(tests=9, failed=1, skipped=2)
    assert (launch.branch, launch.commit, launch.remote) == ("main", "abc", "https://x/y.git")
    assert launch.attributes["build"] == "77"


def test_without_an_id_the_content_names_the_launch() -> None:
    bare = {"failure_list": [{"id": 1, "name": "a"}, {"name": "no id"}]}
    launch, failures, notes = read(bare)
    assert len(launch.launch_id) == 16
    assert launch.launch_id == read(bare)[0].launch_id
    assert len(failures) == 1
    assert notes == ["e.json: 1 of its failures have no id of their own: not counted"]


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"[]",
        b"{}",
        b"{",
        b'{"failure_list": 3}',
        b'{"failure_list": [], "failure_list": []}',
        b"\xff\xfe\x00",
        b'{"failure_list": [' + b"[" * 100_000,
    ],
)
def test_what_is_no_envelope_is_said(raw: bytes) -> None:
    with pytest.raises(SourceError, match=r"^e\.json is not an envelope: "):
        read_envelope(raw, "e.json")


def test_an_items_type_and_the_names_of_what_holds_it() -> None:
    item = {"id": 7, "name": "glows", "type": "STEP", "status": "FAILED"}
    _, (failure,), _ = read({"failure_list": [{**item, "path": "yard / lamps / glows"}]})
    assert (failure.path, failure.job) == ("yard / lamps", "yard")
    assert failure.attributes["item_type"] == "STEP"


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
    assert notes[0].startswith("f.jsonl:1: skipped, not a failure: ")
    assert notes[-1] == "f.jsonl: 7 more lines are not failures"


def test_long_texts_are_cut_and_marked() -> None:
    line = msgspec.json.encode({"id": "a", "log": "x" * 1_000_000}).decode()
    (failure,), _ = read_failures([line], "f.jsonl")
    assert len(failure.log) < 300_000
    assert failure.log_truncated


FIT = re.compile(r"[A-Za-z0-9][A-Za-z0-9._#-]{0,127}")
WORDS = st.text(max_size=40)


def ids(*failures: tuple[str, str, str]) -> list[str]:
    names = FailureNamer()
    return [
        names.assign_id(Failure(id="", job=job, class_name=owner, test_name=test)).id
        for job, owner, test in failures
    ]


def test_an_id_says_class_and_test_and_the_job_only_where_needed() -> None:
    assert ids(("unit", "yard.Lamp", "glows"), ("e2e", "yard.Lamp", "glows")) == [
        "yard.Lamp.glows",
        "e2e.yard.Lamp.glows",
    ]


def test_the_same_test_again_is_counted() -> None:
    assert ids(*[("u", "C", "t")] * 3) == ["C.t", "C.t#2", "C.t#3"]


def test_odd_names_are_fit_and_told_apart() -> None:
    found = ids(("u", "", "../../etc"), ("u", "", "тест"), ("u", "", "проба"), ("u", "", "_x"))
    assert found[0] == "etc"
    assert found[3] == "t_x"
    assert len(set(found)) == 4


def test_long_names_keep_what_tells_them_apart() -> None:
    one, other = ids(("u", "", "x" * 300 + "1"), ("u", "", "x" * 300 + "2"))
    assert one != other
    assert max(len(one), len(other)) <= 80


@given(st.lists(st.tuples(WORDS, WORDS, WORDS), max_size=30))
def test_ids_are_fit_unique_and_the_same_each_time(tests: list[tuple[str, str, str]]) -> None:
    found = ids(*tests)
    assert len(set(found)) == len(found)
    assert all(FIT.fullmatch(each) for each in found)
    assert found == ids(*tests)


@given(st.lists(st.sampled_from(["a", "a#2", "a#3", "b", "", "ü/"]), max_size=12))
def test_ids_that_are_brought_along_stay_if_they_can(brought: list[str]) -> None:
    names = FailureNamer()
    found = [names.keep_id(Failure(id=each, test_name="a")).id for each in brought]
    assert len(set(found)) == len(found)
    assert all(FIT.fullmatch(each) for each in found)
    if brought and brought[0] in ("a", "a#2", "b"):
        assert found[0] == brought[0]
