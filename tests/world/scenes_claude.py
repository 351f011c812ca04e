"""Claude Code's sessions: results that lie, come twice, or come too late."""

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
from tests.world.streams import Claude

I, C = Claude.init(), Claude  # noqa: E741

CLAUDE: Scenes = {
    "a text answer": (Scene(events=[I, C.text_event(GOOD), C.result(GOOD)]), ACCEPT),
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
        Scene(events=[I, C.text_event(GOOD), C.text_event("Done."), C.result("Done.")]),
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
            events=[I, {**C.text_event(GOOD), "parent_tool_use_id": "1"}, C.result("It said so.")],
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
        Scene(events=[I, C.result("first"), I, C.text_event(GOOD), C.result(GOOD)]),
        ACCEPT,
    ),
    "a second init without a second result": (
        Scene(events=[I, C.result(GOOD), I, C.text_event("more")]),
        crash("it ended with exit code 0 and no result"),
    ),
    "TERM that only killed a tool, and a success after it": (
        Scene(
            events=[I, C.uses("1")],
            late=[C.used("1", "Exit code 137"), C.result(GOOD)],
            by="tool",
        ),
        timeout("the clock 'tool' ended it: its last byte came 601 s ago"),
    ),
    "TERM while it waits for the model": (
        Scene(events=[I], code=143, by="us"),
        crash("it was ended by us before it gave its result"),
    ),
    "it hangs after its result": (
        Scene(events=[I, C.result(GOOD)], code=-9, by="after_result"),
        accept("it did not exit after its result and was killed"),
    ),
    "overloaded, in a result that is named success": (
        Scene(
            events=[
                I,
                C.result(
                    'API Error: 529 {"type":"error","error":{"type":"overloaded_error"}}',
                    is_error=True,
                ),
            ],
            code=1,
        ),
        limit("overloaded_error"),
    ),
    "overloaded, on stderr": (
        Scene(events=[I], stderr="API Error (529): overloaded_error", code=1),
        limit("overloaded_error"),
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
        crash("it ended with an error (API Error: 500)"),
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
        Scene(
            events=[I, C.text_event(GOOD), *C.failed("The operation timed out.", "unknown")], code=1
        ),
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
        timeout("the clock 'first byte' ended it"),
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
