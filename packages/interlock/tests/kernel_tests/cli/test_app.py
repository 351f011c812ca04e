"""The command line itself: errors, hints, completion, and how it leaves when it is interrupted."""

import os
import signal
import subprocess
import sys
from importlib import metadata

import pytest

from tests.world.command_line import COMMAND, LIMIT, World

NO_DATABASE = "there is no database at .interlock/interlock.db; "
ANY = "'interlock run', 'analyze', 'deliver' or 'epic run'"


@pytest.mark.parametrize(
    ("words", "code", "problem"),
    [
        (("run", "nosuch", "--cases", "x.jsonl"), 2, "there is no circuit 'nosuch'"),
        (("run",), 2, "Missing argument 'CIRCUIT'"),
        (("status", "--nosuch"), 2, "No such option"),
        (("resume", "x"), 2, "valid integer"),
        (("status",), 1, NO_DATABASE),
    ],
)
def test_with_json_an_error_is_an_object_too(
    world: World, words: tuple[str, ...], code: int, problem: str
) -> None:
    result = world.say_all(*words, "--json")
    assert result.code == code
    assert result.json["exit_code"] == code
    assert problem in result.json["error"]
    assert problem in result.err
    without = world.say_all(*words)
    assert (without.code, without.out) == (code, "")


def test_json_of_another_command_is_not_ours(world: World) -> None:
    result = world.say_all("conform", "--timeout", "x", "--", "watch", "--json")
    assert (result.code, result.out) == (2, "")


@pytest.mark.parametrize(
    ("words", "starter"),
    [
        (("inbox",), ANY),
        (("explain", "A"), ANY),
        (("report",), "'interlock analyze SOURCE'"),
        (("causes",), "'interlock analyze SOURCE'"),
        (("push",), "'interlock analyze SOURCE'"),
        (("deliver", "status"), "'interlock deliver PLAN'"),
    ],
)
def test_in_an_empty_folder_the_hint_names_the_right_verb(
    world: World, words: tuple[str, ...], starter: str
) -> None:
    assert world.say(*words).err == f"interlock: {NO_DATABASE}{starter} makes one\n"


def test_by_hand_the_hint_is_a_command_of_asterisk(world: World) -> None:
    hint = f"asterisk: {NO_DATABASE}'asterisk cursor --launch SOURCE' makes one\n"
    assert world.hand("status").err == hint


@pytest.mark.parametrize("delay", [0.05 * step for step in range(1, 7)])
def test_interrupted_at_once_it_leaves_without_a_traceback(world: World, delay: float) -> None:
    # Python's own start is not ours to guard: the clock runs from the first line of the command.
    code = (
        "import os, signal, threading; from interlock.__main__ import main; "
        f"threading.Timer({delay}, os.kill, (os.getpid(), signal.SIGINT)).start(); main()"
    )
    process = subprocess.run(
        [sys.executable, "-c", code, "respond", "--agent", "exec:true"],
        cwd=world.folder,
        capture_output=True,
        text=True,
        timeout=LIMIT,
        check=False,
    )
    assert process.returncode == 128 + signal.SIGINT
    assert "Traceback" not in process.stderr


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("interlock re", {"resume", "replay", "report", "respond"}),
        ("interlock run --ag", {"--agent"}),
        ("interlock deliver st", {"status"}),
        ("interlock circuit sh", {"show"}),
        ("interlock run de", {"delivery"}),
    ],
)
def test_shells_complete_verbs_options_and_circuits(
    world: World, words: str, expected: set[str]
) -> None:
    env = {
        **os.environ,
        "_INTERLOCK_COMPLETE": "complete_bash",
        "COMP_WORDS": words,
        "COMP_CWORD": str(words.count(" ")),
    }
    code = "import sys; sys.argv = ['interlock']; from interlock.__main__ import main; main()"
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=world.folder,
        env=env,
        capture_output=True,
        text=True,
        timeout=LIMIT,
        check=False,
    )
    assert set(done.stdout.split()) == expected


def test_the_commands_begin_where_interrupts_are_guarded() -> None:
    found = {each.name: each.value for each in metadata.entry_points(group="console_scripts")}
    assert found["interlock"] == "interlock.__main__:main"
    done = subprocess.run([*COMMAND, "--version"], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("interlock ")
