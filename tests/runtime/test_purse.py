"""The budget of a run: limits that hold to the dispatch, and time that is counted once."""

import pytest

from interlock.engine.schedule import Budget, Spent
from interlock.runtime.budget import BudgetLimits, BudgetUsage, RunBudget


def budget_of(budget: Budget | None, spent: Spent, now: float) -> RunBudget:
    """Limits for the run alone."""
    return RunBudget(BudgetLimits(budget or Budget()), BudgetUsage(spent), now)


@pytest.mark.parametrize(
    ("budget", "spent", "left"),
    [
        pytest.param(None, Spent(dispatches=10**6), None, id="no limits"),
        pytest.param(Budget(dispatches=5), Spent(dispatches=3), 2, id="some left"),
        pytest.param(Budget(dispatches=5), Spent(dispatches=5), 0, id="exactly spent"),
        pytest.param(Budget(dispatches=5, tokens=9), Spent(tokens=9), 0, id="tokens spent"),
        pytest.param(Budget(money=1.5), Spent(money=1.4), None, id="money left"),
        pytest.param(Budget(seconds=12.0), Spent(seconds=9.5), 0, id="time not yet noted counts"),
    ],
)
def test_what_is_left(budget: Budget | None, spent: Spent, left: int | None) -> None:
    assert budget_of(budget, spent, now=100.0).dispatches_left(102.5) == left


def test_what_is_paid_adds_up() -> None:
    budget = budget_of(None, Spent(1, 10, 0.5, 7.0), now=0.0)
    budget.charge("author", dispatches=2)
    budget.charge("critic", tokens=5, money=0.25)
    assert budget.spent == Spent(3, 15, 0.75, 7.0)


def test_time_is_noted_once_a_second_or_when_asked_and_never_backwards() -> None:
    budget = budget_of(None, Spent(), now=100.0)
    noted = [
        sum(worked.seconds for worked in budget.pop_work_time(at, now=now))
        for at, now in [(100.5, False), (101.5, False), (101.75, True), (90.0, True), (90.5, True)]
    ]
    assert noted == [0.0, 1.5, 0.25, 0.0, 0.5]
    assert budget.spent.seconds == 2.25
