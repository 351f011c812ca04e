"""The log that lies beside a report: which file it is, and which part of it is about a test.

Knows the names tools give to such files. Looks at a bounded end of the log only.
"""

import re
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from pathlib import PurePath
from typing import BinaryIO, Final

from interlock.apps.rca.failure import Failure
from interlock.sources.bounded import bounded
from interlock.sources.leaf import Leaf

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


def log_beside(report: Leaf) -> Leaf | None:
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
        self._spans = _mentions(self._lines, {_key(each) for each in failures})
        self._tail: tuple[str, bool] | None = None

    def part(self, failure: Failure) -> tuple[str, bool]:
        """What the log says about the test, or else its end; and whether that is not all of it."""
        span = self._spans.get(_key(failure))
        if span is None:
            return self._end()
        first, last = max(0, span[0] - _BEFORE), min(len(self._lines), span[1] + _AFTER)
        text, _ = bounded("\n".join(self._lines[first:last]).strip("\n"), PART_BOUND)
        return text, self._is_end or first > 0 or last < len(self._lines) or len(text) > PART_BOUND

    def _end(self) -> tuple[str, bool]:
        if self._tail is None:
            text = "\n".join(self._lines).strip("\n")
            self._tail = (text[-PART_BOUND:], self._is_end or len(text) > PART_BOUND)
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


def _mentions(lines: Sequence[str], names: Iterable[str]) -> Mapping[str, tuple[int, int]]:
    """Of each name, the first and the last line that holds it."""
    found: dict[str, tuple[int, int]] = {}
    words = {name for name in names if _WORD.fullmatch(name)}
    for at, line in enumerate(lines):
        for word in words.intersection(_WORD.findall(line)):
            found[word] = (found.get(word, (at, at))[0], at)
    phrases = sorted(name for name in set(names) - words if name)[:_MOST_SEARCHES]
    for phrase in phrases:
        places = [at for at, line in enumerate(lines) if phrase in line]
        if places:
            found[phrase] = (places[0], places[-1])
    return found
