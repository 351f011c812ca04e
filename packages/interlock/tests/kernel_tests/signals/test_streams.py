"""The CLIs' JSON lines: events, refusals, and whose word is the last."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock.signals.streams import FORMATS, StreamFormat, StreamReader
from interlock.signals.streams.events import (
    AssistantText,
    BadLine,
    OtherEvent,
    RateLimit,
    SessionStarted,
    StreamError,
    StreamEvent,
    ToolResult,
    ToolStarted,
    TurnEnd,
    UserTurn,
)

CLAUDE: StreamFormat = "claude-stream-json"
CODEX: StreamFormat = "codex-jsonl"


def lines(*events: dict[str, Any]) -> str:
    return "".join(json.dumps(event) + "\n" for event in events)


def assistant(*blocks: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"type": "assistant", "message": {"id": "m1", "content": list(blocks)}, **more}


def read_stream(
    text: str, stream_format: StreamFormat, *, ended_by_itself: bool = True
) -> tuple[list[StreamEvent], str | None]:
    """A whole recorded stream: its events, and the final message if there is one."""
    reader = StreamReader(stream_format)
    events = [*reader.feed(text), *reader.close(ended_by_itself)]
    return events, reader.final_message


def text_event(text: str, **more: Any) -> dict[str, Any]:
    return assistant({"type": "text", "text": text}, parent_tool_use_id=None, **more)


def tool_result(content: object) -> dict[str, Any]:
    block = {"type": "tool_result", "content": content, "is_error": None}
    return {"type": "user", "message": {"role": "user", "content": [block]}}


def result(text: str | None = "the end", **more: Any) -> dict[str, Any]:
    event = {"type": "result", "subtype": "success", "is_error": False, "num_turns": 1}
    return {**event, "result": text, **more}


INIT = {"type": "system", "subtype": "init", "session_id": "s1"}


def item(kind: str, name: str = "item.completed", **more: Any) -> dict[str, Any]:
    return {"type": name, "item": {"id": "i1", "type": kind, **more}}


DONE = {"type": "turn.completed", "usage": {}}
STARTED = {"type": "turn.started"}

EVENTS: list[tuple[StreamFormat, dict[str, Any], list[StreamEvent]]] = [
    (CLAUDE, INIT, [SessionStarted("s1")]),
    (CLAUDE, text_event("hello"), [AssistantText("hello", "m1")]),
    (CLAUDE, text_event("x", error="rate_limit"), [StreamError("x")]),
    (
        CLAUDE,
        {**text_event("sub"), "parent_tool_use_id": "t1"},
        [AssistantText("sub", "m1", by_subagent=True)],
    ),
    (CLAUDE, assistant({"type": "thinking", "thinking": "AUDIT_PASSED: t1"}), []),
    (CLAUDE, assistant({"type": "tool_use", "name": "Bash"}), [ToolStarted("", "Bash")]),
    (CLAUDE, tool_result("out"), [ToolResult("out")]),
    (CLAUDE, tool_result([{"type": "text", "text": "a"}, {"text": "b"}]), [ToolResult("a\nb")]),
    (CLAUDE, tool_result(None), [ToolResult("")]),
    (CLAUDE, {"type": "user", "message": {"content": "do it"}}, [UserTurn("do it")]),
    (
        CLAUDE,
        {
            "type": "user",
            "isSynthetic": True,
            "message": {"content": [{"type": "text", "text": "go"}]},
        },
        [UserTurn("go")],
    ),
    (CLAUDE, result("x"), [TurnEnd(True, "x", "", "success", turns=1)]),
    (
        CLAUDE,
        result("x", is_error=True),
        [TurnEnd(False, None, "x", "success", is_error=True, turns=1)],
    ),
    (
        CLAUDE,
        {"type": "result", "subtype": "error_max_turns", "is_error": True, "errors": ["limit"]},
        [TurnEnd(False, None, "error_max_turns: limit", "error_max_turns", is_error=True)],
    ),
    (
        CLAUDE,
        result("x", num_turns=0),
        [TurnEnd(False, None, "no turn was taken: x", "success", turns=0)],
    ),
    (
        CLAUDE,
        {"type": "rate_limit_event", "rate_limit_info": {"status": "rejected", "resetsAt": 5}},
        [RateLimit("rejected", 5)],
    ),
    (
        CLAUDE,
        {
            "type": "rate_limit_event",
            "rate_limit_info": {"status": "allowed_warning", "rateLimitType": "five_hour"},
        },
        [RateLimit("warning", None, "five_hour")],
    ),
    (
        CLAUDE,
        {"type": "system", "subtype": "api_retry", "error_status": 529, "attempt": 1},
        [StreamError("retry after 529", passing=True)],
    ),
    (CLAUDE, {"type": "stream_event", "event": {}}, [OtherEvent("stream_event")]),
    (CLAUDE, {"type": "system", "subtype": "task_started"}, [OtherEvent("system/task_started")]),
    (CODEX, {"type": "thread.started", "thread_id": "t"}, [SessionStarted("t")]),
    (CODEX, STARTED, [OtherEvent("turn.started")]),
    (CODEX, item("agent_message", text="hi"), [AssistantText("hi", "i1")]),
    (CODEX, item("reasoning", text="AUDIT_PASSED: t1"), [OtherEvent("item.completed/reasoning")]),
    (
        CODEX,
        item("command_execution", aggregated_output="out", exit_code=3, status="failed"),
        [ToolResult("out", is_error=True, tool_id="i1")],
    ),
    (
        CODEX,
        item("mcp_tool_call", result={"a": 1}, status="completed"),
        [ToolResult("", tool_id="i1")],
    ),
    (CODEX, item("error", message="no metadata"), [StreamError("no metadata", passing=True)]),
    (
        CODEX,
        {"type": "error", "message": "Reconnecting... 1/5"},
        [StreamError("Reconnecting... 1/5", passing=True)],
    ),
    (CODEX, {"type": "error", "message": "bad"}, [StreamError("bad")]),
    (
        CODEX,
        {"type": "turn.failed", "error": {"message": "bad"}},
        [TurnEnd(False, None, "bad", "turn.failed", is_error=True)],
    ),
    (
        CODEX,
        {"type": "turn.failed", "error": {"message": "You've hit your usage limit."}},
        [
            RateLimit("rejected", None, "You've hit your usage limit."),
            TurnEnd(False, None, "You've hit your usage limit.", "turn.failed", is_error=True),
        ],
    ),
    (CODEX, DONE, [TurnEnd(False, None, "the turn ended without a message", "turn.completed")]),
]

FINAL: list[tuple[StreamFormat, str, str | None]] = [
    (CLAUDE, lines(INIT, text_event("one"), text_event("the end"), result()), "the end"),
    (CLAUDE, lines(INIT, text_event("AUDIT_PASSED: t1")), None),
    (CLAUDE, lines(INIT, text_event("x"), result(is_error=True, api_error_status=429)), None),
    (CLAUDE, lines(INIT, text_event("x"), {"type": "result", "subtype": "error_max_turns"}), None),
    (
        CLAUDE,
        lines(INIT, text_event("x"), result("first"), INIT, text_event("y"), result("second")),
        "second",
    ),
    (CLAUDE, lines(INIT, text_event("x"), result("first"), INIT, text_event("y")), None),
    (CLAUDE, lines(INIT, result("x"), {"type": "system", "subtype": "task_updated"}), "x"),
    (CLAUDE, lines(INIT, result("x"), {**text_event("sub"), "parent_tool_use_id": "t"}), "x"),
    (CLAUDE, "", None),
    (CODEX, lines(STARTED, item("agent_message", text="x"), DONE), "x"),
    (
        CODEX,
        lines(STARTED, item("agent_message", text="x"), item("agent_message", text="y"), DONE),
        "y",
    ),
    (CODEX, lines(STARTED, item("agent_message", text="x")), None),
    (
        CODEX,
        lines(STARTED, item("agent_message", text="x"), {"type": "error", "message": "m"}, DONE),
        None,
    ),
    (
        CODEX,
        lines(
            STARTED,
            {"type": "error", "message": "Reconnecting... 1/5"},
            item("agent_message", text="x"),
            DONE,
        ),
        "x",
    ),
    (
        CODEX,
        lines(
            STARTED, item("command_execution", "item.started"), item("agent_message", text="x")
        ).replace('"id": "i1", "type": "agent', '"id": "i2", "type": "agent')
        + lines(DONE),
        None,
    ),
    (CODEX, lines(STARTED, DONE), None),
    (CODEX, lines(STARTED, item("agent_message", text="x"), DONE, STARTED), None),
    (
        CODEX,
        lines(STARTED, item("agent_message", text="x"), {"type": "turn.failed", "error": None}),
        None,
    ),
]


@pytest.mark.parametrize(("stream_format", "event", "expected"), EVENTS)
def test_events_are_typed(
    stream_format: StreamFormat, event: dict[str, Any], expected: list[StreamEvent]
) -> None:
    assert read_stream(lines(event), stream_format)[0] == expected


@pytest.mark.parametrize(("stream_format", "text", "final"), FINAL)
def test_the_final_message(stream_format: StreamFormat, text: str, final: str | None) -> None:
    assert read_stream(text, stream_format)[1] == final


@pytest.mark.parametrize(
    "line", ["{", "[]", "nonsense", '{"type": 3}', "{}", "\ud800", "[" * 100000, '{"type"']
)
@pytest.mark.parametrize("stream_format", sorted(FORMATS.keys() - {"plain-text"}))
def test_bad_lines_are_kept_as_refusals(line: str, stream_format: StreamFormat) -> None:
    events, _ = read_stream(f"\n{line}\n", stream_format)
    assert len(events) == 1
    assert isinstance(events[0], BadLine)
    assert events[0].where == 2
    assert events[0].text == line[:500]


def test_a_bad_line_does_not_hide_the_next() -> None:
    events, final = read_stream("noise\n" + lines(INIT, text_event("x"), result("x")), CLAUDE)
    assert isinstance(events[0], BadLine)
    assert final == "x"


def test_nothing_counts_after_our_own_stop() -> None:
    reader = StreamReader(CLAUDE)
    reader.feed(lines(INIT, text_event("x")))
    reader.stop()
    assert reader.feed(lines(result("x"))) == [TurnEnd(True, "x", "", "success", turns=1)]
    assert reader.final_message is None
    assert reader.why_missing == "the session was stopped"


def test_what_ended_before_our_stop_counts() -> None:
    reader = StreamReader(CLAUDE)
    reader.feed(lines(INIT, result("x")))
    reader.stop()
    reader.feed(lines(text_event("y")))
    assert reader.final_message == "x"
    assert reader.why_missing == ""


def test_a_cut_off_last_line_does_not_count() -> None:
    text = lines(INIT, result("x")).removesuffix("\n")
    assert read_stream(text, CLAUDE, ended_by_itself=True)[1] == "x"
    events, final = read_stream(text, CLAUDE, ended_by_itself=False)
    assert isinstance(events[-1], BadLine)
    assert final is None


@given(
    st.lists(st.sampled_from([event for _, event, _ in EVENTS]), max_size=6),
    st.lists(st.integers(0, 600), max_size=6),
    st.sampled_from([CLAUDE, CODEX]),
)
def test_how_the_stream_is_cut_never_matters(
    events: list[dict[str, Any]], cuts: list[int], stream_format: StreamFormat
) -> None:
    text = lines(*events)
    reader, found, start = StreamReader(stream_format), list[StreamEvent](), 0
    for cut in [*sorted(cuts), len(text)]:
        found += reader.feed(text[start:cut]) if cut > start else []
        start = max(start, cut)
    found += reader.close(True)
    assert (found, reader.final_message) == read_stream(text, stream_format)
