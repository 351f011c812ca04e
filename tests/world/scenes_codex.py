"""Codex's sessions: work left open, reconnects, and limits by the time of day."""

from tests.world.session_scene import (
    ACCEPT,
    GOOD,
    NOW,
    Scene,
    Scenes,
    accept,
    crash,
    limit,
    timeout,
    unreadable,
)
from tests.world.streams import Codex

B, X = Codex.start_events(), Codex

CODEX: Scenes = {
    "a text answer": (Scene(events=[*B, X.text_event(GOOD), X.done()]), ACCEPT),
    "a warning item first": (
        Scene(
            events=[
                *B,
                X.completed("0", "error", message="Model metadata not found"),
                X.text_event(GOOD),
                X.done(),
            ]
        ),
        ACCEPT,
    ),
    "the last of two messages": (
        Scene(events=[*B, X.text_event("No."), X.text_event(GOOD), X.done()]),
        ACCEPT,
    ),
    "an object before the last message": (
        Scene(events=[*B, X.text_event(GOOD), X.text_event("Done."), X.done()]),
        unreadable("no JSON object"),
    ),
    "an object in its reasoning": (
        Scene(
            events=[*B, X.completed("1", "reasoning", text=GOOD), X.text_event("Yes."), X.done()]
        ),
        unreadable("no JSON object"),
    ),
    "an object that a command printed": (
        Scene(
            events=[*B, X.completed("1", aggregated_output=GOOD), X.text_event("Yes."), X.done()]
        ),
        unreadable("no JSON object"),
    ),
    "an object that a sub-agent said": (
        Scene(
            events=[
                *B,
                X.completed("1", "collab_tool_call", agents_states={"a": {"message": GOOD}}),
                X.text_event("It said so."),
                X.done(),
            ]
        ),
        unreadable("no JSON object"),
    ),
    "a command that fails is no failure": (
        Scene(
            events=[
                *B,
                X.started("1"),
                X.completed("1", status="failed", exit_code=3),
                X.text_event(GOOD),
                X.done(),
            ]
        ),
        ACCEPT,
    ),
    "work left open at the end": (
        Scene(events=[*B, X.started("1"), X.text_event(GOOD), X.done()]),
        crash("work was still open when the turn ended, and was killed"),
    ),
    "the model says nothing": (
        Scene(events=[*B, X.done()]),
        unreadable("without a final message"),
    ),
    "a reconnect before the message": (
        Scene(
            events=[
                *B,
                X.error("Reconnecting... 1/5 (stream disconnected)"),
                X.text_event(GOOD),
                X.done(),
            ]
        ),
        ACCEPT,
    ),
    "a message, a reconnect, and another": (
        Scene(
            events=[
                *B,
                X.text_event("half"),
                X.error("Reconnecting... 1/5"),
                X.text_event(GOOD),
                X.done(),
            ]
        ),
        ACCEPT,
    ),
    "a message, a reconnect, and no other": (
        Scene(events=[*B, X.text_event(GOOD), X.error("Reconnecting... 1/5"), X.done()]),
        unreadable("without a final message"),
    ),
    "an MCP tool without approval": (
        Scene(
            events=[
                *B,
                X.completed(
                    "1",
                    "mcp_tool_call",
                    tool="write",
                    status="failed",
                    error={
                        "message": "MCP tool call requires approval, but approval policy is never"
                    },
                ),
                X.text_event(GOOD),
                X.done(),
            ]
        ),
        accept("not allowed: write"),
    ),
    "429 for ever": (
        Scene(
            events=[*B, *X.failed("exceeded retry limit, last status: 429 Too Many Requests")],
            code=1,
        ),
        limit("429 Too Many Requests"),
    ),
    "a usage limit with a time of day only": (
        Scene(events=[*B, *X.failed("You've hit your usage limit. Try again at 9:24 AM.")], code=1),
        limit("hit your usage limit", until=NOW + 24 * 60),
    ),
    "500 for ever": (
        Scene(events=[*B, *X.failed("We're currently experiencing high demand")], code=1),
        crash("the turn failed (We're currently experiencing high demand)"),
    ),
    "a message before the turn failed": (
        Scene(events=[*B, X.text_event(GOOD), *X.failed("Selected model is at capacity.")], code=1),
        crash("the turn failed"),
    ),
    "TERM while it waits": (Scene(events=B, code=143, by="us"), crash("ended by us")),
    "silent for ever": (
        Scene(events=B, code=-15, by="silence"),
        timeout("the clock 'silence' ended it"),
    ),
    "a message after our signal": (
        Scene(events=B, late=[X.text_event(GOOD), X.done()], by="silence"),
        timeout("the clock 'silence'"),
    ),
    "it ends and says nothing": (Scene(events=B), crash("exit code 0 and no result")),
    "killed": (Scene(events=B, code=-9), crash("without a result (killed by signal 9)")),
    "an unknown thread": (
        Scene(events=[], code=1, stderr="Error: no rollout found for thread id x"),
        crash("it did not begin (exit code 1): Error: no rollout found"),
    ),
    "a required MCP server that is missing": (
        Scene(events=[], code=1, stderr="required MCP servers failed to initialize"),
        crash("required MCP servers failed"),
    ),
}
