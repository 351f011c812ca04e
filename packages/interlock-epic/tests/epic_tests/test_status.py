"""Test that every word means one status, and that finished work stays finished."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock.system.errors import SourceError, StateError
from interlock_epic.status import ALIASES, NEXT, Status, change_status, read_status

S = Status


@pytest.mark.parametrize(
    "words",
    [
        "drafted=draft ready-for-dev=ready in-progress=in_progress canceled=cancelled",
        "done=done blocked=blocked queued=backlog started=in_progress reviewing=review",
        "backlog=backlog review=review completed=done deferred=deferred todo=backlog",
        "error=failed paused=paused waiting=waiting working=in_progress partial=partial",
    ],
)
def test_every_word_has_a_meaning(words: str) -> None:
    for pair in words.split():
        word, _, meaning = pair.partition("=")
        assert read_status(word) == meaning, word


def test_spelling_does_not_matter() -> None:
    assert {
        read_status(word) for word in ("Ready for Dev", "READY_FOR_DEV", " ready-for-dev ")
    } == {S.READY}


@pytest.mark.parametrize(
    "word", ["", "banana", "hitl_pending", "in progress now", "done!", "d\x00ne", "\uff44one"]
)
def test_a_word_that_means_nothing_is_refused(word: str) -> None:
    with pytest.raises(SourceError, match="is not a status; use one of backlog, draft, ready"):
        read_status(word)


def test_no_word_means_two_things() -> None:
    words = [*Status, *(word for words in ALIASES.values() for word in words)]
    assert len(words) == len(set(words))


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (S.DRAFT, S.IN_PROGRESS),
        (S.BACKLOG, S.DONE),
        (S.READY, S.DONE),
        (S.DONE, S.IN_PROGRESS),
        (S.SKIPPED, S.READY),
        (S.CANCELLED, S.BACKLOG),
        (S.FAILED, S.DONE),
        (S.HALTED, S.DONE),
    ],
)
def test_what_may_not_follow(before: Status, after: Status) -> None:
    with pytest.raises(StateError, match=f"story 1 is {before} and cannot become {after}"):
        change_status(before, after, "story 1")


def test_the_seeds_transitions_are_legal() -> None:
    walk = [S.BACKLOG, S.DRAFT, S.READY, S.IN_PROGRESS, S.BLOCKED, S.IN_PROGRESS, S.REVIEW, S.DONE]
    for before, after in pairwise(walk):
        assert change_status(before, after, "story") == after
    assert change_status(None, S.PAUSED, "story") == S.PAUSED


@given(st.sampled_from(Status))
def test_the_same_again_is_legal_and_everything_open_can_be_left(status: Status) -> None:
    assert change_status(status, status, "story") == status
    assert status not in NEXT[status]
    reached = {status}
    for _ in Status:
        reached |= {after for before in reached for after in NEXT[before]}
    assert reached & {S.DONE, S.SKIPPED, S.CANCELLED}
