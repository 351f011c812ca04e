"""Test that the policy has a row for every finding, and that the most cautious action counts."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock.system.errors import SourceError
from interlock_epic.recovery.policy import (
    DEFAULTS,
    Action,
    GitFinding,
    GitState,
    decide_resume,
    describe_finding,
    read_policy,
)


def test_every_finding_has_a_row_and_words() -> None:
    assert set(DEFAULTS) == set(GitFinding)
    state = GitState(findings=(), tracked=("a", "b", "c", "d", "e"), operation="merge", ahead=1)
    words = {describe_finding(each, state) for each in GitFinding}
    assert len(words) == len(GitFinding)
    assert "files have changed since: a, b, c and 2 more" in words
    assert "HEAD nothing is 1 commit ahead of the checkpoint" in words


@given(st.sets(st.sampled_from(GitFinding), min_size=1))
def test_the_most_cautious_counts(findings: set[GitFinding]) -> None:
    found = decide_resume(GitState(findings=tuple(sorted(findings))))
    assert found.action == max(DEFAULTS[each] for each in findings)
    assert {DEFAULTS[each] for each in found.because} == {found.action}
    assert all(describe_finding(each, GitState(findings=())) for each in found.because)


def test_a_projects_own_rows() -> None:
    policy = read_policy({"dirty-tracked": "ask", "behind": "continue"})
    assert (policy[GitFinding.DIRTY_TRACKED], policy[GitFinding.BEHIND]) == (
        Action.ASK,
        Action.CONTINUE,
    )
    assert policy[GitFinding.DIVERGED] == DEFAULTS[GitFinding.DIVERGED]
    dirty = GitState(findings=(GitFinding.EQUAL, GitFinding.DIRTY_TRACKED), tracked=("a",))
    assert decide_resume(dirty, policy).action == Action.ASK


@pytest.mark.parametrize(
    ("settings", "why"),
    [
        ({"late": "ask"}, "'late' is not a finding about git; use one of equal, ahead"),
        ({"behind": "reset"}, "behind = 'reset': use one of continue, stash, ask, refuse"),
        ({"behind": "stash"}, "behind = stash: only dirty_as_left, dirty_tracked"),
        ({"operation": "continue"}, "operation = continue: use ask or refuse"),
    ],
)
def test_rows_that_cannot_be(settings: dict[str, str], why: str) -> None:
    with pytest.raises(SourceError, match=why):
        read_policy(settings)
