"""Line signals: their payloads, and readers for streams of them.

`LineReader` takes a plain command's output or an agent's messages, `SessionLines` the events of an
agent's decoded stream. The way the text is cut into chunks never changes the result, and only the
last message of a session may say that it is over.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Final, Literal, TypeGuard

import msgspec

from interlock.signals.catalogue import PREFIX, SignalRow, find_signal, list_signals
from interlock.signals.own_words import split_units
from interlock.signals.reading import Reason
from interlock.signals.streams import StreamFormat, StreamReader
from interlock.signals.streams.events import AssistantText, StreamEvent, TurnEnd
from interlock.system.text import strip_colours

SIGNAL_TYPE: Final = re.compile(r"[A-Z][A-Z0-9_]*\Z")
_VERBS: Final = tuple(row.name.partition(":")[2] for row in list_signals("line") if ":" in row.name)
CHECKPOINT: Final = "CHECKPOINT:WRITE"
_PLACEHOLDER: Final = re.compile(r"\{.*\}\Z|\[.*\]\Z|<.*>\Z")
_ISSUE: Final = re.compile(r"issue:#?(0*[1-9][0-9]{0,17})\Z")
_CONTROL: Final = re.compile(r"[\x00-\x08\x0a-\x1f\x7f]")


class LineSignal(msgspec.Struct, frozen=True, tag_field="kind", tag="signal"):
    """A claimed line signal. A repeated one is journaled and has no effect."""

    type: str
    payload: str
    fields: dict[str, str | int]
    where: int
    known: bool = True
    repeated: bool = False

    @property
    def is_success(self) -> bool:
        """True if the line claims the epic's success explicitly."""
        row = find_signal("line", self.type)
        return bool(row and row.passing and self.fields.get("status") == "success")


class LineRefusal(msgspec.Struct, frozen=True, tag_field="kind", tag="refusal"):
    """A line that was meant as a signal but refused, with the reason."""

    sentence: str
    text: str
    where: int
    reason: Reason = Reason.MALFORMED


LineResult = LineSignal | LineRefusal


def read_payload(kind: str, payload: str, where: int) -> LineSignal | str:
    """Return the signal, or the sentence that explains its refusal."""
    if not SIGNAL_TYPE.match(kind):
        return f"a type must be in upper case: {PREFIX}{kind.upper()[:40]}"
    if _CONTROL.search(payload):
        return "a payload must not contain control characters"
    if kind == "CHECKPOINT":
        return _read_checkpoint(payload, where)
    row = find_signal("line", kind)
    if row is None:
        return LineSignal(kind, payload, {}, where, known=False)
    return _build_signal(row, payload, where)


def _read_checkpoint(payload: str, where: int) -> LineSignal | str:
    verb, _, rest = payload.partition(":")
    if verb == "MISSING":
        return LineSignal("CHECKPOINT:MISSING", rest, {}, where)
    if verb in _VERBS:
        row = find_signal("line", f"CHECKPOINT:{verb}")
        return _build_signal(row, rest, where) if row else f"{verb} is unknown"
    row = find_signal("line", CHECKPOINT)
    if row is None or payload.count(":") != 3:
        return f"CHECKPOINT takes {', '.join(_VERBS)}, or exactly epic:story:phase:task"
    return _build_signal(row, payload, where)


def _build_signal(row: SignalRow, payload: str, where: int) -> LineSignal | str:
    fields = _parse_fields(row, payload)
    lacking = [field.name for field in row.payload if field.required and field.name not in fields]
    if lacking:
        return f"{row.name} lacks {', '.join(lacking)}: write {row.template}"
    return LineSignal(row.name, payload, fields, where)


def _parse_fields(row: SignalRow, payload: str) -> dict[str, str | int]:
    if not payload or not row.payload:
        return {}
    if row.payload[0].kind == "number":
        issue = _ISSUE.match(payload.strip())
        return {row.payload[0].name: int(issue[1])} if issue else {}
    values = [value.strip() for value in payload.split(":", len(row.payload) - 1)]
    named = zip((field.name for field in row.payload), values, strict=False)
    return {name: value for name, value in named if value and not _PLACEHOLDER.match(value)}


