"""Judge transcripts for the linter: which signals would be accepted or refused, and why.

A transcript is a message or a recorded stream in one of four formats. With a role, the last message
is read for a text signal; a session without a role uses line signals.
"""

import re
from typing import Any, Final, Literal

import msgspec

from interlock.signals.catalogue import ANYONE, find_signal
from interlock.signals.lines import LineReader, LineRefusal, LineResult, LineSignal, read_session
from interlock.signals.reading import Reading, Reason, SignalRefused
from interlock.signals.streams import StreamReader
from interlock.signals.text import read_message

Format = Literal["text", "claude-stream-json", "codex-jsonl", "lines"]
FORMATS: Final = ("text", "claude-stream-json", "codex-jsonl", "lines")


class Record(msgspec.Struct, frozen=True, kw_only=True):
    """A transcript: a message in `text`, or a recorded stream with its format."""

    id: str | int
    role: str | None = None
    task_id: str | None = None
    request_id: str | None = None
    nonce: str | None = None
    strict: bool = False
    text: str | None = None
    format: Format | None = None
    stream: str | list[Any] | None = None
    ended_by_itself: bool = True


class _Event(msgspec.Struct):
    type: str


class TranscriptVerdict(msgspec.Struct, frozen=True, kw_only=True):
    """The coordinator's verdict on one signal: accepted, or refused with a sentence."""

    accepted: dict[str, Any] | None = None
    refused: str | None = None
    sentence: str | None = None
    where: int | None = None


class JudgedTranscript(msgspec.Struct, frozen=True):
    """The verdict on a record's last message, or on each line signal of its session."""

    id: str | int
    message: TranscriptVerdict | None
    lines: tuple[TranscriptVerdict, ...] | None

    @property
    def is_refused(self) -> bool:
        """Return whether anything was refused; a session of line signals needs no text signal."""
        verdicts = self.lines or ([self.message] if self.message else [])
        return any(one.refused for one in verdicts)

    def to_plain(self) -> dict[str, Any]:
        """Return the verdict as the linter prints it."""
        message = msgspec.to_builtins(self.message) if self.message else {}
        lines = {} if self.lines is None else {"lines": msgspec.to_builtins(self.lines)}
        return {"id": self.id, **message, **lines}


def detect_format(text: str) -> Format:
    """Return the format of a recorded stream, from its first event; other texts are `text`."""
    first = next((line for line in text[:65536].split("\n") if line.strip(" \t\r\ufeff")), "")
    try:
        event = msgspec.json.decode(first.strip("\ufeff"), type=_Event)
    except (msgspec.DecodeError, msgspec.ValidationError, UnicodeError, RecursionError):
        return "text"
    if event.type in ("system", "assistant", "user", "result"):
        return "claude-stream-json"
    return "codex-jsonl" if re.match(r"(?:thread|turn|item)\.", event.type) else "text"


def read_record(raw: bytes, defaults: Record) -> Record | str:
    """Read a record from one line of JSON, or return the sentence about its problem."""
    try:
        fields = msgspec.json.decode(raw)
        if not isinstance(fields, dict):
            return "a record must be a JSON object"
        known = {name: value for name, value in fields.items() if value is not None}
        base = {n: v for n, v in msgspec.to_builtins(defaults).items() if v is not None}
        record = msgspec.convert({**base, **known}, Record)
    except (msgspec.DecodeError, msgspec.ValidationError, UnicodeError) as error:
        return f"the record cannot be read: {error}"
    except RecursionError:
        return "the record is nested too deep"
    return _check_complete(record, "id" in known)


def _check_complete(record: Record, has_id: bool) -> Record | str:
    if not has_id:
        return "the record has no id"
    if (record.text is None) == (record.stream is None):
        return "a record needs either text or stream"
    if record.stream is not None and record.format is None:
        return f"a stream needs its format: {', '.join(FORMATS)}"
    if record.text is not None and record.role is None:
        return "a text needs the role of its speaker"
    return record


