"""An agent's work over plain HTTP: take it, hand the answer in, stay alive while it is done.

The calls and results are those of the MCP tools. A worker is known by the lease that it names; one
that hangs up while it waits is given nothing.
"""

import asyncio
from collections.abc import Awaitable
from typing import Any, Final, TypeVar

import msgspec
from litestar import Request
from litestar.exceptions import HTTPException

from interlock.carriers.pull.messages import (
    AskCall,
    NextCall,
    NoWork,
    RunStatus,
    SignalCall,
    StatusCall,
    SubmitCall,
    SubmitResult,
    WorkItem,
)
from interlock.carriers.pull.tools import PullTools
from interlock.carriers.queries import QueryStatus
from interlock_web.api.routes import writing

_SCOPES: Final = ("work",)
_MAX_WAIT: Final = 5.0
"""Seconds that one request waits at most, so that proxies keep it."""
_Result = TypeVar("_Result")


@writing("/worker/next", "Take the next piece of work", scopes=_SCOPES)
async def take_next(
    request: Request[Any, Any, Any], tools: PullTools, data: NextCall
) -> WorkItem | NoWork:
    """Wait up to 5 s for a piece of work and take it under a lease. If `available` is false, ask
    again, unless `done` is true."""
    call = msgspec.structs.replace(data, wait=min(data.wait, _MAX_WAIT))
    return await _unless_hung_up(request, tools.take_next(call))


@writing("/worker/submit", "Hand in an answer", scopes=_SCOPES)
async def submit_answer(tools: PullTools, data: SubmitCall) -> SubmitResult:
    """Answer a dispatch under its lease. The answer is checked at once; one that is refused while
    `open` is true can be mended as the sentence says."""
    return await tools.submit(data)


@writing("/worker/signal", "Say a signal instead of an answer", scopes=_SCOPES)
async def submit_signal(tools: PullTools, data: SignalCall) -> SubmitResult:
    """Say one of the signals that came with the work. `crash` and `release` are always legal."""
    return await tools.signal(data)


@writing("/worker/ask", "Ask a person", scopes=_SCOPES)
async def ask_person(tools: PullTools, data: AskCall) -> QueryStatus:
    """Ask a person about the dispatch that is held, or poll an earlier question."""
    return await tools.ask(data)


@writing("/worker/heartbeat", "Keep a lease alive", scopes=_SCOPES)
async def send_heartbeat(tools: PullTools, data: StatusCall) -> RunStatus:
    """Renew a lease, and show how the run stands."""
    return await tools.read_status(data)


async def _unless_hung_up(request: Request[Any, Any, Any], call: Awaitable[_Result]) -> _Result:
    """Return what a call gives, but cancel it when the client hangs up, so that nothing is lost."""
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
