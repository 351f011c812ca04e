"""The envelope."""

import json
from typing import Any

import pytest

from interlock.rca.records import Ticket
from interlock.rca.sources.envelope import read_envelope
from interlock.system.errors import SourceError
from interlock.system.test_output import TestCounts

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
    with pytest.raises(SourceError, match=r"^e\.json is no envelope: "):
        read_envelope(raw, "e.json")


def test_an_items_type_and_the_names_of_what_holds_it() -> None:
    item = {"id": 7, "name": "glows", "type": "STEP", "status": "FAILED"}
    _, (failure,), _ = read({"failure_list": [{**item, "path": "yard / lamps / glows"}]})
    assert (failure.path, failure.job) == ("yard / lamps", "yard")
    assert failure.attributes["item_type"] == "STEP"
