"""A run that broke before any test could fail: what its console log says went wrong.

Knows how build tools, package managers and interpreters complain. Refuses to name a test: what
broke is the run itself.
"""

import re
from collections import deque
from collections.abc import Iterable

import msgspec

from interlock.system.test_output.ci_lines import bare

_LINE = 500
_KEPT = 200
"""Lines from the log's end that are kept, and as many from the first complaint on."""
_TYPED = re.compile(
    r"(?:E +)?(?P<type>(?:[A-Za-z_]\w*[.:]{1,2})*[A-Z]\w*(?:Error|Exception))(?:: (?P<said>.+)|$)"
)
_COMPLAINTS = (
    re.compile(r"(?:\S+: )?(?:fatal )?error(?:\[\w+\])?: (?P<said>.+)", re.IGNORECASE),
    re.compile(r"(?:npm|yarn|pnpm) (?:error|ERR!) (?!code |errno |A complete|path )(?P<said>\S.+)"),
    re.compile(r"\S+:\d+:(?:\d+:)? (?:fatal )?error: (?P<said>.+)"),
    re.compile(r"(?:\S+: )?(?P<said>.*(?:command not found|No such file or directory).*)"),
    re.compile(r"(?:fatal|panic): (?P<said>.+)"),
    re.compile(r"(?P<said>.*\b(?:could|can) ?not be (?:resolved|found|read|loaded|opened)\b.*)"),
    re.compile(r"(?P<said>(?:Could not|Cannot|Unable to|Failed to|Unresolv\w+) \S.+)"),
)
_ENDED = re.compile(
    r"(?P<said>BUILD FAIL\w+|make: \*\*\* .+|.*Process completed with exit code [1-9]\d*.*"
    r"|ERROR: Job failed.*|Killed|Segmentation fault.*|.*[Tt]he operation was canceled.*)"
)
"""That it broke, without why; counts only where nothing says why."""


class Break(msgspec.Struct, frozen=True):
    """Why a run broke, as its log says it, and the lines that speak of it."""

    type: str
    message: str
    lines: tuple[str, ...]


def find_break(lines: Iterable[str]) -> Break | None:
    """What broke the run; None if the log complains of nothing."""
    reader = _Reader()
    for line in lines:
        reader.take(bare(line[: 8 * _LINE])[:_LINE])
    return reader.done()


class _Reader:
    def __init__(self) -> None:
        self.typed: re.Match[str] | None = None
        self.complaint = ""
        self.ended = ""
        self.first: list[str] = []
        self.last: deque[str] = deque(maxlen=_KEPT)

    def take(self, line: str) -> None:
        told = line.strip()
        # An interpreter tells where before it tells what, so the lines before are wanted too.
        if not self._why and self._hear(told):
            self.first = list(self.last)[-_KEPT // 2 :]
            self.last.clear()
            self.first.append(line)
        elif self._why and len(self.first) < _KEPT:
            self.first.append(line)
        else:
            self.last.append(line)

    @property
    def _why(self) -> bool:
        return bool(self.typed or self.complaint)

    def _hear(self, told: str) -> bool:
        self.typed = _TYPED.match(told)
        if not self.typed:
            found = next((hit for each in _COMPLAINTS if (hit := each.match(told))), None)
            self.complaint = found["said"] if found else ""
            if not found and not self.ended and (end := _ENDED.match(told)):
                self.ended = end["said"]
        return self._why

    def done(self) -> Break | None:
        kept = (*self.first, *self.last)
        if self.typed:
            return Break(self.typed["type"], self.typed[0].removeprefix("E ").strip(), kept)
        said = self.complaint or self.ended
        return Break("", said.strip(), kept) if said else None
