"""Judge an agent's session: read its stream, and apply its CLI's truth table.

`SessionMonitor` turns the events of any stream format into signs for the timeouts and, at the end,
into facts; lines after our own signal change nothing. `judge_session` takes the first row of the
profile's table that matches: never the exit code alone, never the text of a tool, a thought or a
sub-agent. `parse_reset_time` reads the end of a rate limit from a sentence.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import UTC, datetime, timedelta, tzinfo
from math import isfinite
from typing import Final, Literal
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import msgspec

from interlock.carriers.cli.process import ProcessEnd, describe_exit
from interlock.carriers.cli.profiles import OutcomeCondition, OutcomeRule, Profile
from interlock.carriers.cli.timeouts import (
    Alive,
    RateLimited,
    ResultSeen,
    StreamSign,
    ToolBegan,
    ToolEnded,
    WaitsForPermission,
)
from interlock.carriers.contract import MAX_ANSWER, Reply
from interlock.engine.case import Usage
from interlock.engine.circuit import CRASH, RATE_LIMIT, TIMEOUT, UNREADABLE, Language
from interlock.signals.answer_text import NoObject, find_answer_object
from interlock.signals.streams import StreamReader
from interlock.signals.streams.events import (
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
from interlock.system.process_tree import OutputLine
from interlock.system.text import strip_colours

_MAX_REASON = 2_000
_MAX_QUOTE = 200


class SessionFacts(msgspec.Struct, frozen=True, kw_only=True):
    """The facts of a session that is over, up to our own signal."""

    end: str = ""
    """The CLI's own name for the last end it reported; empty if it reported none."""
    error: bool = False
    turns: Literal["none", "some", "unknown"] = "unknown"
    text: bool = False
    open: bool = False
    limited: bool = False
    began: bool = False
    by: Literal["itself", "us", "clock"] = "itself"
    exit: Literal["zero", "other", "signal", "unknown"] = "zero"
    exit_code: int | None = 0


class SessionReport(msgspec.Struct, frozen=True, kw_only=True):
    """The texts that go with the facts."""

    final: str = ""
    said: str = ""
    clock: str = ""
    stderr: str = ""
    exit: str = ""
    notes: tuple[str, ...] = ()
    resets_at: float | None = None
    usage: Usage = Usage()


class SessionOutcome(msgspec.Struct, frozen=True):
    """The verdict: the answer's bytes, or the failure and its reason."""

    content: bytes = b""
    failure: str = ""
    reason: str = ""
    until: float = 0
    notes: tuple[str, ...] = ()
    usage: Usage = Usage()

    def build_reply(self, dispatch_id: int) -> Reply:
        return Reply(
            dispatch_id,
            self.content,
            failure=self.failure,
            reason=self.reason,
            usage=self.usage,
            until=self.until,
        )


_FAILURES = {
    "unreadable": UNREADABLE,
    "limit": RATE_LIMIT,
    "timeout": TIMEOUT,
    "crash": CRASH,
}


def find_rule(table: Sequence[OutcomeRule], facts: SessionFacts) -> OutcomeRule:
    """Return the first row that matches; the last row of every table always does."""
    return next(row for row in table if _matches(row.when, facts))


def _matches(when: OutcomeCondition, facts: SessionFacts) -> bool:
    return all(
        wanted is None or wanted == getattr(facts, name)
        for name, wanted in msgspec.structs.asdict(when).items()
    )


def judge_session(
    table: Sequence[OutcomeRule],
    facts: SessionFacts,
    report: SessionReport,
    language: Language = "json",
) -> SessionOutcome:
    """Return the outcome of a session; a text message is the answer as it stands."""
    row = find_rule(table, facts)
    if row.then == "accept" and language == "text":
        return SessionOutcome(
            report.final.encode(errors="replace"), notes=report.notes, usage=report.usage
        )
    if row.then == "accept":
        return _read_answer(report)
    reason = _format_reason(row, report)
    until = report.resets_at or 0 if row.then == "limit" else 0
    return _build_failure(_FAILURES[row.then], reason, report, until)


