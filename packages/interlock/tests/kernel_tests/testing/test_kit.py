"""The kit, as authors of circuits use it: scripts, a clock that jumps, five lines with pytest."""

import asyncio
import threading
from pathlib import Path
from typing import Any

import pytest

import interlock
from interlock.engine.case import Usage
from interlock.testing import (
    Delay,
    FakeClock,
    RateLimit,
    Script,
    Silence,
    assert_sound,
    make_project,
    run_cases,
)

NOTE = """\
circuit: note
start: write
ends: {sent: healthy, dropped: unhealthy}
thresholds: {good_enough: 0.8}
loops: {rework: 2, again: 1}
steps:
  write:  {role: author, timeout: 5m, prompt: "Write about {{ case.topic }}.", answer: text}
  judge:
    role: critic
    judges: write
    timeout: 5m
    answer: {type: object, required: [score], properties: {score: {type: number}}}
  allow:  {gate: true, timeout: 7d, answer: approval}
rules:
  - {at: write, to: judge}
  - {at: write, on: [crash, timeout], loop: again, to: write}
  - {at: judge, when: score >= good_enough, to: allow}
  - {at: judge, loop: rework, to: write, why: Try again with the remarks.}
  - {at: allow, when: decision == "approve", to: sent}
otherwise: {to: dropped, why: Nothing good came of it.}
"""
CIRCUIT = interlock.Circuit.parse(NOTE)
RAIN = [{"id": "C1", "topic": "rain"}]
GOOD: dict[str, Any] = {
    "author": "Rain.",
    "critic": {"score": 0.9},
    "human": {"decision": "approve"},
}
DAY = 24 * 3600.0


def test_a_circuit_of_ones_own_is_tested_in_five_lines() -> None:
    assert_sound(CIRCUIT)
    script = Script({**GOOD, "critic": [{"score": 0.4}, {"score": 0.9}]})
    trial = run_cases(CIRCUIT, RAIN, script)
    assert trial.ends == {"C1": "sent"}, trial
    assert len(script.dispatches("author")) == 2


def test_a_trial_tells_the_way_of_each_case() -> None:
    trial = run_cases(CIRCUIT, RAIN, Script(GOOD))
    assert trial.status == "done"
    assert trial.path("C1") == ["write", "judge", "allow", "sent"]
    assert "read score = 0.9" in str(trial)
    assert trial.path("C9") == []


def test_without_a_scripted_human_it_stops_at_the_gate() -> None:
    trial = run_cases(CIRCUIT, RAIN, Script({"author": "Rain.", "critic": {"score": 0.9}}))
    assert (trial.status, trial.ends) == ("waiting", {"C1": "allow"})


@pytest.mark.parametrize(
    ("entry", "signal"),
    [
        ("Rain.", "artifact"),
        ({"text": "Rain."}, "artifact"),
        (interlock.Reply(0, b'{"text": "Rain."}', usage=Usage(tokens=7)), "artifact"),
        (lambda dispatch: f"About {dispatch.case['topic']}.", "artifact"),
        (Delay(60, "Rain."), "artifact"),
        (ValueError("no ink"), "crash"),
        (ValueError, "crash"),
        (Delay(60, ValueError("no ink")), "crash"),
        (7, "crash"),
        ({"words": 3}, "unreadable"),
        (Silence(), "timeout"),
        (Delay(301, "Too late."), "timeout"),
    ],
)
def test_an_entry_of_a_script_is_what_comes_back(entry: Any, signal: str) -> None:
    trial = run_cases(CIRCUIT, RAIN, Script({**GOOD, "author": [entry, "Rain."]}))
    assert trial.events[0].signal == signal, trial


async def _slow(_dispatch: interlock.Dispatch) -> str:
    await asyncio.sleep(0.05)
    return "Rain."


