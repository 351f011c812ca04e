"""The door: help, exit codes, errors on stderr only, broken pipes, and who goes before whom."""

import subprocess
import sys
from collections.abc import Iterator

import pytest
from tests.cli import triage
from tests.cli.world import COMMAND, LIMIT, CliResult, World
from typer.core import TyperGroup
from typer.main import get_group

from interlock.cli.app import VERBS, app
from interlock.version import __version__

HELP = """\
Usage: interlock [OPTIONS] COMMAND [ARGS]...

  Agents do the thinking; Interlock reads their signals, decides the route,
  and never loses its place.

Options:
  --version             Show the version and exit.
  --install-completion  Install completion for the current shell.
  --show-completion     Show completion for the current shell, to copy it or
                        customize the installation.
  --help                Show this message and exit.

Main jobs:
  demo         See Interlock at work, in seconds.
  init         Set up a project.
  ci           Report the results of a CI run: ingest, analyse, publish.
  analyze      Find the causes of failing tests.
  deliver      Carry out a plan: written, reviewed, audited, proven, merged.
  epic         Epics: long work over many sessions.
  calibrate    Measure an agent against failures whose causes are known.

Runs:
  run          Run cases through a circuit.
  resume       Continue a run.
  stop         Ask the running process to stop.
  runs         List all runs in the database.
  status       Show the state of a run, and which cases need attention.
  top          Show runs, agents, costs and questions in the terminal, live.
  logs         Print the journal: every decision and refused answer, in order.
  explain      Explain a case.
  replay       Decide a recorded run again with other thresholds.

People:
  serve        Show runs, cases and questions in the browser, live.
  inbox        List the questions that wait for a human, in all runs.
  answer       Answer a question.
  cursor       Write the prompt of a case's next step, and print its path.
  save         Save the answer to a case's open step.

Results:
  report       Write the report of a suite again.
  causes       List the known root causes of all suites.
  cause        Show or set the status of a root cause.
  push         Send reviewed results to ReportPortal.
  plan         Plans of tasks: check and show them.
  tune         Try other thresholds on recorded calibrations.

Test history:
  ingest       Remember the results of a CI job, passed ones too.
  history      What is remembered: flaky, broken, failing since, last pass.
  quarantine   Tests whose failures do not count for a while.
  last-green   Between which commits each failing test broke.

Circuits:
  circuit      Circuits: list, show, draw and verify them.
  simulate     Walk a circuit with random legal answers.

Agents:
  agents       List agent CLIs: installed or not, version known or not.
  mcp          Let an agent pull its work.
  respond      Answer signals that wait in files, with any command.
  emit         Send a line signal.
  token        Tokens for the server: make, list and revoke them.

Many machines:
  coordinator  Work on runs that nobody works on, until stopped.
  worker       Answer dispatches of some roles with agents of this host.
  workers      List the workers of the database, and what each does.
  init-db      Make the database, or bring it up to date.
  db           The database: move it.

Checks:
  doctor       Check the machine and the database.
  lint         Check prompts, transcripts and human comments.
  conform      Test a watcher against the file protocol.
  analyst      The built-in analyst's parts: JSONL in, JSONL out.
"""


ASTERISK = """\
Usage: asterisk [OPTIONS] COMMAND [ARGS]...

  Root cause analysis by hand: cursor writes the next prompt, save takes its
  answer.

Options:
  --version             Show the version and exit.
  --install-completion  Install completion for the current shell.
  --show-completion     Show completion for the current shell, to copy it or
                        customize the installation.
  --help                Show this message and exit.

Commands:
  cursor     Write the prompt of a case's next step, and print its path.
  save       Save the answer to a case's open step, and go on to the next.
  status     Where a case stands: its step, its loops, its history.
  analyze    Find the causes of failing tests.
  report     Write the report of a suite again.
  push       Send reviewed results to ReportPortal.
  calibrate  Run a scenario with known answers and score the agent.
"""
ANALYST = """\
Usage: interlock analyst [OPTIONS] COMMAND [ARGS]...

  The built-in analyst's parts: JSONL in, JSONL out.

Options:
  --help  Show this message and exit.

Commands:
  read       The failures of one report or log, and its number of tests.
  templates  The template of each line of a log.
  evidence   The lines of a log that say why it failed.
  cluster    Which failures are one family.
  recall     Whether an earlier failure is the same.
  triage     What kind each failure is; unknown is no answer.
  suspect    Which candidate brought each failure, best first.
  fit        Learn kinds of failures from your reviews.
  show       Show what was learnt, how it was judged, and what is used.
  use        Use another model from now on, or the rules alone.
"""
BY_HAND = ("cursor", "save", "status", "analyze", "report", "push")


def test_help_of_the_manual_flow_and_of_the_analyst(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    assert world.hand("--help") == CliResult(0, ASTERISK, "")
    assert world.say("analyst", "--help") == CliResult(0, ANALYST, "")


@pytest.mark.parametrize("verb", BY_HAND)
def test_every_verb_of_the_manual_flow_speaks_json(world: World, verb: str) -> None:
    result = world.hand(verb, "--help")
    assert result.code == 0
    assert "  --json " in result.out


def test_help_shows_the_verbs_as_a_user_meets_them(world: World) -> None:
    result = world.type("--help", env={"COLUMNS": "80"})
    assert (result.code, result.err) == (0, "")
    assert result.out == HELP


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
        ["simulate", "triage", "--cases", "0"],
        ["simulate", "triage", "--cases", "many"],
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
    heavy = ("sqlalchemy", "alembic", "jinja2", "rich.table", "mcp", "httpx", "interlock.engine")
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
    for group in VERBS.values():
        for name, (_, result) in group.items():
            command = root.get_command(None, name)  # type: ignore[arg-type]
            assert command is not None
            assert command.get_short_help_str(200).startswith(result.removesuffix(".")), name


def test_both_commands_say_their_version(world: World) -> None:
    assert world.hand("--version").out == f"asterisk {__version__}\n"
    assert world.say("--version").out == f"interlock {__version__}\n"
