"""Agents that are code: Python functions of a user, and handlers of applications.

`FunctionCarrier` runs a plain or async callable for each dispatch: it returns the answer, or raises
and thereby crashes. `Handler` and `AsyncHandler` are for applications: they see the ask as the loop
sent it and build the whole reply; a `Handler` may leave an ask to another carrier.
"""

import asyncio
import contextvars
import copy
import dataclasses
import inspect
import logging
import threading
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import nullcontext
from typing import Any

import msgspec

from interlock.carriers.background import TaskCarrier
from interlock.carriers.contract import (
    MAX_ANSWER,
    Ask,
    Carrier,
    CarrierWrapper,
    Reply,
    Session,
)
from interlock.engine.circuit import CRASH, UNREADABLE, Step
from interlock.engine.shape import build_schema
from interlock.signals.answer_text import NoObject, find_answer_object
from interlock.system.errors import InterlockError

_FENCES = (b"```", b"~~~")
_TEXT = "text"
"""The field of the shape that circuits call `text`."""
_LOG = logging.getLogger(__name__)


class Dispatch(msgspec.Struct, frozen=True, kw_only=True):
    """The question to an agent: one attempt at one step of one case."""

    id: int
    """The dispatch's number in the journal; after a restart, the same dispatch may come again."""
    case: Mapping[str, Any]
    """A copy of the case as it was started, with its `id`."""
    case_id: str
    step: str
    role: str
    attempt: int
    """The number of times that this step was asked about this case, from 1."""
    prompt: str
    """The step's rendered prompt. It also says what was wrong with the last attempt."""
    schema: Mapping[str, Any] | None = None
    """The JSON Schema of the answer, if the step has one."""
    deadline: float | None = None
    """The time at which the step times out, in seconds since the epoch."""
    context: Mapping[str, Any] = {}
    """A copy of the context that earlier steps of the case have left, as the prompt sees it."""


Returned = str | Mapping[str, Any] | msgspec.Struct | Reply
"""Text, a dict or a record; or a reply, to report usage or a rate limit with it."""
Function = Callable[[Dispatch], Returned | Awaitable[Returned]]
"""An agent in Python: plain (it runs in a thread) or async (it runs on the event loop)."""


class FunctionCarrier(TaskCarrier):
    """Call a function for each ask.

    An async function is cancelled when its answer is not needed any more. A plain one cannot be: it
    runs on in its thread, which keeps neither the loop nor the process alive.
    """

    def __init__(self, function: Function) -> None:
        super().__init__()
        self._function = function

    async def answer(self, ask: Ask) -> Reply:
        return await call_function(self._function, ask, self.session)


async def call_function(function: Function, ask: Ask, session: Session) -> Reply:
    """Return a function's reply to one ask; anything it raises is a `crash`."""
    step = session.steps.get(ask.step)
    dispatch = build_dispatch(ask, step)
    # The time of a clock in tests stands still while a function works.
    hold_time = getattr(session.clock, "hold", nullcontext)
    try:
        with hold_time():
            if _is_async(function):
                found = function(dispatch)
            else:
                found = await _run_in_thread(function, dispatch, f"agent-{ask.dispatch_id}")
            value = await found if inspect.isawaitable(found) else found
        return build_reply(ask, value, step)
    except asyncio.CancelledError as error:
        task = asyncio.current_task()
        if task is not None and task.cancelling():
            raise
        return build_crash(ask, error)
    except (Exception, SystemExit) as error:
        return build_crash(ask, error)


def build_dispatch(ask: Ask, step: Step | None = None) -> Dispatch:
    """Build what the function sees of an ask.

    The case's data is copied: the function may run in a thread, and must not change the engine's
    data.
    """
    data: dict[str, Any] = copy.deepcopy(dict(ask.case.input)) if ask.case else {}
    timeout = step.timeout if step else None
    return Dispatch(
        id=ask.dispatch_id,
        case={**data, "id": ask.case_id},
        case_id=ask.case_id,
        step=ask.step,
        role=ask.role,
        attempt=ask.attempt,
        prompt=ask.prompt,
        schema=build_schema(step.shape) if step and ask.language == "json" else None,
        deadline=None if timeout is None else ask.at + timeout,
        context=copy.deepcopy(dict(ask.case.context)) if ask.case else {},
    )


def build_reply(ask: Ask, value: object, step: Step | None = None) -> Reply:
    """Build the reply for a function's answer; TypeError for a value that no answer can be."""
    if isinstance(value, Reply):
        return msgspec.structs.replace(value, dispatch_id=ask.dispatch_id)
    if isinstance(value, str) and step is not None and _is_plain_text(value, ask.language, step):
        value = {_TEXT: value}
    content = encode_answer(value, ask.language)
    if len(content) > MAX_ANSWER:
        reason = f"the answer is longer than {MAX_ANSWER:,} bytes"
        return Reply(ask.dispatch_id, failure=UNREADABLE, reason=reason)
    return Reply(ask.dispatch_id, content)


