"""The MCP server, on the official SDK: lists tools and resources, passes calls to the worker.

Loaded last, because the SDK takes about a second. It speaks the current revision and all before.
"""

import re
from collections.abc import Mapping
from typing import Any, Final, Protocol, cast

import anyio
import msgspec
from mcp import types
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server
from mcp.shared.exceptions import MCPError

from interlock.carriers.mcp.messages import (
    BRIEFING_URI,
    INSTRUCTIONS,
    PROMPT_URI,
    RESOURCE_TEMPLATES,
    SESSION_HEADER,
    WORKER_HEADER,
    list_tool_specs,
)
from interlock.carriers.mcp.stdio import HANDSHAKES, NAME, StdioTransport
from interlock.carriers.mcp.worker import Worker
from interlock.version import __version__

_MARKDOWN: Final = "text/markdown"
_BRIEFING_PATTERN: Final = re.compile(r"run://([0-9]{1,15})/briefing", re.ASCII)
_PROMPT_PATTERN: Final = re.compile(
    r"run://([0-9]{1,15})/dispatches/([0-9]{1,15})/prompt", re.ASCII
)


class WorkerProvider(Protocol):
    """Who does the work: one worker, or a registry with one worker for each session."""

    async def call_tool(
        self, name: str, arguments: Mapping[str, Any], session: str, /
    ) -> dict[str, Any] | str: ...

    async def read_resource(self, dispatch_id: int, session: str, /) -> dict[str, Any]: ...


class _Handlers:
    """What the SDK calls. A tool that fails says so in its result."""

    def __init__(self, workers: WorkerProvider) -> None:
        self._workers = workers
        self._tools = [types.Tool.model_validate(each) for each in list_tool_specs()]
        self._templates = [
            types.ResourceTemplate.model_validate(each) for each in RESOURCE_TEMPLATES
        ]

    async def list_tools(self, _context: Any, _params: Any) -> types.ListToolsResult:
        return types.ListToolsResult(tools=self._tools)

    async def call_tool(
        self, context: Any, params: types.CallToolRequestParams
    ) -> types.CallToolResult:
        found = await self._workers.call_tool(
            params.name, params.arguments or {}, _read_session(context)
        )
        if isinstance(found, str):
            return types.CallToolResult(content=[_build_text(found)], is_error=True)
        refused = found.get("accepted") is False or found.get("asked") is False
        text = msgspec.json.encode(found).decode()
        return types.CallToolResult(
            content=[_build_text(text)], structured_content=found, is_error=refused
        )

    async def list_resources(self, context: Any, _params: Any) -> types.ListResourcesResult:
        found = await self._workers.read_resource(0, _read_session(context))
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
        self, context: Any, params: types.ReadResourceRequestParams
    ) -> types.ReadResourceResult:
        uri = str(params.uri)
        named = _BRIEFING_PATTERN.fullmatch(uri) or _PROMPT_PATTERN.fullmatch(uri)
        dispatch_id = int(named[2]) if named and named.re is _PROMPT_PATTERN else 0
        found = await self._workers.read_resource(dispatch_id, _read_session(context))
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
    """Whose request it is, if it came over HTTP: the client's session, which the SDK has checked to
    exist, or what our server knows it by."""
    if context.request is None:
        return ""
    has_session = context.protocol_version in HANDSHAKES
    return str(context.request.headers.get(SESSION_HEADER if has_session else WORKER_HEADER, ""))


def build_server(workers: WorkerProvider) -> Server[Any]:
    handlers = _Handlers(workers)
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


async def serve_stdio(worker: Worker, transport: StdioTransport) -> None:
    """Serve until the client hangs up."""
    server = build_server(worker)
    source = cast("anyio.AsyncFile[str]", transport.read_lines(_validate_line))
    async with stdio_server(source, cast("anyio.AsyncFile[str]", transport)) as (reader, writer):
        await server.run(reader, writer, server.create_initialization_options())


def _validate_line(line: bytes) -> object:
    return types.jsonrpc_message_adapter.validate_json(line, by_name=False)
