"""One round: a case that an agent has seen rests; programs and humans are asked as ever."""

from collections.abc import Iterable

from interlock.agents.carrier import NO_PREMISES
from interlock.engine.case import Case
from interlock.engine.circuit_file import read_circuit
from interlock.runtime.application import CaseHooks, DefaultHooks
from interlock.runtime.session import OneRound

CIRCUIT = read_circuit(
    """\
circuit: relay
version: 1
start: WRITE
ends: {OVER: healthy}
max_steps: 9
roles: {writer: {}, checks: {}, reader: {}}
steps:
  WRITE: {role: writer, prompt: Write., timeout: 1m, why: w, answer: {type: object}}
  CHECK: {role: checks, prompt: Check., timeout: 1m, why: c, answer: {type: object}}
  READ: {role: reader, prompt: Read., timeout: 1m, why: r, answer: {type: object}}
rules:
  - {id: written, at: WRITE, to: CHECK, why: w}
  - {id: checked, at: CHECK, to: READ, why: c}
  - {id: read, at: READ, to: OVER, why: r}
"""
).circuit


class Lets(DefaultHooks):
    """Holds nobody any more, and lets go whom it is told to."""

    def __init__(self, *names: str) -> None:
        self.names = names

    def let_go(self) -> Iterable[str]:
        return self.names


def at(step: str, name: str = "a") -> Case:
    return Case(name, step)


def round_of(inner: CaseHooks) -> OneRound:
    return OneRound(inner, CIRCUIT, {"checks", "human"})


def test_after_an_agents_turn_a_case_goes_on_only_to_our_own_programs() -> None:
    once = round_of(DefaultHooks())
    assert not once.held(1, at("WRITE"))
    assert once.premises(1, at("WRITE"), 7) == NO_PREMISES
    assert not once.held(1, at("CHECK"))
    once.premises(1, at("CHECK"), 8)
    assert once.held(1, at("READ"))
    assert not once.held(2, at("READ", "b"))


def test_a_case_that_is_over_is_not_held() -> None:
    once = round_of(DefaultHooks())
    once.premises(1, at("READ"), 7)
    assert not once.held(1, Case("a", "READ", status="ended", end="OVER"))


def test_whom_the_application_lets_go_rests_if_it_had_its_turn() -> None:
    once = round_of(Lets("a", "b"))
    once.premises(1, at("WRITE"), 7)
    once.held(1, at("READ"))
    once.held(2, at("READ", "b"))
    assert list(once.let_go()) == ["b"]
    once.held(1, at("CHECK"))
    assert list(once.let_go()) == ["a", "b"]
