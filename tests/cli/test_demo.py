"""demo: the real commands on a small world, from a proof to an explained decision."""

import re
import signal

from tests.cli.world import Said, World

COMMANDS = [
    "circuit verify change",
    "run change --cases cases.jsonl --agent script:crew.yaml",
    "run change --cases cases.jsonl --agent script:crew.yaml",
    "inbox",
    *["answer ID approve"] * 7,
    "resume",
    "status",
    "explain C3",
    "replay --set good_enough=0.5",
    "doctor --deep",
]


def test_the_demo_shows_it_all_and_can_be_shown_again(world: World) -> None:
    first = world.type("demo")
    assert (first.code, first.err) == (0, "")
    typed = re.findall(r"^\$ interlock (.+)$", first.out, re.MULTILINE)
    assert [re.sub(r"answer \d+", "answer ID", words) for words in typed] == COMMANDS
    for line in (
        "going on with run 1, which is unfinished (--new begins another)",
        "run 1: unhealthy; 7 published, 1 abandoned; 31 dispatches",
        "2 of 8 cases go another way; 38 dispatches before, 33 after",
        "ok    store.fold: 1 run: every case is the fold of its journal",
        f"The small world is in {world.folder / 'demo'}: look around, try your own.",
    ):
        assert line in first.out.splitlines()
    killed = re.search(r"killed \(SIGKILL\) after (\d+) decisions", first.out)
    assert killed is not None
    assert 6 <= int(killed[1]) < 38

    again = world.type("demo", "--json", env={"INTERLOCK_DB": str(world.folder / "mine.db")})

    assert (again.code, again.err) == (0, "")
    played = again.json["commands"]
    exits = [0, -signal.SIGKILL, 4, 0, *[0] * 7, 3, 0, 0, 0, 0]
    assert [each["exit"] for each in played] == exits
    resumed = "run 1: unhealthy; 7 published, 1 abandoned; 31 dispatches\n"
    assert played[11]["output"].startswith(resumed)
    assert not (world.folder / "mine.db").exists()


def test_the_demo_touches_no_folder_that_is_not_its_own(world: World) -> None:
    mine = world.write("mine/thesis.txt", "ten years of work")
    folder = mine.parent
    problem = f"interlock: {folder} is not empty and not an earlier demo; name another folder\n"
    assert world.say("demo", "mine") == Said(1, "", problem)
    assert [path.name for path in folder.iterdir()] == ["thesis.txt"]
    file = f"interlock: {mine} is a file; name a folder\n"
    assert world.say("demo", "mine/thesis.txt") == Said(1, "", file)


def test_the_demo_empties_no_database_but_its_own(world: World) -> None:
    world.write("crew.yaml", '"*": {draft: {crash: mine}}')
    world.cases("precious")
    world.say("run", "change", "--cases", "cases.jsonl", "--agent", "script:crew.yaml")
    assert world.say("demo", ".").code == 1
    assert world.say("explain", "precious").code == 0
