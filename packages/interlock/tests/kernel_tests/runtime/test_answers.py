"""Absorbing a reply: one table of what agents send, and what becomes of it."""

import msgspec
import pytest

from interlock.carriers.contract import MAX_ANSWER, ExecutionContext, Reply
from interlock.engine.case import RefusedAnswer, Signal, Usage
from interlock.engine.circuit import FAILURES, Step
from interlock.engine.shape import read_shape
from interlock.runtime.answers import decode_answer

SHAPE = read_shape({"type": "object", "properties": {"mark": {"type": "integer"}}})
STEP = Step("judge", "critic", SHAPE, signals=("artifact", "question"))
LEGAL = "artifact, question"


@pytest.mark.parametrize(
    ("content", "signal"),
    [
        pytest.param(b'{"mark": 3}', Signal("artifact", {"mark": 3}), id="artifact"),
        pytest.param(b"{}", Signal("artifact", {}), id="empty object"),
        pytest.param(b' \r\n{"mark": 3}\n', Signal("artifact", {"mark": 3}), id="blanks around"),
        pytest.param(
            b'{"signal": "question", "data": {"mark": "any"}}',
            Signal("question", {"mark": "any"}),
            id="envelope; the shape is the artifact's",
        ),
        pytest.param(
            b'{"signal": "artifact", "data": {"mark": 1}, "subject": "A"}',
            Signal("artifact", {"mark": 1}, "A"),
            id="envelope with subject",
        ),
        pytest.param(
            b'{"signal": "question", "data": {}, "subject": 7}',
            Signal("question", {}),
            id="a subject that is no text is none",
        ),
        pytest.param(
            b'{"signal": "question", "mark": 1}',
            Signal("artifact", {"signal": "question", "mark": 1}),
            id="no envelope without data",
        ),
        pytest.param(
            b'{"signal": "question", "data": {}, "mark": 1}',
            Signal("artifact", {"signal": "question", "data": {}, "mark": 1}),
            id="no envelope with more fields",
        ),
        pytest.param(
            b'{"signal": 3, "data": {}}',
            Signal("artifact", {"signal": 3, "data": {}}),
            id="no envelope without a name",
        ),
        pytest.param(
            b'{"other": 123456789012345678901234567890}',
            Signal("artifact", {"other": 123456789012345678901234567890}),
            id="a number beyond 64 bit",
        ),
    ],
)
def test_taken(content: bytes, signal: Signal) -> None:
    assert decode_answer(Reply(1, content), STEP) == signal


@pytest.mark.parametrize(
    ("content", "reason", "sentence"),
    [
        pytest.param(
            b"", "Missing", "The answer is empty. Answer with one JSON object.", id="empty"
        ),
        pytest.param(
            b" \n\t",
            "Missing",
            "The answer is empty. Answer with one JSON object.",
            id="only blanks",
        ),
        pytest.param(b"[1]", "Malformed", "Answer with a JSON object, in braces.", id="array"),
        pytest.param(b'"x"', "Malformed", "Answer with a JSON object, in braces.", id="text"),
        pytest.param(b"null", "Malformed", "Answer with a JSON object, in braces.", id="null"),
        pytest.param(
            b'{"mark": 1, "mark": 5}',
            "Malformed",
            "Answer with one JSON object and nothing else ('mark' is written twice).",
            id="name twice",
        ),
        pytest.param(
            b'{"mark": 1} and more',
            "Malformed",
            "Answer with one JSON object and nothing else "
            "(it is not valid JSON: trailing characters (byte 13)).",
            id="trailing garbage",
        ),
        pytest.param(
            b'{"mark": NaN}',
            "Malformed",
            "Answer with one JSON object and nothing else "
            "(it is not valid JSON: NaN is not a JSON number).",
            id="NaN",
        ),
        pytest.param(
            b"\xff\xfe",
            "Malformed",
            "Answer with one JSON object and nothing else (it is not UTF-8: invalid start byte).",
            id="invalid UTF-8",
        ),
        pytest.param(
            b'{"a":' * 1_000_000,
            "Malformed",
            f"Answer with at most {MAX_ANSWER:,} bytes.",
            id="a million levels",
        ),
        pytest.param(
            b'{"a":' * 100_000,
            "Malformed",
            "Answer with one JSON object and nothing else (it is nested deeper than 60 levels).",
            id="deep but not too long",
        ),
        pytest.param(
            b'{"a": "' + b"x" * MAX_ANSWER + b'"}',
            "Malformed",
            f"Answer with at most {MAX_ANSWER:,} bytes.",
            id="too long",
        ),
        pytest.param(
            b'{"mark": "3"}',
            "Malformed",
            "Answer.mark must be an integer, not a string.",
            id="wrong shape",
        ),
        pytest.param(
            b'{"signal": "artifact", "data": {"mark": 1.5}}',
            "Malformed",
            "Answer.mark must be an integer, not a number.",
            id="wrong shape in an envelope",
        ),
        pytest.param(
            b'{"signal": "question", "data": [1]}',
            "Malformed",
            "Answer must be an object.",
            id="data is no object",
        ),
        pytest.param(
            b'{"signal": "approve", "data": {}}',
            "Unknown",
            f"Signal 'approve' is not one of this step's signals: {LEGAL}.",
            id="unknown signal",
        ),
    ],
)
def test_refused(content: bytes, reason: str, sentence: str) -> None:
    assert decode_answer(Reply(1, content), STEP) == RefusedAnswer(reason, sentence)


