"""What a check prints: how it began and how it ended, and how many tests it says it ran.

Knows that output may be endless, may be no text, and that a runner tells its numbers at the end.
Refuses to know whether the check is good.
"""

import re

import msgspec

from interlock.agents.cli.sight import OutputLine
from interlock.system.test_output.ci_counts import Counting
from interlock.system.test_output.ci_lines import bare, plain
from interlock.system.test_output.ci_log import read_log

HEAD = 8 * 1024
TAIL = 32 * 1024
LONGEST_LINE = 64 * 1024
_MOST_NAMES = 200
_SHORTEST_SUMMARY = 6
_SKIPPED_APART = ("pytest", "rust", "mocha", "playwright")
"""Runners whose number of tests leaves those out that were skipped."""
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")


class Printed(msgspec.Struct, frozen=True):
    """What is kept of a check's output, as text without colours."""

    head: str
    tail: str
    left_out: int
    test_count: int | None
    failed_count: int | None
    failed_tests: tuple[str, ...]


class OutputTail:
    """A reader of lines that keeps the two ends, whatever comes between."""

    def __init__(self, head: int = HEAD, tail: int = TAIL) -> None:
        self._most_head, self._most_tail = head, tail
        self._head = bytearray()
        self._tail = bytearray()
        self._dropped = 0
        self._counting = Counting()

    def take(self, line: OutputLine) -> tuple[()]:
        """Lines that came after our own signal do not count."""
        if not line.late:
            self._count(line.text)
            self._keep(line.text if line.half else line.text + b"\n")
        return ()

    def printed(self, stderr: bytes) -> Printed:
        """All of it; `stderr` is its end alone, and stands after what was printed."""
        for line in stderr.split(b"\n"):
            self._count(line)
        self._trim()
        kept = self._head + self._tail
        ends = bytes(self._tail) if self._dropped else bytes(kept)
        gap = b"\n" if ends and stderr and not ends.endswith(b"\n") else b""
        head, tail = _text(bytes(self._head)), _text(ends + gap + stderr)
        names = _failed_tests(head if self._dropped else "", tail)
        return Printed(
            head=head if self._dropped else "",
            tail=tail,
            left_out=self._dropped,
            test_count=self._tests(),
            failed_count=self._counting.total().failed if self._tests() is not None else None,
            failed_tests=names,
        )

    def _count(self, text: bytes) -> None:
        if _SHORTEST_SUMMARY <= len(text) <= 1_000:
            self._counting.take(bare(text.decode("utf-8", "replace")))

    def _keep(self, text: bytes) -> None:
        room = self._most_head - len(self._head)
        if room > 0:
            self._head += text[:room]
            text = text[room:]
        self._tail += text
        if len(self._tail) > 2 * self._most_tail:
            self._trim()

    def _trim(self) -> None:
        over = len(self._tail) - self._most_tail
        if over > 0:
            self._dropped += over
            del self._tail[:over]

    def _tests(self) -> int | None:
        total = self._counting.total()
        if not total.tests and not total.failed and not total.skipped:
            return None
        apart = any(self._counting.counted(tool) for tool in _SKIPPED_APART)
        return max(0, total.tests - (0 if apart else total.skipped))


def _text(content: bytes) -> str:
    text = plain(content.decode("utf-8", "replace").replace("\r\n", "\n"))
    return _CONTROL.sub("\ufffd", text)


def _failed_tests(head: str, tail: str) -> tuple[str, ...]:
    failures = read_log((f"{head}\n{tail}" if head else tail).split("\n")).failures
    names = {
        " ".join(part for part in (each.file, each.class_name, each.test_name) if part)
        for each in failures
    }
    return tuple(sorted(names))[:_MOST_NAMES]
