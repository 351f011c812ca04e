"""Test that the file of a session counts, and that a cut neither invents nor loses a signal."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock.signals.catalogue import list_signals
from interlock.signals.lines import LineSignal, read_payload
from interlock.system.errors import SourceError
from interlock_epic.sessions.record import RecordedSignal, SessionRecord, find_deciding_signal
from interlock_epic.status import DECIDING, EFFECTS, ENDING, FIRM

SAID = {
    "CHECKPOINT": "WRITE:epic-3:3-1:p:1",
    "EPIC_COMPLETE": "epic-3:success",
    "FATAL_ERROR": "NO_CHECKPOINT:gone",
    "HITL_REQUIRED": "",
    "RECOVERABLE_ERROR": "SUBAGENT_FAILED:x",
    "RECOVERY_FAILED": "no",
    "STORY_STARTED": "3-1",
}


def signal(kind: str, payload: str | None = None) -> LineSignal:
    found = read_payload(kind, SAID[kind] if payload is None else payload, 1)
    assert isinstance(found, LineSignal)
    return found


def record(folder: Path) -> SessionRecord:
    return SessionRecord(folder / "sessions" / "1.jsonl", "epic-3")


def test_every_signal_of_the_catalogue_has_a_row_and_no_other() -> None:
    assert set(EFFECTS) == {row.name for row in list_signals("line")}
    assert {row.name for row in list_signals("line") if row.terminal} <= ENDING < DECIDING


def test_what_was_said_in_an_earlier_life_counts_and_said_again_has_no_effect(
    tmp_path: Path,
) -> None:
    first = record(tmp_path)
    first.begin(1.0, "before")
    first.add(signal("CHECKPOINT"), "stream", 2.0)
    first.close()

    second = record(tmp_path)
    assert second.is_ending
    assert second.deciding_signal is not None
    assert second.deciding_signal.fields["task"] == "1"
    assert second.add(signal("CHECKPOINT"), "channel", 3.0).repeated
    assert (second.total, second.repeated, second.starts[0].before) == (2, 1, "before")


def test_a_word_about_another_epic_is_refused_and_may_be_said_rightly_later(
    tmp_path: Path,
) -> None:
    kept = record(tmp_path)
    other = kept.add(signal("EPIC_COMPLETE", "epic-4:success"), "stream", 1.0)
    assert (other.refused, other.counts, kept.deciding_signal) == ("WrongTask", False, None)
    assert kept.add(signal("EPIC_COMPLETE"), "stream", 2.0).counts


def test_success_after_partial_is_no_success(tmp_path: Path) -> None:
    kept = record(tmp_path)
    for status in ("partial", "success"):
        kept.add(signal("EPIC_COMPLETE", f"epic-3:{status}"), "stream", 1.0)
    assert kept.deciding_signal is not None
    assert kept.deciding_signal.fields["status"] == "partial"


def test_a_link_in_its_place_is_not_written_to(tmp_path: Path) -> None:
    (tmp_path / "sessions").mkdir()
    (tmp_path / "sessions" / "1.jsonl").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(SourceError, match="cannot be written"):
        record(tmp_path)


def test_lines_that_are_no_json_are_passed_over(tmp_path: Path) -> None:
    path = tmp_path / "sessions" / "1.jsonl"
    path.parent.mkdir()
    path.write_bytes(b'\xff\xfe\n{"at": "x"}\n[]\n{"began_at": 1}\n')
    kept = record(tmp_path)
    assert (kept.total, kept.starts, kept.deciding_signal) == (0, [], None)


@given(words=st.lists(st.sampled_from(sorted(SAID)), max_size=8), cut=st.floats(0, 1))
def test_a_file_that_was_cut_anywhere_holds_a_beginning_of_what_was_said(
    tmp_path_factory: pytest.TempPathFactory, words: list[str], cut: float
) -> None:
    folder = tmp_path_factory.mktemp("cut")
    whole = record(folder)
    for word in words:
        whole.add(signal(word), "stream", 1.0)
    whole.close()
    raw = whole.path.read_bytes()
    whole.path.write_bytes(raw[: int(len(raw) * cut)])

    found = record(folder)
    found.add(signal("STORY_STARTED", "9-9"), "stream", 2.0)
    found.close()
    types = [each.type for each in found.signals]
    assert types[:-1] == [each.type for each in whole.signals][: len(types) - 1]
    again = record(folder)
    assert [each.type for each in again.signals] == types
    assert all(json.loads(line) for line in whole.path.read_bytes().splitlines()[-1:])


@given(st.lists(st.sampled_from(sorted(DECIDING)), min_size=1))
def test_a_word_that_holds_back_counts_wherever_it_stands_else_the_last(types: list[str]) -> None:
    result = [RecordedSignal(at=float(n), via="stream", type=each) for n, each in enumerate(types)]
    found = find_deciding_signal(result)
    assert found is not None
    firm = [name for name in FIRM if name in types]
    assert found.type == (firm[0] if firm else types[-1])
