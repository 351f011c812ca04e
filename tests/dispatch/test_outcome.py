"""The truth tables: what each CLI's session came to, row by row; and that no row is without a scene.

The scenes are those that were seen when the CLIs were run: exit codes that lie, results that come
twice, words of tools, thoughts and sub-agents, limits in all dialects.
"""

import json
from datetime import UTC, datetime, tzinfo
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.world.streams import Claude, Codex, Copilot, Cursor, Event, Gemini, Opencode

from interlock.core.case import Usage
from interlock.dispatch.hearing import Hearing
from interlock.dispatch.outcome import Facts, Outcome, judge, row_for
from interlock.dispatch.profiles.profile import NAMES, Row, profile
from interlock.supervise.ended import By, Ended
from interlock.supervise.lines import Lines
from interlock.supervise.sight import Line
from interlock.supervise.standing import Standing

NOW = datetime(2026, 3, 10, 9, 0, tzinfo=UTC).timestamp()
GOOD = '{"n": 1}'


class Scene(msgspec.Struct, frozen=True, kw_only=True):
    """What was printed before our signal and after it, and how the process ended."""

    events: list[Any]
    late: list[Any] = []
    code: int | None = 0
    by: By = "itself"
    stderr: str = ""
    left: bool = False


class Verdict(msgspec.Struct, frozen=True, kw_only=True):
    """What must come of it: `accept` or a failure, words of the reason, and the notes."""

    is_: str
    words: str = ""
    until: float = 0
    notes: tuple[str, ...] = ()


def zones(name: str) -> tzinfo | None:
    return UTC if name in ("", "UTC") else None


def ended(scene: Scene) -> Ended:
    return Ended(
        exit_code=scene.code,
        by=scene.by,
        started_at=5.0,
        ended_at=5.0,
        stderr=scene.stderr.encode(),
        last=Standing("silent", ("its last byte came 601 s ago",)),
    )


def heard(name: str, scene: Scene) -> Hearing:
    hearing = Hearing(profile(name), NOW, zones)
    for late, events in ((False, scene.events), (True, scene.late)):
        for event in events:
            text = event if isinstance(event, str) else json.dumps(event)
            list(hearing(Line(text.encode(), late=late)))
    return hearing


def judged(name: str, scene: Scene) -> tuple[Outcome, Row]:
    hearing, end = heard(name, scene), ended(scene)
    facts = hearing.facts(end)
    table = profile(name).outcome
    return judge(table, facts, hearing.testimony(end, Usage())), row_for(table, facts)


ACCEPT = Verdict(is_="accept")


def crash(words: str, *notes: str) -> Verdict:
    return Verdict(is_="crash", words=words, notes=notes)


def unreadable(words: str, *notes: str) -> Verdict:
    return Verdict(is_="unreadable", words=words, notes=notes)


def limit(words: str, until: float = 0) -> Verdict:
    return Verdict(is_="rate-limit", words=words, until=until)


def accept(*notes: str) -> Verdict:
    return Verdict(is_="accept", notes=notes)


I, C, X, U, G, O, P = Claude.init(), Claude, Codex, Cursor, Gemini, Opencode, Copilot  # noqa: E741
B = Codex.begun()

