"""What is heard of one agent's session: its stream, turned into sights for the clocks and, at the
end, into the facts on which it is judged.

Knows events of any dialect. Refuses to know processes and verdicts. Lines that come after our own
signal change nothing.
"""

import re
from collections.abc import Iterable, Iterator
from math import isfinite
from typing import Literal

from interlock.agents.cli.ended import ProcessEnd
from interlock.agents.cli.limit_text import Zones, reset_time
from interlock.agents.cli.outcome import SessionFacts, SessionReport
from interlock.agents.cli.profile import Profile
from interlock.agents.cli.sight import (
    Alive,
    OutputLine,
    RateLimited,
    ResultSeen,
    Sight,
    ToolBegan,
    ToolEnded,
    WaitsForPermission,
)
from interlock.engine.case import Usage
from interlock.signals.streams.stream import StreamReader
from interlock.signals.streams.stream_events import (
    AgentNotice,
    AssistantText,
    BadLine,
    RateLimit,
    SessionStarted,
    StreamError,
    StreamEvent,
    ToolResult,
    ToolStarted,
    TurnEnd,
    UsageReported,
)

_LIMIT = re.compile(r"rate.?limit|usage limit|quota|too many requests|\b429\b", re.IGNORECASE)
_ANSI = re.compile(r"\x1b(?:\[[0-9;?]*[A-Za-z]|\][^\x07\x1b]*(?:\x07|\x1b\\))")
_MOST_NOTES = 20
_MOST_PLAIN = 4_000_000
_MOST_TOKENS = 10**12
_TAIL = 1_000


