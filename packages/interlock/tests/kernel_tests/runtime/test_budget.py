"""Budgets: limits in words, what is left of them, and the question when one is spent."""

from pathlib import Path
from typing import Any

import pytest

from interlock.engine.schedule import Budget, Spent
from interlock.journal.usage import list_open_inquiries, sum_day_usage, sum_role_usage
from interlock.runtime.budget import (
    BudgetLimits,
    BudgetUsage,
    RunBudget,
    compute_limit_shares,
    flatten_limits,
    read_limits,
)
from interlock.runtime.loop import RunLoop
from interlock.system.errors import SourceError
from tests.world.clock import START
from tests.world.sample_circuit import ONE_STEP
from tests.world.world import World


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
    assert flatten_limits(table) == {"tokens": 1, "role.author.money": 2.5, "day.time": "8h"}


def test_parts_are_named_by_their_words() -> None:
    limits = read_limits({"time": 10, "role.author.tokens": 4, "day.dispatches": 0, "money": 8})
    spending = BudgetUsage(Spent(money=2.0, seconds=20.0), {"author": Spent(tokens=3)})
    assert compute_limit_shares(limits, spending) == {
        "money": 0.25,
        "time": 2.0,
        "role.author.tokens": 0.75,
        "day.dispatches": 1.0,
    }


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


PAID = '"*": {work: {answer: {}, usage: {tokens: 10, money: 0.5}}}'
SCRIPT = """\
"*":
  write: {answer: {words: 5}, usage: {tokens: 10, money: 0.5}}
  judge: {answer: {mark: 4}, usage: {tokens: 1, money: 0.25}}
  sign: {answer: {decision: approve}}
"""
ABOUT = "run 1 has spent its budget ({}): raise it, or stop?"


@pytest.fixture
def world(tmp_path: Path) -> World:
    made = World(tmp_path, ONE_STEP)
    made.begin("A", "B", "C", "D")
    return made


def asked(world: World) -> list[tuple[int, str]]:
    """What the budget asks, and is not answered."""
    with world.reading() as connection:
        return [(each.question_id, each.about) for each in list_open_inquiries(connection)]


def spends(world: World, budget: str, **more: Any) -> tuple[str, int]:
    """How a sitting ends with that budget, and what the run has spent by then."""
    status = world.work(PAID, budget=budget, inbox=True, places=1, **more)
    return status, world.run().spent.dispatches


@pytest.mark.parametrize(
    ("budget", "dispatches"),
    [
        *(("dispatches=2", 2), ("tokens=15", 2), ("money=1.5", 3), ("tokens=0", 0)),
        *(("role.worker.dispatches=1", 1), ("role.worker.tokens=11", 2), ("day.money=0.5", 1)),
        *(("day.dispatches=3 role.worker.money=0.7", 2), ("day.tokens=20 tokens=10", 1)),
    ],
)
def test_every_limit_holds_and_asks(world: World, budget: str, dispatches: int) -> None:
    assert spends(world, budget) == ("budget", dispatches)
    ((number, about),) = asked(world)
    assert number == dispatches + 1
    assert about.startswith("run 1 has spent its budget (")
    assert spends(world, budget) == ("budget", dispatches)
    assert (len(asked(world)), world.faults()) == (1, [])


