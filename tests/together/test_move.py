"""A journal that moves to PostgreSQL and back in the middle of each kind of run: what was said
stays as it was, and the run goes on to the same end."""

import json
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from delivery_tests.world import delivery_project
from epic_tests.world import epic_project
from interlock.journal.address import PostgresAddress
from rca_tests.worlds.rca_oracle import PLAIN
from rca_tests.worlds.red_repository import DISK, F5, KEY, TYPE, junit
from tests.world.command_line import World
from tests.world.triage import RUN as TRIAGE
from tests.world.triage import lay_out as lay_out_triage

ASKS = "SAGE_SIGNAL:HITL_REQUIRED:issue:77"


class Kind(NamedTuple):
    """A kind of run: its project, the command that begins it and goes on with it, in parts."""

    lay_out: Callable[[Path], World]
    parts: tuple[tuple[str, ...], ...]
    codes: tuple[int, ...]
    """How each part ends."""
    answer: str = ""
    """What people say between the parts."""


def lay_out_plain(folder: Path) -> World:
    return lay_out_triage(World(folder))


def lay_out_rca(folder: Path) -> World:
    world = World(folder)
    (folder / "night.xml").write_text(junit(KEY, TYPE, DISK))
    steps = {step: [{"answer": one} for one in many] for step, many in PLAIN.items() if step != F5}
    world.write("crew.json", json.dumps({"*": steps}))
    return world


def lay_out_epic(folder: Path) -> World:
    project = epic_project.Project(World(folder))
    project.sessions([ASKS], [ASKS], [epic_project.DONE])
    world = project.world
    world.write("agent", project.agent)
    return world


def budget(count: int) -> tuple[str, ...]:
    return ("--budget", f"dispatches={count}")


RCA = ("analyze", "night.xml", "--agent", "script:crew.json", "--parallel", "1")
DELIVER = ("deliver", "plan.md", "--agent", delivery_project.AGENT, "--parallel", "1")
EPIC = ("--agent", "AGENT", "--json")
KINDS: Mapping[str, Kind] = {
    "plain": Kind(
        lay_out_plain,
        (
            (*TRIAGE, "--parallel", "1", *budget(2)),
            ("resume", "1", *budget(4)),
            ("resume", "1", *budget(90)),
        ),
        (5, 5, 3),
    ),
    "rca": Kind(
        lay_out_rca,
        ((*RCA, *budget(4)), ("resume", "1", *budget(8)), ("resume", "1", *budget(90))),
        (5, 5, 4),
    ),
    "delivery": Kind(
        lambda folder: delivery_project.lay_out(folder, "adds", "more>adds"),
        ((*DELIVER, *budget(2)), (*DELIVER, *budget(4)), (*DELIVER, *budget(90))),
        (5, 5, 0),
    ),
    "epic": Kind(
        lay_out_epic,
        (
            ("epic", "run", "epic.md", *EPIC),
            ("epic", "resume", *EPIC),
            ("epic", "resume", *EPIC),
        ),
        (4, 4, 0),
        answer="approve",
    ),
}


def go_on(world: World, kind: Kind, part: int) -> None:
    """The next part of the work, once people have answered."""
    questions = world.say("inbox", "--json").json["questions"] if kind.answer and part else []
    for each in questions:
        said = world.say("answer", str(each["question_id"]), kind.answer)
        assert said.code == 0, said
    agent = world.folder / "agent"
    words = [agent.read_text() if word == "AGENT" else word for word in kind.parts[part]]
    said = world.say(*words)
    assert said.code == kind.codes[part], said


def read_all(world: World) -> dict[str, Any]:
    """What the verbs say of the run."""
    cases = re.findall(r"^TIME  (\S+) ", world.say("logs", "1").out, re.MULTILINE)
    verbs = [("logs", "1"), ("replay", "1", "--json"), ("status", "1"), ("inbox", "--json")]
    verbs += [("explain", case, "--run", "1", "--json") for case in dict.fromkeys(cases)]
    assert len(verbs) > 4
    found = {" ".join(words): world.say(*words) for words in verbs}
    assert not [said for said in found.values() if said.code], found
    return found


def read_way(world: World) -> list[tuple[str, str]]:
    """Which case did what, without times and numbers, by case."""
    lines = re.findall(r"^TIME  (\S+) +(.+?)  \[(.+?)\]", world.say("logs", "1").out, re.MULTILINE)
    return sorted((case, f"{what} {rule}") for case, what, rule in lines)


@pytest.mark.parametrize("name", KINDS)
def test_a_run_that_moves_in_the_middle_says_and_does_the_same(
    name: str, tmp_path: Path, postgres: PostgresAddress, monkeypatch: pytest.MonkeyPatch
) -> None:
    kind = KINDS[name]
    folders = [tmp_path / "moved", tmp_path / "still"]
    for folder in folders:
        folder.mkdir()
    monkeypatch.delenv("INTERLOCK_DB", raising=False)
    still = kind.lay_out(folders[1])
    for part in range(3):
        go_on(still, kind, part)
    expected = read_way(still)

    world = kind.lay_out(folders[0])
    places = [str(world.db), postgres.url, str(tmp_path / "back.db")]
    for part, place in enumerate(places):
        if part:
            before = read_all(world)
            said = world.say("db", "move", places[part - 1], place)
            assert said.code == 0, said
            monkeypatch.setenv("INTERLOCK_DB", place)
            assert read_all(world) == before
        go_on(world, kind, part)
    said = world.say("db", "move", places[2], postgres.url)
    assert (said.code, "was moved to another database before; use an empty one" in said.err) == (
        1,
        True,
    ), said
    assert read_way(world) == expected
    assert world.say("doctor", "--deep").code == 0