class SessionMonitor:
    """A reader for the supervisor. `now` is when its session began, for limits told as spans."""

    def __init__(self, profile: Profile, now: float, zones: Zones) -> None:
        self.session_id = ""
        self._profile = profile
        self._now = now
        self._zones = zones
        self._reader = StreamReader(profile.dialect)
        self._plain: list[bytes] | None = [] if profile.dialect == "plain-text" else None
        self._plain_size = 0
        self._began = False
        self._limited = False
        self._limit_ends: float | None = None
        self._errors: list[str] = []
        self._notes: dict[str, None] = {}
        self._spent = UsageReported()

    def __call__(self, line: OutputLine) -> Iterable[Sight]:
        if line.late:
            return ()
        if self._plain is not None:
            return self._hear_plain(line)
        if line.cut:
            self._note("a line was longer than the limit and is lost")
            return ()
        text = line.text.decode("utf-8", "replace")
        events = self._reader.feed(f"{text}\n")
        return [sight for event in events for sight in self._take(event)]

    @property
    def spent(self) -> UsageReported:
        """What the CLI says that it cost."""
        return self._spent

    def facts(self, ended: ProcessEnd) -> SessionFacts:
        end = self._reader.end
        code = ended.exit_code
        turns = None if end is None else end.turns
        return SessionFacts(
            end=end.name if end else "",
            error=end.is_error if end else False,
            turns="unknown" if turns is None else "some" if turns > 0 else "none",
            text=bool(self._final()),
            open=end.left_open if end else False,
            limited=self._is_limited(ended),
            began=self._began,
            by=ended.by if ended.by in ("itself", "us") else "clock",
            exit=_exit_word(code),
            exit_code=code,
        )

    def testimony(self, ended: ProcessEnd, usage: Usage) -> SessionReport:
        notes = [*self._notes, *self._left(ended)]
        return SessionReport(
            final=self._final(),
            said=self._said(ended),
            clock=_clock(ended),
            stderr=_tail(ended.stderr),
            exit=_exit(ended.exit_code),
            notes=tuple(notes[:_MOST_NOTES]),
            resets_at=self._resets_at(ended),
            usage=usage,
        )

    def _hear_plain(self, line: OutputLine) -> Iterable[Sight]:
        assert self._plain is not None  # noqa: S101
        self._began = True
        self._plain_size += len(line.text) + 1
        if self._plain_size <= _MOST_PLAIN:
            self._plain.append(line.text)
        return (Alive(),)

    def _take(self, event: StreamEvent) -> Iterator[Sight]:
        match event:
            case SessionStarted(session_id):
                self._began = True
                self.session_id = session_id or self.session_id
                yield Alive()
            case AssistantText() | BadLine():
                self._began = self._began or not isinstance(event, BadLine)
                yield Alive()
            case ToolStarted(tool_id):
                yield ToolBegan(tool_id)
            case ToolResult():
                yield ToolEnded(event.tool_id)
            case TurnEnd():
                if event.reason:
                    self._errors.append(event.reason)
                yield ResultSeen()
            case UsageReported():
                self._spent = _sane(event)
            case _:
                yield from self._take_trouble(event)

    def _take_trouble(self, event: StreamEvent) -> Iterator[Sight]:
        match event:
            case StreamError(message, passing):
                self._errors.append(message)
                limited = passing and _LIMIT.search(message)
                yield RateLimited() if limited else Alive()
            case RateLimit("rejected", resets_at, message):
                self._limited = True
                self._limit_ends = self._limit_ends if resets_at is None else float(resets_at)
                if message:
                    self._errors.append(message)
                yield RateLimited(self._limit_ends)
            case RateLimit(_, _, message):
                self._note(f"a rate limit is near {message}".rstrip())
            case AgentNotice(kind, text):
                self._note(f"{_NOTICES[kind]}: {text}"[:300])
                if kind == "asks":
                    yield WaitsForPermission(text)
            case _:
                yield Alive()

    def _note(self, text: str) -> None:
        if len(self._notes) < _MOST_NOTES:
            self._notes[text] = None

    def _final(self) -> str:
        if self._plain is not None:
            return b"\n".join(self._plain).decode("utf-8", "replace")
        return self._reader.final_message or ""

    def _is_limited(self, ended: ProcessEnd) -> bool:
        if self._limited:
            return True
        words = [word.lower() for word in self._profile.limit_words]
        told = f"{self._said(ended)}\n{_tail(ended.stderr)}".lower()
        return any(word in told for word in words)

    def _said(self, ended: ProcessEnd) -> str:
        """Its last complaint; else the last words on stderr."""
        last = self._errors[-1] if self._errors else ""
        return (last or _tail(ended.stderr))[:_TAIL].strip()

    def _resets_at(self, ended: ProcessEnd) -> float | None:
        if self._limit_ends is not None:
            return self._limit_ends
        now = self._now + max(0.0, ended.ended_at - ended.started_at)
        texts = [*reversed(self._errors[-5:]), _tail(ended.stderr)]
        times = (reset_time(text, now, self._zones) for text in texts)
        return next((time for time in times if time is not None), None)

    def _left(self, ended: ProcessEnd) -> list[str]:
        if not ended.left:
            return []
        return [f"{len(ended.left)} processes had to be ended with it"]


_NOTICES = {
    "denied": "not allowed",
    "server-missing": "MCP server not connected",
    "work-stopped": "work was stopped",
    "asks": "it asked for a permission",
}


def _exit_word(code: int | None) -> Literal["zero", "other", "signal", "unknown"]:
    if code is None:
        return "unknown"
    return "signal" if code < 0 else "other" if code else "zero"


def _exit(code: int | None) -> str:
    if code is None:
        return "it cannot be waited for"
    return f"killed by signal {-code}" if code < 0 else f"exit code {code}"


def _clock(ended: ProcessEnd) -> str:
    if ended.by in ("itself", "us"):
        return ""
    name = ended.by.replace("_", " ")
    return f"the clock '{name}' ended it: {'; '.join(ended.last.reasons)}"


def _tail(raw: bytes) -> str:
    return _ANSI.sub("", raw[-_TAIL:].decode("utf-8", "replace")).strip()


def _sane(spent: UsageReported) -> UsageReported:
    money = spent.money if isfinite(spent.money) and spent.money >= 0 else 0.0
    return UsageReported(min(max(spent.tokens, 0), _MOST_TOKENS), money, spent.of_session)
