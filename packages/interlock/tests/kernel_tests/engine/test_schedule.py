"""The plan: who may go now, in which order, and who must wait."""

from collections.abc import Callable, Iterable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from interlock.engine.circuit import HUMAN, Role
from interlock.engine.schedule import (
    Budget,
    Schedule,
    Spent,
    check_dependencies,
    compute_shares,
    count_dispatches_left,
    ready,
)
from interlock.system.errors import StateError

ROLES = {name: Role(name) for name in ("author", "critic", HUMAN)}


def suite(
    *wants: str, roles: dict[str, Role] | None = None, places: int | None = None, **needs: list[str]
) -> Schedule:
    """`A:author` wants a place; needs are given by name."""
    made = Schedule(roles or ROLES, places)
    pairs = [want.split(":") for want in wants]
    for case_id, _ in pairs:
        made.add(case_id, needs=needs.get(case_id, ()))
    for case_id, role in pairs:
        made.enqueue(case_id, role)
    return made


@pytest.mark.parametrize(
    ("slots", "places", "out", "goes"),
    [
        pytest.param(None, None, 0, "ABCD", id="no limit"),
        pytest.param(2, None, 0, "AB", id="slots of the role"),
        pytest.param(2, None, 1, "B", id="one slot taken"),
        pytest.param(2, None, 2, "", id="all slots taken"),
        pytest.param(None, 3, 0, "ABC", id="places of the suite"),
        pytest.param(None, 3, 3, "", id="all places taken"),
        pytest.param(3, 2, 0, "AB", id="fewer places than slots"),
        pytest.param(1, 3, 0, "A", id="fewer slots than places"),
        pytest.param(None, 1, 2, "", id="more out than places"),
    ],
)
def test_places(slots: int | None, places: int | None, out: int, goes: str) -> None:
    roles = {**ROLES, "author": Role("author", slots)}
    made = suite(*(f"{name}:author" for name in "ABCD"), roles=roles, places=places)
    for name in "ABCD"[:out]:
        made.mark_sent(name, "author")
    assert ready(made) == [name for name in goes if name not in "ABCD"[:out]]


def test_an_answer_frees_its_place() -> None:
    made = suite("A:author", "B:author", places=1)
    made.mark_sent("A", "author")
    assert ready(made) == []
    made.mark_answered("A")
    assert ready(made) == ["B"]


def test_a_human_takes_no_place_and_costs_no_budget() -> None:
    made = suite("A:human", "B:human", "C:author", places=1)
    made.mark_sent("A", HUMAN)
    assert (ready(made), ready(made, 0), made.busy) == (["B", "C"], ["B"], 0)


@pytest.mark.parametrize(
    ("left", "goes"), [(None, "ABC"), (3, "ABC"), (2, "AB"), (1, "A"), (0, ""), (9, "ABC")]
)
def test_the_budget_limits_how_many_go(left: int | None, goes: str) -> None:
    assert ready(suite("A:author", "B:author", "C:author"), left) == [*goes]


@pytest.mark.parametrize(
    ("limits", "spent", "left"),
    [
        pytest.param(Budget(), Spent(9, 9, 9.0, 9.0), None, id="no limit"),
        pytest.param(Budget(dispatches=5), Spent(), 5, id="nothing spent"),
        pytest.param(Budget(dispatches=5), Spent(dispatches=3), 2, id="some spent"),
        pytest.param(Budget(dispatches=5), Spent(dispatches=5), 0, id="exactly spent"),
        pytest.param(Budget(dispatches=5), Spent(dispatches=6), 0, id="overspent"),
        pytest.param(Budget(dispatches=0), Spent(), 0, id="no dispatch at all"),
        pytest.param(Budget(tokens=10), Spent(tokens=9), None, id="tokens left"),
        pytest.param(Budget(tokens=10), Spent(tokens=10), 0, id="tokens spent"),
        pytest.param(Budget(tokens=0), Spent(), 0, id="no tokens at all"),
        pytest.param(Budget(money=0.3), Spent(money=0.3), 0, id="money spent"),
        pytest.param(Budget(seconds=60), Spent(seconds=60.5), 0, id="time spent"),
        pytest.param(Budget(dispatches=9, tokens=5), Spent(1, 5), 0, id="the tightest counts"),
    ],
)
def test_dispatches_left(limits: Budget, spent: Spent, left: int | None) -> None:
    assert count_dispatches_left(limits, spent) == left


