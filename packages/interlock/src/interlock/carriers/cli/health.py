"""Judge the health of an agent: one word, and the reasons for it.

Pure. A verdict ends nobody; only timeouts do. Where facts disagree, the reasons name all of them.
"""

from typing import Literal

import msgspec

from interlock.carriers.cli.timeouts import TimeoutWatch
from interlock.system.process_tree import clean_name

HealthWord = Literal["working", "idle", "waiting-for-permission", "rate-limited", "dead", "silent"]
IDLE_AFTER = 30.0
"""Seconds without a byte after which an agent without other activity is idle."""
_BUSY_CPU_SHARE = 0.02
_MAX_TOOLS = 3
_STATE_REASONS = {
    "D": "it waits in the kernel (state D)",
    "T": "it is stopped by a signal (state T)",
    "t": "it is stopped by a debugger (state t)",
}


class AgentHealth(msgspec.Struct, frozen=True):
    word: HealthWord
    reasons: tuple[str, ...]


class HealthFacts(msgspec.Struct, frozen=True, kw_only=True):
    """The facts about an agent; times are ages in seconds, None if it did not happen or is not
    known."""

    state: str = ""
    """The letter of the process in /proc; empty when it is gone."""
    age: float
    stream_age: float
    has_spoken: bool
    silence: float
    """The silence that the timeout allows now, with or without an open tool."""
    tools: tuple[tuple[str, float], ...] = ()
    result_age: float | None = None
    permission: str | None = None
    limited: bool = False
    resets_in: float | None = None
    cpu_share: float | None = None
    """The use of one core by the whole tree, since the last look."""
    children: int | None = None
    is_mute: bool = False
    """True if its stdout is closed, so that it cannot answer any more."""
    slept: float = 0.0


def collect_facts(
    watch: TimeoutWatch,
    now: float,
    wall: float,
    *,
    state: str,
    cpu_share: float | None,
    children: int,
    is_mute: bool,
) -> HealthFacts:
    return HealthFacts(
        state=state,
        age=now - watch.started,
        stream_age=now - watch.heard_at,
        has_spoken=watch.first_byte_at is not None,
        silence=watch.timeouts.tool if watch.tools else watch.timeouts.silence,
        tools=tuple((name, now - began) for name, began in watch.tools.items()),
        result_age=None if watch.result_at is None else now - watch.result_at,
        permission=watch.permission,
        limited=watch.limited,
        resets_in=None if watch.resets_at is None else watch.resets_at - wall,
        cpu_share=cpu_share,
        children=children,
        is_mute=is_mute,
        slept=watch.slept,
    )


def assess_health(facts: HealthFacts) -> AgentHealth:
    return AgentHealth(_choose_word(facts), tuple(_list_reasons(facts)))


def _choose_word(facts: HealthFacts) -> HealthWord:
    if facts.state in ("", "Z", "X"):
        return "dead"
    if facts.limited and (facts.resets_in is None or facts.resets_in > 0):
        return "rate-limited"
    if facts.permission is not None:
        return "waiting-for-permission"
    if facts.result_age is None and _is_busy(facts):
        return "working"
    return "silent" if _is_long_silent(facts) else "idle"


def _is_busy(facts: HealthFacts) -> bool:
    if facts.state in "Tt":
        return False
    computes = facts.cpu_share is not None and facts.cpu_share >= _BUSY_CPU_SHARE
    spoke = facts.has_spoken and facts.stream_age < IDLE_AFTER
    return computes or ((spoke or bool(facts.tools)) and not _is_long_silent(facts))


def _is_long_silent(facts: HealthFacts) -> bool:
    return facts.stream_age > facts.silence / 2


def _list_reasons(facts: HealthFacts) -> list[str]:
    if facts.state in ("", "Z", "X"):
        return ["its process is gone"]
    return [*_list_waits(facts), *_describe_output(facts), *_describe_work(facts)]


def _list_waits(facts: HealthFacts) -> list[str]:
    found = [_describe_limit(facts.resets_in)] if facts.limited else []
    if facts.permission is not None:
        what = clean_name(facts.permission) or "no details given"
        found.append(f"it asks for permission: {what}")
    if facts.result_age is not None:
        found.append(f"it gave its result {facts.result_age:.0f} s ago and has not exited")
    return found


def _describe_output(facts: HealthFacts) -> list[str]:
    if facts.has_spoken:
        found = [f"its last byte came {facts.stream_age:.0f} s ago"]
    else:
        found = [f"it has said nothing since it started {facts.age:.0f} s ago"]
    return found + (["its stdout is closed"] if facts.is_mute else [])


def _describe_work(facts: HealthFacts) -> list[str]:
    found = [
        f"tool {clean_name(name)} is open for {age:.0f} s" for name, age in facts.tools[:_MAX_TOOLS]
    ]
    if len(facts.tools) > _MAX_TOOLS:
        found.append(f"{len(facts.tools) - _MAX_TOOLS} more tools are open")
    if facts.cpu_share is not None:
        found.append(f"it uses {facts.cpu_share:.0%} of a core")
    if facts.children is not None:
        count = facts.children
        found.append("1 process under it" if count == 1 else f"{count} processes under it")
    if facts.state in _STATE_REASONS:
        found.append(_STATE_REASONS[facts.state])
    if facts.slept:
        found.append(f"the machine slept for {facts.slept:.0f} s meanwhile")
    return found


def _describe_limit(resets_in: float | None) -> str:
    if resets_in is None:
        return "its account is rate-limited, with no known end"
    if resets_in > 0:
        return f"its account is rate-limited for {resets_in:.0f} s more"
    return f"its rate limit ended {-resets_in:.0f} s ago"
