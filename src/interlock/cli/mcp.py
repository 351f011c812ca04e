"""The verb mcp: an agent's client starts it, and the agent pulls its work over stdin and stdout."""

import os
import time
from functools import partial
from typing import Annotated, Any

import typer

from interlock.api.inspect import RunStatusReader
from interlock.api.records import make_absolute, state_folder
from interlock.cli.app import app
from interlock.cli.output import Db, Json, echo_json, open_project
from interlock.system.errors import SourceError


@app.command()
def mcp(
    role: Annotated[
        list[str] | None,
        typer.Option("--role", metavar="ROLE", help="Take only work of this role; repeatable."),
    ] = None,
    db: Db = None,
    json: Json = False,
) -> None:
    """Let an agent pull its work. An MCP server over stdin and stdout, started by its client.

    With --json it serves nothing and prints the tools it has.
    """
    from interlock.agents.mcp.messages import list_tool_specs

    if json:
        echo_json({"tools": list_tool_specs()})
        return
    from importlib.util import find_spec

    if find_spec("mcp") is None:
        raise SourceError("this needs the MCP SDK: pip install 'interlock[mcp]'")
    from interlock.agents.mcp.stdio import StdioTransport

    since = time.time()
    transport = StdioTransport(os.dup(0), os.dup(1))
    os.dup2(2, 1)  # whatever prints by mistake must not break into the protocol
    transport.open()
    _serve(transport, db, tuple(role or ()), since)


def _serve(transport: Any, db: str | None, roles: tuple[str, ...], since: float) -> None:
    """All that takes its time to load, while the client is greeted."""
    import asyncio
    import secrets

    from interlock.agents.mcp.server import serve_stdio
    from interlock.agents.mcp.socket import CoordinatorClient
    from interlock.agents.mcp.worker import Worker
    from interlock.agents.registry import pull_folder
    from interlock.calibrate.campaign import find_database
    from interlock.runtime.settings import open_query_broker

    project = open_project(db)
    path, policy = make_absolute(project.db), project.settings.inbox

    async def work() -> None:
        client = CoordinatorClient(pull_folder(path), f"{os.getpid()}-{secrets.token_hex(8)}")
        reader = RunStatusReader(path, partial(find_database, state_folder(path)))
        try:
            queries = open_query_broker(path, policy)
            await serve_stdio(Worker(client, queries, reader, roles, since), transport)
        finally:
            await client.close()

    asyncio.run(work())