def _is_plain_text(value: str, language: str, step: Step) -> bool:
    """Return whether the step asks for an object with a text, and this is the text alone.

    Text that looks like an object was meant as one.
    """
    if language != "json" or value.lstrip().startswith(("{", "```", "~~~")):
        return False
    return _TEXT in step.shape.fields and step.shape.find_problem({_TEXT: value}) is None


def encode_answer(value: object, language: str = "json") -> bytes:
    """Return the answer's bytes; TypeError for a value that no answer can be."""
    if isinstance(value, str):
        return unwrap_fence(value.encode(errors="surrogatepass"), language)
    is_record = isinstance(value, Mapping | msgspec.Struct) or (
        dataclasses.is_dataclass(value) and not isinstance(value, type)
    )
    if not is_record:
        kind = type(value).__name__
        raise TypeError(f"it returned {kind}; return text, a dict or a record")
    return msgspec.json.encode(value)


def unwrap_fence(answer: bytes, language: str) -> bytes:
    """Return the one object inside a fence, which models like to add; other answers stay as they
    are."""
    if language != "json" or not answer.lstrip().startswith(_FENCES):
        return answer
    found = find_answer_object(answer.decode(errors="replace"), MAX_ANSWER)
    return answer if isinstance(found, NoObject) else found


def _is_async(function: Function) -> bool:
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(
        getattr(function, "__call__", None)  # noqa: B004 - an object with an async __call__
    )


async def _run_in_thread(function: Function, dispatch: Dispatch, name: str) -> Any:
    """Run a function in a thread of its own.

    The loop's executor has few threads, shared with everything else, and a function that never
    returns would keep the process from ending.
    """
    loop = asyncio.get_running_loop()
    waiting: asyncio.Future[tuple[Any, BaseException | None]] = loop.create_future()
    context = contextvars.copy_context()

    def resolve(outcome: tuple[Any, BaseException | None]) -> None:
        if not waiting.done():
            waiting.set_result(outcome)

    def run() -> None:
        outcome: tuple[Any, BaseException | None]
        try:
            outcome = (context.run(function, dispatch), None)
        except BaseException as error:
            outcome = (None, error)
        try:
            loop.call_soon_threadsafe(resolve, outcome)
        except RuntimeError:
            return  # the loop has ended meanwhile: nobody waits any more

    threading.Thread(target=run, name=name, daemon=True).start()
    value, error = await waiting
    if error is not None:
        raise error
    return value


def build_crash(ask: Ask, error: BaseException) -> Reply:
    """Build the reply for an exception: the reason is for the journal, the traceback for the
    log."""
    _LOG.debug("dispatch %d: the function failed", ask.dispatch_id, exc_info=error)
    reason = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
    return Reply(ask.dispatch_id, failure=CRASH, reason=reason)


HandlerFunction = Callable[[Ask], Reply | None]
"""Return the answer to an ask, or None to leave it to the other carrier."""


class _Nobody(Carrier):
    """A carrier that answers nothing."""

    def send(self, asks: Sequence[Ask]) -> None:
        for ask in asks:
            reason = f"the program has no answer for step {ask.step}"
            self._deliver(Reply(ask.dispatch_id, failure=CRASH, reason=reason))

    def keeps_answers(self) -> bool:
        return True


class Handler(CarrierWrapper):
    """Compute answers at once, in this process.

    Asks that the function leaves to another carrier go on together, so that a carrier of batches
    gets one batch.
    """

    def __init__(self, function: HandlerFunction, fallback: Carrier | None = None) -> None:
        super().__init__(fallback or _Nobody())
        self._function = function

    def send(self, asks: Sequence[Ask]) -> None:
        others: list[Ask] = []
        for ask in asks:
            try:
                reply = self._function(ask)
            except InterlockError as error:
                reply = Reply(ask.dispatch_id, failure=CRASH, reason=str(error))
            if reply is None:
                others.append(ask)
            else:
                self._deliver(reply)
        if others:
            self.inner.send(others)


class PromptlessHandler(Handler):
    """A handler that reads no prompts."""


def build_answer(ask: Ask, data: object, by: str = "") -> Reply:
    """Build a reply with this answer."""
    return Reply(ask.dispatch_id, msgspec.json.encode(data), answered_by=by)


AsyncHandlerFunction = Callable[[Ask], Awaitable[Reply]]
"""Return the answer to an ask after some work; working on the same ask twice must do no harm."""


class AsyncHandler(TaskCarrier):
    """Compute answers that take some work, each in a task of its own."""

    def __init__(
        self, function: AsyncHandlerFunction, on_close: Callable[[], None] = lambda: None
    ) -> None:
        """Call `function` for each ask, and `on_close` once no work is under way and none will
        be."""
        super().__init__()
        self._function = function
        self._on_close = on_close

    async def answer(self, ask: Ask) -> Reply:
        return await self._function(ask)

    async def close(self) -> None:
        await super().close()
        self._on_close()