def test_a_role_without_budget_does_not_keep_others_waiting(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.begin("A", "B", "C")
    assert world.work(SCRIPT, budget="role.author.dispatches=2") == "budget"
    assert world.ends() == {"A": "done", "B": "done", "C": "open"}
    with world.reading() as connection:
        spent = sum_role_usage(connection, 1)
    assert spent == {"author": Spent(2, 20, 1.0), "critic": Spent(2, 2, 0.5)}


def test_time_is_counted_for_the_run_the_role_and_the_day(tmp_path: Path) -> None:
    world = World(tmp_path, ONE_STEP)
    world.begin("A", "B")
    slow = '"*": {work: {delay: 4s, answer: {}}}'
    assert world.work(slow, budget="role.worker.time=8") == "done"
    with world.reading() as connection:
        assert sum_role_usage(connection, 1) == {"worker": Spent(dispatches=2, seconds=8.0)}
        today = sum_day_usage(connection, "hour 997200", 997200, 1000800)
    assert today == Spent(dispatches=2, seconds=4.0)
    world.begin("A", "B", "C")
    status = world.work(slow, run_id=2, budget="role.worker.time=7", places=2)
    assert (status, world.ends(2)) == ("budget", {"A": "done", "B": "done", "C": "open"})


def test_a_day_is_of_all_runs_and_ends(world: World) -> None:
    world.begin("E")
    assert spends(world, "day.dispatches=3") == ("budget", 3)
    assert world.work(PAID, run_id=2, budget="day.dispatches=3") == "budget"
    assert spends(world, "day.dispatches=3") == ("budget", 3)
    world.clock.time += 3600
    assert spends(world, "day.dispatches=3") == ("done", 4)
    assert asked(world) == []
    assert world.work(PAID, run_id=2, budget="day.dispatches=3") == "done"


def test_eighty_percent_is_told_once(world: World) -> None:
    assert spends(world, "dispatches=5 day.tokens=1000") == ("done", 4)
    output = [each.text for each in world.notices if each.event == "budget-low"]
    assert output == ["80% of the budget's dispatches is spent"]


def test_raised_by_an_answer_it_goes_on_and_keeps_the_new_limit(world: World) -> None:
    assert spends(world, "tokens=20") == ("budget", 2)
    assert asked(world) == [(3, ABOUT.format("tokens=20"))]
    world.answer(3, "raise", tokens=30)
    assert spends(world, "tokens=20") == ("budget", 3)
    assert world.run().options["budget"] == {"tokens": 30}
    assert asked(world) == [(5, ABOUT.format("tokens=30"))]
    world.answer(5, "raise", tokens=100, comment="go")
    assert spends(world, "tokens=20") == ("done", 4)
    result = world.rows("select answered_by, answer from inquiries order by 1")
    assert result[0] == ("ann", '{"decision":"raise","tokens":30}')
    assert world.answers.list_names() == []


def test_stop_is_honoured_and_not_asked_again(world: World) -> None:
    assert spends(world, "tokens=20") == ("budget", 2)
    world.answer(3, "stop")
    for _ in range(2):
        assert spends(world, "tokens=20") == ("budget", 2)
        assert asked(world) == []
    assert spends(world, "tokens=30") == ("budget", 3)
    assert [about for _, about in asked(world)] == [ABOUT.format("tokens=30")]


def test_raised_by_a_flag_the_question_is_settled(world: World) -> None:
    assert spends(world, "tokens=20") == ("budget", 2)
    assert spends(world, "tokens=100") == ("done", 4)
    assert asked(world) == []


def test_whoever_waits_goes_on_at_once(world: World) -> None:
    things = [lambda _: None, lambda _: world.answer(3, "raise", tokens=100)]
    assert spends(world, "tokens=20", wait=True, at_rest=things) == ("done", 4)


def test_a_stop_while_the_question_waits(world: World) -> None:
    assert spends(world, "tokens=20", wait=True, at_rest=[RunLoop.stop]) == ("stopped", 2)
    assert len(asked(world)) == 1


@pytest.mark.parametrize(
    "data",
    [
        *({"decision": "approve"}, {"decision": "raise"}, {"decision": "raise", "beer": 1}),
        *({"decision": "raise", "tokens": "many"}, {"tokens": 100}, {}),
        {"decision": "raise", "tokens": {"deep": 1}},
    ],
)
def test_an_answer_that_cannot_be_leaves_the_question_open(
    world: World, data: dict[str, Any]
) -> None:
    spends(world, "tokens=20")
    decision = data.pop("decision", "")
    world.answer(3, decision, **data)
    assert spends(world, "tokens=20") == ("budget", 2)
    assert (world.refused(), len(asked(world))) == (["Malformed"], 1)
    assert world.answers.list_names() == []
    world.answer(3, "raise", tokens=100)
    assert spends(world, "tokens=20") == ("done", 4)


def test_nothing_is_asked_when_nothing_is_held_back(world: World) -> None:
    assert spends(world, "dispatches=4") == ("done", 4)
    assert asked(world) == []
    assert world.clock.time == START