def _read_answer(report: SessionReport) -> SessionOutcome:
    found = find_answer_object(report.final, MAX_ANSWER)
    if isinstance(found, NoObject):
        return _build_failure(UNREADABLE, explain_no_object(found, report.final), report)
    return SessionOutcome(found, notes=report.notes, usage=report.usage)


def explain_no_object(found: NoObject, message: str) -> str:
    """Return why a message is no answer, and how it began."""
    began = " ".join(message.split())[:_MAX_QUOTE]
    return f"{found.sentence} (it began: {began})" if began else found.sentence


def _build_failure(
    failure: str, reason: str, report: SessionReport, until: float = 0
) -> SessionOutcome:
    text = "; ".join((reason, *report.notes))[:_MAX_REASON]
    return SessionOutcome(b"", failure, text, until, report.notes, report.usage)


def _format_reason(row: OutcomeRule, report: SessionReport) -> str:
    reason = row.why
    for name in ("said", "clock", "stderr", "exit"):
        reason = reason.replace(f"{{{name}}}", getattr(report, name) or "it said nothing")
    return reason


FindTimeZone = Callable[[str], tzinfo | None]
"""Return a time zone by its name; the empty name is the machine's own."""
_JUST_NOW: Final = 120.0
"""A time of day that passed this recently is the one that was meant: texts give no seconds."""
_MAX_AHEAD: Final = 366 * 86_400.0
_EPOCH_TEXT: Final = re.compile(r"\|(\d{10})\b")
_SPAN_TEXT: Final = re.compile(
    r"\b(?:in|after)\s+(?=\d)((?:\d+(?:\.\d+)?\s*[a-z]+[\s,]*(?:and\s+)?){1,5})", re.IGNORECASE
)
_SPAN_PART: Final = re.compile(r"(\d+(?:\.\d+)?)\s*([a-z]+)", re.IGNORECASE)
_UNITS: Final = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86_400.0, "w": 604_800.0}
_MONTHS: Final = "jan feb mar apr may jun jul aug sep oct nov dec".split()  # noqa: SIM905
_TIME_TEXT: Final = re.compile(
    r"\b(?:resets?|again)\s+(?:(?:at|on)\s+)?"
    r"(?:(?P<month>[a-z]{3})[a-z]*\s+(?P<day>\d{1,2})(?:st|nd|rd|th)?,?\s+(?:at\s+)?"
    r"(?:(?P<year>20\d\d),?\s+(?:at\s+)?)?)?"
    r"(?P<hour>\d{1,2})(?::(?P<minute>\d\d))?\s*(?P<half>[ap]\.?m\b\.?)?"
    r"(?:\s*\((?P<zone>[A-Za-z_]+(?:/[A-Za-z_+-]+)*)\))?",
    re.IGNORECASE,
)


def find_time_zone(name: str) -> tzinfo | None:
    """Return a time zone by its name, the machine's own for the empty name, None for an unknown
    one."""
    if not name:
        return datetime.now().astimezone().tzinfo
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        return None


def parse_reset_time(text: str, now: float, zones: FindTimeZone) -> float | None:
    """Return the time in seconds since the epoch; None if the text names none, or an impossible
    one."""
    text = text[:10_000]
    epoch = _EPOCH_TEXT.search(text)
    found = float(epoch[1]) if epoch else None
    found = found or _parse_span(text, now) or _parse_time_of_day(text, now, zones)
    return found if found is not None and now - _JUST_NOW <= found <= now + _MAX_AHEAD else None


def _parse_span(text: str, now: float) -> float | None:
    found = _SPAN_TEXT.search(text)
    parts = _SPAN_PART.findall(found[1]) if found else []
    seconds = sum(float(number) * _find_unit(name) for number, name in parts)
    return now + seconds if seconds else None


def _find_unit(name: str) -> float:
    name = name.lower()
    return _UNITS["ms"] if name.startswith(("ms", "milli")) else _UNITS.get(name[0], 0.0)


def _parse_time_of_day(text: str, now: float, zones: FindTimeZone) -> float | None:
    for found in _TIME_TEXT.finditer(text):
        zone = zones(found["zone"] or "")
        if zone is not None and (found["half"] or found["minute"]):
            return _build_time(found, datetime.fromtimestamp(now, UTC).astimezone(zone))
    return None


