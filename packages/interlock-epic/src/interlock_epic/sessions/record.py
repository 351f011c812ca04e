"""Record the signals of one session line by line as they arrive, so that a kill loses nothing.

Repeated signals and those about another epic are recorded but do not count. The record of an
interrupted session is read back and continued.
"""

import os
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Final, Literal

import msgspec

from interlock.signals.lines import LineRefusal, LineResult, LineSignal
from interlock.system.errors import SourceError
from interlock.system.files import append_line, open_log
from interlock_epic.status import DECIDING, EFFECTS, ENDING, FIRM

_MOST_WRITTEN: Final = 200_000
"""The most lines of a session's file; further signals are only counted, unless they decide."""
_MOST_KEPT: Final = 200
_MOST_STORIES: Final = 1_000
_MOST_SYNCED: Final = 32
_LONGEST: Final = 2_000
_LARGEST: Final = 256 << 20
_ID: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._/#-]{0,127}")

Via = Literal["stream", "channel"]


class RecordedSignal(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A line that was meant as a signal, as it is stored."""

    at: float
    via: Via
    type: str
    payload: str = ""
    fields: dict[str, str | int] = {}
    line: int = 0
    known: bool = True
    repeated: bool = False
    refused: str = ""
    """Why it does not count, or ""."""
    sentence: str = ""

    @property
    def counts(self) -> bool:
        return self.known and not self.repeated and not self.refused


class SessionStart(msgspec.Struct, frozen=True, kw_only=True):
    """The start of a process; `before` is the checkpoint's mark at that time."""

    began_at: float
    before: str


class SessionAttempt(msgspec.Struct, frozen=True, kw_only=True):
    """The end of a session."""

    ended_by: str
    signal: RecordedSignal | None
    """The signal that decided the end."""
    signals: tuple[RecordedSignal, ...]
    before: str
    """The checkpoint's mark when the session started."""
    message: str = ""
    exit: int | None = None
    seconds: float = 0.0
    total: int = 0
    refused: int = 0
    repeated: int = 0
    record: str = ""


class SessionRecord:
    """The file of one session, and the signals in it."""

    def __init__(self, path: Path, epic_id: str) -> None:
        self.path = path
        self.starts: list[SessionStart] = []
        self.signals: list[RecordedSignal] = []
        """All signals that decide or change something, and the first of the others."""
        self.total = self.refused = self.repeated = 0
        self._epic_id = epic_id
        self._seen: set[tuple[str, str]] = set()
        self._deciding: dict[str, RecordedSignal] = {}
        self._written = self._synced = 0
        try:
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._file = open_log(path)
        except OSError as error:
            raise SourceError(f"{path} cannot be written: {error.strerror}") from None
        self._load()

    def close(self) -> None:
        os.close(self._file)

    @property
    def deciding_signal(self) -> RecordedSignal | None:
        """Return the signal that decides how the session ends, or None so far."""
        return find_deciding_signal(self._deciding.values())

    @property
    def is_ending(self) -> bool:
        return any(name in ENDING for name in self._deciding)

    def begin(self, at: float, before: str) -> None:
        start = SessionStart(began_at=at, before=before)
        self.starts.append(start)
        self._write(msgspec.json.encode(start), sync=True)

    def add(self, found: LineResult, via: Via, at: float) -> RecordedSignal:
        """Record a signal; a deciding one is on disk before anything acts on it."""
        signal = self._build_signal(found, via, at)
        self._count(signal)
        decides = signal.counts and signal.type in DECIDING
        if decides or self._written < _MOST_WRITTEN:
            self._write(msgspec.json.encode(signal), sync=decides)
        return signal

    def _build_signal(self, found: LineResult, via: Via, at: float) -> RecordedSignal:
        if isinstance(found, LineRefusal):
            return RecordedSignal(
                at=at,
                via=via,
                type="",
                payload=found.text[:_LONGEST],
                line=found.where,
                refused=found.reason.value,
                sentence=found.sentence,
            )
        refused, sentence = self._explain_refusal(found)
        return RecordedSignal(
            at=at,
            via=via,
            type=found.type,
            payload=found.payload[:_LONGEST],
            fields=found.fields,
            line=found.where,
            known=found.known,
            repeated=found.repeated or (found.type, found.payload) in self._seen,
            refused=refused,
            sentence=sentence,
        )

    def _explain_refusal(self, found: LineSignal) -> tuple[str, str]:
        """Return why a well-formed signal does not count here."""
        epic_id = found.fields.get("epic_id", self._epic_id)
        if found.type in DECIDING and epic_id != self._epic_id:
            return "WrongTask", f"this session works on {self._epic_id}"
        story = found.fields.get("story_id")
        if story is not None and not _ID.fullmatch(str(story)):
            return "Malformed", "a story's id has letters, digits and . _ / # - only"
        return "", ""

    def _count(self, signal: RecordedSignal) -> None:
        self.total += 1
        self.refused += bool(signal.refused)
        self.repeated += signal.repeated
        if not signal.refused:
            self._seen.add((signal.type, signal.payload))
        is_story = signal.counts and EFFECTS.get(signal.type) == "story"
        if len(self.signals) < (_MOST_STORIES if is_story else _MOST_KEPT):
            self.signals.append(signal)
        if signal.counts and signal.type in DECIDING:
            before = self._deciding.pop(signal.type, None)
            self._deciding[signal.type] = _choose(before, signal) if before else signal

    def _write(self, line: bytes, *, sync: bool) -> None:
        self._written += 1
        sync = sync and self._synced < _MOST_SYNCED
        self._synced += sync
        append_line(self._file, line, sync=sync)

    def _load(self) -> None:
        """Read what an earlier process of this session left; half a line does not count."""
        size = min(os.fstat(self._file).st_size, _LARGEST)
        raw = os.pread(self._file, size, 0) if size else b""
        whole, _, rest = raw.rpartition(b"\n")
        for line in whole.split(b"\n") if whole else ():
            self._written += 1
            try:
                if line.startswith(b'{"began_at"'):
                    self.starts.append(msgspec.json.decode(line, type=SessionStart))
                else:
                    self._count(msgspec.json.decode(line, type=RecordedSignal))
            except (msgspec.DecodeError, msgspec.ValidationError, UnicodeError):
                continue
        if rest:
            os.write(self._file, b"\n")


def _choose(before: RecordedSignal, after: RecordedSignal) -> RecordedSignal:
    """Return the signal of two that counts.

    The last one counts, but of firm ones the first, and a success never overrides a lesser outcome.
    """
    if after.type in FIRM:
        return before
    lesser = after.type == "EPIC_COMPLETE" and before.fields.get("status") != "success"
    return before if lesser else after


def find_deciding_signal(signals: Iterable[RecordedSignal]) -> RecordedSignal | None:
    """Return the signal that decides how a session ended, or None."""
    deciding = [signal for signal in signals if signal.type in DECIDING]
    firm = (signal for name in FIRM for signal in deciding if signal.type == name)
    return next(firm, deciding[-1] if deciding else None)
