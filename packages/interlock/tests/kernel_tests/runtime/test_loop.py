"""The loop: answers in, decisions committed, asks out; and what happens when agents misbehave."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from interlock.carriers.contract import Ask, CarrierWrapper
from interlock.carriers.script import ScriptAgent, read_script
from interlock.engine.schedule import Budget, Spent
from interlock.journal.runs import NewCase
from interlock.runtime.loop import RunLoop
from interlock.runtime.terms import RunCounts
from tests.world.sample_circuit import GOOD_SCRIPT, HOLDING, ONE_STEP
from tests.world.world import World


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


def write_script(**steps: str) -> str:
    """A crew that works well but for these steps."""
    lines = {"write": "{answer: {words: 5}}", "judge": "{answer: {mark: 4}}"}
    lines |= {"sign": "{answer: {decision: approve}}"} | steps
    return '"*":\n' + "".join(f"  {step}: {what}\n" for step, what in lines.items())


def test_a_good_crew_brings_every_case_home(world: World) -> None:
    world.begin("A", "B")
    assert world.work() == "done"
    assert world.story() == [
        "A write#1 artifact written",
        "B write#1 artifact written",
        "A judge#1 artifact good",
        "B judge#1 artifact good",
        "A sign#1 artifact signed",
        "B sign#1 artifact signed",
    ]
    assert world.tally == RunCounts(cases=2, ended=2)
    assert (world.ends(), world.refused(), world.faults()) == ({"A": "done", "B": "done"}, [], [])


class Witness(CarrierWrapper):
    """A carrier around a script that looks into the database before it does anything."""

    def __init__(self, world: World) -> None:
        super().__init__(ScriptAgent(read_script(GOOD_SCRIPT, "crew.yaml"), world.clock))
        self._world = world
        self.seen: list[str] = []

    def send(self, asks: Sequence[Ask]) -> None:
        open_now = {row[0] for row in self._world.rows("select dispatch_id from cases")}
        self.seen += [f"asked {each.dispatch_id in open_now}" for each in asks]
        super().send(asks)

    def settle(self, dispatch_id: int, error: str = "") -> None:
        settled = {row[0] for row in self._world.rows("select dispatch_id from journal")}
        self.seen.append(f"settled {dispatch_id in settled}")
        super().settle(dispatch_id, error)


def test_nothing_is_carried_out_before_it_is_committed(world: World) -> None:
    world.begin("A", "B")
    witness = Witness(world)
    assert world.work(carriers=dict.fromkeys(world.circuit.roles, witness)) == "done"
    assert sorted(witness.seen) == ["asked True"] * 6 + ["settled True"] * 6


BAD_ONCE = {
    "timeout": "[{silent: true}, {answer: {words: 5}}]",
    "crash": "[{crash: out of memory}, {answer: {words: 5}}]",
    "unreadable": "[{raw: I am done}, {answer: {words: 5}}]",
}


@pytest.mark.parametrize("signal", BAD_ONCE)
def test_a_failure_is_a_signal_with_a_row_in_the_table(world: World, signal: str) -> None:
    world.begin("A")
    assert world.work(write_script(write=BAD_ONCE[signal])) == "done"
    assert world.story() == [
        f"A write#1 {signal} again",
        "A write#2 artifact written",
        "A judge#1 artifact good",
        "A sign#1 artifact signed",
    ]
    assert world.refused() == (["Malformed"] if signal == "unreadable" else [])


@pytest.mark.parametrize(
    ("behaviour", "refused"),
    [
        pytest.param("{late: true, answer: {words: 5}}", ["Stale", "Stale"], id="late"),
        pytest.param("{delay: 11s, answer: {words: 5}}", ["Stale"], id="after its time"),
    ],
)
def test_a_late_answer_changes_nothing(world: World, behaviour: str, refused: list[str]) -> None:
    world.begin("A")
    assert world.work(write_script(write=behaviour)) == "unhealthy"
    assert world.story() == ["A write#1 timeout again", "A write#2 timeout otherwise"]
    assert (world.refused(), world.faults()) == (refused, [])


@pytest.mark.parametrize(
    ("behaviour", "refused"),
    [
        pytest.param("{twice: true, answer: {words: 5}}", ["Stale"], id="twice"),
        pytest.param("{forges: 99999, answer: {words: 5}}", ["Stale"], id="a dispatch never sent"),
        pytest.param("{delay: 9.9s, answer: {words: 5}}", [], id="just in time"),
    ],
)
def test_a_lie_beside_the_answer_is_refused_and_the_answer_counts(
    world: World, behaviour: str, refused: list[str]
) -> None:
    world.begin("A")
    assert world.work(write_script(write=behaviour)) == "done"
    assert world.story()[0] == "A write#1 artifact written"
    assert (world.refused(), world.faults(), len(world.story())) == (refused, [], 3)


def test_a_forged_answer_counts_once_for_the_dispatch_it_is_for(world: World) -> None:
    world.begin("A", "B")
    forger = '"*": {write: {answer: {words: 5}}, judge: {answer: {mark: 4}}, '
    forger += "sign: {answer: {decision: approve}}}\nB: {write: {forges: 1, answer: {words: 6}}}"
    world.work(forger)
    assert world.refused() == ["Stale"]
    assert world.faults() == []


@pytest.mark.parametrize("name", ["timeout", "crash", "unreadable", "rate-limit", "approve"])
def test_a_signal_that_is_not_the_agents_to_say(world: World, name: str) -> None:
    world.begin("A")
    assert (
        world.work(write_script(write=f"{{signal: {name}, answer: {{words: 5}}}}")) == "unhealthy"
    )
    assert world.story() == ["A write#1 unreadable again", "A write#2 unreadable otherwise"]
    assert world.refused() == ["Unknown", "Unknown"]


def test_a_crew_that_never_says_anything_usable_ends_all_the_same(world: World) -> None:
    world.begin("A", "B")
    assert world.work('"*": {write: {raw: "no"}}') == "unhealthy"
    assert world.tally == RunCounts(cases=2, ended=2, unhealthy=2, refused=4)


def test_a_script_in_the_place_of_a_human_gets_no_second_question(world: World) -> None:
    world.begin("A")
    assert world.work(write_script(sign="{answer: {decision: maybe}}")) == "unhealthy"
    assert world.story()[2:] == ["A sign#1 unreadable again", "A sign#2 unreadable otherwise"]


def test_an_unfillable_prompt_is_a_crash_and_never_sent(tmp_path: Path) -> None:
    world = World(tmp_path, ONE_STEP.replace("role: worker,", "role: worker, prompt: '{{ x }}',"))
    world.begin("A", "B")
    assert world.work('"*": {work: {crash: it was asked}}') == "unhealthy"
    assert world.story() == ["A work#1 crash otherwise", "B work#1 crash otherwise"]
    reason = "the prompt of step 'work' cannot be filled: 'x' is undefined"
    query = (
        "select distinct cast(b.data as text) from journal j join blobs b on b.blob_id = j.answer"
    )
    assert world.rows(query) == [(f'{{"reason":"{reason}"}}',)]
    assert (world.refused(), world.faults()) == ([], [])


def test_a_prompt_that_can_be_filled_the_second_time_goes_out(tmp_path: Path) -> None:
    text = ONE_STEP.replace(
        "work: {role: worker,", "work: {role: worker, prompt: '{{ context.hint }}',"
    )
    text = text.replace(
        "otherwise", "  - {id: hint, at: work, on: crash, to: AGAIN, adds: {hint: yes}}\notherwise"
    )
    world = World(tmp_path, text)
    world.begin("A", "B")
    assert world.work('"*": {work: {answer: {}}}', places=1) == "done"
    assert world.story() == [
        "A work#1 crash hint",
        "B work#1 crash hint",
        "A work#2 artifact worked",
        "B work#2 artifact worked",
    ]


def test_a_case_that_no_rule_takes_is_stuck(tmp_path: Path) -> None:
    world = World(tmp_path, ONE_STEP.replace("otherwise: failed\n", ""))
    world.begin("A")
    assert world.work('"*": {work: {crash: oh}}') == "unhealthy"
    assert (world.ends(), world.tally) == ({"A": "stuck"}, RunCounts(cases=1, stuck=1))


DEPENDENT = [
    NewCase("A", {"id": "A"}),
    NewCase("B", {"id": "B"}, 0, ("A",)),
    NewCase("C", {"id": "C"}, 0, ("B",)),
    NewCase("D", {"id": "D"}),
]


def test_a_failed_case_blocks_its_dependents_and_nothing_else(tmp_path: Path) -> None:
    world = World(tmp_path, ONE_STEP)
    world.begin(*reversed(DEPENDENT))
    assert world.work('"*": {work: {answer: {}}}\nA: {work: {answer: {failed: 1}}}') == "unhealthy"
    assert world.ends() == {"A": "failed", "B": "open", "C": "open", "D": "done"}


def test_dependents_go_one_after_the_other_over_restarts(tmp_path: Path) -> None:
    world = World(tmp_path, ONE_STEP)
    world.begin(*reversed(DEPENDENT))
    for session in range(1, 5):
        limit = Budget(dispatches=session)
        status = world.work('"*": {work: {answer: {}}}', budget=limit, places=1)
        assert status == ("budget" if session < 4 else "done")
    assert [line[0] for line in world.story()] == ["A", "B", "D", "C"]


def test_priorities_and_slots(tmp_path: Path) -> None:
    world = World(tmp_path, ONE_STEP)
    world.begin("A", NewCase("B", {}, 5), NewCase("C", {}, 9), NewCase("D", {}, -1))
    world.work('"*": {work: {delay: 1s, answer: {}}}', slots={"worker": 1})
    assert [line[0] for line in world.story()] == ["C", "B", "A", "D"]
    assert world.rows("select max(at) - min(at) from dispatches") == [(3.0,)]


BREAKER = (
    '"*": {work: {delay: 1s, answer: {}}}\n'
    "A: {work: [{answer: {broken: 1}}, {answer: {}}], fix: {delay: 1s, answer: {}}}"
)


def test_a_hold_lets_only_its_holder_go(tmp_path: Path) -> None:
    world = World(tmp_path, HOLDING)
    world.begin("A", "B", "C")
    assert world.work(BREAKER, places=1) == "done"
    assert [line.split()[:2] for line in world.story()] == [
        ["A", "work#1"],
        ["A", "fix#1"],
        ["B", "work#1"],
        ["C", "work#1"],
        ["A", "work#2"],
    ]


def test_a_hold_outlives_the_process(tmp_path: Path) -> None:
    world = World(tmp_path, HOLDING)
    world.begin("A", "B", "C")
    assert world.work(BREAKER, places=1, budget=Budget(dispatches=1)) == "budget"
    assert world.work(BREAKER, places=3) == "done"
    assert world.rows(
        "select c.case_id, d.step, d.at - 1000000 from dispatches d join cases c using (case_no)"
    ) == [
        ("A", "work", 0.0),
        ("A", "fix", 0.0),
        ("B", "work", 1.0),
        ("C", "work", 1.0),
        ("A", "work", 1.0),
    ]


def test_a_run_held_back_by_a_question_waits_for_the_human_not_for_money(tmp_path: Path) -> None:
    world = World(tmp_path, HOLDING)
    world.begin("A", "B")
    unsure = BREAKER.replace("fix: {delay: 1s, answer: {}}", "fix: {answer: {unsure: 1}}")
    assert world.work(unsure, places=1, inbox=True) == "waiting"
    world.answer(3, "approve")
    assert world.work(unsure, places=1, inbox=True) == "done"


@pytest.mark.parametrize(
    ("limit", "spent"),
    [
        pytest.param(Budget(dispatches=3), Spent(3, 20, 0.5), id="dispatches"),
        pytest.param(Budget(tokens=20), Spent(2, 20, 0.5), id="tokens"),
        pytest.param(Budget(money=0.5), Spent(2, 20, 0.5), id="money"),
        pytest.param(Budget(dispatches=0), Spent(), id="nothing at all"),
    ],
)
def test_a_spent_budget_stops_and_a_larger_one_goes_on(
    world: World, limit: Budget, spent: Spent
) -> None:
    world.begin("A", "B")
    paid = write_script(
        write="{answer: {words: 5}, usage: {tokens: 10, money: 0.25}}",
        judge="{answer: {mark: 4}}",
    )
    assert world.work(paid, budget=limit, places=1) == "budget"
    assert (world.run().status, world.run().spent) == ("budget", spent)
    assert world.work(paid, budget=limit, places=1) == "budget"
    assert world.run().spent == spent
    assert world.work(paid) == "done"
    assert world.run().spent == Spent(4, 20, 0.5)


def test_working_time_counts_towards_the_budget(world: World) -> None:
    world.begin("A", "B")
    slow = write_script(write="{delay: 5s, answer: {words: 5}}")
    assert world.work(slow, budget=Budget(seconds=5), places=1) == "budget"
    assert world.run().spent == Spent(dispatches=1, seconds=5.0)
    world.clock.time += 1_000
    assert world.work(slow) == "done"
    assert world.run().spent == Spent(dispatches=4, seconds=10.0)


def test_a_graceful_stop_lets_come_in_what_is_out(world: World) -> None:
    world.begin("A", "B", "C")
    slow = write_script(write="{delay: 5s, answer: {words: 5}}")
    assert world.work(slow, places=2, at_rest=[RunLoop.stop]) == "stopped"
    assert world.story() == ["A write#1 artifact written", "B write#1 artifact written"]
    assert (world.run().status, world.run().spent.seconds) == ("stopped", 5.0)
    assert world.work(slow) == "done"


def test_the_second_stop_ends_at_once_and_nothing_is_lost(world: World) -> None:
    world.begin("A", "B")
    slow = write_script(write="{delay: 5s, answer: {words: 5}}")
    assert world.work(slow, at_rest=[RunLoop.stop, RunLoop.stop]) == "stopped"
    assert (world.story(), world.run().status) == ([], "stopped")
    assert world.rows("select dispatch_id from cases") == [(1,), (2,)]
    assert world.work(slow) == "done"
    assert world.rows("select count(*) from dispatches where step = 'write'") == [(2,)]


def test_a_stop_when_the_last_answer_was_awaited_is_no_stop(tmp_path: Path) -> None:
    world = World(tmp_path, ONE_STEP)
    world.begin("A")
    assert world.work('"*": {work: {delay: 1s, answer: {}}}', at_rest=[RunLoop.stop]) == "done"


def test_numbers_rise_over_runs_and_restarts(world: World) -> None:
    world.begin("A", "B")
    world.work(budget=Budget(dispatches=1), places=1)
    world.begin("A")
    world.work(run_id=2)
    world.work()
    ids = [row[0] for row in world.rows("select dispatch_id from dispatches order by rowid")]
    assert ids == list(range(1, 10))
    assert world.rows("select max(case_no) from cases") == [(3,)]
    assert world.faults() == []


def test_the_same_work_has_the_same_digest_whatever_its_numbers_and_times(world: World) -> None:
    world.begin("A", "B")
    world.work()
    world.clock.time += 5_000
    world.begin("B", "A")
    world.work(write_script(write="{delay: 2s, answer: {words: 5}}"), run_id=2, places=1)
    world.begin("A", "B")
    world.work(write_script(write="{answer: {words: 6}}"), run_id=3)
    assert world.digest(1) == world.digest(2) != world.digest(3)


def test_the_watch_sees_every_turn(world: World) -> None:
    world.begin("A")
    world.work(GOOD_SCRIPT)
    assert world.tally.in_flight == 0
    assert world.run().spent == Spent(dispatches=2)