def test_used_names_every_limit_and_no_other() -> None:
    limits = Budget(dispatches=4, money=0.0)
    assert compute_shares(limits, Spent(dispatches=1, tokens=7)) == {
        "dispatches": 0.25,
        "money": 1.0,
    }


@pytest.mark.parametrize(
    ("arrange", "order"),
    [
        pytest.param(lambda add: (add("A"), add("B"), add("C")), "ABC", id="who came first"),
        pytest.param(lambda add: (add("A"), add("B", 5), add("C", -1)), "BAC", id="priority"),
        pytest.param(
            lambda add: (add("A"), add("B"), add("x", 0, ["B"])), "BA", id="more depend on it"
        ),
        pytest.param(
            lambda add: (add("A", 1), add("B"), add("x", 0, ["B"]), add("y", 0, ["B"])),
            "AB",
            id="priority before dependents",
        ),
        pytest.param(
            lambda add: (add("A", 9), add("B", role="critic")), "BA", id="rank before priority"
        ),
    ],
)
def test_order(arrange: Callable[[Callable[..., None]], Any], order: str) -> None:
    roles = {"author": Role("author"), "critic": Role("critic", priority=1)}
    made = Schedule(roles)
    wanted: list[tuple[str, str]] = []

    def add(name: str, priority: int = 0, needs: Iterable[str] = (), role: str = "author") -> None:
        made.add(name, priority, needs)
        wanted.append((name, role))

    arrange(add)
    for name, role in wanted:
        made.enqueue(name, role)
    assert ready(made) == [*order]


def test_only_the_holder_goes_until_it_releases() -> None:
    made = suite("A:author", "B:author", "C:critic")
    made.hold("fix", "B")
    assert ready(made) == ["B"]
    made.mark_sent("B", "author")
    assert ready(made) == []
    made.mark_answered("B")
    made.release("fix")
    made.enqueue("B", "author")
    assert ready(made) == ["A", "C", "B"]


@pytest.mark.parametrize("healthy", [True, False], ids=["healthy", "unhealthy"])
def test_a_hold_ends_with_its_holder(healthy: bool) -> None:
    made = suite("A:author", "B:author")
    made.hold("fix", "B")
    made.mark_sent("B", "author")
    made.mark_answered("B")
    made.mark_ended("B", healthy)
    assert ready(made) == ["A"]


def test_a_hold_belongs_to_the_first_who_took_it() -> None:
    made = suite("A:author", "B:author")
    made.hold("fix", "A")
    made.hold("fix", "B")
    assert ready(made) == ["A"]
    made.mark_ended("B", True)
    assert made.holds == {"fix": "A"}


def test_holders_of_different_holds_go_both() -> None:
    made = suite("A:author", "B:critic", "C:author")
    made.hold("one", "A")
    made.hold("two", "B")
    assert ready(made) == ["A", "B"]


def test_a_case_starts_when_all_it_needs_ended_well() -> None:
    made = suite("A:author", "B:author", "C:author", C=["A", "B"])
    assert ready(made) == ["A", "B"]
    for name in "AB":
        assert "C" not in ready(made)
        made.mark_sent(name, "author")
        made.mark_answered(name)
        made.mark_ended(name, True)
    assert ready(made) == ["C"]


def test_a_failed_case_blocks_its_dependents_and_nothing_else() -> None:
    made = suite("A:author", "B:author", "C:author", B=["A"])
    made.mark_sent("A", "author")
    made.mark_answered("A")
    made.mark_ended("A", False)
    assert ready(made) == ["C"]
    assert made.parked == {"B": "author"}


@pytest.mark.parametrize(
    ("after", "message"),
    [
        pytest.param({"A": "A"}, "these cases wait for each other: A after A", id="itself"),
        pytest.param(
            {"A": "B", "B": "A"}, "these cases wait for each other: A after B after A", id="two"
        ),
        pytest.param(
            {"x": "A", "A": "B", "B": "C", "C": "A"},
            "these cases wait for each other: A after B after C after A",
            id="three, not from the start",
        ),
        pytest.param(
            {"A": "Z"}, "case 'A' comes after 'Z', which is not in the file", id="missing"
        ),
    ],
)
def test_circles_and_missing_names_are_refused(after: dict[str, str], message: str) -> None:
    with pytest.raises(StateError) as caught:
        check_dependencies({name: [*needs] for name, needs in after.items()})
    assert str(caught.value) == message


