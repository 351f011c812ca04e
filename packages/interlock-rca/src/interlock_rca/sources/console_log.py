"""Read a console log beside or instead of a report.

Finds the log that belongs to a report, the lines of a shared log that are about one test, and the
error of a run that broke before any test could fail.
"""

import re
from collections import deque
from collections.abc import Iterable, Sequence
from pathlib import PurePath
from typing import BinaryIO, Final

import msgspec

from interlock.system.test_output.counts import strip_console
from interlock.system.text import clip_text
from interlock_rca.records import Failure
from interlock_rca.sources.entry import SourceEntry

_LINE = 500
KEPT_LINES = 200
"""The lines kept from the log's end, and from the first complaint on."""
_TYPED = re.compile(
    r"(?:E +)?(?P<type>(?:[A-Za-z_]\w*[.:]{1,2})*[A-Z]\w*(?:Error|Exception))(?:: (?P<reason>.+)|$)"
)
_COMPLAINTS = (
    re.compile(r"(?:\S+: )?(?:fatal )?error(?:\[\w+\])?: (?P<reason>.+)", re.IGNORECASE),
    re.compile(
        r"(?:npm|yarn|pnpm) (?:error|ERR!) (?!code |errno |A complete|path )(?P<reason>\S.+)"
    ),
    re.compile(r"\S+:\d+:(?:\d+:)? (?:fatal )?error: (?P<reason>.+)"),
    re.compile(r"(?:\S+: )?(?P<reason>.*(?:command not found|No such file or directory).*)"),
    re.compile(r"(?:fatal|panic): (?P<reason>.+)"),
    re.compile(r"(?P<reason>.*\b(?:could|can) ?not be (?:resolved|found|read|loaded|opened)\b.*)"),
    re.compile(r"(?P<reason>(?:Could not|Cannot|Unable to|Failed to|Unresolv\w+) \S.+)"),
)
_ENDED = re.compile(
    r"(?P<reason>BUILD FAIL\w+|make: \*\*\* .+|.*Process completed with exit code [1-9]\d*.*"
    r"|ERROR: Job failed.*|Killed|Segmentation fault.*|.*[Tt]he operation was canceled.*)"
)
"""Says that the run broke, but not why; counts only where nothing says why."""


class RunBreak(msgspec.Struct, frozen=True):
    """The reason why a run broke, and the lines around it."""

    type: str
    message: str
    lines: tuple[str, ...]


def find_break(lines: Iterable[str]) -> RunBreak | None:
    """Return why the run broke; None if the log complains of nothing."""
    reader = _BreakReader()
    for line in lines:
        reader.add_line(strip_console(line[: 8 * _LINE])[:_LINE])
    return reader.finish()


