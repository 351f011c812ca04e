"""What is said to be settled answers for itself and for nothing else."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock.epic.approval.comment import read_comment
from interlock.epic.approval.comment_settled import reach, settled_names
from interlock.epic.approval.comment_verdict import CommentDecision

THINGS = ("schema", "rollback", "cache", "index", "migration", "queue", "report", "login")
FAULTS = ("The {} is broken.", "The {} is missing.", "I reject the {}.", "Please rename the {}.")
DONE = ("The {} is fixed.", "The {} is done now.", "The {} has been added.")


@given(st.permutations(THINGS), st.sampled_from(FAULTS), st.sampled_from(DONE))
def test_another_thing_that_is_done_settles_no_fault(
    things: list[str], fault: str, done: str
) -> None:
    text = f"{fault.format(things[0])} {done.format(things[1])} Approved."
    assert read_comment(text).outcome is CommentDecision.REVISE


@given(st.sampled_from(THINGS), st.sampled_from(FAULTS[:2]), st.sampled_from(DONE))
def test_the_same_thing_or_it_does(thing: str, fault: str, done: str) -> None:
    for settled in (done.format(thing), "It is fixed now.", "All fixed now."):
        text = f"{fault.format(thing)} {settled} Approved."
        assert read_comment(text).outcome is CommentDecision.APPROVE, text


@pytest.mark.parametrize(
    ("text", "far"),
    [
        ("they are all fixed", "all"),
        ("everything is done", "all"),
        ("my comments are addressed", "all"),
        ("it is fixed", "last"),
        ("fixed now", "last"),
        ("the tests are green", ""),
        ("all tests are green", ""),
        ("the tests are red", ""),
    ],
)
def test_how_far_back_it_reaches(text: str, far: str) -> None:
    assert reach(text) == far


def test_names_are_without_plural_and_with_numbers() -> None:
    assert settled_names("story 2 is done, the docs are added") == [{"story", "2"}, {"doc"}]


def test_a_fresh_start_leaves_behind_what_stood_before_it_and_no_more() -> None:
    assert read_comment("Please fix it. I misread it. LGTM").outcome is CommentDecision.APPROVE
    assert (
        read_comment("I misread it, please fix the tests. LGTM").outcome is CommentDecision.REVISE
    )