def format_line(kind: str, payload: str | Sequence[str] | Mapping[str, str] | None = None) -> str:
    """Return the line to print for a signal; raise ValueError if it would be refused."""
    text = _join_payload(kind, payload)
    line = f"{PREFIX}{kind}:{text}" if text else f"{PREFIX}{kind}"
    name, _, rest = line.removeprefix(PREFIX).partition(":")
    read = read_payload(name, rest, 1)
    if isinstance(read, str):
        raise ValueError(read)
    return line


def _join_payload(kind: str, payload: str | Sequence[str] | Mapping[str, str] | None) -> str:
    if payload is None or isinstance(payload, str):
        return " ".join((payload or "").split())
    row = find_signal("line", kind)
    names = [field.name for field in row.payload] if row else list(payload)
    values = [payload.get(n, "") for n in names] if isinstance(payload, Mapping) else list(payload)
    values = [" ".join(value.split()) for value in values]
    if any(":" in value for value in values[:-1]):
        raise ValueError("only the last field may contain a colon")
    if row and row.payload and row.payload[0].kind == "number":
        values = [f"issue:{value}" for value in values if value]
    return ":".join(values).rstrip(":")


LONGEST_LINE: Final = 1 << 16
_NEAR: Final = re.compile(
    r"(?:[ \t]|\x1b\[[0-9;]*+m)*+sage_signal[ \t]*+:", re.IGNORECASE | re.ASCII
)
_LAST_WORD: Final = "EPIC_COMPLETE"


class LineReader:
    """Read one session. In `message` mode a message ends with `end_message` or `close`."""

    def __init__(self, mode: Literal["raw", "message"] = "raw") -> None:
        self._mode = mode
        self._rest: list[str] = []
        self._lines = _LineParser()
        self._seen: set[tuple[str, str]] = set()
        self._last_words: list[LineSignal] = []

    def feed(self, text: str) -> list[LineResult]:
        """Take the next piece of the stream; in raw mode, return the signals of whole lines."""
        head, newline, tail = text.rpartition("\n")
        if self._mode == "message" or not newline:
            self._hold(text)
            return []
        whole = "".join([*self._rest, head])
        self._rest = []
        self._hold(tail)
        return self._mark_all(self._lines.read_lines(whole))

    def _hold(self, text: str) -> None:
        """Hold an unfinished line; of an endless one, hold only what its refusal needs."""
        held = sum(map(len, self._rest)) if self._mode == "raw" else 0
        if text and held <= LONGEST_LINE:
            self._rest.append(text if self._mode == "message" else text[: LONGEST_LINE + 1])

    def end_message(self) -> list[LineResult]:
        """End one message; the agent may continue with another."""
        text, self._rest = "".join(self._rest), []
        passed = [self._refuse_early(signal) for signal in self._last_words]
        self._last_words = []
        found = self._lines.read_message(text.removeprefix("\ufeff"))
        now = [one for one in found if not self._is_last_word(one)]
        self._last_words = [one for one in found if self._is_last_word(one)]
        return [*passed, *self._mark_all(now)]

    def close(self, ended_by_itself: bool) -> list[LineResult]:
        """End the stream. Text that was cut off does not count."""
        if self._mode == "message":
            return self._close_message(ended_by_itself)
        rest, self._rest = "".join(self._rest), []
        found = self._lines.read_lines(rest) if rest and ended_by_itself else []
        if rest and not ended_by_itself and _NEAR.match(_strip_line(rest)):
            sentence = "the stream ended in the middle of this line"
            where = self._lines.count + 1
            found.append(LineRefusal(sentence, rest[:500], where, Reason.MISSING))
        return self._mark_all(found)

    def _close_message(self, ended_by_itself: bool) -> list[LineResult]:
        if not ended_by_itself and self._rest:
            self._rest = ["".join(self._rest).rpartition("\n")[0]]
        found = self.end_message() if self._rest else []
        held, self._last_words = self._last_words, []
        if ended_by_itself:
            return [*found, *self._mark_all(list[LineResult](held))]
        return [*found, *(self._refuse_early(signal) for signal in held)]

    def _is_last_word(self, one: LineResult) -> TypeGuard[LineSignal]:
        return isinstance(one, LineSignal) and one.type == _LAST_WORD

    def _refuse_early(self, signal: LineSignal) -> LineRefusal:
        text = f"{PREFIX}{signal.type}:{signal.payload}"
        sentence = f"{signal.type} counts only in the final message"
        return LineRefusal(sentence, text, signal.where, Reason.STALE)

    def _mark_all(self, found: list[LineResult]) -> list[LineResult]:
        return [self._mark_repeated(one) for one in found]

    def _mark_repeated(self, one: LineResult) -> LineResult:
        if isinstance(one, LineRefusal):
            return one
        key = (one.type, one.payload)
        repeated = key in self._seen
        self._seen.add(key)
        return msgspec.structs.replace(one, repeated=True) if repeated else one


