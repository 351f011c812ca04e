"""The door: help, exit codes, errors on stderr only, broken pipes, and who goes before whom."""

import re
import subprocess
import sys
from collections.abc import Iterator

import pytest
from typer.core import TyperGroup
from typer.main import get_group

from interlock.cli.app import app
from interlock.cli.verbs import group_verbs, list_verbs
from interlock.version import __version__
from tests.world import triage
from tests.world.command_line import COMMAND, LIMIT, CliResult, World

BY_HAND = ("cursor", "save", "status", "analyze", "report", "push")


@pytest.mark.parametrize("verb", BY_HAND)
def test_every_verb_of_the_manual_flow_speaks_json(world: World, verb: str) -> None:
    result = world.hand(verb, "--help")
    assert result.code == 0
    assert "  --json " in result.out


def test_help_shows_the_verbs_as_a_user_meets_them(world: World) -> None:
    result = world.type("--help", env={"COLUMNS": "80"})
    assert (result.code, result.err) == (0, "")
    shown = [line.strip() for line in result.out.splitlines()]
    for heading, verbs in group_verbs():
        assert f"{heading}:" in shown
        for name, verb in verbs.items():
            assert any(re.fullmatch(rf"{name} +{re.escape(verb.summary)}", line) for line in shown)


def verbs(group: TyperGroup | None = None, above: tuple[str, ...] = ()) -> Iterator[list[str]]:
    """The words of every verb there is, but for those that speak JSONL."""
    if group is None:
        for name in (root := get_group(app)).list_commands(None):  # type: ignore[arg-type]
            root.get_command(None, name)  # type: ignore[arg-type]
    for name, command in (group or get_group(app)).commands.items():
        if isinstance(command, TyperGroup) and not command.invoke_without_command:
            yield from verbs(command, (*above, name)) if name != "analyst" else ()
        elif (*above, name) != ("history", "export"):
            yield [*above, name]


@pytest.mark.parametrize("words", [*verbs()], ids=" ".join)
def test_every_verb_speaks_json(world: World, words: list[str]) -> None:
    result = world.say(*words, "--help")
    assert result.code == 0
    assert "  --json " in result.out


def test_version(world: World) -> None:
    assert world.say("--version") == CliResult(0, "interlock 0.1.0\n", "")


@pytest.mark.parametrize(
    "words",
    [
        ["fly"],
        ["status", "one"],
        ["status", "--fast"],
        ["run", "triage"],
        ["run"],
        ["answer", "x", "approve"],
        [*triage.RUN, "--parallel", "0"],
        ["circuit"],
        ["circuit", "fold", "triage"],
    ],
)
def test_wrong_words_are_a_usage_error_and_touch_nothing(world: World, words: list[str]) -> None:
    triage.lay_out(world)
    result = world.say(*words)
    assert result.code == 2
    assert "Traceback" not in result.err
    assert not world.db.parent.exists()


