"""Simulation: the same chance gives the same walks, and nothing in them is illegal."""

from random import Random

from hypothesis import given
from hypothesis import strategies as st
from tests.engine.circuits import HOPELESS, one_step, press
from tests.engine.generated import circuits

from interlock.engine.circuit import FAILURES
from interlock.engine.circuit_file import CircuitSource
from interlock.engine.simulate import AnswerSampler, Spread, compute_spread, simulate
from interlock.engine.verify import verify


def test_the_same_seed_gives_the_same_simulation() -> None:
    circuit = press().circuit
    assert simulate(circuit, 200, Random(7)) == simulate(circuit, 200, Random(7))
    assert simulate(circuit, 200, Random(7)) != simulate(circuit, 200, Random(8))


def test_a_sound_circuit_reaches_every_end_and_every_rule() -> None:
    result = simulate(press().circuit, 1_000, Random(1))
    assert set(result.ends) == {"published", "rejected", "abandoned"}
    assert (result.stuck, result.never) == ({}, ())
    assert sum(result.ends.values()) == result.cases == 1_000
    assert sum(path.cases for path in result.paths) == 1_000
    assert result.paths[0].cases == max(path.cases for path in result.paths)
    assert result.dispatches.most <= verify(press()).worst_case.dispatches


def test_what_is_missing_shows_as_stuck() -> None:
    result = simulate(press((HOPELESS, "")).circuit, 500, Random(1))
    assert set(result.stuck) == {"no rule at review takes 'artifact'"}


def test_a_rule_that_cannot_fire_is_never_hit() -> None:
    rules = "  - {id: odd, at: ask, when: x > 9, to: b}\n  - {id: rest, at: ask, to: c}"
    written = one_step(rules, "properties: {x: {type: integer, maximum: 9}}, required: [x]")
    assert simulate(written.circuit, 100, Random(1)).never == ("odd",)


def test_what_guards_read_of_the_case_is_made_up_too() -> None:
    rules = "  - {id: fast, at: ask, when: case.mode == 'fast', to: b}\n  - {id: r, at: ask, to: c}"
    result = simulate(one_step(rules, "properties: {}").circuit, 200, Random(1))
    assert set(result.ends) == {"a", "b", "c"}
    assert result.stuck == {}


def test_spread() -> None:
    assert compute_spread([]) == Spread()
    assert compute_spread([3]) == Spread(3, 3, 3, 3, 3.0)
    assert compute_spread(list(range(1, 101))) == Spread(1, 50, 95, 100, 50.5)


@given(circuits(), st.integers(0, 99))
def test_made_up_answers_are_legal(written: CircuitSource, seed: int) -> None:
    player = AnswerSampler(written.circuit, Random(seed))
    for step in written.circuit.steps.values():
        signal = player.make_answer(step.name)
        if signal.name in FAILURES:
            assert signal.data["reason"]
        else:
            assert signal.name in step.signals
            assert step.shape.find_problem(signal.data) is None


@given(circuits(), st.integers(0, 99))
def test_walks_stay_within_the_worst_case(written: CircuitSource, seed: int) -> None:
    result = simulate(written.circuit, 5, Random(seed))
    assert result.dispatches.most <= verify(written).worst_case.dispatches
    assert sum(result.ends.values()) + sum(result.stuck.values()) == 5
