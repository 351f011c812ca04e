"""Each circuit once, from its first command to its end, with the journal in PostgreSQL."""

from pathlib import Path

import pytest

from delivery_tests.world.delivery_project import AGENT, lay_out
from epic_tests.world.epic_project import DONE, WRITE, Project
from interlock.journal.address import PostgresAddress
from rca_tests.worlds.red_repository import KEY, TYPE, junit
from tests.world.command_line import World


@pytest.fixture(autouse=True)
def on_postgres(postgres: PostgresAddress, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("INTERLOCK_DB", postgres.url)


def approve_all(world: World, decision: str = "approve", *words: str) -> None:
    for each in world.say("inbox", "--json").json["questions"]:
        result = world.say("answer", str(each["question_id"]), decision, *words)
        assert result.code == 0 or "is answered already" in result.err, result


def assert_sound(world: World) -> None:
    result = world.say("doctor", "--deep", "--json")
    checks = result.json["checks"]
    bad = [each["id"] for each in checks if not each["ok"]]
    assert bad in ([], ["store.durable"]), "the tests' server need not survive a power cut"
    assert "store.fold" in [each["id"] for each in checks]
    assert not (world.folder / ".interlock" / "interlock.db").exists()


def test_an_analysis(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.write("red.xml", junit(KEY, TYPE))
    assert world.say("analyze", "red.xml").code == 4
    approve_all(world)
    result = world.say("resume")
    assert result.code in (0, 3), result
    assert world.say("report").code == 0
    assert len(world.say("causes", "--json").json["causes"]) >= 1
    assert world.say("analyze", "red.xml", "--new").code == 4, "known causes are recalled"
    assert_sound(world)


def test_a_delivery(tmp_path: Path) -> None:
    world = lay_out(tmp_path, "adds", "asks")
    assert world.say("deliver", "plan.md", "--agent", AGENT).code == 4
    approve_all(world, "answer", "-m", "plus")
    result = world.say("deliver", "plan.md")
    assert result.code in (0, 3, 4), result
    assert world.say("deliver", "status", "--json").json["counts"]["complete"] >= 1
    assert_sound(world)


def test_an_epic(tmp_path: Path) -> None:
    project = Project(World(tmp_path))
    result = project.run([WRITE, {"hang": 1}], [DONE])
    assert (result.code, result.json["outcome"]) == (0, "COMPLETE"), result
    assert project.ended_by() == ["CHECKPOINT_WRITE", "EPIC_COMPLETE"]
    assert_sound(project.world)