LONG = 20_000


def test_a_long_chain_is_no_circle() -> None:
    check_dependencies({"0": [], **{str(n): [str(n - 1)] for n in range(1, LONG)}})


def test_a_long_circle_is_told_in_few_words() -> None:
    circle = {str(n): [str((n + 1) % LONG)] for n in range(LONG)}
    with pytest.raises(StateError) as caught:
        check_dependencies(circle)
    assert str(caught.value) == (
        "these cases wait for each other: 0 after 1 after 2 after 3 after 4 after … after "
        "19996 after 19997 after 19998 after 19999 after 0"
    )


def test_a_diamond_is_no_circle() -> None:
    check_dependencies({"A": [], "B": ["A"], "C": ["A"], "D": ["B", "C"]})


@given(st.dictionaries(st.integers(0, 6), st.lists(st.integers(0, 6), max_size=3), max_size=7))
def test_refused_exactly_when_there_is_no_order_to_do_it_in(graph: dict[int, list[int]]) -> None:
    after = {str(name): [str(need) for need in needs] for name, needs in graph.items()}
    done: set[str] = set()
    while more := [name for name in after if name not in done and done.issuperset(after[name])]:
        done.update(more)
    try:
        check_dependencies(after)
    except StateError:
        assert done != set(after)
    else:
        assert done == set(after)


class _Watched(list[Any]):
    """A queue that counts how many of its places were looked at."""

    looked = 0

    def __getitem__(self, index: Any) -> Any:
        found = super().__getitem__(index)
        self.looked += len(found) if isinstance(index, slice) else 1
        return found

    def __iter__(self) -> Any:
        self.looked += len(self)
        return super().__iter__()


@pytest.mark.parametrize("held", [False, True], ids=["free", "held"])
def test_ready_looks_only_at_what_may_go(held: bool) -> None:
    made = suite(*(f"c{n}:author" for n in range(10_000)), places=3)
    if held:
        made.hold("fix", "c9999")
    queue = _Watched(made.waiting["author"])
    made.waiting["author"] = queue
    assert ready(made) == (["c9999"] if held else ["c0", "c1", "c2"])
    assert queue.looked <= 3


NAMES = [f"c{n}" for n in range(8)]


