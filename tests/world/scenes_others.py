"""Sessions of Cursor, Gemini, OpenCode, Copilot and Aider."""

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
from tests.world.streams import Claude, Copilot, Cursor, Gemini, Opencode

I = Claude.init()  # noqa: E741
P = Copilot
U = Cursor
G = Gemini
O = Opencode  # noqa: E741

CURSOR: Scenes = {
    "a text answer": (Scene(events=[I, U.text_event(GOOD), U.result(GOOD)]), ACCEPT),
    "a result that repeats every word": (
        Scene(
            events=[
                I,
                U.text_event("Let me see."),
                U.tool("1", "started"),
                U.tool("1", "completed", success={}),
                U.text_event(GOOD),
                U.result(f"Let me see.{GOOD}"),
            ]
        ),
        ACCEPT,
    ),
    "words before a tool are not the last": (
        Scene(events=[I, U.text_event(GOOD), U.tool("1", "started"), U.result(GOOD)]),
        unreadable("without a final message"),
    ),
    "a tool that was rejected": (
        Scene(
            events=[I, U.tool("1", "completed", rejected={}), U.text_event(GOOD), U.result(GOOD)]
        ),
        accept("not allowed: shellToolCall"),
    ),
    "a result that is an error": (
        Scene(events=[I, U.result("bad", is_error=True)], code=1),
        crash("it ended with an error (bad)"),
    ),
    "an error on stderr only": (
        Scene(events=[I], code=1, stderr="Error: network"),
        crash("(exit code 1): Error: network"),
    ),
    "a limit on stderr": (
        Scene(events=[I], code=1, stderr="You've hit your usage limit, resets at 10:00 AM"),
        limit("usage limit", until=NOW + 3600),
    ),
    "it does not exit": (
        Scene(events=[I, U.text_event(GOOD), U.result(GOOD)], code=-9, by="after_result"),
        accept("it did not exit after its result and was killed"),
    ),
    "it waits for a browser": (
        Scene(events=[], code=-15, by="first_byte"),
        timeout("the clock 'first byte'"),
    ),
    "not logged in": (
        Scene(events=[], code=1, stderr="Please log in"),
        crash("it did not begin (exit code 1): Please log in"),
    ),
    "ended by us": (Scene(events=[I], code=143, by="us"), crash("ended by us")),
    "nothing at all": (Scene(events=[I]), crash("exit code 0 and no result")),
}

GEMINI: Scenes = {
    "an answer in pieces": (
        Scene(events=[G.init(), G.text_event('{"n":'), G.text_event(" 1}"), G.result()]),
        ACCEPT,
    ),
    "words before a tool do not count": (
        Scene(
            events=[
                G.init(),
                G.text_event("See:"),
                G.uses("1"),
                G.used("1"),
                G.text_event(GOOD),
                G.result(),
            ]
        ),
        ACCEPT,
    ),
    "only words before a tool": (
        Scene(events=[G.init(), G.text_event(GOOD), G.uses("1"), G.used("1"), G.result()]),
        unreadable("without a final message"),
    ),
    "the prompt is no answer": (
        Scene(events=[G.init(), {"type": "message", "role": "user", "content": GOOD}, G.result()]),
        unreadable("without a final message"),
    ),
    "a tool that is denied": (
        Scene(
            events=[
                G.init(),
                G.uses("1"),
                G.used("1", status="error", error={"message": "Tool execution denied by policy."}),
                G.text_event(GOOD),
                G.result(),
            ]
        ),
        accept("not allowed: Tool execution denied by policy."),
    ),
    "a warning is no end": (
        Scene(
            events=[
                G.init(),
                {"type": "error", "severity": "warning", "message": "loop detected"},
                G.text_event(GOOD),
                G.result(),
            ]
        ),
        ACCEPT,
    ),
    "a quota": (
        Scene(
            events=[G.init(), G.failed("You exceeded your current quota. Please retry in 37.5s.")],
            code=1,
        ),
        limit("exceeded your current quota", until=NOW + 37.5),
    ),
    "waits for a quota until its clock rings": (
        Scene(
            events=[G.init()],
            code=-15,
            by="silence",
            stderr="Attempt 1 failed: quota exceeded. Retrying after 40092ms...",
        ),
        limit("quota exceeded", until=NOW + 40.092),
    ),
    "another error": (
        Scene(events=[G.init(), G.failed("bad request")], code=1),
        crash("it ended with an error (error: bad request)"),
    ),
    "not logged in": (
        Scene(events=[], code=41, stderr="Invalid auth method selected."),
        crash("it is not logged in, or its way to log in is not set: Invalid auth"),
    ),
    "wrong input": (Scene(events=[], code=42, stderr="bad flag"), crash("does not take these")),
    "the limit of turns": (
        Scene(events=[G.init(), G.failed("Reached max session turns")], code=53),
        crash("its limit of turns was reached"),
    ),
    "an untrusted folder": (
        Scene(events=[], code=55, stderr="\x1b[31mnot running in a trusted directory\x1b[0m"),
        crash("it does not trust its work folder: not running in a trusted directory"),
    ),
    "ended by us": (Scene(events=[G.init()], code=143, by="us"), crash("ended by us")),
    "silent": (Scene(events=[G.init()], by="silence"), timeout("the clock 'silence'")),
    "did not begin": (Scene(events=[], code=1), crash("it did not begin (exit code 1)")),
    "nothing at all": (Scene(events=[G.init()]), crash("exit code 0 and no result")),
    "a bad exit": (Scene(events=[G.init()], code=7), crash("(exit code 7)")),
}

