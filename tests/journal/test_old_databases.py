"""Databases written by the version before the house was rebuilt, each stopped in the middle of a
run: they open, they are sound, every case can be explained, and what can go on goes on to its end.

The folders, repositories and circuit files they were made with are gone.
"""

import gzip
from pathlib import Path

import pytest
from tests.cli import triage
from tests.cli.world import World

from interlock.journal.database import open_writer

DATABASES = Path(__file__).with_name("databases")
CASES = {
    "plain": ["A", "B", "C", "D", "N1", "N2"],
    "rca": ["C1", "C2", "C3"],
    "delivery": ["adds", "lies", "after", "asks"],
    "epic": ["boats"],
}


def unpack(folder: Path, name: str) -> World:
    world = World(folder)
    world.db.parent.mkdir()
    world.db.write_bytes(gzip.decompress((DATABASES / f"{name}.db.gz").read_bytes()))
    with open_writer(world.db):  # any command that writes brings an old database up to date
        return world


def approve(world: World, run_id: int) -> None:
    """Approve what waits at the gates of a run; one answer may be for a whole family."""
    answered: set[int] = set()
    while waiting := {
        each["question_id"]
        for each in world.say("inbox", "--json").json["questions"]
        if each["run_id"] == run_id and each["question_id"] not in answered
    }:
        result = world.say("answer", str(min(waiting)), "approve")
        assert result.code == 0 or "is answered already" in result.err
        answered.add(min(waiting))


def faults(world: World) -> list[str]:
    """What the audit says against the database."""
    checks = world.say("doctor", "--deep", "--json").json["checks"]
    assert "store.fold" in [each["id"] for each in checks]
    return [
        each["id"] for each in checks if each["id"].startswith(("store", "rca")) and not each["ok"]
    ]


@pytest.mark.parametrize("name", CASES)
def test_it_is_sound_and_every_case_can_be_explained(tmp_path: Path, name: str) -> None:
    world = unpack(tmp_path, name)
    assert faults(world) == []
    for case_id in CASES[name]:
        result = world.say("explain", case_id, "--prompts")
        assert (result.code, result.err) == (0, ""), case_id
    assert world.say("status").code == 0
    assert world.say("logs").code == 0


def test_a_run_whose_budget_was_spent_goes_on(tmp_path: Path) -> None:
    world = unpack(tmp_path, "plain")
    world.write("scout.yaml", triage.SCRIPT)
    result = world.say("resume", "1", "--budget", "dispatches=100")
    assert result.out.startswith("run 1: unhealthy; 2 kept, 2 dropped; 6 dispatches\n"), result


def test_a_run_that_waits_for_a_human_goes_on(tmp_path: Path) -> None:
    world = unpack(tmp_path, "plain")
    world.write("approved.yaml", '"*": {publish: {answer: {}}}\n')
    approve(world, 2)
    result = world.say("resume", "2")
    assert result.out.startswith("run 2: done; 2 published"), result


def test_an_analysis_goes_on_to_its_report(tmp_path: Path) -> None:
    world = unpack(tmp_path, "rca")
    approve(world, 1)
    result = world.say("resume", "1", "--json")
    assert result.json["status"] == "done", result
    assert faults(world) == []
    assert world.say("report").code == 0
