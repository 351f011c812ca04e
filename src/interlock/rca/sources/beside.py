"""The log that lies beside a report: which file it is, and which part of it is about a test.

Knows the names tools give to such files. Looks at a bounded end of the log only.
"""

import re
from collections import deque
from collections.abc import Iterable, Sequence
from pathlib import PurePath
from typing import BinaryIO, Final

from interlock.rca.failure import Failure
from interlock.rca.sources.leaf import SourceEntry
from interlock.system.bounded import bounded

PART_BOUND: Final = 64 * 1024
"""Characters of such a log that one failure gets."""
_END: Final = 16 * 1024 * 1024
_LONGEST_LINE: Final = 4_000
_BEFORE, _AFTER = 20, 60
_MOST_SEARCHES: Final = 200
_ENDINGS: Final = (".log", ".txt", ".out")
_USUAL: Final = ("output", "console", "build", "stdout", "test", "tests")
_WORD: Final = re.compile(r"[A-Za-z_$][\w$]*")


def is_log_name(name: str) -> bool:
    return PurePath(name).suffix.lower() in _ENDINGS


def log_beside(report: SourceEntry) -> SourceEntry | None:
    """The log of the same stem or, in the same folder, of a usual name; None if there is none."""
    around = {name.lower(): leaf for name, leaf in report.neighbours().items()}
    stem = report.stem.lower()
    short = stem.removeprefix("test-")
    stems = (stem, short, f"{stem}-output", f"{short}-output", *_USUAL)
    names = (f"{each}{ending}" for each in stems for ending in _ENDINGS)
    return next((around[name] for name in names if name in around), None)


class LogParts:
    """One log, and the parts of it that are about tests."""

    def __init__(self, stream: BinaryIO, failures: Sequence[Failure]) -> None:
        self._lines, self._is_end = _last_lines(stream)
        self._parts, self._rest = _shared_out(_mentions(self._lines, map(_key, failures)))
        self._tail: tuple[str, bool] | None = None

    def part(self, failure: Failure) -> tuple[str, bool]:
        """What the log says about the test, or else its end, without what it says about others;
        and whether that is not all of it. Another test's error must not become this one's."""
        own = self._parts.get(_key(failure))
        if own is None:
            return self._end()
        text, was_cut = bounded("\n".join(map(self._lines.__getitem__, own)), PART_BOUND)
        return text.strip("\n"), self._is_end or was_cut or len(own) < len(self._lines)

    def _end(self) -> tuple[str, bool]:
        if self._tail is None:
            text = "\n".join(map(self._lines.__getitem__, self._rest)).strip("\n")
            is_part = self._is_end or len(self._rest) < len(self._lines)
            self._tail = (text[-PART_BOUND:], is_part or len(text) > PART_BOUND)
        return self._tail


def _last_lines(stream: BinaryIO) -> tuple[list[str], bool]:
    """The lines of the log's end, and whether there is more before it."""
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


def _key(failure: Failure) -> str:
    """The test's name without its parameters."""
    return re.split(r"[\[({]", failure.test_name, maxsplit=1)[0].strip() or failure.class_name


def _mentions(lines: Sequence[str], names: Iterable[str]) -> list[frozenset[str]]:
    """Of each line, the names it holds. Tools join the parts of a longer name as they like, so of
    those only the words count."""
    known = {name for name in names if name}
    words = {name for name in known if _WORD.fullmatch(name)}
    phrases = [(name, _plain(name)) for name in sorted(known - words)[:_MOST_SEARCHES]]
    found = [frozenset(words.intersection(_WORD.findall(line))) for line in lines]
    if any(plain for _, plain in phrases):
        for at, line in enumerate(map(_plain, lines)):
            found[at] |= {name for name, plain in phrases if plain and plain in line}
    return found


def _plain(text: str) -> str:
    return " ".join(re.findall(r"\w+", text))


def _shared_out(mentions: Sequence[frozenset[str]]) -> tuple[dict[str, list[int]], list[int]]:
    """The lines of each name, and those of none. A line belongs to the names that were last spoken
    of, if that is not long ago or they are spoken of again; else to those that soon will be."""
    last = {name: at for at, names in enumerate(mentions) for name in names}
    owners: list[frozenset[str]] = []
    current, until = frozenset[str](), 0
    for at, names in enumerate(mentions):
        if names:
            current, until = names, max(at + _AFTER, *(last[name] for name in names))
            first = max(0, at - _BEFORE)
            owners[first:] = [each or names for each in owners[first:]]
        owners.append(current if at < until else frozenset())
    parts: dict[str, list[int]] = {}
    for at, names in enumerate(owners):
        for name in names:
            parts.setdefault(name, []).append(at)
    return parts, [at for at, names in enumerate(owners) if not names]