CLAUDE: dict[str, tuple[Scene, Verdict]] = {
    "a text answer": (Scene(events=[I, C.said(GOOD), C.result(GOOD)]), ACCEPT),
    "an answer in a fence": (
        Scene(events=[I, C.result(f"Here:\n```json\n{GOOD}\n```")]),
        ACCEPT,
    ),
    "a good end without an object": (
        Scene(events=[I, C.result("I am done.")]),
        unreadable(
            "no JSON object; end with one JSON object and nothing else (it began: I am done.)"
        ),
    ),
    "an object in a message that was not the last": (
        Scene(events=[I, C.said(GOOD), C.said("Done."), C.result("Done.")]),
        unreadable("no JSON object"),
    ),
    "an object that only a tool printed": (
        Scene(events=[I, C.uses("1"), C.used("1", GOOD), C.result("See above.")]),
        unreadable("no JSON object"),
    ),
    "an object that was only thought": (
        Scene(events=[I, C.thought(GOOD), C.result("Thought of it.")]),
        unreadable("no JSON object"),
    ),
    "an object that only a sub-agent said": (
        Scene(
            events=[I, {**C.said(GOOD), "parent_tool_use_id": "1"}, C.result("It said so.")],
        ),
        unreadable("no JSON object"),
    ),
    "a success without text": (
        Scene(events=[I, C.result(None)]),
        unreadable("without a final message"),
    ),
    "a write that was denied": (
        Scene(
            events=[I, C.result(GOOD, permission_denials=[{"tool_name": "Write"}])],
        ),
        accept("not allowed: Write"),
    ),
    "an MCP server that failed": (
        Scene(
            events=[
                C.init(
                    mcp_servers=[
                        {"name": "a", "status": "connected"},
                        {"name": "b", "status": "failed"},
                    ]
                ),
                C.result(GOOD),
            ]
        ),
        accept("MCP server not connected: b: failed"),
    ),
    "a slash command that nobody knows": (
        Scene(events=[I, C.result("Unknown command: /assistant", num_turns=0)]),
        crash("the model was never asked (no turn was taken: Unknown command: /assistant)"),
    ),
    "background work that is killed after the result": (
        Scene(
            events=[
                I,
                C.result(GOOD),
                C.system("task_updated", status="killed"),
                C.system("task_notification", status="stopped", summary="sleep 60"),
            ]
        ),
        accept("work was stopped: sleep 60"),
    ),
    "a second init and a second result": (
        Scene(events=[I, C.result("first"), I, C.said(GOOD), C.result(GOOD)]),
        ACCEPT,
    ),
    "a second init without a second result": (
        Scene(events=[I, C.result(GOOD), I, C.said("more")]),
        crash("it ended with exit code 0 and no result"),
    ),
    "TERM that only killed a tool, and a success after it": (
        Scene(
            events=[I, C.uses("1")],
            late=[C.used("1", "Exit code 137"), C.result(GOOD)],
            by="tool",
        ),
        crash("the clock 'tool' ended it: its last byte came 601 s ago"),
    ),
    "TERM while it waits for the model": (
        Scene(events=[I], code=143, by="us"),
        crash("it was ended by us before it gave its result"),
    ),
    "it hangs after its result": (
        Scene(events=[I, C.result(GOOD)], code=-9, by="after_result"),
        ACCEPT,
    ),
    "INT while it waits: exit 0 and no result": (
        Scene(events=[I]),
        crash("it ended with exit code 0 and no result"),
    ),
    "INT during a tool": (
        Scene(
            events=[I, C.result(None, subtype="error_during_execution", is_error=True)],
            code=1,
        ),
        crash("it was interrupted (error_during_execution)"),
    ),
    "killed": (
        Scene(events=[I], code=-9),
        crash("it ended without a result (killed by signal 9)"),
    ),
    "500 for ever": (
        Scene(events=[I, *C.failed("API Error: 500", "server_error", 500)], code=1),
        crash("it ended with an error (success: API Error: 500)"),
    ),
    "401 for ever": (
        Scene(events=[I, *C.failed("Invalid API key", "authentication_failed", 401)], code=1),
        crash("Invalid API key"),
    ),
    "not logged in": (
        Scene(events=[I, *C.failed("Not logged in · Please run /login", "unknown")], code=1),
        crash("Not logged in"),
    ),
    "a refusal": (
        Scene(
            events=[I, C.system("model_refusal_no_fallback"), *C.failed("refused", "unknown")],
            code=1,
        ),
        crash("refused"),
    ),
    "a signal stands in the text of a run that ends with an error": (
        Scene(events=[I, C.said(GOOD), *C.failed("The operation timed out.", "unknown")], code=1),
        crash("The operation timed out."),
    ),
    "429 for ever, no reset time": (
        Scene(
            events=[
                I,
                C.system("api_retry", attempt=1, error_status=429, error="rate_limit"),
                *C.failed("API Error: Request rejected (429)", "rate_limit", 429),
            ],
            code=1,
        ),
        limit("Request rejected (429)"),
    ),
    "usage limit of a subscription": (
        Scene(
            events=[
                I,
                C.limited("rejected", 1773140000),
                *C.failed("You've hit your session limit · resets 9:49am (UTC)", "rate_limit", 429),
            ],
            code=1,
        ),
        limit("hit your session limit", until=1773140000.0),
    ),
    "a limit told by its text alone": (
        Scene(
            events=[
                I,
                *C.failed("You've hit your session limit · resets 9:49am (UTC)", "rate_limit"),
            ],
            code=1,
        ),
        limit("hit your session limit", until=NOW + 49 * 60),
    ),
    "a warning before a limit": (
        Scene(events=[I, C.limited("allowed_warning", 5), C.result(GOOD)]),
        accept("a rate limit is near five_hour"),
    ),
    "429, then fine": (
        Scene(
            events=[I, C.system("api_retry", error_status=429, error="rate_limit"), C.result(GOOD)]
        ),
        ACCEPT,
    ),
    "the limit of turns": (
        Scene(
            events=[I, C.result(None, subtype="error_max_turns", is_error=True, errors=["max 1"])],
            code=1,
        ),
        crash("its limit of turns was reached (error_max_turns: max 1)"),
    ),
    "its own budget": (
        Scene(
            events=[I, C.result(None, subtype="error_max_budget_usd", is_error=True)],
            code=1,
        ),
        crash("its own budget was spent"),
    ),
    "a session that is not there": (
        Scene(
            events=[
                C.result(
                    None,
                    subtype="error_during_execution",
                    is_error=True,
                    num_turns=0,
                    errors=["No conversation found with session ID: x"],
                )
            ],
            code=1,
        ),
        crash("No conversation found"),
    ),
    "an unknown flag": (
        Scene(events=[], code=1, stderr="error: unknown option '--nope'"),
        crash("it did not begin (exit code 1): error: unknown option '--nope'"),
    ),
    "never a byte": (
        Scene(events=[], code=-9, by="first_byte"),
        crash("the clock 'first byte' ended it"),
    ),
    "noise between the events": (
        Scene(events=["Warning: [1m!", I, '{"type": 3}', "{", C.result(GOOD), "bye"]),
        ACCEPT,
    ),
    "a bill and a list in other shapes": (
        Scene(
            events=[
                C.init(mcp_servers={"odd": "x"}),
                C.result(
                    GOOD, usage="much", modelUsage=[1], permission_denials=3, total_cost_usd={}
                ),
            ]
        ),
        ACCEPT,
    ),
}

