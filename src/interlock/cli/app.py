"""The command line: its verbs, its exit codes, and how errors are shown.

A user sees one sentence on stderr and an exit code; never a traceback for something they can fix.
Each verb's module is loaded when the verb is used: `--help` waits for nothing.
"""

import os
import signal
import sys
from contextlib import suppress
from enum import IntEnum
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, NoReturn

import typer
from typer.core import TyperGroup

from interlock.cli.output import echo, echo_json, echo_note
from interlock.system.errors import (
    CircuitError,
    InterlockError,
    NoDatabaseError,
    SourceError,
    UsageError,
)
from interlock.version import __version__

if TYPE_CHECKING:
    from interlock.api.work import RunResult

VERBS: dict[str, dict[str, tuple[str, str]]] = {
    "Main jobs": {
        "demo": ("demo", "See Interlock at work, in seconds."),
        "init": ("init", "Set up a project."),
        "ci": ("ci", "Report the results of a CI run: ingest, analyse, publish."),
        "analyze": ("rca", "Find the causes of failing tests."),
        "deliver": ("delivery", "Carry out a plan: written, reviewed, audited, proven, merged."),
        "epic": ("epic epic_checkpoint", "Epics: long work over many sessions."),
        "calibrate": ("calibrate", "Measure an agent against failures whose causes are known."),
    },
    "Runs": {
        "run": ("run", "Run cases through a circuit."),
        "resume": ("run", "Continue a run."),
        "stop": ("run", "Ask the running process to stop."),
        "runs": ("inspect", "List all runs in the database."),
        "status": ("inspect", "Show the state of a run, and which cases need attention."),
        "top": ("top", "Show runs, agents, costs and questions in the terminal, live."),
        "logs": (
            "inspect",
            "Print the journal: every decision and refused answer, in order.",
        ),
        "explain": ("inspect", "Explain a case."),
        "replay": ("inspect", "Decide a recorded run again with other thresholds."),
    },
    "People": {
        "serve": ("serve", "Show runs, cases and questions in the browser, live."),
        "inbox": ("inbox", "List the questions that wait for a human, in all runs."),
        "answer": ("inbox", "Answer a question."),
        "cursor": ("by_hand", "Write the prompt of a case's next step, and print its path."),
        "save": ("run", "Save the answer to a case's open step."),
    },
    "Results": {
        "report": ("rca", "Write the report of a suite again."),
        "causes": ("rca", "List the known root causes of all suites."),
        "cause": ("rca", "Show or set the status of a root cause."),
        "push": ("rca", "Send reviewed results to ReportPortal."),
        "plan": ("plan", "Plans of tasks: check and show them."),
        "tune": ("calibrate", "Try other thresholds on recorded calibrations."),
    },
    "Test history": {
        "ingest": ("ingest", "Remember the results of a CI job, passed ones too."),
        "history": ("history", "What is remembered: flaky, broken, failing since, last pass."),
        "quarantine": ("quarantine", "Tests whose failures do not count for a while."),
        "last-green": ("ingest", "Between which commits each failing test broke."),
    },
    "Circuits": {
        "circuit": ("circuits", "Circuits: list, show, draw and verify them."),
        "simulate": ("circuits", "Walk a circuit with random legal answers."),
    },
    "Agents": {
        "agents": (
            "agents",
            "List agent CLIs: installed or not, version known or not.",
        ),
        "mcp": ("serve", "Let an agent pull its work."),
        "respond": ("respond", "Answer signals that wait in files, with any command."),
        "emit": ("emit", "Send a line signal."),
        "token": ("token", "Tokens for the server: make, list and revoke them."),
    },
    "Many machines": {
        "coordinator": ("machines", "Work on runs that nobody works on, until stopped."),
        "worker": ("machines", "Answer dispatches of some roles with agents of this host."),
        "workers": ("machines", "List the workers of the database, and what each does."),
        "init-db": ("machines", "Make the database, or bring it up to date."),
        "db": ("machines", "The database: move it."),
    },
    "Checks": {
        "doctor": ("doctor", "Check the machine and the database."),
        "lint": ("lint", "Check prompts, transcripts and human comments."),
        "conform": ("respond", "Test a watcher against the file protocol."),
        "analyst": ("analyst", "The built-in analyst's parts: JSONL in, JSONL out."),
    },
}
"""Every verb as --help shows it: by group, with the modules that have it and its first sentence."""


