"""Turn the bytes of an answer into a signal, checked against the shape of its step.

An answer is one strict JSON object, or a message in the language of text signals. An answer that
does not fit is refused with a sentence for the agent; nothing is guessed or filled in.
"""

from typing import Any

from interlock.carriers.contract import MAX_ANSWER, NO_CONTEXT, ExecutionContext, Reply
from interlock.engine.case import RefusedAnswer, Signal
from interlock.engine.circuit import ARTIFACT, FAILURES, UNREADABLE, Step
from interlock.system.strict_json import Problem, read_json

_ENVELOPE = {"signal", "data", "subject"}
_TOO_LONG = RefusedAnswer("Malformed", f"Answer with at most {MAX_ANSWER:,} bytes.")


def decode_answer(
    reply: Reply, step: Step, case_id: str = "", context: ExecutionContext = NO_CONTEXT
) -> Signal | RefusedAnswer:
    """Return the signal in an agent's reply, or the refusal that tells the agent what is wrong."""
    if reply.failure and reply.answered_by:
        return RefusedAnswer("Malformed", f"The answer cannot be read ({reply.reason}).")
    if reply.failure == UNREADABLE and reply.content:
        return RefusedAnswer("Unusable", reply.reason)
    if reply.failure:
        return Signal(reply.failure, {"reason": reply.reason}, usage=reply.usage)
    if step.language == "text":
        return _read_text_signal(reply, step, case_id, context)
    return _read_json_signal(reply, step)


def _read_json_signal(reply: Reply, step: Step) -> Signal | RefusedAnswer:
    answer = _decode_object(reply.content)
    if isinstance(answer, RefusedAnswer):
        return answer
    name, data, subject = _open_envelope(answer)
    if name in FAILURES or name not in step.signals:
        legal = ", ".join(step.signals)
        return RefusedAnswer(
            "Unknown", f"Signal {name!r} is not one of this step's signals: {legal}."
        )
    problem = step.shape.find_problem(data) if name == ARTIFACT else None
    if not isinstance(data, dict):
        problem = "answer must be an object"
    if problem is not None:
        return RefusedAnswer("Malformed", f"{problem[:1].upper()}{problem[1:]}.")
    return Signal(name, data, subject, reply.usage)


def _decode_object(content: bytes) -> dict[str, Any] | RefusedAnswer:
    if len(content) > MAX_ANSWER:
        return _TOO_LONG
    if not content.strip():
        return RefusedAnswer("Missing", "The answer is empty. Answer with one JSON object.")
    value = read_json(content)
    if isinstance(value, Problem):
        why = value.sentence
        return RefusedAnswer("Malformed", f"Answer with one JSON object and nothing else ({why}).")
    if not isinstance(value, dict):
        return RefusedAnswer("Malformed", "Answer with a JSON object, in braces.")
    return value


def _open_envelope(value: dict[str, Any]) -> tuple[str, Any, str | None]:
    """Open the envelope `{"signal": ..., "data": {...}}`; an answer without one is an artifact."""
    name = value.get("signal")
    if isinstance(name, str) and "data" in value and value.keys() <= _ENVELOPE:
        subject = value.get("subject")
        return name, value["data"], subject if isinstance(subject, str) else None
    return ARTIFACT, value, None


def _read_text_signal(
    reply: Reply, step: Step, case_id: str, context: ExecutionContext
) -> Signal | RefusedAnswer:
    """Return the signal of an agent's message, with the message itself as the field `text`."""
    from interlock.signals.reading import SignalRefused  # few steps are answered by messages
    from interlock.signals.text import read_message

    text = _decode_message(reply.content)
    if isinstance(text, RefusedAnswer):
        return text
    message = read_message(
        text,
        role=step.role,
        task_id=case_id or None,
        nonce=context.nonce or None,
        strict=context.strict,
        request_id=context.request_id or None,
    )
    if isinstance(message, SignalRefused):
        return RefusedAnswer(str(message.reason), message.sentence)
    if message.signal not in step.signals:
        legal = ", ".join(step.signals)
        return RefusedAnswer(
            "Unknown", f"{message.signal} is not awaited here; end with one of {legal}."
        )
    return Signal(message.signal, {**message.fields, "text": text}, message.subject, reply.usage)


def _decode_message(content: bytes) -> str | RefusedAnswer:
    """Return the text of a message; some carriers wrap it as `{"text": ...}`."""
    if len(content) > MAX_ANSWER:
        return _TOO_LONG
    try:
        text = content.decode()
    except UnicodeDecodeError:
        return RefusedAnswer("Malformed", "The answer is not UTF-8 text.")
    if not text.lstrip().startswith("{"):
        return text
    value = _decode_object(content)
    wrapped = value.get("text") if isinstance(value, dict) and value.keys() == {"text"} else None
    return wrapped if isinstance(wrapped, str) else text