CODEX: dict[str, tuple[Scene, Verdict]] = {
    "a text answer": (Scene(events=[*B, X.said(GOOD), X.done()]), ACCEPT),
    "a warning item first": (
        Scene(
            events=[
                *B,
                X.completed("0", "error", message="Model metadata not found"),
                X.said(GOOD),
                X.done(),
            ]
        ),
        ACCEPT,
    ),
    "the last of two messages": (
        Scene(events=[*B, X.said("No."), X.said(GOOD), X.done()]),
        ACCEPT,
    ),
    "an object before the last message": (
        Scene(events=[*B, X.said(GOOD), X.said("Done."), X.done()]),
        unreadable("no JSON object"),
    ),
    "an object in its reasoning": (
        Scene(events=[*B, X.completed("1", "reasoning", text=GOOD), X.said("Yes."), X.done()]),
        unreadable("no JSON object"),
    ),
    "an object that a command printed": (
        Scene(events=[*B, X.completed("1", aggregated_output=GOOD), X.said("Yes."), X.done()]),
        unreadable("no JSON object"),
    ),
    "an object that a sub-agent said": (
        Scene(
            events=[
                *B,
                X.completed("1", "collab_tool_call", agents_states={"a": {"message": GOOD}}),
                X.said("It said so."),
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
                X.said(GOOD),
                X.done(),
            ]
        ),
        ACCEPT,
    ),
    "work left open at the end": (
        Scene(events=[*B, X.started("1"), X.said(GOOD), X.done()]),
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
                X.said(GOOD),
                X.done(),
            ]
        ),
        ACCEPT,
    ),
    "a message, a reconnect, and another": (
        Scene(events=[*B, X.said("half"), X.error("Reconnecting... 1/5"), X.said(GOOD), X.done()]),
        ACCEPT,
    ),
    "a message, a reconnect, and no other": (
        Scene(events=[*B, X.said(GOOD), X.error("Reconnecting... 1/5"), X.done()]),
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
                X.said(GOOD),
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
        Scene(events=[*B, X.said(GOOD), *X.failed("Selected model is at capacity.")], code=1),
        crash("the turn failed"),
    ),
    "TERM while it waits": (Scene(events=B, code=143, by="us"), crash("ended by us")),
    "silent for ever": (
        Scene(events=B, code=-15, by="silence"),
        crash("the clock 'silence' ended it"),
    ),
    "a message after our signal": (
        Scene(events=B, late=[X.said(GOOD), X.done()], by="silence"),
        crash("the clock 'silence'"),
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

CURSOR: dict[str, tuple[Scene, Verdict]] = {
    "a text answer": (Scene(events=[I, U.said(GOOD), U.result(GOOD)]), ACCEPT),
    "a result that repeats every word": (
        Scene(
            events=[
                I,
                U.said("Let me see."),
                U.tool("1", "started"),
                U.tool("1", "completed", success={}),
                U.said(GOOD),
                U.result(f"Let me see.{GOOD}"),
            ]
        ),
        ACCEPT,
    ),
    "words before a tool are not the last": (
        Scene(events=[I, U.said(GOOD), U.tool("1", "started"), U.result(GOOD)]),
        unreadable("without a final message"),
    ),
    "a tool that was rejected": (
        Scene(events=[I, U.tool("1", "completed", rejected={}), U.said(GOOD), U.result(GOOD)]),
        accept("not allowed: shellToolCall"),
    ),
    "a result that is an error": (
        Scene(events=[I, U.result("bad", is_error=True)], code=1),
        crash("it ended with an error (success: bad)"),
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
        Scene(events=[I, U.said(GOOD), U.result(GOOD)], code=-9, by="after_result"),
        ACCEPT,
    ),
    "it waits for a browser": (
        Scene(events=[], code=-15, by="first_byte"),
        crash("the clock 'first byte'"),
    ),
    "not logged in": (
        Scene(events=[], code=1, stderr="Please log in"),
        crash("it did not begin (exit code 1): Please log in"),
    ),
    "ended by us": (Scene(events=[I], code=143, by="us"), crash("ended by us")),
    "nothing at all": (Scene(events=[I]), crash("exit code 0 and no result")),
}

GEMINI: dict[str, tuple[Scene, Verdict]] = {
    "an answer in pieces": (
        Scene(events=[G.init(), G.said('{"n":'), G.said(" 1}"), G.result()]),
        ACCEPT,
    ),
    "words before a tool do not count": (
        Scene(
            events=[G.init(), G.said("See:"), G.uses("1"), G.used("1"), G.said(GOOD), G.result()]
        ),
        ACCEPT,
    ),
    "only words before a tool": (
        Scene(events=[G.init(), G.said(GOOD), G.uses("1"), G.used("1"), G.result()]),
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
                G.said(GOOD),
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
                G.said(GOOD),
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
    "silent": (Scene(events=[G.init()], by="silence"), crash("the clock 'silence'")),
    "did not begin": (Scene(events=[], code=1), crash("it did not begin (exit code 1)")),
    "nothing at all": (Scene(events=[G.init()]), crash("exit code 0 and no result")),
    "a bad exit": (Scene(events=[G.init()], code=7), crash("(exit code 7)")),
}

START = Opencode.part("step_start", type="step-start")
OPENCODE: dict[str, tuple[Scene, Verdict]] = {
    "a text answer": (Scene(events=[START, O.said(GOOD), O.finish()]), ACCEPT),
    "a tool, then the answer": (
        Scene(
            events=[START, O.used(), O.finish("tool-calls"), START, O.said(GOOD), O.finish()],
        ),
        ACCEPT,
    ),
    "words of the step before do not count": (
        Scene(events=[START, O.said(GOOD), O.finish("tool-calls"), START, O.finish()]),
        unreadable("without a final message"),
    ),
    "a permission that asks ends it, exit 0": (
        Scene(
            events=[
                START,
                O.said(GOOD),
                "! permission requested: bash (touch x); auto-rejecting",
                O.used("error", error="The user rejected permission to use this tool call."),
                O.finish("tool-calls"),
            ]
        ),
        crash("exit code 0 and no result", "not allowed: bash"),
    ),
    "cut off at the model's limit": (
        Scene(events=[START, O.said('{"n":'), O.finish("length")]),
        unreadable("cut off"),
    ),
    "a limit": (
        Scene(events=[START, O.failed("429 Too Many Requests, retry after 90 seconds")], code=1),
        limit("Too Many Requests", until=NOW + 90),
    ),
    "another error": (
        Scene(events=[START, O.said(GOOD), O.failed("no such model")], code=1),
        crash("it ended with an error (no such model)"),
    ),
    "ended by us": (Scene(events=[START], code=143, by="us"), crash("ended by us")),
    "silent": (Scene(events=[START], by="silence"), crash("the clock 'silence'")),
    "did not begin": (Scene(events=[], code=1, stderr="no db"), crash("did not begin")),
    "a bad exit": (Scene(events=[START], code=7), crash("(exit code 7)")),
}

COPILOT: dict[str, tuple[Scene, Verdict]] = {
    "a text answer": (Scene(events=[P.said(GOOD), P.result()]), ACCEPT),
    "a tool, then the answer": (
        Scene(
            events=[
                P.said(GOOD, "1"),
                P.event("tool.execution_start", toolCallId="1", toolName="bash"),
                P.event("tool.execution_complete", toolCallId="1", success=True),
                P.said(GOOD),
                P.result(),
            ]
        ),
        ACCEPT,
    ),
    "words beside a tool call do not count": (
        Scene(events=[P.said(GOOD, "1"), P.result()]),
        unreadable("without a final message"),
    ),
    "words of a sub-agent do not count": (
        Scene(events=[P.said(GOOD, parentToolCallId="1"), P.result()]),
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
                P.said(GOOD),
                P.result(),
            ]
        ),
        accept("not allowed: Permission denied"),
    ),
    "an MCP server that is not there": (
        Scene(
            events=[
                P.event("session.mcp_servers_loaded", servers=[{"name": "a", "status": "failed"}]),
                P.said(GOOD),
                P.result(),
            ]
        ),
        accept("MCP server not connected: a: failed"),
    ),
    "an abort, and a result with exit code 0": (
        Scene(
            events=[P.said(GOOD), P.event("abort", reason="user_initiated"), P.result()],
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
    "silent": (Scene(events=[P.event("assistant.turn_start")], by="silence"), crash("'silence'")),
    "nothing at all": (Scene(events=[P.said("x")]), crash("exit code 0 and no result")),
    "a bad exit": (Scene(events=[P.said("x")], code=7), crash("(exit code 7)")),
}

AIDER: dict[str, tuple[Scene, Verdict]] = {
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
    "silent": (Scene(events=["x"], by="silence"), crash("the clock 'silence'")),
    "nothing at all": (Scene(events=[]), crash("it did not begin (exit code 0)")),
}

TABLES = {
    "claude": CLAUDE,
    "codex": CODEX,
    "cursor": CURSOR,
    "gemini": GEMINI,
    "opencode": OPENCODE,
    "copilot": COPILOT,
    "aider": AIDER,
}
CASES = [
    pytest.param(name, *case, id=f"{name}: {title}")
    for name, table in TABLES.items()
    for title, case in table.items()
]


@pytest.mark.parametrize(("name", "scene", "verdict"), CASES)
def test_what_a_session_came_to(name: str, scene: Scene, verdict: Verdict) -> None:
    outcome, _ = judged(name, scene)
    assert (outcome.failure or "accept") == verdict.is_, outcome.reason
    assert verdict.words in outcome.reason
    assert outcome.until == pytest.approx(verdict.until, abs=0.001)
    assert outcome.notes == verdict.notes
    if verdict.is_ == "accept":
        assert json.loads(outcome.content) == {"n": 1}
    else:
        assert outcome.content == b""


SHARED = 5
"""Rows that all tables end with; a table may never get to some of them."""


@pytest.mark.parametrize("name", NAMES)
def test_every_row_has_its_scene(name: str) -> None:
    hit = [judged(name, scene)[1] for scene, _ in TABLES[name].values()]
    own = profile(name).outcome[:-SHARED]
    assert [row for row in own if row not in hit] == []


def test_every_shared_row_has_its_scene() -> None:
    hit = [judged(name, scene)[1] for name in NAMES for scene, _ in TABLES[name].values()]
    assert [row for row in profile("claude").outcome[-SHARED:] if row not in hit] == []


@given(
    st.builds(
        Facts,
        end=st.sampled_from(["", "success", "turn.completed", "stop", "result", "odd"]),
        error=st.booleans(),
        turns=st.sampled_from(["none", "some", "unknown"]),
        text=st.booleans(),
        open=st.booleans(),
        limited=st.booleans(),
        began=st.booleans(),
        by=st.sampled_from(["itself", "us", "clock"]),
        exit=st.sampled_from(["zero", "other", "signal", "unknown"]),
        exit_code=st.sampled_from([0, 1, 53, -9, None]),
    ),
    st.sampled_from(NAMES),
)
def test_nothing_is_accepted_without_an_end_and_a_text(facts: Facts, name: str) -> None:
    row = row_for(profile(name).outcome, facts)
    if row.then == "accept":
        assert facts.text
        assert not facts.error or name in ("gemini", "opencode", "codex", "aider")
        assert facts.end or (name == "aider" and facts.exit == "zero" and facts.by == "itself")


@given(
    st.sampled_from(NAMES),
    st.lists(st.one_of(st.binary(max_size=40), st.sampled_from([b'{"type":"result"}', b"{}"]))),
    st.booleans(),
)
def test_hostile_streams_never_fail_and_are_never_accepted(
    name: str, chunks: list[bytes], cut: bool
) -> None:
    hearing = Hearing(profile(name), NOW, zones)
    lines = Lines(30 if cut else 1_000)
    for chunk in chunks:
        for line in lines.feed(chunk + b"\n"):
            list(hearing(line))
    end = ended(Scene(events=[], code=1))
    facts = hearing.facts(end)
    outcome = judge(profile(name).outcome, facts, hearing.testimony(end, Usage()))
    assert outcome.failure


def test_events_after_our_signal_change_nothing() -> None:
    before = heard("claude", Scene(events=[I, C.result(GOOD)]))
    after = heard(
        "claude",
        Scene(
            events=[I, C.result(GOOD)],
            late=[I, C.said("no"), C.result("no", total_cost_usd=9.0), C.init("other")],
        ),
    )
    end = ended(Scene(events=[]))
    assert before.facts(end) == after.facts(end)
    assert before.testimony(end, Usage()) == after.testimony(end, Usage())
    assert (after.session_id, after.spent.money) == ("s-1", 0.0)


def test_a_line_too_long_is_noted_and_skipped() -> None:
    hearing = heard("claude", Scene(events=[I]))
    list(hearing(Line(b'{"type":"result"', cut=True)))
    list(hearing(Line(json.dumps(C.result(GOOD)).encode())))
    found = hearing.testimony(ended(Scene(events=[])), Usage())
    assert found.notes == ("a line was longer than the limit and is lost",)
    assert found.final == GOOD


BILLS: dict[str, tuple[str, list[Event], tuple[int, float, bool]]] = {
    "claude by model": (
        "claude",
        [
            C.result(
                GOOD,
                total_cost_usd=0.25,
                usage={"input_tokens": 1, "output_tokens": 1},
                modelUsage={
                    "a": {"inputTokens": 10, "outputTokens": 5, "cacheReadInputTokens": 900},
                    "b": {"inputTokens": 1, "outputTokens": 1, "cacheCreationInputTokens": 3},
                },
            )
        ],
        (20, 0.25, False),
    ),
    "claude in one sum": (
        "claude",
        [C.result(GOOD, usage={"input_tokens": 10, "output_tokens": 5})],
        (15, 0.0, False),
    ),
    "claude, the last of two": (
        "claude",
        [C.result("a", total_cost_usd=0.1), I, C.result(GOOD, total_cost_usd=0.3)],
        (0, 0.3, False),
    ),
    "codex counts its thread": ("codex", [*B, X.said(GOOD), X.done(30)], (30, 0.0, True)),
    "gemini": ("gemini", [G.result()], (10, 0.0, False)),
    "opencode adds its steps up": (
        "opencode",
        [START, O.finish("tool-calls"), START, O.said(GOOD), O.finish()],
        (30, 1.0, False),
    ),
    "odd numbers": (
        "claude",
        [C.result(GOOD, usage={"input_tokens": -5}, total_cost_usd=-1.0)],
        (0, 0.0, False),
    ),
}


@pytest.mark.parametrize(("name", "events", "bill"), BILLS.values(), ids=BILLS)
def test_what_it_cost(name: str, events: list[Event], bill: tuple[int, float, bool]) -> None:
    spent = heard(name, Scene(events=events)).spent
    assert (spent.tokens, spent.money, spent.of_session) == bill
