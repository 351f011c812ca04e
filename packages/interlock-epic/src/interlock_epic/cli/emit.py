"""The verb emit: send a line signal from inside a session or from a script."""

import difflib
from typing import Annotated

import typer

from interlock.cli.app import ExitCode, app
from interlock.cli.output import Json, echo, echo_json, echo_note
from interlock.system.errors import SourceError
from interlock_epic.sessions.channel import deliver_line


@app.command()
def emit(
    type_: Annotated[str, typer.Argument(metavar="TYPE", help="For example STORY_STARTED.")],
    payload: Annotated[
        str | None, typer.Argument(help="Fields joined by colons, for example 3-1.")
    ] = None,
    json: Json = False,
) -> None:
    """Send a line signal. Prints the canonical line; in a supervised session, delivers it too."""
    line = _format_line(type_, payload)
    if not json:
        echo(line)
    problem = deliver_line(line)
    if json:
        echo_json({"line": line, "delivered": None if problem is None else not problem})
    if problem:
        echo_note(f"interlock: printed, but not delivered: {problem}")
        raise typer.Exit(ExitCode.FAILED)


def _format_line(kind: str, payload: str | None) -> str:
    from interlock.signals.catalogue import list_signals
    from interlock.signals.lines import format_line

    types = dict.fromkeys(row.name.partition(":")[0] for row in list_signals("line"))
    plain = kind.partition(":")[0]
    if plain not in types:
        near = difflib.get_close_matches(plain.upper().replace("-", "_"), types, 1, 0.75)
        known = f"did you mean {near[0]}?" if near else f"use one of {', '.join(types)}"
        raise SourceError(f"{kind!r} is not a signal type; {known}")
    try:
        return format_line(kind, payload)
    except ValueError as error:
        raise SourceError(str(error)) from None
