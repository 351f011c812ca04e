"""The truth tables: what each CLI's session came to, row by row; no row is without its scene.

The scenes are those that were seen when the CLIs were run: exit codes that lie, results that come
twice, words of tools, thoughts and sub-agents, limits in all dialects.
"""

import json
from datetime import UTC, tzinfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock.carriers.cli.health import AgentHealth
from interlock.carriers.cli.outcome import (
    SessionFacts,
    SessionMonitor,
    SessionOutcome,
    find_rule,
    judge_session,
)
from interlock.carriers.cli.process import ProcessEnd
from interlock.carriers.cli.profiles import PROFILE_NAMES, OutcomeRule, read_profile
from interlock.engine.case import Usage
from interlock.system.process_tree import LineSplitter, OutputLine
from tests.world.scenes_claude import CLAUDE
from tests.world.scenes_codex import CODEX
from tests.world.scenes_others import AIDER, COPILOT, CURSOR, GEMINI, OPENCODE, START
from tests.world.session_scene import GOOD, NOW, Scene, Verdict
from tests.world.streams import Claude, Codex, Event, Gemini, Opencode

I, C, X, G, O = Claude.init(), Claude, Codex, Gemini, Opencode  # noqa: E741
B = Codex.start_events()


def zones(name: str) -> tzinfo | None:
    return UTC if name in ("", "UTC") else None


def ended(scene: Scene) -> ProcessEnd:
    return ProcessEnd(
        exit_code=scene.code,
        by=scene.by,
        started_at=5.0,
        ended_at=5.0,
        stderr=scene.stderr.encode(),
        last=AgentHealth("silent", ("its last byte came 601 s ago",)),
    )


def monitor_scene(name: str, scene: Scene) -> SessionMonitor:
    monitor = SessionMonitor(read_profile(name), NOW, zones)
    for late, events in ((False, scene.events), (True, scene.late)):
        for event in events:
            text = event if isinstance(event, str) else json.dumps(event)
            list(monitor(OutputLine(text.encode(), late=late)))
    return monitor


def judged(name: str, scene: Scene) -> tuple[SessionOutcome, OutcomeRule]:
    monitor, end = monitor_scene(name, scene), ended(scene)
    facts = monitor.build_facts(end)
    table = read_profile(name).outcome
    return judge_session(table, facts, monitor.build_report(end, Usage())), find_rule(table, facts)


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


@pytest.mark.parametrize("name", PROFILE_NAMES)
def test_every_row_has_its_scene(name: str) -> None:
    hit = [judged(name, scene)[1] for scene, _ in TABLES[name].values()]
    own = read_profile(name).outcome[:-SHARED]
    assert [row for row in own if row not in hit] == []


def test_every_shared_row_has_its_scene() -> None:
    hit = [judged(name, scene)[1] for name in PROFILE_NAMES for scene, _ in TABLES[name].values()]
    assert [row for row in read_profile("claude").outcome[-SHARED:] if row not in hit] == []


@given(
    st.builds(
        SessionFacts,
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
    st.sampled_from(PROFILE_NAMES),
)
def test_nothing_is_accepted_without_an_end_and_a_text(facts: SessionFacts, name: str) -> None:
    row = find_rule(read_profile(name).outcome, facts)
    if row.then == "accept":
        assert facts.text
        assert not facts.error or name in ("gemini", "opencode", "codex", "aider")
        assert facts.end or (name == "aider" and facts.exit == "zero" and facts.by == "itself")


@given(
    st.sampled_from(PROFILE_NAMES),
    st.lists(st.one_of(st.binary(max_size=40), st.sampled_from([b'{"type":"result"}', b"{}"]))),
    st.booleans(),
)
def test_hostile_streams_never_fail_and_are_never_accepted(
    name: str, chunks: list[bytes], cut: bool
) -> None:
    monitor = SessionMonitor(read_profile(name), NOW, zones)
    lines = LineSplitter(30 if cut else 1_000)
    for chunk in chunks:
        for line in lines.feed(chunk + b"\n"):
            list(monitor(line))
    end = ended(Scene(events=[], code=1))
    facts = monitor.build_facts(end)
    outcome = judge_session(read_profile(name).outcome, facts, monitor.build_report(end, Usage()))
    assert outcome.failure


def test_events_after_our_signal_change_nothing() -> None:
    before = monitor_scene("claude", Scene(events=[I, C.result(GOOD)]))
    after = monitor_scene(
        "claude",
        Scene(
            events=[I, C.result(GOOD)],
            late=[I, C.text_event("no"), C.result("no", total_cost_usd=9.0), C.init("other")],
        ),
    )
    end = ended(Scene(events=[]))
    assert before.build_facts(end) == after.build_facts(end)
    assert before.build_report(end, Usage()) == after.build_report(end, Usage())
    assert (after.session_id, after.usage.money) == ("s-1", 0.0)


def test_a_line_too_long_is_noted_and_skipped() -> None:
    monitor = monitor_scene("claude", Scene(events=[I]))
    list(monitor(OutputLine(b'{"type":"result"', cut=True)))
    list(monitor(OutputLine(json.dumps(C.result(GOOD)).encode())))
    found = monitor.build_report(ended(Scene(events=[])), Usage())
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
    "codex counts its thread": ("codex", [*B, X.text_event(GOOD), X.done(30)], (30, 0.0, True)),
    "gemini": ("gemini", [G.result()], (10, 0.0, False)),
    "opencode adds its steps up": (
        "opencode",
        [START, O.finish("tool-calls"), START, O.text_event(GOOD), O.finish()],
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
    spent = monitor_scene(name, Scene(events=events)).usage
    assert (spent.tokens, spent.money, spent.of_session) == bill