_STARTERS = {
    "asterisk": "'asterisk cursor --launch SOURCE'",
    "cursor": "'interlock cursor --launch SOURCE'",
    "report": "'interlock analyze SOURCE'",
    "causes": "'interlock analyze SOURCE'",
    "cause": "'interlock analyze SOURCE'",
    "push": "'interlock analyze SOURCE'",
    "deliver": "'interlock deliver PLAN'",
    "epic": "'interlock epic run FILE'",
    "tune": "'interlock calibrate'",
}
"""What begins the work that a verb looks at; others look at all kinds."""
_COMMAND_LINE_ERROR: Any = next(
    each for each in typer.BadParameter.__mro__ if each.__name__ == "ClickException"
)
"""What typer raises for words that it does not know. It has moved between versions of typer."""


class ExitCode(IntEnum):
    """What an exit code means, everywhere."""

    DONE = 0
    """The work is done, and all of it ended well."""
    FAILED = 1
    """Something outside went wrong; stderr says what, and what to do."""
    USAGE = 2
    """A flag, an argument, a setting or an input file is wrong."""
    UNHEALTHY = 3
    """The run is over, but not every case ended well."""
    WAITING = 4
    """Only a person can move the work on: see `interlock inbox`."""
    BUDGET = 5
    """A budget is spent."""
    FINDINGS = 6
    """The check ran and has findings."""
    RATE_LIMITED = 75
    """An account is rate-limited, and `--on-limit leave` was given."""
    INTERRUPTED = 130
    """Stopped by Ctrl-C. Run the same command again to continue."""
    TERMINATED = 143
    """Stopped by SIGTERM. Run the same command again to continue."""


_EXITS = {
    "running": ExitCode.DONE,  # left to coordinators
    "done": ExitCode.DONE,
    "unhealthy": ExitCode.UNHEALTHY,
    "waiting": ExitCode.WAITING,
    "budget": ExitCode.BUDGET,
    "rate-limited": ExitCode.RATE_LIMITED,
}
"""The exit code of work that came to rest."""


def exit_with(result: "RunResult") -> NoReturn:
    """End the command with the exit code of the work."""
    stopped = 128 + (result.stopped_by or signal.SIGTERM)
    if result.counts.problem:
        stopped = ExitCode.FAILED
    raise typer.Exit(stopped if result.status == "stopped" else _EXITS[result.status])


def exit_for(status: str) -> NoReturn:
    """End the command as work with that status ends it, wherever it was done."""
    raise typer.Exit(_EXITS.get(status, ExitCode.FAILED))


class _Verbs(TyperGroup):
    """The verbs of the table, each loaded when it is asked for."""

    def list_commands(self, ctx: Any) -> list[str]:
        return [name for group in VERBS.values() for name in group]

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        return _load_verb(cmd_name)

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        for title, group in VERBS.items():
            with formatter.section(title):
                width = max(len(name) for name in self.list_commands(ctx))
                rows = [(name.ljust(width), help_) for name, (_, help_) in group.items()]
                formatter.write_dl(rows)


app = typer.Typer(
    name="interlock",
    cls=_Verbs,
    help="Agents do the thinking; Interlock reads their signals, decides the route, "
    "and never loses its place.",
    no_args_is_help=True,
    add_completion=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)