class Suites(RuleBasedStateMachine):
    """Any life of a suite: nobody goes twice, past a limit, past a hold, or before its time."""

    def __init__(self) -> None:
        super().__init__()
        self.roles = {
            "author": Role("author", 2),
            "critic": Role("critic", None, 1),
            HUMAN: Role(HUMAN),
        }
        self.suite = Schedule(self.roles, 3)
        self.needs = {name: {NAMES[n // 2]} if n > 4 else set() for n, name in enumerate(NAMES)}
        self.out: dict[str, str] = {}
        self.wanting: dict[str, str] = {}
        self.well: set[str] = set()
        self.over: set[str] = set()
        for number, name in enumerate(NAMES):
            self.suite.add(name, number % 3, self.needs[name])

    def free(self) -> list[str]:
        return [n for n in NAMES if n not in self.out | self.wanting and n not in self.over]

    @precondition(lambda self: self.free())
    @rule(data=st.data(), role=st.sampled_from(["author", "critic", HUMAN]))
    def want(self, data: st.DataObject, role: str) -> None:
        name = data.draw(st.sampled_from(self.free()))
        self.wanting[name] = role
        self.suite.enqueue(name, role)

    @rule(left=st.none() | st.integers(0, 3))
    def send(self, left: int | None) -> None:
        for name in ready(self.suite, left):
            role = self.wanting.pop(name)
            assert self.well >= self.needs[name]
            assert not self.suite.holds or name in self.suite.holds.values()
            self.out[name] = role
            self.suite.mark_sent(name, role)

    @precondition(lambda self: self.out)
    @rule(data=st.data(), how=st.sampled_from(["goes on", "well", "badly"]))
    def answer(self, data: st.DataObject, how: str) -> None:
        name = data.draw(st.sampled_from(sorted(self.out)))
        del self.out[name]
        self.suite.mark_answered(name)
        if how != "goes on":
            self.over.add(name)
            if how == "well":
                self.well.add(name)
            self.suite.mark_ended(name, how == "well")

    @precondition(lambda self: len(self.over) < len(NAMES))
    @rule(data=st.data(), name=st.sampled_from(["one", "two"]))
    def hold(self, data: st.DataObject, name: str) -> None:
        self.suite.hold(name, data.draw(st.sampled_from(sorted({*NAMES} - self.over))))

    @rule(name=st.sampled_from(["one", "two"]))
    def release(self, name: str) -> None:
        self.suite.release(name)

    @invariant()
    def never_past_a_limit(self) -> None:
        roles = [*self.out.values()]
        assert roles.count("author") <= 2
        assert self.suite.busy == len(roles) - roles.count(HUMAN) <= 3

    @invariant()
    def nobody_who_may_go_is_forgotten(self) -> None:
        goes = ready(self.suite)
        assert goes == ready(self.suite)
        assert len(goes) == len(set(goes))
        assert set(goes) <= set(self.wanting)
        if not self.out and not self.suite.holds:
            may = [name for name in self.wanting if self.well >= self.needs[name]]
            assert bool(goes) == bool(may)

    @invariant()
    def idle_when_nothing_waits_and_nothing_is_out(self) -> None:
        waits = [name for name in self.wanting if self.well >= self.needs[name]]
        assert self.suite.is_idle() == (not waits and not self.out)


TestSuites = Suites.TestCase


def by_hand(*wants: str, places: int | None = None) -> Schedule:
    made = Schedule(ROLES, places, frozenset({HUMAN, "critic"}))
    for want in wants:
        case_id, role = want.split(":")
        made.add(case_id)
        made.enqueue(case_id, role)
    return made


def test_what_is_answered_by_hand_takes_no_place() -> None:
    made = by_hand("A:critic", "B:critic", "C:author", "D:author", "E:human", places=1)
    assert ready(made) == ["E", "A", "B", "C"]
    for case_id, role in (("A", "critic"), ("B", "critic"), ("E", HUMAN), ("C", "author")):
        made.mark_sent(case_id, role)
    assert (made.busy, made.count_awaited()) == (1, 3)
    assert ready(made) == []
    made.mark_answered("C")
    assert ready(made) == ["D"]


def test_what_is_answered_by_hand_counts_as_a_dispatch_but_for_humans() -> None:
    made = by_hand("A:critic", "B:critic", "C:author", "D:author", "E:human")
    assert ready(made, 0) == ["E"]
    assert ready(made, 1) == ["E", "A"]
    assert ready(made, 3) == ["E", "A", "B", "C"]


def test_closed_roles_wait() -> None:
    made = by_hand("A:critic", "C:author", "E:human")
    assert ready(made, closed={"author"}) == ["E", "A"]
    assert ready(made, closed={"author", "critic"}) == ["E"]


def test_a_human_whom_an_agent_stands_for_takes_a_place_like_any_other() -> None:
    made = Schedule(ROLES, 2, frozenset())
    for case_id, role in (("A", HUMAN), ("B", HUMAN), ("C", HUMAN)):
        made.add(case_id)
        made.enqueue(case_id, role)
    assert ready(made) == ["A", "B"]
    made.mark_sent("A", HUMAN)
    assert (made.busy, made.count_awaited()) == (1, 0)
    assert ready(made) == ["B"]
    assert ready(made, 0) == []


def test_our_own_programs_take_no_place_from_an_agent() -> None:
    made = Schedule(ROLES, 1, unplaced={"critic"})
    for name in "ABC":
        made.add(name)
    made.enqueue("A", "critic")
    made.enqueue("B", "author")
    made.enqueue("C", "author")
    assert ready(made) == ["A", "B"]
    made.mark_sent("A", "critic")
    made.mark_sent("B", "author")
    assert (made.busy, made.taken) == (2, 1)
    assert ready(made) == []
    made.mark_answered("A")
    assert ready(made) == []
    made.mark_answered("B")
    assert ready(made) == ["C"]
    assert (made.busy, made.taken) == (0, 0)
