"""What a session may have made of the checkpoint that it was given, and what it may not."""

import json
from typing import Any

import msgspec
import pytest
from tests.epic.legacy_files import nested

from interlock.epic.checkpoints.record import (
    Checkpoint,
    Epic,
    EpicFailure,
    GitWork,
    Hitl,
    NextAction,
    Recovery,
    Story,
    encode_checkpoint,
)
from interlock.epic.sessions.record import RecordedSignal, SessionAttempt
from interlock.epic.sessions.transfer import (
    LARGEST,
    check_attempt,
    check_checkpoint,
    choose_signals,
    merge_checkpoint,
)
from interlock.epic.status import Status
from interlock.system.errors import SourceError

HANDED = Checkpoint(
    generation=4,
    created="then",
    epic=Epic(id="epic-3", title="Boats"),
    stories=(Story(id="3-1", status=Status.DONE), Story(id="3-2")),
    git=GitWork(commit="a" * 40, branch="main"),
    hitl=Hitl(issue=7, response=""),
    recoveries=(Recovery(number=1, state="stashed", stash="c" * 40),),
    note="before",
)


def changed(**fields: Any) -> Checkpoint:
    return msgspec.structs.replace(HANDED, **{"generation": 6, **fields})


def test_what_a_session_states_is_taken() -> None:
    found = changed(
        note="after",
        git=GitWork(commit="b" * 40, branch="main"),
        stories=(HANDED.stories[0], Story(id="3-2", status=Status.DONE), Story(id="3-3")),
        recoveries=(Recovery(number=1, state="restored", stash="c" * 40),),
        next_action=NextAction(type="retry", description="the tests"),
        updated="now",
    )
    assert check_checkpoint(HANDED, encode_checkpoint(found)) == found
    assert check_checkpoint(HANDED, encode_checkpoint(HANDED)) == HANDED
    # Meanwhile somebody has set another story aside here, and a failure was noted.
    ours = {"failures": (EpicFailure(type="CRASH"),), "generation": 5}
    known = msgspec.structs.replace(HANDED, **ours).with_story(
        Story(id="3-4", status=Status.DEFERRED)
    )
    merged = merge_checkpoint(known, HANDED, found)
    assert [(each.id, each.status.value) for each in merged.stories] == [
        ("3-1", "done"),
        ("3-2", "done"),
        ("3-4", "deferred"),
        ("3-3", "in_progress"),
    ]
    assert (merged.note, merged.git, merged.hitl) == ("after", found.git, HANDED.hitl)
    assert (merged.failures, merged.generation) == (known.failures, 5)
    assert merged.recoveries == found.recoveries
    assert merge_checkpoint(merged, HANDED, found) == merged


FORGED = {
    "of epic 'epic-4'": changed(epic=Epic(id="epic-4", title="Boats")),
    "of generation 3, older than 4": changed(generation=3),
    "not what generation 4 was": changed(generation=4, note="other"),
    "changes hitl": changed(hitl=Hitl(issue=7, response="approve")),
    "changes failures": changed(failures=(EpicFailure(type="CRASH"),)),
    "changes recoveries": changed(recoveries=()),
    "changes attempts": changed(attempts={"recovery": 0}),
    "changes created": changed(created="now"),
    "changes epic": changed(epic=Epic(id="epic-3", title="Boats", status=Status.DONE)),
    "changes story 3-1": changed(stories=(Story(id="3-1"), Story(id="3-2"))),
    "changes story 3-2": changed(stories=HANDED.stories[:1]),
}


@pytest.mark.parametrize("why", FORGED)
def test_what_is_not_for_a_session_to_change_is_refused(why: str) -> None:
    with pytest.raises(SourceError, match=f"the checkpoint (is )?{why}"):
        check_checkpoint(HANDED, encode_checkpoint(FORGED[why]))


def test_a_checkpoint_that_is_damaged_or_too_large_or_old_fashioned_is_refused() -> None:
    raw = encode_checkpoint(changed(note="after"))
    bad = {
        raw.replace(b"after", b"later"): "its checksum does not match",
        raw[:-20]: "cannot be read",
        b"": "cannot be read",
        b" " * (LARGEST + 1): "600,001 bytes; 600,000 are the most",
        b'{"version": "3.0"}': "use a newer Interlock",
        json.dumps(nested()).encode(): "generation 0, older",
    }
    for given, why in bad.items():
        with pytest.raises(SourceError, match=why):
            check_checkpoint(HANDED, given)


def build_attempt(ended_by: str, kind: str = "", **more: Any) -> SessionAttempt:
    signal = RecordedSignal(at=0, via="stream", type=kind, **more) if kind else None
    return SessionAttempt(ended_by=ended_by, signal=signal, signals=(), before="")


def test_an_end_must_follow_from_its_signal() -> None:
    success = {"epic_id": "epic-3", "status": "success"}
    for right in (
        build_attempt("NOTHING"),
        build_attempt("CRASH"),
        build_attempt("EPIC_COMPLETE", "EPIC_COMPLETE", fields=success),
        build_attempt("CHECKPOINT_WRITE", "CHECKPOINT:WRITE"),
    ):
        check_attempt(right, "epic-3")
    for wrong, why in (
        (build_attempt("EPIC_COMPLETE"), "no signal that says so"),
        (build_attempt("CHECKPOINT_WRITE"), "no signal that says so"),
        (build_attempt("EPIC_COMPLETE", "STORY_COMPLETE"), "does not follow"),
        (build_attempt("STORY_COMPLETE", "STORY_COMPLETE"), "does not follow"),
        (build_attempt("FATAL_ERROR", "FATAL_ERROR", repeated=True), "does not follow"),
        (build_attempt("EPIC_COMPLETE", "EPIC_COMPLETE", refused="WrongTask"), "does not follow"),
        (build_attempt("EPIC_COMPLETE", "EPIC_COMPLETE", fields={"epic_id": "e"}), "epic 'e', not"),
    ):
        with pytest.raises(SourceError, match=why):
            check_attempt(wrong, "epic-3")


def test_of_many_signals_those_travel_that_change_something() -> None:
    note = RecordedSignal(at=0, via="stream", type="PHASE_TRANSITION")
    story = RecordedSignal(at=0, via="stream", type="STORY_STARTED")
    void = msgspec.structs.replace(story, repeated=True)
    assert choose_signals((note,) * 60 + (story, void)) == (note,) * 50 + (story,)
