"""Test how a session's signals change its checkpoint."""

from itertools import pairwise

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock_epic.checkpoints.record import Checkpoint, Epic, GitWork, Hitl, Position, Story
from interlock_epic.progress import (
    apply_announced_position,
    apply_answer,
    apply_stories,
    build_mark,
    explain_contradiction,
    has_written,
    is_unanswered,
    list_unfinished,
    reach_status,
)
from interlock_epic.sessions.record import RecordedSignal
from interlock_epic.status import NEXT, Status

EPIC = Checkpoint(epic=Epic(id="e"), stories=(Story(id="1", status=Status.BACKLOG),))
AT = "2026-01-01T00:00:00Z"


def make_signal(kind: str, **fields: str) -> RecordedSignal:
    return RecordedSignal(at=1.0, via="stream", type=kind, fields=dict(fields))


def place(story: str = "1", task: str = "1") -> RecordedSignal:
    return make_signal("CHECKPOINT:WRITE", epic_id="e", story_id=story, phase="p", task=task)


def test_the_same_place_has_the_same_mark_whatever_else_was_written() -> None:
    again = msgspec.structs.replace(EPIC, generation=7, updated="later")
    assert build_mark(EPIC) == build_mark(again) != build_mark(None)
    for other in (
        msgspec.structs.replace(EPIC, note="x"),
        msgspec.structs.replace(EPIC, position=Position(story_id="1")),
        msgspec.structs.replace(EPIC, git=GitWork(commit="a" * 40)),
        msgspec.structs.replace(EPIC, stories=()),
    ):
        assert build_mark(other) != build_mark(EPIC)


def test_a_story_that_was_only_planned_is_begun_by_a_checkpoint() -> None:
    found = apply_announced_position(EPIC, place(), GitWork(), AT)
    assert found.stories[0].status == Status.IN_PROGRESS
    assert found.position == Position(story_id="1", phase="p", task="1")


def test_a_story_that_is_done_stays_done_under_a_checkpoint() -> None:
    done = EPIC.with_story(Story(id="1", status=Status.DONE))
    assert apply_announced_position(done, place(), GitWork(), AT).stories[0].status == Status.DONE


def test_what_cannot_follow_is_told_and_changes_nothing() -> None:
    done = EPIC.with_story(Story(id="1", status=Status.DONE))
    found, notes = apply_stories(done, [make_signal("STORY_STARTED", story_id="1")])
    assert (found, notes) == (done, ["story 1 is done and cannot become in_progress"])
    odd, output = apply_stories(
        EPIC, [make_signal("STORY_COMPLETE", story_id="1", status="purple")]
    )
    assert odd == EPIC
    assert "'purple' is not a status" in output[0]


def test_words_that_do_not_count_change_nothing() -> None:
    received = [
        msgspec.structs.replace(make_signal("STORY_COMPLETE", story_id="1"), repeated=True),
        msgspec.structs.replace(make_signal("STORY_COMPLETE", story_id="1"), refused="Malformed"),
        make_signal("STORY_COMPLETE"),
        make_signal("PHASE_TRANSITION", from_phase="a"),
    ]
    assert apply_stories(EPIC, received) == (EPIC, [])


def test_more_stories_than_anybody_has_are_not_noted() -> None:
    many = [make_signal("STORY_STARTED", story_id=f"s-{n}") for n in range(2_000)]
    found, notes = apply_stories(EPIC, many)
    assert (len(found.stories), len(notes)) == (1_000, 20)


def test_a_checkpoint_counts_as_written_only_if_it_is_that_one_and_new() -> None:
    written = apply_announced_position(EPIC, place(), GitWork(), AT)
    assert has_written(build_mark(EPIC), written, place())
    assert not has_written(build_mark(written), written, place())
    assert not has_written(build_mark(EPIC), written, place(task="2"))
    assert not has_written("none", None, place())


@pytest.mark.parametrize(
    ("response", "open_"),
    [
        ("", True),
        ("discuss", True),
        ("timeout", True),
        ("halt", True),
        ("approve", False),
        ("APPROVED", False),
        ("revise", False),
    ],
)
def test_only_an_approval_or_a_revision_lets_the_work_go_on(response: str, open_: bool) -> None:
    asked = msgspec.structs.replace(EPIC, hitl=Hitl(response=response))
    assert is_unanswered(asked) is open_
    assert not is_unanswered(EPIC)
    assert not is_unanswered(apply_answer(asked, "approve", "", AT))


def test_a_broken_story_contradicts_success_and_an_open_one_is_only_told() -> None:
    broken = EPIC.with_story(Story(id="2", status=Status.BLOCKED))
    assert explain_contradiction(broken) == "the session reported success, but story 2 is blocked"
    started = EPIC.with_story(Story(id="2", status=Status.DONE))
    assert (explain_contradiction(started), list_unfinished(started)) == ("", "1")
    none = "the session reported success, but none of 1 stories is done"
    assert (explain_contradiction(EPIC), explain_contradiction(None)) == (none, "")


@given(st.sampled_from(Status), st.sampled_from(Status))
def test_a_status_is_reached_by_legal_steps_alone(before: Status, after: Status) -> None:
    found = reach_status(before, after)
    legal = {before} | {
        status
        for status in Status
        for way in ([], [Status.READY], [Status.IN_PROGRESS], [Status.READY, Status.IN_PROGRESS])
        if _is_legal([before, *way, status])
    }
    assert (found == after) if after in legal else found is None
    if not NEXT[before] and after != before:
        assert found is None


def _is_legal(way: list[Status]) -> bool:
    return all(b == a or b in NEXT[a] for a, b in pairwise(way))
