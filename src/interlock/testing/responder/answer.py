"""One dispatch, from its prompt to its artifact.

Knows the steps an agent takes for one signal and what can go wrong at each. Whatever is written, is
written only while the signal still waits for this very dispatch. Refuses to know when to begin.
"""

import asyncio
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Literal

import msgspec

from interlock.agents.carrier import Ask, Carrier, Reply
from interlock.signals.signal_file import (
    Artifact,
    encode_artifact,
    encode_signal,
    move_signal,
    read_artifact,
)
from interlock.system.errors import SourceError
from interlock.system.strict_json import Problem, decode_object
from interlock.testing.responder.lookout import SIGNAL, SignalFinder, WaitingSignal

Hire = Callable[[Mapping[str, str]], Carrier]
"""Makes an agent for one dispatch, given what its environment should say beside the ids."""
_LONGEST_REASON = 1_000


class AnswerResult(msgspec.Struct, frozen=True):
    """How a dispatch ended here. `overtaken`: the coordinator went on without us."""

    kind: Literal["answered", "failed", "overtaken"]
    reason: str = ""


class Answerer:
    """Has dispatches answered by an agent."""

    def __init__(self, hire: Hire, seconds: float, lookout: SignalFinder) -> None:
        self._hire = hire
        self._seconds = seconds
        self._lookout = lookout

    async def answer(self, waiting: WaitingSignal, attempt: int) -> AnswerResult:
        try:
            artifact_path = _artifact_path(waiting)
            prompt = _prompt(waiting)
            data = await self._ask(waiting, prompt, attempt)
        except SourceError as error:
            return self._fail(waiting, str(error))
        artifact = encode_artifact(Artifact(waiting.signal.dispatch_id, data))
        try:
            written = waiting.tree.replace(artifact_path, artifact, lambda: self._ours(waiting))
        except (OSError, SourceError) as error:
            return self._fail(waiting, f"the artifact cannot be written: {error}")
        return AnswerResult("answered" if written else "overtaken")

    async def _ask(self, waiting: WaitingSignal, prompt: str, attempt: int) -> dict[str, Any]:
        signal = waiting.signal
        ask = Ask(signal.dispatch_id, 0, signal.case_id, signal.step, attempt, "", prompt)
        reply = await _reply(self._hire(_surroundings(waiting)), ask, self._seconds)
        if reply.failure:
            raise SourceError(f"{reply.failure}: {reply.reason}")
        return _data(reply.content, signal.dispatch_id)

    def _fail(self, waiting: WaitingSignal, reason: str) -> AnswerResult:
        reason = reason[:_LONGEST_REASON]
        error = encode_signal(move_signal(waiting.signal, "error", reason))
        try:
            ours = waiting.tree.replace(waiting.path, error, lambda: self._ours(waiting))
        except (OSError, SourceError) as problem:
            return AnswerResult("failed", f"{reason}; the signal cannot be written: {problem}")
        return AnswerResult("failed" if ours else "overtaken", reason)

    def _ours(self, waiting: WaitingSignal) -> bool:
        return self._lookout.now(waiting) == waiting.signal


def _artifact_path(waiting: WaitingSignal) -> Path:
    path = Path(waiting.signal.artifact_path)
    waiting.tree.parts(path)
    if path.name == SIGNAL or path.name.startswith("."):
        raise SourceError(f"{path} is no place for an artifact")
    return path


def _prompt(waiting: WaitingSignal) -> str:
    try:
        return waiting.tree.read(Path(waiting.signal.prompt_path)).decode()
    except UnicodeDecodeError:
        raise SourceError(f"the prompt {waiting.signal.prompt_path} is not UTF-8") from None
    except OSError as error:
        path = waiting.signal.prompt_path
        raise SourceError(f"the prompt {path} cannot be read: {error.strerror}") from None


def _surroundings(waiting: WaitingSignal) -> dict[str, str]:
    """What the agent's environment says beside the ids. A missing briefing is an empty word."""
    return {
        "INTERLOCK_SIGNAL_PATH": str(waiting.path),
        "INTERLOCK_BRIEFING_PATH": str(_briefing(waiting) or ""),
    }


def _briefing(waiting: WaitingSignal) -> Path | None:
    """The batch's briefing, if it can be read; like all its paths relative to some folder above."""
    if waiting.batch is None or not waiting.batch.manifest.briefing_path:
        return None
    for folder in waiting.batch.path.parents:
        path = folder / waiting.batch.manifest.briefing_path
        with suppress(OSError, SourceError):
            waiting.tree.read(path)
            return path
    return None


async def _reply(agent: Carrier, ask: Ask, seconds: float) -> Reply:
    heard: asyncio.Future[Reply] = asyncio.get_running_loop().create_future()
    agent.start(lambda reply: None if heard.done() else heard.set_result(reply))
    agent.send([ask])
    try:
        async with asyncio.timeout(seconds):
            return await heard
    except TimeoutError:
        return Reply(ask.dispatch_id, failure="timeout", reason=f"no answer within {seconds:g} s")
    finally:
        await agent.close()


def _data(content: bytes, dispatch_id: int) -> dict[str, Any]:
    """The answer's own object; an agent that knows the wrapper may have put it on already."""
    found = decode_object(content)
    if isinstance(found, Problem):
        raise SourceError(f"the agent must print one JSON object: {found.sentence}")
    if set(found) != {"dispatch_id", "data"}:
        return found
    wrapped = read_artifact(content)
    if isinstance(wrapped, Problem):
        raise SourceError(f"the agent's own wrapper is wrong: {wrapped.sentence}")
    if wrapped.dispatch_id != dispatch_id:
        raise SourceError(f"the agent answered dispatch {wrapped.dispatch_id}, not {dispatch_id}")
    return wrapped.data
