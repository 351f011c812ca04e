"""Killed with SIGKILL at random moments and started again by the same command, a run comes to the
same decisions as one that nobody disturbed. INTERLOCK_KILLS=300 kills more often."""

import os
import random
import signal
import sqlite3
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

import pytest

from tests.world.change import CHANGE
from tests.world.command_line import COMMAND, LIMIT, World, decisions, until

KILLS = int(os.environ.get("INTERLOCK_KILLS", "10"))
CASES = max(20, KILLS)
SCRIPT = f"exec:{sys.executable} -I -S {Path(__file__).with_name('scripted_agent.py')}"
RUN = (
    *("run", CHANGE, "--cases", "cases.jsonl", "--wait", "--json"),
    *("--agent", SCRIPT, "--agent", f"human={SCRIPT}"),
)


@pytest.mark.soak
def test_a_run_killed_at_random_moments_decides_as_one_that_was_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calm, killed = _world(tmp_path / "calm"), _world(tmp_path / "killed")
    monkeypatch.setenv("CREW_LOG", str(tmp_path / "calm.log"))
    wanted = calm.type(*RUN, limit=LIMIT + CASES)
    monkeypatch.setenv("CREW_LOG", str(tmp_path / "killed.log"))

    _kill_often(killed, decisions(calm))
    found = killed.type(*RUN, limit=LIMIT + CASES)

    assert (found.code, wanted.code) == (3, 3)
    assert found.json["digest"] == wanted.json["digest"]
    assert found.json["ends"] == wanted.json["ends"] == _ends()
    assert found.json["spent"]["dispatches"] == wanted.json["spent"]["dispatches"]
    assert _lives(killed) == _lives(calm)
    _nothing_doubled_or_lost(killed)
    _each_dispatch_asks_one_thing(tmp_path / "killed.log")
    for world in (calm, killed):
        assert world.say("doctor", "--deep").code == 0


def _world(folder: Path) -> World:
    folder.mkdir()
    world = World(folder)
    world.cases(*(f"C{number}" for number in range(CASES)))
    return world


def _ends() -> dict[str, int]:
    """By hand: each seventh case wears its drafts out, and every other one is published."""
    worn = len([number for number in range(CASES) if number % 7 == 3])
    return {"published": CASES - worn, "abandoned": worn}


def _kill_often(world: World, total: int) -> None:
    """As often as asked, spread over the run; some come before a sitting has begun to work."""
    chance = random.Random(20)
    for number in range(KILLS):
        process = subprocess.Popen(
            [*COMMAND, *RUN], cwd=world.folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
        )
        early = chance.random() < 0.15 and number < 0.8 * KILLS
        if not early:
            goal = 0.95 * total * number / KILLS
            until(lambda: process.poll() is not None or decisions(world) > goal, "it works")  # noqa: B023
        try:
            process.wait(chance.uniform(0.0, 0.4 if early else 0.06))
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGKILL)
        result, _ = process.communicate(timeout=LIMIT)
        assert process.returncode == -signal.SIGKILL, result


def _lives(world: World) -> dict[str, list[tuple[str, ...]]]:
    """Each case's decisions, in order."""
    lives: dict[str, list[tuple[str, ...]]] = defaultdict(list)
    for entry in world.say("logs", "--json").json["entries"]:
        decision = entry["decision"]
        words = ("step", "attempt", "signal", "rule", "to")
        lives[entry["case_id"]].append(tuple(str(decision[word]) for word in words))
    return lives


def _nothing_doubled_or_lost(world: World) -> None:
    """Every dispatch has one decision, every decision one dispatch, no attempt two dispatches."""
    with sqlite3.connect(f"file:{world.db}?mode=ro", uri=True) as connection:
        rows = connection.execute(
            "select d.dispatch_id, count(j.seq) from dispatches d"
            " left join journal j on j.dispatch_id = d.dispatch_id group by d.dispatch_id"
        ).fetchall()
        asked = connection.execute("select case_no, step, attempt from dispatches").fetchall()
        decided = connection.execute("select count(*) from journal").fetchone()[0]
    connection.close()
    assert {count for _, count in rows} == {1}
    assert len(rows) == decided
    assert len(asked) == len(set(asked))


def _each_dispatch_asks_one_thing(log: Path) -> None:
    """However often it was sent again, a dispatch_id stood for the same question."""
    meanings: dict[str, set[str]] = defaultdict(set)
    dispatches: dict[str, set[str]] = defaultdict(set)
    for line in log.read_text(encoding="utf-8").splitlines():
        dispatch_id, meaning = line.split("\t", 1)
        meanings[dispatch_id].add(meaning)
        dispatches[meaning].add(dispatch_id)
    assert {len(each) for each in meanings.values()} == {1}
    assert {len(each) for each in dispatches.values()} == {1}
