"""From bytes to a signal: an answer is decoded and checked against the shape its step asks for.

Strict JSON, one object, no NaN, nothing too deep or too large to keep. What does not fit is a
refusal with a sentence for the agent; nothing is guessed or filled in.
"""

from typing import Any

from interlock.core.case import Refused, Signal
from interlock.core.circuit import ARTIFACT, FAILURES, Step
from interlock.dispatch.carrier import MAX_ANSWER, Reply
from interlock.runner.strict_json import decode

_ENVELOPE = {"signal", "data", "subject"}


def absorb(reply: Reply, step: Step) -> Signal | Refused:
    """The signal an agent's reply carries at that step."""
    if reply.failure and reply.answered_by:
        return Refused("Malformed", f"The answer cannot be read ({reply.reason}).")
    if reply.failure:
        return Signal(reply.failure, {"reason": reply.reason}, usage=reply.usage)
    found = _decoded(reply.content)
    if isinstance(found, Refused):
        return found
    name, data, subject = _opened(found)
    if name in FAILURES or name not in step.signals:
        legal = ", ".join(step.signals)
        return Refused("Unknown", f"Signal {name!r} is not one of this step's signals: {legal}.")
    problem = step.shape.problem(data) if name == ARTIFACT else None
    if not isinstance(data, dict):
        problem = "answer must be an object"
    if problem is not None:
        return Refused("Malformed", f"{problem[:1].upper()}{problem[1:]}.")
    return Signal(name, data, subject, reply.usage)


def _decoded(content: bytes) -> dict[str, Any] | Refused:
    if len(content) > MAX_ANSWER:
        return Refused("Malformed", f"Answer with at most {MAX_ANSWER:,} bytes.")
    if not content.strip():
        return Refused("Missing", "The answer is empty. Answer with one JSON object.")
    try:
        value = decode(content)
    except ValueError as error:
        return Refused("Malformed", f"Answer with one JSON object and nothing else ({error}).")
    if not isinstance(value, dict):
        return Refused("Malformed", "Answer with a JSON object, in braces.")
    return value


def _opened(value: dict[str, Any]) -> tuple[str, Any, str | None]:
    """An answer may name its signal: {"signal": ..., "data": {...}}; else it is an artifact."""
    name = value.get("signal")
    if isinstance(name, str) and "data" in value and value.keys() <= _ENVELOPE:
        subject = value.get("subject")
        return name, value["data"], subject if isinstance(subject, str) else None
    return ARTIFACT, value, None