def _build_time(found: "re.Match[str]", now: datetime) -> float | None:
    hour = int(found["hour"])
    if found["half"]:
        hour = hour % 12 + (12 if found["half"][0] in "pP" else 0)
    try:
        moment = now.replace(hour=hour, minute=int(found["minute"] or 0), second=0, microsecond=0)
        if found["month"]:
            month = _MONTHS.index(found["month"].lower()) + 1
            year = int(found["year"] or now.year)
            moment = moment.replace(year=year, month=month, day=int(found["day"]))
            soon = found["year"] or moment >= now - timedelta(days=1)
            return (moment if soon else moment.replace(year=year + 1)).timestamp()
    except ValueError:
        return None
    if (now - moment).total_seconds() > _JUST_NOW:
        moment += timedelta(days=1)
    return moment.timestamp()


_OVERLOAD_TEXT = (
    r"overloaded_error|\b529\b[^\n]{0,60}overload|overload[^\n]{0,60}\b529\b"
    r"|(?:status|error|code|http)\W{1,5}529\b"
    r"|\b(?:server|service|model|api)s?\b[^\n]{0,20}\boverloaded\b"
)
"""Words of an overloaded server. That is no fault of the agent, so it counts as a rate limit and
waits longer each time."""
LIMIT_TEXT: Final = re.compile(
    rf"rate.?limit|usage limit|quota|too many requests|\b429\b|{_OVERLOAD_TEXT}", re.IGNORECASE
)
PLAIN_LIMIT_TEXT: Final = re.compile(
    r"rate.?limit|usage limit|too many requests|(?:status|error|code|http)\W{1,5}429\b"
    rf"|{_OVERLOAD_TEXT}",
    re.IGNORECASE,
)
"""The same for any program's output, where a bare 429 or a quota may be something else."""
_OVERLOAD: Final = re.compile(_OVERLOAD_TEXT, re.IGNORECASE)
_MAX_NOTES = 20
_MAX_PLAIN_TEXT = 4_000_000
_MAX_TOKENS = 10**12
_MAX_TAIL = 1_000


