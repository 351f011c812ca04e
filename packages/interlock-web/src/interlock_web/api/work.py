"""An agent's work over plain HTTP: take it, hand the answer in, stay alive while it is done.

The same calls as the MCP tools, to the same coordinator. A worker is known by the lease that it
names, and nothing else is kept of it here; one that hangs up while it waits is given nothing.
"""

import asyncio
from collections.abc import Awaitable
from typing import Any, Final, TypeVar

import msgspec
from litestar import Request
from litestar.exceptions import HTTPException

from interlock.carriers.pull import messages
from interlock.carriers.pull.tools import PullTools
from interlock.system.errors import StateError
from interlock_web.api.routes import writing

_SCOPES: Final = ("work",)
_MAX_WAIT: Final = 5.0
"""Seconds for which a request waits at most: who wants to wait longer asks again."""
_Result = TypeVar("_Result")


class NextRequest(msgspec.Struct, frozen=True):
    """What work is wanted."""

    wait: float = 0.0
    """Seconds to wait for work; at most 5."""
    ttl: float = messages.DEFAULT_LEASE
    """Seconds after which another worker gets it if nothing is heard about it."""
    roles: tuple[str, ...] = ()
    """Only work of these roles; by default, of all."""


class SubmitRequest(msgspec.Struct, frozen=True):
    """An answer to a dispatch that is held; both are as /worker/next gave them."""

    dispatch_id: str
    lease: str
    answer: dict[str, Any]


class SignalRequest(msgspec.Struct, frozen=True):
    """A signal about a dispatch that is held."""

    dispatch_id: str
    lease: str
    signal: str
    data: dict[str, Any] = {}


class AskRequest(msgspec.Struct, frozen=True):
    """A question about a dispatch that is held, or the `question_id` of one that was asked."""

    dispatch_id: str = ""
    lease: str = ""
    question: str = ""
    options: tuple[str, ...] = ()
    question_id: str = ""


class HeartbeatRequest(msgspec.Struct, frozen=True):
    lease: str


class WorkRecord(msgspec.Struct, frozen=True, kw_only=True):
    """A piece of work under a lease; or that there is none, and why."""

    available: bool
    done: bool
    """The run is over: stop asking."""
    reason: str = ""
    dispatch_id: str = ""
    lease: str = ""
    fence: int = 0
    ttl: float = 0.0
    run_id: int = 0
    case_id: str = ""
    step: str = ""
    attempt: int = 0
    role: str = ""
    prompt: str = ""
    answer_schema: dict[str, Any] = {}
    signals: tuple[str, ...] = ()


class SubmitRecord(msgspec.Struct, frozen=True, kw_only=True):
    """What became of an answer."""

    accepted: bool
    open: bool
    """Refused, but still yours: mend it and try again."""
    refusal: str
    sentence: str


class AskRecord(msgspec.Struct, frozen=True, kw_only=True):
    """How a question stands."""

    asked: bool
    answered: bool
    question_id: str = ""
    decision: str = ""
    comment: str = ""
    by: str = ""
    sentence: str = ""


class HeldRecord(msgspec.Struct, frozen=True):
    dispatch_id: str
    case_id: str


class HeartbeatRecord(msgspec.Struct, frozen=True, kw_only=True):
    """How the run stands."""

    coordinator: bool
    """Whether a process works on the run."""
    run_id: int
    open: int
    leased: int
    workers: int
    yours: list[HeldRecord]
    reason: str


@writing("/worker/next", "Take the next piece of work", scopes=_SCOPES)
async def take_next(
    request: Request[Any, Any, Any], tools: PullTools, data: NextRequest
) -> WorkRecord:
    """Wait for a piece of work and take it under a lease. If `available` is false, ask again,
    unless `done` is true."""
    call = messages.NextCall(min(data.wait, _MAX_WAIT), data.ttl, data.roles)
    found = await _unless_hung_up(request, _call(tools, "interlock_next", call))
    known = {name: found[name] for name in WorkRecord.__struct_fields__ if name in found}
    known["dispatch_id"] = str(found.get("dispatch_id", ""))
    known["run_id"] = found.get("run_id") or 0
    return WorkRecord(**known)


@writing("/worker/submit", "Hand in an answer", scopes=_SCOPES)
async def submit_answer(tools: PullTools, data: SubmitRequest) -> SubmitRecord:
    """Answer a dispatch under its lease. The answer is checked at once; one that is refused while
    `open` is true can be mended as the sentence says."""
    call = messages.SubmitCall(_read_id(data.dispatch_id), data.lease, data.answer)
    return _describe(await _call(tools, "interlock_submit", call))


@writing("/worker/signal", "Say a signal instead of an answer", scopes=_SCOPES)
async def submit_signal(tools: PullTools, data: SignalRequest) -> SubmitRecord:
    """Say one of the signals that came with the work. `crash` and `release` are always legal."""
    number = _read_id(data.dispatch_id)
    call = messages.SignalCall(number, data.lease, data.signal, data.data)
    return _describe(await _call(tools, "interlock_signal", call))


@writing("/worker/ask", "Ask a person", scopes=_SCOPES)
async def ask_person(tools: PullTools, data: AskRequest) -> AskRecord:
    """Ask a person about the dispatch that is held, or look whether they have answered."""
    number = _read_id(data.dispatch_id) if data.dispatch_id else 0
    call = messages.AskCall(number, data.lease, data.question, data.options, data.question_id)
    found = await _call(tools, "interlock_ask", call)
    return AskRecord(**{name: found[name] for name in AskRecord.__struct_fields__ if name in found})


@writing("/worker/heartbeat", "Keep a lease alive", scopes=_SCOPES)
async def send_heartbeat(tools: PullTools, data: HeartbeatRequest) -> HeartbeatRecord:
    """Say that the work goes on: the lease is renewed. Tells how the run stands."""
    found = await _call(tools, "interlock_status", messages.StatusCall(data.lease))
    return HeartbeatRecord(
        coordinator=found["coordinator"],
        run_id=found.get("run_id") or 0,
        open=found.get("open", 0),
        leased=found.get("leased", 0),
        workers=found.get("workers", 0),
        yours=[
            HeldRecord(str(each["dispatch_id"]), str(each["case_id"]))
            for each in found.get("yours", [])
        ],
        reason=found["reason"],
    )


def _read_id(word: str) -> int:
    """A dispatch's id: a word for whoever sends it back, a number for us. What is none belongs to
    no dispatch."""
    return int(word) if word.isascii() and word.isdigit() and len(word) < 19 else 0


def _describe(found: dict[str, Any]) -> SubmitRecord:
    return SubmitRecord(
        accepted=found["accepted"],
        open=found["open"],
        refusal=found["refusal"],
        sentence=found["sentence"],
    )


async def _call(tools: PullTools, tool: str, call: msgspec.Struct) -> dict[str, Any]:
    found = await tools.call_tool(tool, msgspec.to_builtins(call))
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