def test_time_stands_while_a_function_works() -> None:
    """Slower than any timer that could ring: 300 seconds are over at once if nobody works."""
    at_work = threading.Event()

    def slow(_dispatch: interlock.Dispatch) -> str:
        at_work.wait(0.05)
        return "Rain."

    for function in (slow, _slow):
        trial = run_cases(CIRCUIT, RAIN, {**Script(GOOD), "author": function})
        assert trial.events[0].signal == "artifact", trial


def test_a_list_at_its_end_says_so() -> None:
    trial = run_cases(CIRCUIT, RAIN, Script({**GOOD, "author": []}))
    assert trial.ends == {"C1": "dropped"}
    assert "the script has no answer left for author" in trial.text


def test_a_script_remembers_what_it_was_asked() -> None:
    script = Script(GOOD)
    run_cases(CIRCUIT, [*RAIN, {"id": "C2", "topic": "snow"}], script)
    assert {each.prompt for each in script.dispatches("author")} == {
        "Write about rain.",
        "Write about snow.",
    }
    assert len(script.dispatches()) == 6
    assert [each.id for each in script.dispatches()] == sorted(
        each.id for each in script.dispatches()
    )
    assert script.dispatches("nobody") == []
    assert len(script) == 3


def test_a_rate_limit_is_waited_for_in_business_time() -> None:
    clock = FakeClock()
    began = clock.now()
    script = Script({**GOOD, "author": [RateLimit(3600), "Rain."]})
    trial = run_cases(CIRCUIT, RAIN, script, clock=clock)
    assert trial.ends == {"C1": "sent"}, trial
    assert 3600 <= clock.now() - began < 2 * 3600
    assert trial.events[0].at == pytest.approx(clock.now())


def test_a_gate_runs_out_of_time_when_the_test_lets_it() -> None:
    clock = FakeClock()
    with interlock.Project.temporary(clock=clock) as project:
        run = project.start(CIRCUIT, RAIN, agents=Script({**GOOD, "human": Silence()}))
        assert run.wait().status == "unhealthy"
    with interlock.Project.temporary(clock=clock) as project:
        agents = {role: answer for role, answer in Script(GOOD).items() if role != "human"}
        run = project.start(CIRCUIT, RAIN, agents=agents)
        assert run.wait().status == "waiting"
        clock.advance(8 * DAY)
        assert run.resume().wait().status == "unhealthy"
        assert list(run.events())[-1].signal == "timeout"


def test_time_can_be_moved_while_a_run_works() -> None:
    clock = FakeClock()
    asked, done = threading.Event(), threading.Event()

    def author(_dispatch: interlock.Dispatch) -> str:
        asked.set()
        done.wait(120)
        return "Rain."

    with interlock.Project.temporary(clock=clock) as project:
        run = project.start(CIRCUIT, RAIN, agents={**Script(GOOD), "author": author})
        assert asked.wait(120)
        before = clock.now()
        clock.advance(30)
        assert clock.now() == before + 30
        done.set()
        assert run.wait(120).status == "done"


def test_time_does_not_run_backwards() -> None:
    with pytest.raises(interlock.InterlockError, match="backwards"):
        FakeClock().advance(-1)


def test_an_unsound_circuit_is_told_with_its_findings() -> None:
    broken = interlock.Circuit.parse(NOTE.replace("to: sent}", "to: write}"))
    with pytest.raises(AssertionError) as raised:
        assert_sound(broken)
    output = str(raised.value)
    assert output.startswith("circuit note is not sound:\n- circuit.yaml:")
    assert "for example: " in output


def test_a_project_of_a_test_has_what_the_test_writes(tmp_path: Path) -> None:
    settings = "[thresholds]\ngood_enough = 0.5\n"
    with make_project(tmp_path, circuits={"note": NOTE}, settings=settings) as project:
        script = Script({**GOOD, "critic": {"score": 0.6}})
        assert project.start("note", RAIN, agents=script).wait().status == "done"


def test_the_kit_has_only_the_names_it_lists() -> None:
    assert set(dir(interlock.testing)) >= {"Script", "FakeClock", "assert_sound"}
    with pytest.raises(AttributeError, match="nonsense"):
        interlock.testing.nonsense  # noqa: B018
