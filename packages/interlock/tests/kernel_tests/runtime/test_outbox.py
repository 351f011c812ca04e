"""What is out: deadlines, rate limits (a pause, not a retry), and carriers with little room."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock.carriers.contract import Ask, Carrier, CarrierWrapper, Reply, Traits
from interlock.carriers.function import Handler
from interlock.carriers.script import ScriptAgent, read_script
from interlock.engine.case import Usage
from interlock.engine.circuit import RATE_LIMIT
from interlock.engine.schedule import Budget, Spent
from interlock.journal.journal import Pause
from interlock.runtime.loop import RunLoop
from interlock.runtime.outbox import (
    BACK_OFF,
    LONGEST_LIMIT,
    CarrierCapacity,
    Deadlines,
    RateLimitPauses,
)
from tests.world.clock import START, FakeClock
from tests.world.sample_circuit import ONE_STEP, PAPER
from tests.world.world import World


def made() -> tuple[FakeClock, Deadlines, list[float]]:
    clock = FakeClock()
    rung: list[float] = []
    return clock, Deadlines(clock, lambda: rung.append(clock.time - START)), rung


def test_the_earliest_rings_first_whatever_the_order() -> None:
    clock, deadlines, rung = made()
    for dispatch_id, after in ((1, 30), (2, 10), (3, 20)):
        deadlines.add(START + after, dispatch_id)
    over = []
    while clock.advance():
        over.append(deadlines.pop_passed(clock.now()))
    assert (rung, over) == ([10, 20, 30], [[2], [3], [1]])


def test_those_of_one_moment_come_together() -> None:
    clock, deadlines, rung = made()
    deadlines.add(START + 5, 2)
    deadlines.add(START + 5, 1)
    clock.advance()
    assert (deadlines.pop_passed(clock.now()), rung) == ([1, 2], [5])


def test_a_dropped_one_does_not_ring() -> None:
    clock, deadlines, _ = made()
    deadlines.add(START + 5, 1)
    deadlines.add(START + 9, 2)
    deadlines.drop(1)
    clock.advance()
    assert deadlines.pop_passed(clock.now()) == []
    clock.advance()
    assert deadlines.pop_passed(clock.now()) == [2]


def test_nothing_is_over_before_its_time() -> None:
    _, deadlines, _ = made()
    deadlines.add(START + 5, 1)
    assert deadlines.pop_passed(START + 4.999) == []
    assert deadlines.pop_passed(START + 5) == [1]


def test_one_that_is_long_past_is_over_at_once() -> None:
    _, deadlines, _ = made()
    deadlines.add(START - 100, 1)
    assert deadlines.pop_passed(START) == [1]


def test_a_timer_that_rang_too_early_is_set_again() -> None:
    clock, deadlines, rung = made()
    deadlines.add(START + 5, 1)
    clock.advance()
    clock.time -= 3
    assert deadlines.pop_passed(clock.now()) == []
    assert clock.advance()
    assert (deadlines.pop_passed(clock.now()), rung) == ([1], [5, 5])


def test_nothing_rings_after_close() -> None:
    clock, deadlines, rung = made()
    deadlines.add(START + 5, 1)
    deadlines.close()
    assert not clock.advance()
    assert rung == []


def test_many_that_were_dropped_take_no_room() -> None:
    _, deadlines, _ = made()
    for dispatch_id in range(20_000):
        deadlines.add(START + dispatch_id, dispatch_id)
        deadlines.drop(dispatch_id)
    assert len(deadlines._heap) <= 1_002


@given(st.lists(st.tuples(st.integers(1, 50), st.booleans()), max_size=30))
def test_each_is_told_once_at_its_time_unless_dropped(plan: list[tuple[int, bool]]) -> None:
    clock, deadlines, _ = made()
    for dispatch_id, (after, _) in enumerate(plan):
        deadlines.add(START + after, dispatch_id)
    for dispatch_id, (_, dropped) in enumerate(plan):
        if dropped:
            deadlines.drop(dispatch_id)
    output: list[tuple[int, float]] = []
    while clock.advance():
        output += [(each, clock.time - START) for each in deadlines.pop_passed(clock.now())]
    kept = [(n, float(after)) for n, (after, dropped) in enumerate(plan) if not dropped]
    assert sorted(output) == kept


OWN_ROW = ONE_STEP.replace("otherwise: failed", "")
OWN_ROW += "  - {id: tired, at: work, on: rate-limit, to: failed}\n"


class Login(Carrier):
    """A carrier with an account. It answers, but for the first so many asks, which are limited."""

    def __init__(self, clock: FakeClock, *untils: float | None, account: str = "me") -> None:
        self.asked: list[tuple[int, float]] = []
        self.stopped: list[int] = []
        self._clock = clock
        self._untils = list(untils)
        self._account = account

    def account_of(self, role: str) -> str:
        return self._account

    def send(self, asks: Sequence[Ask]) -> None:
        for ask in asks:
            self.asked.append((ask.dispatch_id, self._clock.time - START))
            self._deliver(self._reply(ask))

    def _reply(self, ask: Ask) -> Reply:
        if not self._untils:
            return Reply(ask.dispatch_id, b"{}")
        until = self._untils.pop(0)
        return Reply(
            *(ask.dispatch_id, b"", RATE_LIMIT, "429"),
            until=0.0 if until is None else START + until,
            usage=Usage(10, 0.5),
        )

    def settle(self, dispatch_id: int, error: str = "") -> None:
        self.stopped.append(dispatch_id)


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path, ONE_STEP)


def waits(world: World) -> list[float]:
    """For how long each pause was to last."""
    return [float(str(row[0])) for row in world.rows("select until - at from pauses")]


def guessed(found: list[float]) -> list[float]:
    """The steps of the schedule that these are, each with up to a quarter added."""
    return [next(each for each in BACK_OFF if each <= wait <= each * 1.25) for wait in found]


def test_a_limited_dispatch_is_sent_again_under_its_id_when_the_limit_is_over(
    world: World,
) -> None:
    world.begin("A")
    login = Login(world.clock, 3000.0)
    assert world.work(carriers={"worker": login}) == "done"
    assert login.asked == [(1, 0.0), (1, 3000.0)]
    assert login.stopped == [1, 1]
    assert world.story() == ["A work#1 artifact worked"]
    assert (waits(world), world.refused(), world.faults()) == ([3000.0], [], [])
    assert world.run().spent == Spent(1, 10, 0.5, 3000.0)


def test_no_time_runs_while_it_waits_and_all_of_it_afterwards(world: World) -> None:
    world.begin("A")
    silent = '"*": {work: {limited: 1h, silent: true}}'
    assert world.work(silent) == "unhealthy"
    assert world.story() == ["A work#1 timeout otherwise"]
    assert world.rows("select at from journal") == [(START + 3610,)]


def test_the_whole_account_rests_and_others_go_on(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.begin("A", "B")
    login = Login(world.clock, 500.0)
    world.work(carriers={"author": login}, budget=Budget(dispatches=1), patient=False, places=1)
    assert login.asked == [(1, 0.0)]
    world.begin("C")
    other = ScriptAgent(read_script('"*": {write: {answer: {words: 1}}}', "x"), world.clock)
    assert world.work(run_id=2, carriers={"author": other}) == "done"
    assert world.work(run_id=1, carriers={"author": Login(world.clock)}, patient=False) == (
        "rate-limited"
    )
    assert world.clock.time == START
    another_login = Login(world.clock, account="you")
    assert world.work(run_id=1, carriers={"author": another_login}, patient=False) == "unhealthy"


def test_what_is_new_waits_too_and_goes_first_things_first(world: World) -> None:
    world.begin("A", "B", "C")
    login = Login(world.clock, 100.0)
    assert world.work(carriers={"worker": login}, places=1) == "done"
    assert login.asked == [(1, 0.0), (1, 100.0), (2, 100.0), (3, 100.0)]


def test_places_are_kept_when_many_go_on(world: World) -> None:
    world.begin("A", "B", "C", "D")
    helpers = '"*": {work: {limited: 50s, delay: 5s, answer: {}}}'
    most: list[int] = []
    looks = [lambda _loop: most.append(world.tally.in_flight)] * 12
    assert world.work(helpers, places=2, at_rest=looks) == "done"
    assert max(most) <= 2
    assert world.clock.time > START + 50


def test_without_patience_it_ends_and_says_so(world: World) -> None:
    world.begin("A", "B")
    login = Login(world.clock, 3000.0, 2000.0)
    assert world.work(carriers={"worker": login}, patient=False) == "rate-limited"
    assert (world.run().status, world.story()) == ("rate-limited", [])
    assert (world.tally.limited, world.tally.limited_until) == (2, START + 3000)
    world.clock.time += 2999
    assert world.work(carriers={"worker": login}, patient=False) == "rate-limited"
    assert login.asked == [(1, 0.0), (2, 0.0)]
    world.clock.time += 1
    assert world.work(carriers={"worker": login}, patient=False) == "done"
    assert login.asked[2:] == [(1, 3000.0), (2, 3000.0)]
    assert world.faults() == []


def test_a_stop_does_not_wait_for_the_end_of_a_limit(world: World) -> None:
    world.begin("A")
    login = Login(world.clock, 3000.0)
    assert world.work(carriers={"worker": login}, at_rest=[RunLoop.stop]) == "stopped"
    assert world.clock.time == START
    assert world.work(carriers={"worker": login}) == "done"
    assert login.asked == [(1, 0.0), (1, 3000.0)]


def test_where_the_end_is_not_known_the_schedule_says_when_to_try(world: World) -> None:
    world.begin("A")
    login = Login(world.clock, *([None] * 7))
    assert world.work(carriers={"worker": login}) == "done"
    wanted = [*BACK_OFF, BACK_OFF[-1], BACK_OFF[-1]]
    assert guessed(waits(world)) == wanted
    assert waits(world) != wanted, "runs that met a limit together come back together"
    assert len(login.asked) == 8


def test_the_schedule_goes_on_after_a_restart_and_begins_anew_after_an_answer(
    world: World,
) -> None:
    world.begin("A", "B", "C")
    for _ in range(2):
        login = Login(world.clock, None)
        world.work(carriers={"worker": login}, places=1, patient=False)
        world.clock.time += 200
    assert guessed(waits(world)) == [BACK_OFF[0], BACK_OFF[1]]
    login = Login(world.clock)
    world.work(carriers={"worker": login}, places=1, budget=Budget(dispatches=1), patient=False)
    world.clock.time += 10_000
    world.work(carriers={"worker": Login(world.clock, None)}, places=1)
    assert guessed(waits(world)) == [BACK_OFF[0], BACK_OFF[1], BACK_OFF[0]]


@pytest.mark.parametrize(
    "until", [float("nan"), float("inf"), -5.0, 0.0, 1.0 + LONGEST_LIMIT, START * 1000]
)
def test_an_end_that_cannot_be_is_not_believed(world: World, until: float) -> None:
    world.begin("A")
    assert world.work(carriers={"worker": Login(world.clock, until)}) == "done"
    assert guessed(waits(world)) == [BACK_OFF[0]]


def test_a_row_of_the_circuit_decides_where_there_is_one(tmp_path: Path) -> None:
    world = World(tmp_path, OWN_ROW)
    world.begin("A")
    assert world.work(carriers={"worker": Login(world.clock, 3000.0)}) == "unhealthy"
    assert (world.story(), waits(world)) == (["A work#1 rate-limit tired"], [])


def test_an_answer_that_comes_during_the_pause_counts(world: World) -> None:
    world.begin("A")
    login = Login(world.clock, 3000.0)

    def answered(_loop: RunLoop) -> None:
        login._deliver(Reply(1, b"{}"))

    assert world.work(carriers={"worker": login}, at_rest=[answered]) == "done"
    assert (world.clock.time, world.story()) == (START, ["A work#1 artifact worked"])


def test_it_is_told_once_for_an_account(world: World) -> None:
    world.begin("A", "B", "C")
    login = Login(world.clock, 60.0, 90.0, None)
    world.work(carriers={"worker": login}, places=3)
    assert [(each.event, each.about) for each in world.notices] == [
        ("rate-limit", "me"),
        ("over", "done"),
    ]
    assert waits(world) == [60.0, 90.0, 90.0]


def test_carriers_say_whose_account_it_is(world: World) -> None:
    login = Login(world.clock)
    script: Carrier = ScriptAgent(read_script("{}", "x"), world.clock)
    assert login.account_of("worker") == "me"
    assert script.account_of("worker") == ""
    assert Handler(lambda _ask: None, login).account_of("worker") == "me"
    assert Handler(lambda _ask: None, script).account_of("worker") == ""


Steps = st.lists(st.tuples(st.integers(0, 4000), st.none() | st.integers(1, 4000)), max_size=12)


@given(Steps)
def test_an_account_rests_until_its_latest_known_end_and_never_for_ever(
    plan: list[tuple[int, int | None]],
) -> None:
    clock = FakeClock()
    pauses = RateLimitPauses({"worker": Login(clock)}, clock, lambda: None, 1)
    ask = Ask(1, 1, "A", "work", 1, "worker", "")
    ends = 0.0
    for later, after in plan:
        clock.time += later
        until = clock.time + after if after else 0.0
        reply = Reply(1, failure=RATE_LIMIT, reason="429", until=until)
        pause, _ = pauses.add_limit(ask, reply, clock.time)
        assert clock.time < pause.until <= clock.time + max(4000, BACK_OFF[-1] * 1.25)
        ends = pause.until
    clock.time = max(clock.time, ends)
    pauses.refresh(clock.time)
    assert (pauses.closed_roles, pauses.until) == (frozenset(), 0.0)
    assert [each.dispatch_id for each in pauses.list_due()] == ([1] if plan else [])


def test_old_pauses_of_others_mean_nothing(world: World) -> None:
    before = [
        Pause(1, "me", START - 1, 3, "429"),
        Pause(2, "you", START + 50, 0, "429"),
        Pause(3, "worker of run 1", START + 50, 0, "429"),
    ]
    login = Login(world.clock)
    assert (
        RateLimitPauses({"worker": login}, world.clock, lambda: None, 1, before).closed_roles
        == frozenset()
    )
    nameless = Login(world.clock, account="")
    assert RateLimitPauses(
        {"worker": nameless}, world.clock, lambda: None, 1, before
    ).closed_roles == {"worker"}
    assert (
        RateLimitPauses({"worker": nameless}, world.clock, lambda: None, 2, before).closed_roles
        == frozenset()
    )


AGENTS = """\
"*":
  write: {answer: {words: 5}}
  judge: {answer: {mark: 4}}
