"""The verb serve: pages for people, the HTTP API, and MCP for agents, until a signal stops it."""

import os
import stat
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from interlock.cli.app import app
from interlock.cli.output import Db, Json, echo, echo_json, open_project
from interlock.system.errors import SourceError

if TYPE_CHECKING:
    from interlock.api.project import Project
    from interlock_web.access import AccessRules

TOKEN = "INTERLOCK_TOKEN"  # noqa: S105 - a variable's name
_LONGEST_TOKEN = 4096
_RECENT_SECONDS = 600.0
"""Seconds for which a client over HTTP is told that a run is over, not that none has begun."""


Host = Annotated[str, typer.Option("--host", help="The address to listen on.")]
Port = Annotated[
    int, typer.Option("--port", min=0, max=65535, help="The port; 0 takes any that is free.")
]
TokenFile = Annotated[
    Path | None, typer.Option("--token-file", metavar="FILE", help="A file, 0600, with the token.")
]
AllowHost = Annotated[
    list[str] | None,
    typer.Option("--allow-host", metavar="NAME", help="A host name that clients use; repeatable."),
]
AllowOrigin = Annotated[
    list[str] | None,
    typer.Option(
        "--allow-origin", metavar="URL", help="A web origin that may connect; repeatable."
    ),
]
Rate = Annotated[
    int,
    typer.Option(
        "--rate",
        min=0,
        metavar="N",
        help="Requests per minute that one address may send; 0 for any.",
    ),
]


@app.command()
def serve(
    host: Host = "127.0.0.1",
    port: Port = 8787,
    token_file: TokenFile = None,
    allow_host: AllowHost = None,
    allow_origin: AllowOrigin = None,
    rate: Rate = 3000,
    db: Db = None,
    json: Json = False,
) -> None:
    """Show runs, cases and questions in the browser, live.

    Agents pull their work with MCP at /mcp; programs use /api/v1. Beyond this machine a token is
    needed: 'interlock token create', --token-file or INTERLOCK_TOKEN. Ctrl-C stops it.
    """
    _check_packages()

    import asyncio

    from interlock.api.pull import open_pull_tools
    from interlock_web.build import Parts, build_app
    from interlock_web.sections import find_sections, tell_left_out
    from interlock_web.server import format_address, open_socket, serve_until_signal

    project = open_project(db)
    sections, left_out = find_sections()
    parts = Parts(
        project=project,
        tools=open_pull_tools(project, since=lambda: time.time() - _RECENT_SECONDS),
        rules=_build_rules(
            project, host, token_file, tuple(allow_host or ()), tuple(allow_origin or ())
        ),
        sections=sections,
        left_out=left_out,
        rate=rate,
    )
    listening = open_socket(host, port)
    server = build_app(parts)

    def say_ready() -> None:
        tell_left_out(left_out)
        _say_ready(format_address(listening), json=json)

    raise typer.Exit(128 + asyncio.run(serve_until_signal(server, listening, say_ready)))


def _say_ready(where: str, *, json: bool) -> None:
    from interlock_web.api.routes import API_PATH
    from interlock_web.build import HEALTH_PATH
    from interlock_web.workers import MCP_PATH

    if json:
        paths = {"api": API_PATH, "mcp": MCP_PATH, "health": HEALTH_PATH}
        echo_json({"url": where, **{name: where + path for name, path in paths.items()}})
    else:
        echo(f"open {where} in a browser; agents pull at {where}{MCP_PATH}; stop with Ctrl-C")
    sys.stdout.flush()


def _check_packages() -> None:
    from importlib.util import find_spec

    if missing := [each for each in ("litestar", "mcp", "uvicorn") if find_spec(each) is None]:
        raise SourceError(f"this needs {' and '.join(missing)}: pip install interlock-web")


def _build_rules(
    project: "Project",
    host: str,
    token_file: Path | None,
    hosts: tuple[str, ...],
    origins: tuple[str, ...],
) -> "AccessRules":
    from interlock.api.tokens import read_tokens
    from interlock_web.access import MIN_TOKEN_LENGTH, AccessRules, is_loopback
    from interlock_web.callers import TokenChecker

    token = _read_token(token_file) if token_file else os.environ.get(TOKEN, "").strip()
    if token and (len(token) < MIN_TOKEN_LENGTH or not token.isascii() or not token.isprintable()):
        raise SourceError(f"a token has at least {MIN_TOKEN_LENGTH} plain characters")
    is_local = is_loopback(host)
    if not token and not is_local:
        known = read_tokens(project)
        if not any(each.describe_state(time.time()) == "valid" for each in known):
            raise SourceError(
                f"{host} can be reached from other machines: give a token with --token-file or "
                f"{TOKEN}, or make one with 'interlock token create NAME'"
            )
    named = tuple(name.lower() for name in (*hosts, host))
    return AccessRules(
        anywhere=not is_local,
        hosts=named,
        origins=origins,
        token=token,
        find_caller=TokenChecker(project).find_caller,
    )


def _read_token(path: Path) -> str:
    """Return the token in a file that only its owner can read."""
    try:
        with path.open("rb") as file:
            found = os.fstat(file.fileno())
            text = file.read(_LONGEST_TOKEN).decode().strip()
    except (OSError, UnicodeDecodeError) as error:
        raise SourceError(f"the token file {path} cannot be read: {error}") from None
    if stat.S_IMODE(found.st_mode) & 0o077:
        raise SourceError(f"others can read the token file {path}: chmod 600 {path}")
    if not text:
        raise SourceError(f"the token file {path} is empty")
    return text
