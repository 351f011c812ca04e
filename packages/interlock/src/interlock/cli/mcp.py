"""The verb mcp: an agent's client starts it, and the agent pulls work over stdin and stdout."""

import secrets
import time
from typing import Annotated

import typer

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
    from interlock.carriers.pull.messages import list_tool_specs

    if json:
        echo_json({"tools": list_tool_specs()})
        return
    from importlib.util import find_spec

    if find_spec("mcp") is None:
        raise SourceError("this needs the MCP SDK: pip install 'interlock[mcp]'")
    import asyncio

    from interlock.api.pull import open_pull_tools
    from interlock.carriers.pull.server import serve_stdio

    started_at = time.time()
    tools = open_pull_tools(
        open_project(db),
        roles=tuple(role or ()),
        client=secrets.token_hex(8),
        since=lambda: started_at,
    )

    async def work() -> None:
        try:
            await serve_stdio(tools)
        finally:
            await tools.close()

    asyncio.run(work())
