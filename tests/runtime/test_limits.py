"""Limits in words: of the run, of a role, of a day; and what is spent of them."""

from typing import Any

import pytest

from interlock.engine.schedule import Budget, Spent
from interlock.runtime.budget import BudgetLimits, BudgetUsage, flat, parts, read_limits
from interlock.system.errors import SourceError


def test_words_that_are_right() -> None:
    words = {"dispatches": "7", "tokens": 9, "money": "2.5", "time": "2h"}
    assert read_limits(words) == BudgetLimits(Budget(7, 9, 2.5, 7200.0))
    more = {"role.author.tokens": 5, "role.a.b.time": "1m", "day.money": 5, "tokens": 1}
    assert read_limits(more) == BudgetLimits(
        Budget(tokens=1),
        {"author": Budget(tokens=5), "a.b": Budget(seconds=60.0)},
        Budget(money=5.0),
    )
    assert read_limits({}) == BudgetLimits()


WRONG: list[tuple[str, object]] = [
    *(("beer", 1), ("", 1), (".", 1), ("role.tokens", 1), ("role..tokens", 1)),
    *(("day.role.x.tokens", 1), ("Day.money", 1), ("role.author.beer", 1), ("year.money", 1)),
    *(("tokens", -1), ("tokens", "1.5"), ("tokens", None), ("tokens", True), ("tokens", [])),
    *(("money", "nan"), ("money", "inf"), ("time", "0"), ("time", "soon"), ("day.time", "-2h")),
]


@pytest.mark.parametrize(("word", "amount"), WRONG)
def test_words_that_are_wrong(word: str, amount: object) -> None:
    with pytest.raises(SourceError):
        read_limits({word: amount})


def test_a_role_that_is_not_there() -> None:
    assert read_limits({"role.pilot.tokens": 1}).roles == {"pilot": Budget(tokens=1)}
    with pytest.raises(SourceError, match="no step has the role 'pilot'; roles are author"):
        read_limits({"role.pilot.tokens": 1}, {"author"})


def test_tables_of_a_project_are_the_same_words() -> None:
    table: dict[str, Any] = {"tokens": 1, "role": {"author": {"money": 2.5}}, "day": {"time": "8h"}}
    assert flat(table) == {"tokens": 1, "role.author.money": 2.5, "day.time": "8h"}


def test_parts_are_named_by_their_words() -> None:
    limits = read_limits({"time": 10, "role.author.tokens": 4, "day.dispatches": 0, "money": 8})
    spending = BudgetUsage(Spent(money=2.0, seconds=20.0), {"author": Spent(tokens=3)})
    assert parts(limits, spending) == {
        "money": 0.25,
        "time": 2.0,
        "role.author.tokens": 0.75,
        "day.dispatches": 1.0,
    }
