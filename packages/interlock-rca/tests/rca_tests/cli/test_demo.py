"""demo: the real commands on a small world, from red tests to causes next to the truth."""

import re
import signal

import pytest

from tests.docs.commands import find_unprinted
from tests.world.change import CHANGE
from tests.world.command_line import World

COMMANDS = [
    "analyze results/1184 --last-green build-1183",
    "inbox",
    "answer ID approve --by demo",
    "resume",
    "analyze results/1209",
    "analyze results/1209",
    "explain C1",
    "replay --set convergence_sufficient=0.9",
    "doctor --deep",
]


def test_the_demo_finds_what_was_planted(world: World) -> None:
    first = world.type("demo", limit=300, env={"INTERLOCK_DB": str(world.folder / "mine.db")})
    assert (first.code, first.err) == (0, "")
    assert not (world.folder / "mine.db").exists()
    typed = re.findall(r"^\$ interlock (.+)$", first.out, re.MULTILINE)
    assert [re.sub(r"answer \d+", "answer ID", words) for words in typed] == COMMANDS
    for line in (
        "ok    store.fold: 2 runs: every case is the fold of its journal",
        "6 of 6 planted families found whole and pure",
        f"The small world is in {world.folder / 'demo'}: look around, try your own.",
    ):
        assert line in first.out.splitlines()
    resumed = first.out.partition("$ interlock resume\n")[2]
    assert resumed.startswith("1184\n3 failures, 1 cause: 1 product bug (3 failures). It is new.")
    assert re.search(r"^floats +13 .* product 13/13 +#1 ", first.out, re.MULTILINE)
    assert find_unprinted("README.md", first.out) == []
    killed = re.search(r"killed \(SIGKILL\) after (\d+) decisions", first.out)
    assert killed is not None
    assert int(killed[1]) >= 40
    page = world.folder / "demo/interlock-report/1209/report.html"
    assert "Reckon discounts in floats" in page.read_text(encoding="utf-8")


@pytest.mark.soak
def test_the_demo_can_be_shown_again(world: World) -> None:
    world.type("demo", limit=300)
    again = world.type("demo", "--json", limit=300)
    assert (again.code, again.err) == (0, "")
    assert [each["exit"] for each in again.json["commands"]] == [
        *(4, 0, 0, 0),
        *(-signal.SIGKILL, 4, 0, 0, 0),
    ]
    assert again.json["verdict"]["right"] == 6


@pytest.mark.parametrize("name", ["mine", "mine/thesis.txt"])
def test_the_demo_touches_no_folder_that_is_not_its_own(world: World, name: str) -> None:
    mine = world.write("mine/thesis.txt", "ten years of work")
    result = world.say("demo", name)
    assert result.code == 1
    assert "name another folder" in result.err or "name a folder" in result.err
    assert [path.name for path in mine.parent.iterdir()] == ["thesis.txt"]
    assert mine.read_text() == "ten years of work"


def test_the_demo_empties_no_database_but_its_own(world: World) -> None:
    world.write("crew.yaml", '"*": {draft: {crash: mine}}')
    world.cases("precious")
    world.say("run", CHANGE, "--cases", "cases.jsonl", "--agent", "script:crew.yaml")
    assert world.say("demo", ".").code == 1
    assert world.say("explain", "precious").code == 0