class _BreakReader:
    def __init__(self) -> None:
        self.typed: re.Match[str] | None = None
        self.complaint = ""
        self.ended = ""
        self.first: list[str] = []
        self.last: deque[str] = deque(maxlen=KEPT_LINES)

    def add_line(self, line: str) -> None:
        text = line.strip()
        # An interpreter prints the place before the error, so the lines before are kept too.
        if not self._has_reason and self._match_complaint(text):
            self.first = list(self.last)[-KEPT_LINES // 2 :]
            self.last.clear()
            self.first.append(line)
        elif self._has_reason and len(self.first) < KEPT_LINES:
            self.first.append(line)
        else:
            self.last.append(line)

    @property
    def _has_reason(self) -> bool:
        return bool(self.typed or self.complaint)

    def _match_complaint(self, text: str) -> bool:
        self.typed = _TYPED.match(text)
        if not self.typed:
            found = next((hit for pattern in _COMPLAINTS if (hit := pattern.match(text))), None)
            self.complaint = found["reason"] if found else ""
            if not found and not self.ended and (end := _ENDED.match(text)):
                self.ended = end["reason"]
        return self._has_reason

    def finish(self) -> RunBreak | None:
        kept = (*self.first, *self.last)
        if self.typed:
            return RunBreak(self.typed["type"], self.typed[0].removeprefix("E ").strip(), kept)
        message = self.complaint or self.ended
        return RunBreak("", message.strip(), kept) if message else None


MAX_LOG_PART: Final = 64 * 1024
"""The most characters of a log that one failure gets."""
_END: Final = 16 * 1024 * 1024
_LONGEST_LINE: Final = 4_000
_BEFORE, _AFTER = 20, 60
_MOST_SEARCHES: Final = 200
_ENDINGS: Final = (".log", ".txt", ".out")
_USUAL: Final = ("output", "console", "build", "stdout", "test", "tests")
_WORD: Final = re.compile(r"[A-Za-z_$][\w$]*")


def is_log_name(name: str) -> bool:
    return PurePath(name).suffix.lower() in _ENDINGS


def find_log_beside(report: SourceEntry) -> SourceEntry | None:
    """Return the log with the same stem or, in the same folder, a usual name; else None."""
    around = {name.lower(): entry for name, entry in report.neighbours().items()}
    stem = report.stem.lower()
    short = stem.removeprefix("test-")
    stems = (stem, short, f"{stem}-output", f"{short}-output", *_USUAL)
    names = (f"{name_stem}{ending}" for name_stem in stems for ending in _ENDINGS)
    return next((around[name] for name in names if name in around), None)


class LogParts:
    """One log, divided into the parts about each test."""

    def __init__(self, stream: BinaryIO, failures: Sequence[Failure]) -> None:
        self._lines, self._is_end = _read_last_lines(stream)
        self._parts, self._rest = _assign_lines(
            _find_mentions(self._lines, map(_make_test_key, failures))
        )
        self._tail: tuple[str, bool] | None = None

    def get_part(self, failure: Failure) -> tuple[str, bool]:
        """Return the log's lines about a test, else its end without the lines about others, and
        True if that is not all of it. Another test's error must not become this one's."""
        own = self._parts.get(_make_test_key(failure))
        if own is None:
            return self._get_end()
        text, was_cut = clip_text("\n".join(map(self._lines.__getitem__, own)), MAX_LOG_PART)
        return text.strip("\n"), self._is_end or was_cut or len(own) < len(self._lines)

    def _get_end(self) -> tuple[str, bool]:
        if self._tail is None:
            text = "\n".join(map(self._lines.__getitem__, self._rest)).strip("\n")
            is_part = self._is_end or len(self._rest) < len(self._lines)
            self._tail = (text[-MAX_LOG_PART:], is_part or len(text) > MAX_LOG_PART)
        return self._tail


def _read_last_lines(stream: BinaryIO) -> tuple[list[str], bool]:
    """Return the log's last lines, and True if there are more before them."""
    kept: deque[bytes] = deque()
    size, is_end = 0, False
    while part := stream.read(1 << 20):
        kept.append(part)
        size += len(part)
        while size - len(kept[0]) > _END:
            size -= len(kept.popleft())
            is_end = True
    lines = b"".join(kept).decode("utf-8", "replace").replace("\r\n", "\n").split("\n")
    return [line[:_LONGEST_LINE] for line in lines], is_end


def _make_test_key(failure: Failure) -> str:
    """Return the test's name without its parameters."""
    return re.split(r"[\[({]", failure.test_name, maxsplit=1)[0].strip() or failure.class_name


def _find_mentions(lines: Sequence[str], names: Iterable[str]) -> list[frozenset[str]]:
    """Return the names in each line. Tools join the parts of a longer name in many ways, so only
    its words count."""
    known = {name for name in names if name}
    words = {name for name in known if _WORD.fullmatch(name)}
    phrases = [(name, _normalize_text(name)) for name in sorted(known - words)[:_MOST_SEARCHES]]
    found = [frozenset(words.intersection(_WORD.findall(line))) for line in lines]
    if any(plain for _, plain in phrases):
        for at, line in enumerate(map(_normalize_text, lines)):
            found[at] |= {name for name, plain in phrases if plain and plain in line}
    return found


def _normalize_text(text: str) -> str:
    return " ".join(re.findall(r"\w+", text))


def _assign_lines(mentions: Sequence[frozenset[str]]) -> tuple[dict[str, list[int]], list[int]]:
    """Return the lines of each name, and the lines of none. A line belongs to the names mentioned
    last, if that was recent or they recur; else to those mentioned next."""
    last = {name: at for at, names in enumerate(mentions) for name in names}
    owners: list[frozenset[str]] = []
    current, until = frozenset[str](), 0
    for at, names in enumerate(mentions):
        if names:
            current, until = names, max(at + _AFTER, *(last[name] for name in names))
            first = max(0, at - _BEFORE)
            owners[first:] = [owner or names for owner in owners[first:]]
        owners.append(current if at < until else frozenset())
    parts: dict[str, list[int]] = {}
    for at, names in enumerate(owners):
        for name in names:
            parts.setdefault(name, []).append(at)
    return parts, [at for at, names in enumerate(owners) if not names]
