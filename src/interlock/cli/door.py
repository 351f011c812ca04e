"""The door itself: the command tree, and how an error leaves the house.

A user sees one sentence on stderr and an exit code; never a traceback for something they can fix.
"""

import os
import sys
from enum import IntEnum

import typer

from interlock.core.errors import CircuitError, InterlockError, SourceError


class Exit(IntEnum):
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


app = typer.Typer(
    name="interlock",
    help="Agents do the thinking; Interlock reads their signals, decides the route, "
    "and never loses its place.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)


def main() -> None:
    """The command `interlock`."""
    from interlock.cli import (  # noqa: F401
        circuits,
        demo,
        doctor,
        inbox,
        look,
        run,
        save,
        understand,
    )

    try:
        app()
    except InterlockError as error:
        sys.stderr.write(f"interlock: {error}\n")
        wrong_words = isinstance(error, SourceError | CircuitError)
        sys.exit(Exit.USAGE if wrong_words else Exit.FAILED)
    except BrokenPipeError:
        # Whoever read our output has gone; nothing is left to say, also not at shutdown.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(Exit.FAILED)
    except KeyboardInterrupt:
        sys.exit(Exit.INTERRUPTED)