@pytest.mark.parametrize("words", [["logs"], ["circuit", "schema"], ["logs", "--json"], ["runs"]])
def test_a_reader_who_goes_away_gets_no_traceback(world: World, words: list[str]) -> None:
    triage.lay_out(world).cases(*(f"A{number}" for number in range(300)))
    world.write("scout.yaml", '"*": {look: {answer: {confidence: 1}}}')
    world.say(*triage.RUN)
    with subprocess.Popen(
        [*COMMAND, *words],
        cwd=world.folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        assert process.stderr.read() == ""
        assert process.wait(LIMIT) in (0, 1)


def test_text_that_the_terminal_cannot_show_is_escaped(world: World) -> None:
    triage.lay_out(world).cases("A")
    world.write("scout.yaml", '"*": {look: {answer: {confidence: 1, note: "größer …"}}}')
    world.say(*triage.RUN)
    result = world.type("explain", "A", env={"PYTHONIOENCODING": "ascii"})
    assert (result.code, result.err) == (0, "")
    assert '"note":"gr\\xf6\\xdfer \\u2026"' in result.out


def test_flags_go_before_the_environment_and_that_before_the_project(world: World) -> None:
    triage.lay_out(world).cases("A")
    world.write(
        "interlock.toml",
        'db = "project.db"\nparallel = 3\n[agents]\nscout = "script:scout.yaml"\n'
        "[thresholds]\nsure = 0.95\n[budget]\ndispatches = 50\n[slots]\nscout = 2\n",
    )
    begin = ("run", "triage", "--cases", "cases.jsonl", "--json", "--new")

    project = world.type(*begin)
    environment = world.type(*begin, env={"INTERLOCK_DB": "env.db", "INTERLOCK_PARALLEL": "4"})
    flags = world.type(
        *(*begin, "--db", "flag.db", "--parallel", "5", "--slots", "scout=1"),
        *("--set", "sure=0.1", "--budget", "dispatches=60"),
        env={"INTERLOCK_DB": "env.db", "INTERLOCK_PARALLEL": "4"},
    )

    assert [result.code for result in (project, environment, flags)] == [3, 3, 0]
    options = [
        world.say("runs", "--json", "--db", f"{name}.db").json["runs"][0]["options"]
        for name in ("project", "env", "flag")
    ]
    assert [each["parallel"] for each in options] == [3, 4, 5]
    assert [each["slots"] for each in options] == [{"scout": 2}, {"scout": 2}, {"scout": 1}]
    assert [each["thresholds"] for each in options] == [
        {"sure": 0.95},
        {"sure": 0.95},
        {"sure": 0.1},
    ]
    assert [each["budget"]["dispatches"] for each in options] == [50, 50, "60"]
    assert not world.db.exists()


INBOX = "interlock.toml: Expected `array`, got `str` - at `$.inbox.answerers`"
BEHIND = "alone or after 'role.ROLE.' or 'day.'"


@pytest.mark.parametrize(
    ("toml", "problem"),
    [
        (
            "parallel = 'many'\n",
            "interlock.toml: Expected `int | null`, got `str` - at `$.parallel`",
        ),
        ("colour = 1\n", "interlock.toml: Object contains unknown field `colour`"),
        ("parallel =\n", "interlock.toml: Invalid value (at line 1, column 11)"),
        ("parallel = 0\n", "parallel (INTERLOCK_PARALLEL) must be a number from 1, not 0"),
        ("parallel = -2\n", "parallel (INTERLOCK_PARALLEL) must be a number from 1, not -2"),
        ("[slots]\nscout = 0\n", "slots scout=0: give at least 1 to one of human, scout"),
        ("[agents]\npilot = 'script:x'\n", "no step has the role 'pilot'; roles are scout"),
        (
            "[budget.day]\nbeer = 6\n",
            f"budget 'day.beer' is unknown; use dispatches, tokens, money or time, {BEHIND}",
        ),
        ("[inbox]\nanswerers = 'ann'\n", INBOX),
        (
            "[notify]\nwebhook = 'file:///etc'\n",
            "interlock.toml, [notify] webhook: give an http:// or https:// address",
        ),
        ("[thresholds]\nsure = 'high'\n", "threshold sure is a number (0.7), not 'high'"),
    ],
)
def test_a_project_file_that_is_wrong(world: World, toml: str, problem: str) -> None:
    triage.lay_out(world)
    world.write("interlock.toml", toml)
    assert world.say(*triage.RUN, "--json") == CliResult(2, "", f"interlock: {problem}\n")
    assert not world.db.parent.exists()


@pytest.mark.parametrize("value", ["many", "-3", "0"])
def test_an_environment_that_is_wrong(
    world: World, monkeypatch: pytest.MonkeyPatch, value: str
) -> None:
    triage.lay_out(world)
    monkeypatch.setenv("INTERLOCK_PARALLEL", value)
    problem = f"interlock: parallel (INTERLOCK_PARALLEL) must be a number from 1, not {value!r}\n"
    assert world.say(*triage.RUN) == CliResult(2, "", problem)


def test_help_loads_no_verb() -> None:
    heavy = ("jinja2", "rich.table", "mcp", "httpx", "interlock.engine")
    code = (
        "import atexit, sys; from interlock.cli.app import main; sys.argv = "
        "['interlock', '--help'];"
        f"atexit.register(lambda: print([name for name in {heavy} if name in sys.modules]));"
        "main()"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.splitlines()[-1] == "[]"


def test_each_verb_says_of_itself_what_help_says_of_it() -> None:
    root = get_group(app)
    for name, verb in list_verbs().items():
        command = root.get_command(None, name)  # type: ignore[arg-type]
        assert command is not None
        assert command.get_short_help_str(200).startswith(verb.summary.removesuffix(".")), name


def test_both_commands_say_their_version(world: World) -> None:
    assert world.hand("--version").out == f"asterisk {__version__}\n"
    assert world.say("--version").out == f"interlock {__version__}\n"