@pytest.mark.parametrize("name", FAILURES)
def test_an_agent_may_not_claim_a_signal_of_the_engine(name: str) -> None:
    step = Step("judge", "critic", SHAPE, signals=("artifact", name))
    claimed = Reply(1, f'{{"signal": "{name}", "data": {{}}}}'.encode())
    found = decode_answer(claimed, step)
    assert isinstance(found, RefusedAnswer)
    assert found.reason == "Unknown"


def test_a_failure_of_the_carrier_is_a_signal() -> None:
    reply = Reply(1, failure="crash", reason="exit code 3", usage=Usage(tokens=5))
    assert decode_answer(reply, STEP) == Signal("crash", {"reason": "exit code 3"}, usage=Usage(5))


def test_what_a_human_wrote_and_nobody_can_read_is_refused() -> None:
    reply = Reply(1, failure="unreadable", reason="1.json: cut off", answered_by="ann")
    assert decode_answer(reply, STEP) == RefusedAnswer(
        "Malformed", "The answer cannot be read (1.json: cut off)."
    )


def test_the_usage_travels_with_the_signal() -> None:
    reply = Reply(1, b"{}", usage=Usage(tokens=7, money=0.5))
    assert decode_answer(reply, STEP) == Signal("artifact", {}, usage=Usage(7, 0.5))


WORK = Step(
    "work",
    "developer",
    read_shape({"type": "object"}),
    signals=("READY_FOR_REVIEW", "INFRA_BLOCKED"),
    language="text",
)
READY = "All done.\n\nREADY_FOR_REVIEW: t1\n\nSummary: it works\n"


@pytest.mark.parametrize("wrapped", [False, True], ids=["as it is", "in a field"])
def test_a_message_is_read_for_its_signal(wrapped: bool) -> None:
    content = msgspec.json.encode({"text": READY}) if wrapped else READY.encode()
    found = decode_answer(Reply(1, content, usage=Usage(3)), WORK, "t1")
    fields = {"summary": "it works", "text": READY}
    assert found == Signal("READY_FOR_REVIEW", fields, "t1", Usage(3))


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        pytest.param(b"READY_FOR_REVIEW: t2\n", "WrongTask", id="another task"),
        pytest.param(b"AUDIT_PASSED: t1\n", "WrongRole", id="another role's word"),
        pytest.param(b"> READY_FOR_REVIEW: t1\n", "Malformed", id="quoted"),
        pytest.param(b"I am done.\n", "Missing", id="no signal"),
        pytest.param(b"", "Missing", id="nothing"),
        pytest.param(b"TASK_INCOMPLETE: t1\n\nBlocker: x\n", "Unknown", id="not awaited here"),
        pytest.param(b"READY_FOR_REVIEW: t1\xff\n", "Malformed", id="no UTF-8"),
        pytest.param(b"x" * (MAX_ANSWER + 1), "Malformed", id="too long"),
        pytest.param(b'{"signal": "READY_FOR_REVIEW", "data": {}}', "Missing", id="an envelope"),
    ],
)
def test_a_message_that_is_no_answer(content: bytes, reason: str) -> None:
    found = decode_answer(Reply(1, content), WORK, "t1")
    assert isinstance(found, RefusedAnswer)
    assert found.reason == reason


def test_a_strict_message_names_its_dispatch() -> None:
    strict = ExecutionContext(nonce="n1", strict=True)
    assert decode_answer(Reply(1, READY.encode()), WORK, "t1", strict) != Signal("READY_FOR_REVIEW")
    marked = READY.replace("Summary", "Dispatch: n1\nSummary").encode()
    found = decode_answer(Reply(1, marked), WORK, "t1", strict)
    assert isinstance(found, Signal)
