"""Line signals: their payloads, the readers of a stream of them, and the blocks of older tools.

`LineReader` takes a plain command's output or an agent's messages, `SessionLines` the events of an
agent's decoded stream. How the text is cut into chunks never changes the result, and only the last
message of a session may say that it is over. A block with any damage is refused whole.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Final, Literal, TypeGuard

import msgspec

from interlock.signals.catalogue import PREFIX, SignalRow, row_of, rows
from interlock.signals.own_words import units
from interlock.signals.reading import Reason
from interlock.signals.streams import StreamFormat, StreamReader
from interlock.signals.streams.events import AssistantText, StreamEvent, TurnEnd

TYPE: Final = re.compile(r"[A-Z][A-Z0-9_]*\Z")
_VERBS: Final = tuple(row.name.partition(":")[2] for row in rows("line") if ":" in row.name)
CHECKPOINT: Final = "CHECKPOINT:WRITE"
_PLACEHOLDER: Final = re.compile(r"\{.*\}\Z|\[.*\]\Z|<.*>\Z")
_ISSUE: Final = re.compile(r"issue:#?(0*[1-9][0-9]{0,17})\Z")
_CONTROL: Final = re.compile(r"[\x00-\x08\x0a-\x1f\x7f]")


class LineSignal(msgspec.Struct, frozen=True, tag_field="kind", tag="signal"):
    """A line signal as it was claimed. A repeated one is journaled and has no effect."""

    type: str
    payload: str
    fields: dict[str, str | int]
    where: int
    known: bool = True
    repeated: bool = False

    @property
    def is_success(self) -> bool:
        """Whether this says that the epic succeeded: only in so many words."""
        row = row_of("line", self.type)
        return bool(row and row.passing and self.fields.get("status") == "success")


class LineRefusal(msgspec.Struct, frozen=True, tag_field="kind", tag="refusal"):
    """A line that was meant as a signal and is none, with the reason."""

    sentence: str
    text: str
    where: int
    reason: Reason = Reason.MALFORMED


Found = LineSignal | LineRefusal


def read_payload(kind: str, payload: str, where: int) -> LineSignal | str:
    """The signal, or the sentence that says why it is refused."""
    if not TYPE.match(kind):
        return f"a type must be in upper case: {PREFIX}{kind.upper()[:40]}"
    if _CONTROL.search(payload):
        return "a payload must not contain control characters"
    if kind == "CHECKPOINT":
        return _checkpoint(payload, where)
    row = row_of("line", kind)
    if row is None:
        return LineSignal(kind, payload, {}, where, known=False)
    return _fill(row, payload, where)


def _checkpoint(payload: str, where: int) -> LineSignal | str:
    verb, _, rest = payload.partition(":")
    if verb == "MISSING":
        return LineSignal("CHECKPOINT:MISSING", rest, {}, where)
    if verb in _VERBS:
        row = row_of("line", f"CHECKPOINT:{verb}")
        return _fill(row, rest, where) if row else f"{verb} is unknown"
    row = row_of("line", CHECKPOINT)
    if row is None or payload.count(":") != 3:
        return f"CHECKPOINT takes {', '.join(_VERBS)}, or exactly epic:story:phase:task"
    return _fill(row, payload, where)


def _fill(row: SignalRow, payload: str, where: int) -> LineSignal | str:
    fields = _fields(row, payload)
    lacking = [field.name for field in row.payload if field.required and field.name not in fields]
    if lacking:
        return f"{row.name} lacks {', '.join(lacking)}: write {row.template}"
    return LineSignal(row.name, payload, fields, where)


def _fields(row: SignalRow, payload: str) -> dict[str, str | int]:
    if not payload or not row.payload:
        return {}
    if row.payload[0].kind == "number":
        issue = _ISSUE.match(payload.strip())
        return {row.payload[0].name: int(issue[1])} if issue else {}
    values = [value.strip() for value in payload.split(":", len(row.payload) - 1)]
    named = zip((field.name for field in row.payload), values, strict=False)
    return {name: value for name, value in named if value and not _PLACEHOLDER.match(value)}


def canonical_line(
    kind: str, payload: str | Sequence[str] | Mapping[str, str] | None = None
) -> str:
    """The one line to print for a signal. A ValueError says why it would be refused."""
    text = _joined(kind, payload)
    line = f"{PREFIX}{kind}:{text}" if text else f"{PREFIX}{kind}"
    name, _, rest = line.removeprefix(PREFIX).partition(":")
    read = read_payload(name, rest, 1)
    if isinstance(read, str):
        raise ValueError(read)
    return line


def _joined(kind: str, payload: str | Sequence[str] | Mapping[str, str] | None) -> str:
    if payload is None or isinstance(payload, str):
        return " ".join((payload or "").split())
    row = row_of("line", kind)
    names = [field.name for field in row.payload] if row else list(payload)
    values = [payload.get(n, "") for n in names] if isinstance(payload, Mapping) else list(payload)
    values = [" ".join(value.split()) for value in values]
    if any(":" in value for value in values[:-1]):
        raise ValueError("only the last field may contain a colon")
    if row and row.payload and row.payload[0].kind == "number":
        values = [f"issue:{value}" for value in values if value]
    return ":".join(values).rstrip(":")


_RULE: Final = re.compile(r"={40,}[ \t]*\Z|═{3,}[ \t]*\Z")
_DECORATED: Final = re.compile(r"═{3,}[ \t]*SAGE_SIGNAL:CHECKPOINT[ \t]*═{3,}[ \t]*\Z")
_HEADER: Final = re.compile(r"(?:SAGE_SIGNAL:|SIGNAL:[ \t]+)([A-Z][A-Z0-9_]*)[ \t]*\Z")
_FIELD: Final = re.compile(r"([A-Z][A-Z0-9_]*):(?:[ \t]+(.*?))?[ \t]*\Z")
_CHECKPOINT_FILE: Final = re.compile(r"(?:.*/)?([^/]+)\.json\Z")
_COMMIT: Final = re.compile(r"[0-9a-f]{40}\Z")
# Where older tools have another word for a field of the catalogue.
_NAMES: Final = {
    "ISSUE_NUMBER": "issue",
    "GITHUB_ISSUE": "issue",
    "REVERTED_TO": "commit_hash",
    "ERROR": "error",
    "CODE": "error_code",
}
# What else they print under a header.
KEYS: Final = (
    *_NAMES,
    "APPROVED_BY",
    "CHECKPOINT_FILE",
    "COMMIT",
    "ISSUE_URL",
    "NEXT_ACTION",
    "REASON",
    "REVIEW_TYPE",
    "REVISION_NOTES",
)
# A checkpoint block names its file and commit in the place of the line's four fields.
CHECKPOINT_FIELDS: Final = ("checkpoint_file", "commit")
_MOST_LINES: Final = 64


class LegacyBlock(msgspec.Struct):
    """A block that has been opened; `positional` is what stood there without a key."""

    kind: str
    where: int
    decorated: bool = False
    lines: list[str] = msgspec.field(default_factory=list)
    keys: dict[str, str] = msgspec.field(default_factory=dict)
    positional: str = ""

    def take(self, line: str) -> bool:
        """Whether the line belongs to the block."""
        self.lines.append(line)
        name, mark, value = line.rpartition(": ")
        if mark and name == value.strip():  # an argument without `=` is printed twice
            self.positional = name
            return len(self.lines) <= _MOST_LINES
        field = _FIELD.match(line)
        if field:
            self.keys[field[1]] = field[2] or ""
        return bool(field) and len(self.lines) <= _MOST_LINES

    def read(self) -> LineSignal | LineRefusal:
        found = self._checkpoint() if self.decorated else self._signal()
        return self.refuse(found) if isinstance(found, str) else found

    def refuse(self, sentence: str) -> LineRefusal:
        return LineRefusal(sentence, "\n".join([self.kind, *self.lines])[:500], self.where)

    def _checkpoint(self) -> LineSignal | str:
        file = _CHECKPOINT_FILE.match(self.keys.get("CHECKPOINT_FILE", ""))
        if not file or not _COMMIT.match(self.keys.get("COMMIT", "")):
            return "the checkpoint block lacks CHECKPOINT_FILE or a COMMIT of 40 hex digits"
        fields: dict[str, str | int] = {"epic_id": file[1], **self._named()}
        return LineSignal(CHECKPOINT, self._payload(), fields, self.where)

    def _signal(self) -> LineSignal | str:
        issue = self.keys.get("ISSUE_NUMBER", self.keys.get("GITHUB_ISSUE", ""))
        payload = f"issue:{issue.lstrip('#')}" if issue else self.positional
        found = read_payload(self.kind, payload, self.where)
        if isinstance(found, str):
            return found
        fields = {**self._named(), **found.fields}
        return msgspec.structs.replace(found, fields=fields, payload=payload or self._payload())

    def _named(self) -> dict[str, str]:
        named = {_NAMES.get(key, key.lower()): value for key, value in self.keys.items()}
        named.pop("issue", None)
        return named

    def _payload(self) -> str:
        return " ".join(f"{key}={value}" for key, value in self.keys.items())


def is_rule(line: str) -> bool:
    return bool(_RULE.match(line))


def open_block(line: str, after_rule: bool, where: int) -> LegacyBlock | None:
    """A block, if this line is the header of one."""
    if _DECORATED.match(line):
        return LegacyBlock("CHECKPOINT", where, decorated=True)
    header = _HEADER.match(line) if after_rule else None
    return LegacyBlock(header[1], where) if header else None


LONGEST_LINE: Final = 1 << 16
_ANSI: Final = re.compile(r"\x1b(?:\[[0-?]*+[ -/]*+[@-~]|\][^\x07\x1b]*+(?:\x07|\x1b\\)|[@-Z\\-_])")
_NEAR: Final = re.compile(
    r"(?:[ \t]|\x1b\[[0-9;]*+m)*+sage_signal[ \t]*+:", re.IGNORECASE | re.ASCII
)
_LAST_WORD: Final = "EPIC_COMPLETE"


class LineReader:
    """Reads one session. In `message` mode a message ends with `end_message` or `close`."""

    def __init__(self, mode: Literal["raw", "message"] = "raw") -> None:
        self._mode = mode
        self._rest: list[str] = []
        self._lines = _Lines()
        self._seen: set[tuple[str, str]] = set()
        self._last_words: list[LineSignal] = []

    def feed(self, text: str) -> list[Found]:
        """Take the next piece of the stream; in raw mode, give what its whole lines say."""
        head, newline, tail = text.rpartition("\n")
        if self._mode == "message" or not newline:
            self._keep(text)
            return []
        whole = "".join([*self._rest, head])
        self._rest = []
        self._keep(tail)
        return self._heard(self._lines.take_all(whole))

    def _keep(self, text: str) -> None:
        """Hold an unfinished line, but of an endless one only what is needed to refuse it."""
        held = sum(map(len, self._rest)) if self._mode == "raw" else 0
        if text and held <= LONGEST_LINE:
            self._rest.append(text if self._mode == "message" else text[: LONGEST_LINE + 1])

    def end_message(self) -> list[Found]:
        """The agent has finished one message and may go on with another."""
        text, self._rest = "".join(self._rest), []
        passed = [self._too_early(signal) for signal in self._last_words]
        self._last_words = []
        found = self._lines.take_message(text.removeprefix("\ufeff"))
        now = [one for one in found if not self._is_last_word(one)]
        self._last_words = [one for one in found if self._is_last_word(one)]
        return [*passed, *self._heard(now)]

    def close(self, ended_by_itself: bool) -> list[Found]:
        """The stream is over. What was cut off does not count."""
        if self._mode == "message":
            return self._close_message(ended_by_itself)
        rest, self._rest = "".join(self._rest), []
        found = self._lines.take_all(rest) if rest and ended_by_itself else []
        found += self._lines.end()
        if rest and not ended_by_itself and _NEAR.match(_plain(rest)):
            sentence = "the stream ended in the middle of this line"
            where = self._lines.count + 1
            found.append(LineRefusal(sentence, rest[:500], where, Reason.MISSING))
        return self._heard(found)

    def _close_message(self, ended_by_itself: bool) -> list[Found]:
        if not ended_by_itself and self._rest:
            self._rest = ["".join(self._rest).rpartition("\n")[0]]
        found = self.end_message() if self._rest else []
        held, self._last_words = self._last_words, []
        if ended_by_itself:
            return [*found, *self._heard(list[Found](held))]
        return [*found, *(self._too_early(signal) for signal in held)]

    def _is_last_word(self, one: Found) -> TypeGuard[LineSignal]:
        return isinstance(one, LineSignal) and one.type == _LAST_WORD

    def _too_early(self, signal: LineSignal) -> LineRefusal:
        text = f"{PREFIX}{signal.type}:{signal.payload}"
        sentence = f"{signal.type} counts only in the final message"
        return LineRefusal(sentence, text, signal.where, Reason.STALE)

    def _heard(self, found: list[Found]) -> list[Found]:
        return [self._marked(one) for one in found]

    def _marked(self, one: Found) -> Found:
        if isinstance(one, LineRefusal):
            return one
        key = (one.type, one.payload)
        repeated = key in self._seen
        self._seen.add(key)
        return msgspec.structs.replace(one, repeated=True) if repeated else one


class _Lines:
    """Line by line: single-line signals, and the blocks that older tools print."""

    def __init__(self) -> None:
        self.count = 0
        self._after_rule = False
        self._block: LegacyBlock | None = None

    def take_all(self, text: str) -> list[Found]:
        """Whole lines of raw output, without the last newline."""
        if self._block is None and "signal" not in text.lower():
            last = _plain(text[text.rfind("\n") + 1 :])
            self.count += text.count("\n") + 1
            self._after_rule = is_rule(last)
            return []
        found: list[Found] = []
        for line in text.split("\n"):
            self.count += 1
            long = len(line) > LONGEST_LINE
            found += self._take_long(line) if long else self._take(_plain(line))
        return found

    def take_message(self, text: str) -> list[Found]:
        """The live lines of one message; what is inert ends a block that was open."""
        found: list[Found] = []
        self.count, self._after_rule = 0, False
        if "signal" in text.lower():
            source = "\n" + text.replace("\r\n", "\n")
            for unit in units(source):
                self.count += 1
                found += self._take(unit.text.rstrip(" \t")) if unit.kind == "line" else self.end()
                self.count += unit.text.count("\n")
        return [*found, *self.end()]

    def end(self) -> list[Found]:
        block, self._block, self._after_rule = self._block, None, False
        return [block.refuse("the block is not closed")] if block else []

    def _take_long(self, line: str) -> list[Found]:
        found = self.end()
        if _NEAR.match(line):
            sentence = f"a signal may have at most {LONGEST_LINE} characters"
            found.append(LineRefusal(sentence, line[:500], self.count))
        return found

    def _take(self, line: str) -> list[Found]:
        block = self._block
        if block is None:
            return self._take_single(line)
        if is_rule(line):
            self._block = None
            return [block.read()]
        if block.take(line):
            return []
        self._block = None
        return [block.refuse("the block is damaged"), *self._take_single(line)]

    def _take_single(self, line: str) -> list[Found]:
        after_rule, self._after_rule = self._after_rule, is_rule(line)
        self._block = open_block(line, after_rule, self.count)
        if self._block or not _NEAR.match(line):
            return []
        return [_single(line, self.count)]


def _plain(line: str) -> str:
    line = line.removesuffix("\r")
    return (_ANSI.sub("", line) if "\x1b" in line else line).rstrip(" \t")


def _single(line: str, where: int) -> Found:
    if not line.startswith(PREFIX):
        return LineRefusal(f"a signal must start at column 0 with {PREFIX}", line[:500], where)
    kind, _, payload = line.removeprefix(PREFIX).partition(":")
    found = read_payload(kind, payload, where)
    return LineRefusal(found, line[:500], where) if isinstance(found, str) else found


class SessionLines:
    """Feeds the agent's own messages, one by one, to a reader of line signals."""

    def __init__(self) -> None:
        self._reader = LineReader("message")
        self._message_id: str | None = None

    def take(self, events: list[StreamEvent]) -> list[Found]:
        found: list[Found] = []
        for event in events:
            if isinstance(event, AssistantText) and not event.by_subagent:
                found += self._take_text(event)
            elif isinstance(event, TurnEnd) and self._message_id is not None:
                found += self._reader.end_message()
                self._message_id = None
        return found

    def close(self, ended_by_itself: bool) -> list[Found]:
        """The session is over; its last word counts only if it had one."""
        ended = self._reader.end_message() if self._message_id is not None else []
        return [*ended, *self._reader.close(ended_by_itself)]

    def _take_text(self, event: AssistantText) -> list[Found]:
        """A message comes in pieces that carry its id; one without an id is a whole message."""
        goes_on = bool(event.message_id) and event.message_id == self._message_id
        ended = [] if goes_on or self._message_id is None else self._reader.end_message()
        self._message_id = event.message_id
        self._reader.feed(event.text if event.text.endswith("\n") else event.text + "\n")
        return ended


def read_session(text: str, stream_format: StreamFormat, ended_by_itself: bool) -> list[Found]:
    """Every line signal of a whole recorded session, in the order in which it was key."""
    stream, lines = StreamReader(stream_format), SessionLines()
    found = lines.take([*stream.feed(text), *stream.close(ended_by_itself)])
    return [*found, *lines.close(ended_by_itself and stream.final_message is not None)]
