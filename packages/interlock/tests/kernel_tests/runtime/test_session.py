"""A session: signals that stop it, and one round in which a case that an agent has seen rests."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from interlock.engine.case import Case
from interlock.engine.circuit_file import read_circuit
from interlock.runtime.session import OneRound
from tests.world.places import ROOT
from tests.world.sample_circuit import ONE_STEP, PAPER
from tests.world.world import World

FOR_EVER = "60"


@contextmanager
def start_session(world: World, slow: str = "0") -> Iterator["subprocess.Popen[str]"]:
    diary = world.db.with_name("diary")
    diary.touch()
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.world.run_session", str(world.db)],
        cwd=ROOT,
        env={**os.environ, "SLOW": slow, "DIARY": str(diary)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate(timeout=120)


def read_output(process: "subprocess.Popen[str]") -> tuple[str, str]:
    return process.communicate(timeout=120)


def diary(world: World) -> list[str]:
    return world.db.with_name("diary").read_text().splitlines()


def until_asked(world: World, process: "subprocess.Popen[str]", times: int) -> bool:
    """Until agents were asked that many times; False if the sitting ended before."""
    give_up = time.monotonic() + 120
    while len(diary(world)) < times and process.poll() is None:
        assert time.monotonic() < give_up
    return len(diary(world)) >= times


def test_a_sitting_with_real_agents(tmp_path: Path) -> None:
    world = World(tmp_path, PAPER)
    world.begin("A", "B", "C")
    with start_session(world) as process:
        assert read_output(process) == ("done by nobody\n", "")
    assert world.ends() == {"A": "done", "B": "done", "C": "done"}
    asked = world.rows("select dispatch_id || ' ' || step from dispatches")
    assert sorted(diary(world)) == sorted(str(row[0]) for row in asked)
    assert world.faults() == []


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_the_first_signal_lets_come_in_what_is_out(tmp_path: Path, number: signal.Signals) -> None:
    world = World(tmp_path, ONE_STEP)
    world.begin("A", "B", "C")
    with start_session(world, slow="0.5") as process:
        assert until_asked(world, process, 2)
        process.send_signal(number)
        assert read_output(process) == (f"stopped by {number.name}\n", "")
    assert world.ends() == {"A": "done", "B": "done", "C": "open"}
    assert world.run().status == "stopped"


def test_the_second_signal_ends_at_once_and_the_agents_with_it(tmp_path: Path) -> None:
    world = World(tmp_path, ONE_STEP)
    world.begin("A", "B", "C")
    with start_session(world, slow=FOR_EVER) as process:
        assert until_asked(world, process, 2)
        process.send_signal(signal.SIGINT)
        process.send_signal(signal.SIGTERM)
        # Of two signals that arrive together, either may be seen first.
        assert read_output(process) in [("stopped by SIGINT\n", ""), ("stopped by SIGTERM\n", "")]
    assert world.story() == []
    with start_session(world) as process:
        assert read_output(process) == ("done by nobody\n", "")
    assert sorted(diary(world)) == ["1 work", "1 work", "2 work", "2 work", "3 work"]
    assert world.faults() == []


@pytest.mark.soak
def test_killed_again_and_again_it_comes_to_the_same_end(tmp_path: Path) -> None:
    for name in ("whole", "killed"):
        (tmp_path / name).mkdir()
    cases = [f"C{number}" for number in range(6)]
    whole = World(tmp_path / "whole", PAPER)
    whole.begin(*cases)
    assert whole.work(places=2) == "done"
    killed = World(tmp_path / "killed", PAPER)
    killed.begin(*cases)
    deaths = 0
    while "open" in killed.ends().values():
        with start_session(killed) as process:
            if until_asked(killed, process, len(diary(killed)) + 3 + deaths % 3):
                process.kill()
                deaths += 1
            process.wait(timeout=120)
        assert killed.faults() == []
    assert deaths > 2
    assert (killed.digest(), killed.refused()) == (whole.digest(), [])


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


def at(step: str, name: str = "a") -> Case:
    return Case(name, step)


def test_after_an_agents_turn_a_case_goes_on_only_to_our_own_programs() -> None:
    once = OneRound(CIRCUIT, {"checks", "human"})
    assert not once.must_rest(at("WRITE"))
    once.note_dispatch(at("WRITE"))
    assert not once.must_rest(at("CHECK"))
    once.note_dispatch(at("CHECK"))
    assert once.must_rest(at("READ"))
    assert not once.must_rest(at("READ", "b"))
