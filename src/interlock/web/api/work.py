"""An agent's work over plain HTTP: take it, hand the answer in, stay alive while it is done.

The same calls as the MCP tools, to the same coordinator. A worker is known by the lease that it
names, and nothing else is kept of it here; one that hangs up while it waits is given nothing.
"""

import asyncio
import secrets
from collections.abc import Awaitable
from typing import Any, Final, TypeVar

import msgspec
from litestar import Request
from litestar.exceptions import HTTPException

from interlock.agents.mcp import messages
from interlock.agents.mcp.worker import KNOWN_CLIENT, NEW_CLIENT, WorkerRegistry
from interlock.agents.queries import QueryStatus
from interlock.system.errors import StateError
from interlock.web.api.routes import writing

_SCOPES: Final = ("work",)
_Result = TypeVar("_Result")


@writing("/work/next", "Take the next piece of work", scopes=_SCOPES)
async def take_next(
    request: Request[Any, Any, Any], workers: WorkerRegistry, data: messages.NextCall
) -> messages.WorkItem | messages.NoWork:
    """Wait for a piece of work and take it under a lease. If `available` is false, ask again,
    unless `done` is true."""
    calling = _call(workers, "interlock_next", data)
    found = await _unless_hung_up(request, calling)
    if found["available"]:
        return msgspec.convert(found, messages.WorkItem)
    return msgspec.convert(found, messages.NoWork)


@writing("/work/submit", "Hand in an answer", scopes=_SCOPES)
async def submit_answer(
    workers: WorkerRegistry, data: messages.SubmitCall
) -> messages.SubmitResult:
    """Answer a dispatch under its lease. The answer is checked at once; one that is refused while
    `open` is true can be mended as the sentence says."""
    return msgspec.convert(await _call(workers, "interlock_submit", data), messages.SubmitResult)


@writing("/work/signal", "Say a signal instead of an answer", scopes=_SCOPES)
async def submit_signal(
    workers: WorkerRegistry, data: messages.SignalCall
) -> messages.SubmitResult:
    """Say one of the signals that came with the work. `crash` and `release` are always legal."""
    return msgspec.convert(await _call(workers, "interlock_signal", data), messages.SubmitResult)


@writing("/work/ask", "Ask a person", scopes=_SCOPES)
async def ask_person(workers: WorkerRegistry, data: messages.AskCall) -> QueryStatus:
    """Ask a person about the dispatch that is held, or look whether they have answered."""
    return msgspec.convert(await _call(workers, "interlock_ask", data), QueryStatus)


@writing("/work/heartbeat", "Keep a lease alive", scopes=_SCOPES)
async def send_heartbeat(workers: WorkerRegistry, data: messages.StatusCall) -> messages.RunStatus:
    """Say that the work goes on: the lease is renewed. Tells how the run stands."""
    return msgspec.convert(await _call(workers, "interlock_status", data), messages.RunStatus)


async def _call(workers: WorkerRegistry, tool: str, call: msgspec.Struct) -> dict[str, Any]:
    visitor = f"{NEW_CLIENT}{KNOWN_CLIENT}{secrets.token_hex(16)}"
    found = await workers.call_tool(tool, msgspec.to_builtins(call), visitor)
    if isinstance(found, str):
        raise StateError(found.partition(": ")[2].removesuffix(".") or found)
    return found


async def _unless_hung_up(request: Request[Any, Any, Any], call: Awaitable[_Result]) -> _Result:
    """What a call gives; whoever hangs up before is given nothing, so that nothing is lost."""
    working = asyncio.ensure_future(call)
    listening = asyncio.ensure_future(_wait_for_hang_up(request))
    try:
        await asyncio.wait({working, listening}, return_when=asyncio.FIRST_COMPLETED)
        if not working.done():
            raise HTTPException("the client hung up", status_code=400)
        return working.result()
    finally:
        for task in (working, listening):
            task.cancel()


async def _wait_for_hang_up(request: Request[Any, Any, Any]) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass


HANDLERS: Final = (take_next, submit_answer, submit_signal, ask_person, send_heartbeat)