START = Opencode.part("step_start", type="step-start")
OPENCODE: Scenes = {
    "a text answer": (Scene(events=[START, O.text_event(GOOD), O.finish()]), ACCEPT),
    "a tool, then the answer": (
        Scene(
            events=[START, O.used(), O.finish("tool-calls"), START, O.text_event(GOOD), O.finish()],
        ),
        ACCEPT,
    ),
    "words of the step before do not count": (
        Scene(events=[START, O.text_event(GOOD), O.finish("tool-calls"), START, O.finish()]),
        unreadable("without a final message"),
    ),
    "a permission that asks ends it, exit 0": (
        Scene(
            events=[
                START,
                O.text_event(GOOD),
                "! permission requested: bash (touch x); auto-rejecting",
                O.used("error", error="The user rejected permission to use this tool call."),
                O.finish("tool-calls"),
            ]
        ),
        crash("exit code 0 and no result", "not allowed: bash"),
    ),
    "cut off at the model's limit": (
        Scene(events=[START, O.text_event('{"n":'), O.finish("length")]),
        unreadable("cut off"),
    ),
    "a limit": (
        Scene(events=[START, O.failed("429 Too Many Requests, retry after 90 seconds")], code=1),
        limit("Too Many Requests", until=NOW + 90),
    ),
    "another error": (
        Scene(events=[START, O.text_event(GOOD), O.failed("no such model")], code=1),
        crash("it ended with an error (no such model)"),
    ),
    "ended by us": (Scene(events=[START], code=143, by="us"), crash("ended by us")),
    "silent": (Scene(events=[START], by="silence"), timeout("the clock 'silence'")),
    "did not begin": (Scene(events=[], code=1, stderr="no db"), crash("did not begin")),
    "a bad exit": (Scene(events=[START], code=7), crash("(exit code 7)")),
}

COPILOT: Scenes = {
    "a text answer": (Scene(events=[P.text_event(GOOD), P.result()]), ACCEPT),
    "a tool, then the answer": (
        Scene(
            events=[
                P.text_event(GOOD, "1"),
                P.event("tool.execution_start", toolCallId="1", toolName="bash"),
                P.event("tool.execution_complete", toolCallId="1", success=True),
                P.text_event(GOOD),
                P.result(),
            ]
        ),
        ACCEPT,
    ),
    "words beside a tool call do not count": (
        Scene(events=[P.text_event(GOOD, "1"), P.result()]),
        unreadable("without a final message"),
    ),
    "words of a sub-agent do not count": (
        Scene(events=[P.text_event(GOOD, parentToolCallId="1"), P.result()]),
        unreadable("without a final message"),
    ),
    "a tool that is denied": (
        Scene(
            events=[
                P.event(
                    "tool.execution_complete",
                    toolCallId="1",
                    success=False,
                    error={"code": "denied", "message": "Permission denied"},
                ),
                P.text_event(GOOD),
                P.result(),
            ]
        ),
        accept("not allowed: Permission denied"),
    ),
    "an MCP server that is not there": (
        Scene(
            events=[
                P.event("session.mcp_servers_loaded", servers=[{"name": "a", "status": "failed"}]),
                P.text_event(GOOD),
                P.result(),
            ]
        ),
        accept("MCP server not connected: a: failed"),
    ),
    "an abort, and a result with exit code 0": (
        Scene(
            events=[P.text_event(GOOD), P.event("abort", reason="user_initiated"), P.result()],
        ),
        crash("it ended with an error (the turn was aborted)"),
    ),
    "a limit": (
        Scene(
            events=[
                P.event("model.call_failure", statusCode=429, errorMessage="retry in 2m"),
                P.event("session.error", message="rate limited"),
                P.result(1),
            ],
            code=1,
        ),
        limit("", until=NOW + 120),
    ),
    "another error": (
        Scene(events=[P.event("session.error", message="no model"), P.result(1)], code=1),
        crash("it ended with an error (no model)"),
    ),
    "not logged in": (
        Scene(events=[], code=1, stderr="Error: No authentication information found."),
        crash("it did not begin (exit code 1): Error: No authentication"),
    ),
    "ended by us": (Scene(events=[], code=143, by="us"), crash("ended by us")),
    "silent": (Scene(events=[P.event("assistant.turn_start")], by="silence"), timeout("'silence'")),
    "nothing at all": (Scene(events=[P.text_event("x")]), crash("exit code 0 and no result")),
    "a bad exit": (Scene(events=[P.text_event("x")], code=7), crash("(exit code 7)")),
}

AIDER: Scenes = {
    "a fence between its own words": (
        Scene(events=["Aider v1", "Model: m", "", "```json", GOOD, "```", "", "Tokens: 1k sent."]),
        ACCEPT,
    ),
    "no fence": (Scene(events=["Aider v1", GOOD]), unreadable("no JSON object")),
    "a limit": (
        Scene(events=["Aider v1"], code=1, stderr="litellm.RateLimitError: retry in 5m"),
        limit("RateLimitError", until=NOW + 300),
    ),
    "a bad exit": (Scene(events=["Aider v1"], code=1), crash("(exit code 1)")),
    "ended by us": (Scene(events=["x"], code=143, by="us"), crash("ended by us")),
    "silent": (Scene(events=["x"], by="silence"), timeout("the clock 'silence'")),
    "nothing at all": (Scene(events=[]), crash("it did not begin (exit code 0)")),
}
