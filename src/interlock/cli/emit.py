"""The verb emit: say a line signal, from inside a session or from a script."""

import difflib
import os
from typing import Annotated

import typer

from interlock.cli.door import ExitCode, app
from interlock.cli.show import Json, document, say, tell
from interlock.system.errors import SourceError

Type = Annotated[str, typer.Argument(metavar="TYPE", help="For example STORY_STARTED.")]
Payload = Annotated[str | None, typer.Argument(help="Fields joined by colons, for example 3-1.")]


@app.command()
def emit(type_: Type, payload: Payload = None, json: Json = False) -> None:
    """Say a line signal. Prints the canonical line; in a supervised session, delivers it too."""
    line = _line(type_, payload)
    if not json:
        say(line)
    problem = delivered(line)
    if json:
        document({"line": line, "delivered": None if problem is None else not problem})
    if problem:
        tell(f"interlock: printed, but not delivered: {problem}")
        raise typer.Exit(ExitCode.FAILED)


def _line(kind: str, payload: str | None) -> str:
    from interlock.signals.catalogue import rows
    from interlock.signals.line_payload import canonical_line

    types = dict.fromkeys(row.name.partition(":")[0] for row in rows("line"))
    plain = kind.partition(":")[0]
    if plain not in types:
        near = difflib.get_close_matches(plain.upper().replace("-", "_"), types, 1, 0.75)
        known = f"did you mean {near[0]}?" if near else f"use one of {', '.join(types)}"
        raise SourceError(f"{kind!r} is no signal type; {known}")
    try:
        return canonical_line(kind, payload)
    except ValueError as error:
        raise SourceError(str(error)) from None


def delivered(line: str) -> str | None:
    """Why it was not delivered; empty when it was, None when there is no session to tell."""
    from interlock.epic.sessions.channel import SOCKET_VARIABLE, TOKEN_VARIABLE, deliver
    from interlock.signals.line_rows import PREFIX

    path, token = os.environ.get(SOCKET_VARIABLE, ""), os.environ.get(TOKEN_VARIABLE, "")
    if not path and not token:
        return None
    if not path or not token:
        lacking = TOKEN_VARIABLE if path else SOCKET_VARIABLE
        return f"{lacking} is not set"
    kind, _, payload = line.removeprefix(PREFIX).partition(":")
    return deliver(path, token, kind, payload)