def check_transcript(record: Record) -> JudgedTranscript:
    """Judge a transcript."""
    text = record.text if record.text is not None else _join_stream(record.stream)
    kind = record.format or "text"
    if kind == "lines":
        return JudgedTranscript(record.id, None, _check_raw_lines(text, record.ended_by_itself))
    message = _check_message(record, text, kind)
    if record.role is not None:
        return JudgedTranscript(record.id, message, None)
    return JudgedTranscript(record.id, message, _check_lines(record, text, kind))


def _join_stream(stream: str | list[Any] | None) -> str:
    """Join a stream that is given as a list of lines or events."""
    if isinstance(stream, list):
        lines = [e if isinstance(e, str) else msgspec.json.encode(e).decode() for e in stream]
        return "".join(f"{line}\n" for line in lines)
    return stream or ""


def _check_message(record: Record, text: str, kind: Format) -> TranscriptVerdict:
    if kind in ("claude-stream-json", "codex-jsonl"):
        reader = StreamReader(kind)
        reader.feed(text)
        reader.close(record.ended_by_itself)
        if reader.final_message is None:
            return _refuse_cut_off(reader.why_missing)
        text = reader.final_message
    elif not record.ended_by_itself:
        return _refuse_cut_off("the session was stopped")
    return _build_verdict(
        read_message(
            text,
            role=record.role or ANYONE,
            task_id=record.task_id,
            request_id=record.request_id,
            nonce=record.nonce,
            strict=record.strict,
        )
    )


def _refuse_cut_off(why: str) -> TranscriptVerdict:
    return TranscriptVerdict(
        refused=Reason.MISSING.value, sentence=f"There is no final message: {why}."
    )


def _build_verdict(reading: Reading) -> TranscriptVerdict:
    if isinstance(reading, SignalRefused):
        return TranscriptVerdict(
            refused=reading.reason.value, sentence=reading.sentence, where=reading.where
        )
    return TranscriptVerdict(
        accepted={
            "signal": reading.signal,
            "subject": reading.subject,
            "fields": msgspec.to_builtins(reading.fields),
        },
        sentence="; ".join(reading.notes) or None,
        where=reading.where,
    )


def _check_lines(record: Record, text: str, kind: Format) -> tuple[TranscriptVerdict, ...]:
    if kind in ("claude-stream-json", "codex-jsonl"):
        return tuple(map(build_line_verdict, read_session(text, kind, record.ended_by_itself)))
    reader = LineReader("message")
    found = [*reader.feed(text), *reader.close(record.ended_by_itself)]
    return tuple(map(build_line_verdict, found))


def _check_raw_lines(text: str, ended_by_itself: bool) -> tuple[TranscriptVerdict, ...]:
    reader = LineReader("raw")
    return tuple(map(build_line_verdict, [*reader.feed(text), *reader.close(ended_by_itself)]))


def build_line_verdict(found: LineResult) -> TranscriptVerdict:
    if isinstance(found, LineRefusal):
        return TranscriptVerdict(
            refused=found.reason.value, sentence=found.sentence, where=found.where
        )
    if not found.known:
        sentence = f"{found.type} is not a type of this protocol: journaled, no effect"
        return TranscriptVerdict(refused=Reason.UNKNOWN.value, sentence=sentence, where=found.where)
    repeated = "already sent in this session: journaled, no effect" if found.repeated else None
    accepted = {"signal": found.type, "subject": _find_subject(found), "fields": found.fields}
    return TranscriptVerdict(accepted=accepted, sentence=repeated, where=found.where)


def _find_subject(found: LineSignal) -> str | None:
    """Return the subject of the signal: its first field, if that is an id or an issue."""
    row = find_signal("line", found.type)
    field = row.payload[0] if row and row.payload else None
    value = found.fields.get(field.name) if field and field.kind in ("id", "number") else None
    return None if value is None else str(value)