class _LineParser:
    """Parse single-line signals, and count lines for their places."""

    def __init__(self) -> None:
        self.count = 0

    def read_lines(self, text: str) -> list[LineResult]:
        """Return the signals in whole lines of raw output, without the last newline."""
        if "signal" not in text.lower():
            self.count += text.count("\n") + 1
            return []
        found: list[LineResult] = []
        for line in text.split("\n"):
            self.count += 1
            found += self._read_line(line if len(line) > LONGEST_LINE else _strip_line(line))
        return found

    def read_message(self, text: str) -> list[LineResult]:
        """Return the signals in the live lines of one message."""
        found: list[LineResult] = []
        self.count = 0
        if "signal" in text.lower():
            for unit in split_units("\n" + text.replace("\r\n", "\n")):
                self.count += 1
                if unit.kind == "line":
                    found += self._read_line(unit.text.rstrip(" \t"))
                self.count += unit.text.count("\n")
        return found

    def _read_line(self, line: str) -> list[LineResult]:
        if not _NEAR.match(line):
            return []
        if len(line) > LONGEST_LINE:
            sentence = f"a signal may have at most {LONGEST_LINE} characters"
            return [LineRefusal(sentence, line[:500], self.count)]
        return [_parse_line(line, self.count)]


def _strip_line(line: str) -> str:
    return strip_colours(line.removesuffix("\r")).rstrip(" \t")


def _parse_line(line: str, where: int) -> LineResult:
    if not line.startswith(PREFIX):
        return LineRefusal(f"a signal must start at column 0 with {PREFIX}", line[:500], where)
    kind, _, payload = line.removeprefix(PREFIX).partition(":")
    found = read_payload(kind, payload, where)
    return LineRefusal(found, line[:500], where) if isinstance(found, str) else found


class SessionLines:
    """Pass an agent's own messages to a reader of line signals, one by one."""

    def __init__(self) -> None:
        self._reader = LineReader("message")
        self._message_id: str | None = None
        self._pieces: list[str] = []

    def read_events(self, events: list[StreamEvent]) -> list[LineResult]:
        found: list[LineResult] = []
        for event in events:
            if isinstance(event, AssistantText) and not event.by_subagent:
                found += self._read_text(event)
            elif isinstance(event, TurnEnd):
                found += self._read_end(event.text or "")
        return found

    def close(self, ended_by_itself: bool) -> list[LineResult]:
        """End the session; a completion counts only if the session ended by itself."""
        return [*self._end_message(), *self._reader.close(ended_by_itself)]

    def _read_text(self, event: AssistantText) -> list[LineResult]:
        """Collect a message, whose pieces share its id; a piece without one is a whole message."""
        goes_on = bool(event.message_id) and event.message_id == self._message_id
        ended = [] if goes_on else self._end_message()
        self._message_id = event.message_id
        self._pieces = self._pieces if goes_on else []
        ends = event.is_delta or event.text.endswith("\n")
        self._pieces.append(event.text if ends else event.text + "\n")
        return ended

    def _read_end(self, final: str) -> list[LineResult]:
        """Read a turn's result, unless it only repeats the last message or a part of it."""
        ended = self._end_message()
        last, final = "".join(self._pieces).strip(), final.strip()
        if last.endswith(final) or (last and final.endswith(last)):
            return ended
        return [*ended, *self._read_text(AssistantText(final)), *self._end_message()]

    def _end_message(self) -> list[LineResult]:
        if self._message_id is None:
            return []
        self._message_id = None
        self._reader.feed("".join(self._pieces))
        return self._reader.end_message()


def read_session(text: str, stream_format: StreamFormat, ended_by_itself: bool) -> list[LineResult]:
    """Return every line signal of a recorded session, in order."""
    stream, lines = StreamReader(stream_format), SessionLines()
    found = lines.read_events([*stream.feed(text), *stream.close(ended_by_itself)])
    return [*found, *lines.close(ended_by_itself and stream.final_message is not None)]