"""
NO_GATE = PAPER.replace("to: sign}", "to: done}", 1)


class Ferry(CarrierWrapper):
    """Takes so many at once, and no more until all are across."""

    def __init__(self, inside: Carrier, size: int) -> None:
        super().__init__(inside)
        self.traits = Traits(capacity="shared")
        self.trips: list[list[str]] = []
        self.size = size
        self._aboard: set[int] = set()

    def free_capacity(self, role: str) -> int:
        return 0 if self._aboard else self.size

    def send(self, asks: Sequence[Ask]) -> None:
        self.trips.append([f"{ask.case_id}:{ask.step}" for ask in asks])
        self._aboard |= {ask.dispatch_id for ask in asks}
        super().send(asks)

    def settle(self, dispatch_id: int, error: str = "") -> None:
        self._aboard.discard(dispatch_id)
        super().settle(dispatch_id, error)


def ferry(world: World, size: int, helpers: str = AGENTS) -> Ferry:
    return Ferry(ScriptAgent(read_script(helpers, "crew.yaml"), world.clock), size)


def test_trips_are_full_and_mix_the_roles_of_one_carrier(tmp_path: Path) -> None:
    world = World(tmp_path, NO_GATE)
    world.begin("A", "B", "C")
    boat = ferry(world, 2)
    assert world.work(carriers={"author": boat, "critic": boat}) == "done"
    assert boat.trips == [["A:write", "B:write"], ["C:write", "A:judge"], ["B:judge", "C:judge"]]


def test_who_has_no_room_does_not_keep_others_waiting(tmp_path: Path) -> None:
    world = World(tmp_path, NO_GATE)
    world.begin("A", "B", "C")
    boat = ferry(world, 1, '"*": {write: {delay: 5s, answer: {words: 5}}}')
    assert world.work(AGENTS, carriers={"author": boat}, places=2) == "done"
    assert boat.trips == [["A:write"], ["B:write"], ["C:write"]]
    assert [line.split()[1] for line in world.story()][:2] == ["write#1", "judge#1"]


def test_no_room_at_all_ends_like_a_spent_budget(tmp_path: Path) -> None:
    world = World(tmp_path, NO_GATE)
    world.begin("A", "B")
    boat = ferry(world, 1)
    assert world.work(carriers={"author": boat}, budget=Budget(dispatches=2)) == "budget"
    boat.size = 0
    assert world.work(carriers={"author": boat}) == "budget"
    boat.size = 1
    assert world.work(carriers={"author": boat}) == "done"


def test_a_stop_lets_the_trip_end_and_begins_no_other(tmp_path: Path) -> None:
    world = World(tmp_path, NO_GATE)
    world.begin("A", "B", "C")
    boat = ferry(world, 2, AGENTS.replace("{answer: {words", "{delay: 5s, answer: {words"))
    status = world.work(
        carriers={"author": boat, "critic": boat}, at_rest=[lambda loop: loop.stop()]
    )
    assert (status, boat.trips) == ("stopped", [["A:write", "B:write"]])


def test_roles_with_one_carrier_share_its_room(tmp_path: Path) -> None:
    world = World(tmp_path)
    boat, script = ferry(world, 2), ScriptAgent(read_script(AGENTS, "crew.yaml"), world.clock)
    rations = CarrierCapacity({"a": boat, "b": boat, "c": script})
    rations.refresh()
    assert [rations.reserve(role) for role in ("a", "c", "b", "a", "c")] == [
        *(True, True, True, False, True)
    ]
    assert rations.closed_roles == {"a", "b"}
    assert not CarrierCapacity({"c": script})


def test_sent_at_is_the_moment_of_opening_also_after_a_restart(tmp_path: Path) -> None:
    world = World(tmp_path, NO_GATE)
    world.begin("A")
    seen: list[Ask] = []

    class Deaf(Ferry):
        def send(self, asks: Sequence[Ask]) -> None:
            seen.extend(asks)

    deaf = Deaf(ScriptAgent(read_script(AGENTS, "crew.yaml"), world.clock), 9)
    twice = [lambda loop: loop.stop(), lambda loop: loop.stop()]
    for _ in range(2):
        world.work(carriers={"author": deaf}, at_rest=twice)
        world.clock.time += 3
    assert seen[0] == seen[1]
    assert msgspec.structs.asdict(seen[0])["at"] == 1_000_000.0


class Silent(Carrier):
    """A carrier that never answers."""

    def __init__(self, **traits: Any) -> None:
        self.traits = Traits(**traits)

    def send(self, asks: Sequence[Ask]) -> None:
        pass


@pytest.mark.parametrize(
    ("timeout", "traits", "ends_at"),
    [
        ("", {}, None),
        ("", {"default_timeout": 9.0}, 9.0),
        (", timeout: 4s", {"default_timeout": 9.0}, 4.0),
        (", timeout: 4s", {"times_itself": True}, None),
    ],
)
def test_a_carrier_may_bring_a_timeout_or_count_the_time_itself(
    tmp_path: Path, timeout: str, traits: dict[str, Any], ends_at: float | None
) -> None:
    world = World(tmp_path, ONE_STEP.replace(", timeout: 10s", timeout))
    world.begin("A")
    stop = [lambda loop: loop.stop(), lambda loop: loop.stop()] if ends_at is None else []
    world.work(carriers={"worker": Silent(**traits)}, at_rest=stop)
    signals = [line.split()[2] for line in world.story()]
    assert signals[:1] == ([] if ends_at is None else ["timeout"])
    if ends_at is not None:
        assert world.clock.time - START >= ends_at