@cache
def _load_verb(name: str) -> Any:
    """A verb, or None. Built once, also in a process that is given many commands."""
    for group in VERBS.values():
        if name in group:
            for module in group[name][0].split():
                import_module(f"interlock.cli.{module}")
            # Verbs are registered when their module is loaded, after the group was built.
            return typer.main.get_group(app).commands[name]
    return None


def add_version_option(group: typer.Typer, name: str) -> None:
    """Let a command say which version it is."""

    def echo_version(wanted: bool) -> None:
        if wanted:
            echo(f"{name} {__version__}")
            raise typer.Exit

    @group.callback()
    def options(
        version: Annotated[
            bool,
            typer.Option(
                "--version", callback=echo_version, is_eager=True, help="Show the version and exit."
            ),
        ] = False,
    ) -> None:
        pass


add_version_option(app, "interlock")


def main() -> None:
    """The command `interlock`."""
    _run(app, "interlock")


def asterisk() -> None:
    """The command `asterisk`."""
    from interlock.cli.by_hand import app as by_hand

    _run(by_hand, "asterisk")


_build = cache(typer.main.get_command)


def _run(verbs: typer.Typer, name: str) -> NoReturn:
    for stream in (sys.stdout, sys.stderr):
        with suppress(AttributeError):  # output can be printed wherever it goes
            stream.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]
    try:
        code = _build(verbs)(prog_name=name, standalone_mode=False)
        sys.exit(code if isinstance(code, int) else ExitCode.DONE)
    except CircuitError as error:
        _fail_for_circuit(name, error)
    except InterlockError as error:
        wrong_words = isinstance(error, UsageError | SourceError)
        _fail(name, _add_hint(error, name), ExitCode.USAGE if wrong_words else ExitCode.FAILED)
    except _COMMAND_LINE_ERROR as error:
        error.show()
        _fail("", error.format_message(), error.exit_code)
    except (KeyboardInterrupt, typer.Abort):
        sys.exit(ExitCode.INTERRUPTED)
    finally:
        _flush_stdout()


def _fail_for_circuit(name: str, error: CircuitError) -> NoReturn:
    """A file that cannot be read is wrong input; one that can, and is not sound, has findings,
    whatever verb was given it."""
    from interlock.api.circuits import UnsoundError
    from interlock.cli.circuits import format_unsound

    if isinstance(error, UnsoundError):
        echo_note(format_unsound(error))
        _fail("", str(error), ExitCode.FINDINGS)
    _fail(name, str(error), ExitCode.USAGE)


def _fail(name: str, problem: str, code: int) -> NoReturn:
    """Say what is wrong, to people unless that was done and, with --json, to programs."""
    if name:
        echo_note(f"{name}: {problem}")
    words = sys.argv[1:]
    own = words[: words.index("--")] if "--" in words else words
    if "--json" in own:
        echo_json({"error": problem, "exit_code": int(code)})
    sys.exit(code)


def _add_hint(error: InterlockError, name: str) -> str:
    """The sentence of an error; where there is no database yet, with what makes one."""
    if not isinstance(error, NoDatabaseError):
        return str(error)
    verb = next((word for word in sys.argv[1:] if not word.startswith("-")), "")
    usual = "'interlock run', 'analyze', 'deliver' or 'epic run'"
    starter = _STARTERS.get(name) or _STARTERS.get(verb) or usual
    return f"{error}; {starter} makes one"


def _flush_stdout() -> None:
    """Whoever reads our output may have gone: then nothing is left to say, also not at shutdown."""
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


class DefaultVerb(TyperGroup):
    """Words that begin with no verb of the group belong to its first one, `run`; a verb may be
    written like a flag, `--from-history`."""

    default: ClassVar[str] = "run"

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        if args and args[0].startswith("--") and args[0][2:] in self.commands:
            args = [args[0][2:], *args[1:]]
        if args and args[0] not in self.commands and args[0] != "--help":
            args = [self.default, *args]
        return super().parse_args(ctx, args)
