"""The signals of one session, written line by line as they are heard: a kill loses nothing.

Recognises what was repeated and what is about another epic. A session that was cut off is read
back and continued.
"""

import os
import re
from pathlib import Path
from typing import Final, Literal

import msgspec

from interlock.epic.status import DECIDING, EFFECTS, ENDING, FIRM, find_deciding_signal
from interlock.signals.lines import LineRefusal, LineResult, LineSignal
from interlock.system.errors import SourceError
from interlock.system.files import append_line, open_log

_MOST_WRITTEN: Final = 200_000
"""Lines of a session's file. What comes after is only counted, unless it decides something."""
_MOST_KEPT: Final = 200
_MOST_STORIES: Final = 1_000
_MOST_SYNCED: Final = 32
_LONGEST: Final = 2_000
_LARGEST: Final = 256 << 20
_ID: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._/#-]{0,127}")

Via = Literal["stream", "channel"]


class HeardSignal(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One line that was meant as a signal."""

    at: float
    via: Via
    type: str
    payload: str = ""
    fields: dict[str, str | int] = {}
    line: int = 0
    known: bool = True
    repeated: bool = False
    refused: str = ""
    """Why it does not count."""
    sentence: str = ""

    @property
    def counts(self) -> bool:
        return self.known and not self.repeated and not self.refused


class SessionStart(msgspec.Struct, frozen=True, kw_only=True):
    """A process of the session was started; `before` is how the checkpoint stood."""

    began_at: float
    before: str


class SessionRecord:
    """The file of one session, and what counts of it."""

    def __init__(self, path: Path, epic_id: str) -> None:
        self.path = path
        self.starts: list[SessionStart] = []
        self.heard: list[HeardSignal] = []
        """Everything that decides or changes something, and the first of the rest."""
        self.total = self.refused = self.repeated = 0
        self._epic_id = epic_id
        self._seen: set[tuple[str, str]] = set()
        self._words: dict[str, HeardSignal] = {}
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
    def deciding_signal(self) -> HeardSignal | None:
        """The signal by which the session ends, as far as it is known."""
        return find_deciding_signal(self._words.values())

    @property
    def is_ending(self) -> bool:
        return any(name in ENDING for name in self._words)

    def begin(self, at: float, before: str) -> None:
        began = SessionStart(began_at=at, before=before)
        self.starts.append(began)
        self._write(msgspec.json.encode(began), firm=True)

    def add(self, found: LineResult, via: Via, at: float) -> HeardSignal:
        """Take it down at once; what decides something is on the disk before it is acted on."""
        heard = self._build_signal(found, via, at)
        self._count(heard)
        firm = heard.counts and heard.type in DECIDING
        if firm or self._written < _MOST_WRITTEN:
            self._write(msgspec.json.encode(heard), firm=firm)
        return heard

    def _build_signal(self, found: LineResult, via: Via, at: float) -> HeardSignal:
        if isinstance(found, LineRefusal):
            return HeardSignal(
                at=at,
                via=via,
                type="",
                payload=found.text[:_LONGEST],
                line=found.where,
                refused=found.reason.value,
                sentence=found.sentence,
            )
        refused, sentence = self._explain_refusal(found)
        again = (found.type, found.payload) in self._seen or found.repeated
        return HeardSignal(
            at=at,
            via=via,
            type=found.type,
            payload=found.payload[:_LONGEST],
            fields=found.fields,
            line=found.where,
            known=found.known,
            repeated=again,
            refused=refused,
            sentence=sentence,
        )

    def _explain_refusal(self, found: LineSignal) -> tuple[str, str]:
        """Why a well-formed signal does not count here."""
        about = found.fields.get("epic_id", self._epic_id)
        if found.type in DECIDING and about != self._epic_id:
            return "WrongTask", f"this session works on {self._epic_id}"
        story = found.fields.get("story_id")
        if story is not None and not _ID.fullmatch(str(story)):
            return "Malformed", "a story's id has letters, digits and . _ / # - only"
        return "", ""

    def _count(self, heard: HeardSignal) -> None:
        self.total += 1
        self.refused += bool(heard.refused)
        self.repeated += heard.repeated
        if not heard.refused:
            self._seen.add((heard.type, heard.payload))
        story = heard.counts and EFFECTS.get(heard.type) == "story"
        if len(self.heard) < (_MOST_STORIES if story else _MOST_KEPT):
            self.heard.append(heard)
        if heard.counts and heard.type in DECIDING:
            self._words[heard.type] = self._choose_newest(self._words.pop(heard.type, None), heard)

    def _choose_newest(self, before: HeardSignal | None, heard: HeardSignal) -> HeardSignal:
        """Of one type the last counts, but for a firm word the first, and no success takes back
        that something was said to be none."""
        if before is None:
            return heard
        lesser = heard.type == "EPIC_COMPLETE" and before.fields.get("status") != "success"
        return before if heard.type in FIRM or lesser else heard

    def _write(self, line: bytes, *, firm: bool) -> None:
        self._written += 1
        sync = firm and self._synced < _MOST_SYNCED
        self._synced += sync
        append_line(self._file, line, sync=sync)

    def _load(self) -> None:
        """What an earlier life of this session left; a line that was cut off is none."""
        size = min(os.fstat(self._file).st_size, _LARGEST)
        raw = os.pread(self._file, size, 0) if size else b""
        whole, _, rest = raw.rpartition(b"\n")
        for line in whole.split(b"\n") if whole else ():
            self._written += 1
            try:
                if line.startswith(b'{"began_at"'):
                    self.starts.append(msgspec.json.decode(line, type=SessionStart))
                else:
                    self._count(msgspec.json.decode(line, type=HeardSignal))
            except (msgspec.DecodeError, msgspec.ValidationError, UnicodeError):
                continue
        if rest:
            os.write(self._file, b"\n")
