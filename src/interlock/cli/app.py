"""The door itself: the command tree, and how an error leaves the house.

A user sees one sentence on stderr and an exit code; never a traceback for something they can fix.

A group of verbs of which one need not be named: `deliver PLAN` stands for `deliver run PLAN`.
"""

import os
import sys
from contextlib import suppress
from enum import IntEnum
from typing import Annotated, Any, ClassVar

import typer
from typer.core import TyperGroup

from interlock.cli.output import say, tell
from interlock.system.errors import CircuitError, InterlockError, SourceError, UsageError
from interlock.version import __version__

VERBS = (
    *("demo", "init"),
    *("analyze", "report", "causes", "cause", "push"),
    *("plan", "deliver", "epic", "hitl", "calibrate", "tune"),
    *("run", "resume", "stop", "runs", "status", "logs", "inbox", "answer"),
    *("cursor", "save", "explain", "replay"),
    *("circuit", "simulate", "lint", "emit"),
    *("mcp", "serve", "respond", "conform"),
    *("analyst", "agents", "doctor"),
)
"""The order in which --help shows them: as a user meets them."""


class ExitCode(IntEnum):
    """What an exit code means, everywhere."""

    DONE = 0
    FAILED = 1
    USAGE = 2
    UNHEALTHY = 3
    WAITING = 4
    BUDGET = 5
    FINDINGS = 6
    RATE_LIMITED = 75
    INTERRUPTED = 130
    TERMINATED = 143


class _Verbs(TyperGroup):
    def list_commands(self, ctx: Any) -> list[str]:
        return sorted(super().list_commands(ctx), key=VERBS.index)


app = typer.Typer(
    name="interlock",
    cls=_Verbs,
    help="Agents do the thinking; Interlock reads their signals, decides the route, "
    "and never loses its place.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)


def _say_version(wanted: bool) -> None:
    if wanted:
        say(f"interlock {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_say_version, is_eager=True, help="Say which.")
    ] = False,
) -> None:
    pass


def main() -> None:
    """The command `interlock`."""
    _enter()
    _run(app, "interlock")


def asterisk() -> None:
    """The command `asterisk`."""
    _enter()
    from interlock.cli.by_hand import app as by_hand

    _run(by_hand, "asterisk")


def _enter() -> None:
    """Meet all verbs, and let output be printed wherever it goes."""
    from interlock.cli import (  # noqa: F401 - they register their verbs
        agents,
        analyst,
        by_hand,
        calibrate,
        circuits,
        delivery,
        demo,
        doctor,
        epic,
        epic_checkpoint,
        inbox,
        init,
        inspect,
        lint,
        mcp,
        plan,
        rca,
        respond,
        run,
        serve,
    )

    for stream in (sys.stdout, sys.stderr):
        with suppress(AttributeError):
            stream.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]


def _run(verbs: typer.Typer, name: str) -> None:
    try:
        verbs(prog_name=name)
    except InterlockError as error:
        tell(f"{name}: {error}")
        wrong_words = isinstance(error, UsageError | SourceError | CircuitError)
        sys.exit(ExitCode.USAGE if wrong_words else ExitCode.FAILED)
    except KeyboardInterrupt:
        sys.exit(ExitCode.INTERRUPTED)
    finally:
        _let_go()


def _let_go() -> None:
    """Whoever reads our output may have gone: then nothing is left to say, also not at shutdown."""
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


class DefaultVerb(TyperGroup):
    """Words that begin with no verb of the group belong to its first one, `run`."""

    default: ClassVar[str] = "run"

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        if args and args[0] not in self.commands and args[0] != "--help":
            args = [self.default, *args]
        return super().parse_args(ctx, args)
