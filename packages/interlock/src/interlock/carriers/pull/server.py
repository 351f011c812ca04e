"""The MCP server, on the official SDK: lists tools and resources, passes calls to the tools.

Loaded last, because the SDK takes about a second. It speaks the current revision and all before.
"""

import asyncio
import os
import re
import threading
from collections.abc import AsyncIterator
from contextlib import suppress
from typing import Any, Final, cast

import anyio
import msgspec
from mcp import types
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server
from mcp.shared.exceptions import MCPError

from interlock.carriers.pull.messages import (
    BRIEFING_URI,
    INSTRUCTIONS,
    PROMPT_URI,
    RESOURCE_TEMPLATES,
    SESSION_HEADER,
    list_tool_specs,
)
from interlock.carriers.pull.tools import PullTools
from interlock.version import __version__

NAME: Final = "interlock"
MAX_MESSAGE: Final = 4 << 20
"""Bytes of one message that is worked on."""
_MAX_READ: Final = 128 << 20
"""Bytes of one message that is read to its end, so that it can be answered."""
_MARKDOWN: Final = "text/markdown"
_BRIEFING_PATTERN: Final = re.compile(r"run://([0-9]{1,15})/briefing", re.ASCII)
_PROMPT_PATTERN: Final = re.compile(
    r"run://([0-9]{1,15})/dispatches/([0-9]{1,15})/prompt", re.ASCII
)


class _Handlers:
    """What the SDK calls. A tool that fails says so in its result."""

    def __init__(self, tools: PullTools) -> None:
        self._pull = tools
        self._tools = [types.Tool.model_validate(each) for each in list_tool_specs()]
        self._templates = [
            types.ResourceTemplate.model_validate(each) for each in RESOURCE_TEMPLATES
        ]

    async def list_tools(self, _context: Any, _params: Any) -> types.ListToolsResult:
        return types.ListToolsResult(tools=self._tools)

    async def call_tool(
        self, context: Any, params: types.CallToolRequestParams
    ) -> types.CallToolResult:
        found = await self._pull.call_tool(
            params.name, params.arguments or {}, _read_session(context)
        )
        if isinstance(found, str):
            return types.CallToolResult(content=[_build_text(found)], is_error=True)
        refused = found.get("accepted") is False or found.get("asked") is False
        text = msgspec.json.encode(found).decode()
        return types.CallToolResult(
            content=[_build_text(text)], structured_content=found, is_error=refused
        )

    async def list_resources(self, _context: Any, _params: Any) -> types.ListResourcesResult:
        found = await self._pull.read_resource()
        if found["text"] is None or found["run_id"] is None:
            return types.ListResourcesResult(resources=[])
        uri = BRIEFING_URI.format(run_id=found["run_id"])
        about = types.Resource(name="briefing", uri=uri, mime_type=_MARKDOWN)
        return types.ListResourcesResult(resources=[about])

    async def list_templates(
        self, _context: Any, _params: Any
    ) -> types.ListResourceTemplatesResult:
        return types.ListResourceTemplatesResult(resource_templates=self._templates)

    async def read_resource(
        self, _context: Any, params: types.ReadResourceRequestParams
    ) -> types.ReadResourceResult:
        uri = str(params.uri)
        named = _BRIEFING_PATTERN.fullmatch(uri) or _PROMPT_PATTERN.fullmatch(uri)
        dispatch_id = int(named[2]) if named and named.re is _PROMPT_PATTERN else 0
        found = await self._pull.read_resource(dispatch_id)
        if named is None or found["text"] is None or str(found["run_id"]) != named[1]:
            raise _build_missing_error(uri)
        text = types.TextResourceContents(uri=uri, mime_type=_MARKDOWN, text=found["text"])
        return types.ReadResourceResult(contents=[text])


def _build_missing_error(uri: str) -> Exception:
    known = f"{BRIEFING_URI} and {PROMPT_URI}, of the run that is worked on"
    return MCPError(code=types.INVALID_PARAMS, message=f"there is no {uri[:200]!r}; see {known}")


def _build_text(text: str) -> types.TextContent:
    return types.TextContent(type="text", text=text)


def _read_session(context: Any) -> str:
    """Return the client's session, if the request came over HTTP and its revision has sessions."""
    if context.request is None:
        return ""
    return str(context.request.headers.get(SESSION_HEADER, ""))


def build_server(tools: PullTools) -> Server[Any]:
    handlers = _Handlers(tools)
    return Server(
        NAME,
        version=__version__,
        instructions=INSTRUCTIONS,
        on_list_tools=handlers.list_tools,
        on_call_tool=handlers.call_tool,
        on_list_resources=handlers.list_resources,
        on_list_resource_templates=handlers.list_templates,
        on_read_resource=handlers.read_resource,
    )


async def serve_stdio(tools: PullTools) -> None:
    """Serve until the client hangs up."""
    server = build_server(tools)
    source = os.dup(0)
    sink = anyio.wrap_file(os.fdopen(os.dup(1), "w", encoding="utf-8", errors="replace"))
    os.dup2(2, 1)  # whatever prints by mistake must not break into the protocol
    lines = cast("anyio.AsyncFile[str]", _read_lines(source, sink))
    async with stdio_server(lines, sink) as (reader, writer):
        await server.run(reader, writer, server.create_initialization_options())


async def _read_lines(source: int, sink: anyio.AsyncFile[str]) -> AsyncIterator[str]:
    """Yield the client's lines. One that is too long is refused by its id, if it has an end."""
    lines: asyncio.Queue[bytes] = asyncio.Queue()
    loop = asyncio.get_running_loop()

    def read() -> None:
        with os.fdopen(source, "rb") as stream, suppress(OSError, RuntimeError):
            while line := stream.readline(_MAX_READ):
                loop.call_soon_threadsafe(lines.put_nowait, line)
                if not line.endswith(b"\n"):
                    break
            loop.call_soon_threadsafe(lines.put_nowait, b"")

    # Not a thread of the pool: it may wait for the client when the server has ended.
    threading.Thread(target=read, daemon=True, name="mcp-stdin").start()
    while line := await lines.get():
        if len(line) > MAX_MESSAGE:
            await sink.write(_refuse_line(line))
            await sink.flush()
        elif line.strip():
            yield line.decode(errors="replace")


class _MessageHead(msgspec.Struct):
    id: int | str | None = None


def _refuse_line(line: bytes) -> str:
    try:
        number = msgspec.json.decode(line, type=_MessageHead).id
    except (ValueError, RecursionError):
        number = None
    sentence = f"A message has at most {MAX_MESSAGE:,} bytes, this one {len(line):,}."
    error = {"code": types.INVALID_REQUEST, "message": f"{sentence} Nothing was taken."}
    return msgspec.json.encode({"jsonrpc": "2.0", "id": number, "error": error}).decode() + "\n"
