"""The command line: its verbs, its exit codes, and how errors are shown.

A user sees one sentence on stderr and an exit code, never a traceback for an error they can mend.
Each verb's module is loaded when the verb is used, so `--help` is quick.
"""

import os
import signal
import sys
from contextlib import suppress
from enum import IntEnum
from functools import cache
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, NoReturn

import typer
from typer.core import TyperGroup

from interlock.cli.output import echo, echo_json, echo_note
from interlock.cli.verbs import find_verb, group_verbs, import_verb, list_verbs
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

_COMMAND_LINE_ERROR: Any = next(
    each for each in typer.BadParameter.__mro__ if each.__name__ == "ClickException"
)
"""The exception that typer raises for unknown words. It has moved between versions of typer."""


class ExitCode(IntEnum):
    """The meaning of an exit code, everywhere."""

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
"""The exit code for each status of work that has stopped."""


def exit_with(result: "RunResult") -> NoReturn:
    """Exit with the code of the work."""
    stopped = 128 + (result.stopped_by or signal.SIGTERM)
    if result.counts.problem:
        stopped = ExitCode.FAILED
    raise typer.Exit(stopped if result.status == "stopped" else _EXITS[result.status])


def exit_for(status: str) -> NoReturn:
    """Exit with the code of that status."""
    raise typer.Exit(_EXITS.get(status, ExitCode.FAILED))


class _Verbs(TyperGroup):
    """The verbs of the table, each loaded when it is used."""

    def list_commands(self, ctx: Any) -> list[str]:
        return list(list_verbs())

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        return load_verb(cmd_name)

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        width = max(len(name) for name in list_verbs())
        for heading, verbs in group_verbs():
            with formatter.section(heading):
                formatter.write_dl(
                    [(name.ljust(width), row.summary) for name, row in verbs.items()]
                )


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
def load_verb(name: str) -> Any:
    """Return the command of a verb, or None. It is built once per process."""
    verb = find_verb(name)
    if verb is None:
        return None
    import_verb(verb)
    # The import registered the command after the group was built: build the group again.
    return typer.main.get_group(app).commands[name]


def add_version_option(group: typer.Typer, name: str) -> None:
    """Add the flag --version to a command."""

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
    run_verbs(app, "interlock")


_build = cache(typer.main.get_command)


def run_verbs(verbs: typer.Typer, name: str, starter: str = "") -> NoReturn:
    """Run a command line and end the process with its exit code; `starter` makes a database."""
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
        _fail(name, _add_hint(error, starter), ExitCode.USAGE if wrong_words else ExitCode.FAILED)
    except _COMMAND_LINE_ERROR as error:
        error.show()
        _fail("", error.format_message(), error.exit_code)
    except (KeyboardInterrupt, typer.Abort):
        sys.exit(ExitCode.INTERRUPTED)
    finally:
        _flush_stdout()


def _fail_for_circuit(name: str, error: CircuitError) -> NoReturn:
    """Exit for a circuit: a file that cannot be read is wrong input, an unsound circuit is a
    finding."""
    from interlock.api.circuits import UnsoundError
    from interlock.cli.circuits import format_unsound

    if isinstance(error, UnsoundError):
        echo_note(format_unsound(error))
        _fail("", str(error), ExitCode.FINDINGS)
    _fail(name, str(error), ExitCode.USAGE)


def _fail(name: str, problem: str, code: int) -> NoReturn:
    """Report an error: to people unless `problem` is empty and, with --json, to programs."""
    if name:
        echo_note(f"{name}: {problem}")
    words = sys.argv[1:]
    own = words[: words.index("--")] if "--" in words else words
    if "--json" in own:
        echo_json({"error": problem, "exit_code": int(code)})
    sys.exit(code)


def _add_hint(error: InterlockError, starter: str) -> str:
    """Return the error's sentence, with the command that makes a database where there is none."""
    if not isinstance(error, NoDatabaseError):
        return str(error)
    word = next((word for word in sys.argv[1:] if not word.startswith("-")), "")
    verb = find_verb(word) if word else None
    if starter := starter or (verb.starter if verb else ""):
        return f"{error}; '{starter}' makes one"
    return f"{error}; 'interlock run', 'analyze', 'deliver' or 'epic run' makes one"


def _flush_stdout() -> None:
    """Flush stdout; a reader that has gone is no error, not even at shutdown."""
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


class DefaultVerb(TyperGroup):
    """A group whose first verb, `run`, takes words that begin with no verb."""

    default: ClassVar[str] = "run"

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        if args and args[0] not in self.commands and args[0] != "--help":
            args = [self.default, *args]
        return super().parse_args(ctx, args)