class SessionMonitor:
    """Read the lines of a process; `now` is when its session began, for limits given as spans."""

    def __init__(self, profile: Profile, now: float, zones: FindTimeZone) -> None:
        self.session_id = ""
        self._profile = profile
        self._now = now
        self._find_zone = zones
        self._reader = StreamReader(profile.dialect)
        self._plain: list[bytes] | None = [] if profile.dialect == "plain-text" else None
        self._plain_size = 0
        self._began = False
        self._limited = False
        self._limit_ends: float | None = None
        self._errors: list[str] = []
        self._notes: dict[str, None] = {}
        self._usage = UsageReported()

    def __call__(self, line: OutputLine) -> Iterable[StreamSign]:
        if line.late:
            return ()
        if self._plain is not None:
            return self._read_plain(line)
        if line.cut:
            self._add_note("a line was longer than the limit and is lost")
            return ()
        text = line.text.decode("utf-8", "replace")
        events = self._reader.feed(f"{text}\n")
        return [sign for event in events for sign in self._read_event(event)]

    @property
    def usage(self) -> UsageReported:
        """Return the usage that the CLI reports."""
        return self._usage

    def build_facts(self, ended: ProcessEnd) -> SessionFacts:
        end = self._reader.end
        code = ended.exit_code
        turns = None if end is None else end.turns
        return SessionFacts(
            end=end.name if end else "",
            error=end.is_error if end else False,
            turns="unknown" if turns is None else "some" if turns > 0 else "none",
            text=bool(self._read_final_text()),
            open=end.left_open if end else False,
            limited=self._is_limited(ended),
            began=self._began,
            by=ended.by if ended.by in ("itself", "us") else "clock",
            exit=_classify_exit(code),
            exit_code=code,
        )

    def build_report(self, ended: ProcessEnd, usage: Usage) -> SessionReport:
        notes = list(self._notes)
        if ended.by == "after_result":
            notes.append("it did not exit after its result and was killed")
        if ended.left:
            notes.append(describe_left(len(ended.left)))
        return SessionReport(
            final=self._read_final_text(),
            said=self._last_error(ended),
            clock=_describe_timeout(ended),
            stderr=_read_tail(ended.stderr),
            exit=describe_exit(ended.exit_code),
            notes=tuple(notes[:_MAX_NOTES]),
            resets_at=self._find_reset_time(ended),
            usage=usage,
        )

    def _read_plain(self, line: OutputLine) -> Iterable[StreamSign]:
        assert self._plain is not None  # noqa: S101
        self._began = True
        self._plain_size += len(line.text) + 1
        if self._plain_size <= _MAX_PLAIN_TEXT:
            self._plain.append(line.text)
        return (Alive(),)

    def _read_event(self, event: StreamEvent) -> Iterator[StreamSign]:
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
                self._usage = _bound_usage(event)
            case _:
                yield from self._read_problem(event)

    def _read_problem(self, event: StreamEvent) -> Iterator[StreamSign]:
        match event:
            case StreamError(message, passing):
                self._errors.append(message)
                limited = passing and LIMIT_TEXT.search(message)
                yield RateLimited() if limited else Alive()
            case RateLimit("rejected", resets_at, message):
                self._limited = True
                self._limit_ends = self._limit_ends if resets_at is None else float(resets_at)
                if message:
                    self._errors.append(message)
                yield RateLimited(self._limit_ends)
            case RateLimit(_, _, message):
                self._add_note(f"a rate limit is near {message}".rstrip())
            case AgentNotice(kind, text):
                self._add_note(f"{_NOTICE_TEXTS[kind]}: {text}"[:300])
                if kind == "asks":
                    yield WaitsForPermission(text)
            case _:
                yield Alive()

    def _add_note(self, text: str) -> None:
        if len(self._notes) < _MAX_NOTES:
            self._notes[text] = None

    def _read_final_text(self) -> str:
        if self._plain is not None:
            return b"\n".join(self._plain).decode("utf-8", "replace")
        return self._reader.final_message or ""

    def _is_limited(self, ended: ProcessEnd) -> bool:
        if self._limited:
            return True
        text = f"{self._last_error(ended)}\n{_read_tail(ended.stderr)}".lower()
        known = any(words.lower() in text for words in self._profile.limit_words)
        return known or _OVERLOAD.search(text) is not None

    def _last_error(self, ended: ProcessEnd) -> str:
        """Return the last error that it reported, else the end of its stderr."""
        last = self._errors[-1] if self._errors else ""
        return (last or _read_tail(ended.stderr))[:_MAX_TAIL].strip()

    def _find_reset_time(self, ended: ProcessEnd) -> float | None:
        if self._limit_ends is not None:
            return self._limit_ends
        now = self._now + max(0.0, ended.ended_at - ended.started_at)
        texts = [*reversed(self._errors[-5:]), _read_tail(ended.stderr)]
        times = (parse_reset_time(text, now, self._find_zone) for text in texts)
        return next((time for time in times if time is not None), None)


_NOTICE_TEXTS = {
    "denied": "not allowed",
    "server-missing": "MCP server not connected",
    "work-stopped": "work was stopped",
    "asks": "it asked for a permission",
}


def describe_left(count: int) -> str:
    """Return a sentence about processes that outlived their agent."""
    return f"{count} process{'es' if count > 1 else ''} had to be ended with it"


def _classify_exit(code: int | None) -> Literal["zero", "other", "signal", "unknown"]:
    if code is None:
        return "unknown"
    return "signal" if code < 0 else "other" if code else "zero"


def _describe_timeout(ended: ProcessEnd) -> str:
    if ended.by in ("itself", "us"):
        return ""
    name, reasons = ended.by.replace("_", " "), "; ".join(ended.last.reasons)
    if ended.last.word == "waiting-for-permission":
        return f"it asked for a permission that nobody could give (clock '{name}'): {reasons}"
    return f"the clock '{name}' ended it: {reasons}"


def _read_tail(raw: bytes) -> str:
    return strip_colours(raw[-_MAX_TAIL:].decode("utf-8", "replace")).strip()


def _bound_usage(spent: UsageReported) -> UsageReported:
    money = spent.money if isfinite(spent.money) and spent.money >= 0 else 0.0
    return UsageReported(min(max(spent.tokens, 0), _MAX_TOKENS), money, spent.of_session)
