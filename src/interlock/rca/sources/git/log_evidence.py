"""Evidence in a log: whether a line is there, and says what a reference says it does.

Words in quotes must stand in the log; words without may be an explanation. Pure: works on text.
"""

import re

from interlock.rca.findings import Evidence
from interlock.rca.sources.git.evidence_refs import Pointer

_QUOTES = "\"'`\N{LEFT DOUBLE QUOTATION MARK}\N{RIGHT DOUBLE QUOTATION MARK}"
_QUOTED = re.compile(rf"[{_QUOTES}](.{{3,}}?)[{_QUOTES}]")


class LogLines:
    """A log, by its lines."""

    def __init__(self, text: str) -> None:
        self._lines = text.removesuffix("\n").split("\n") if text else []

    def check(self, pointer: Pointer) -> Evidence:
        """What is true of a reference to the log; its `ref` is left empty."""
        quoted = _QUOTED.match(pointer.words)
        words = " ".join((quoted[1] if quoted else pointer.words).split())
        if not pointer.first:
            return self._somewhere(words, "line {} of the log")
        last = max(pointer.first, pointer.last)
        if not 0 < pointer.first <= last <= len(self._lines):
            return _said("missing", f"the log has only {len(self._lines):,} lines")
        there = " ".join(" ".join(self._lines[pointer.first - 1 : last]).split())
        if not words or words in there:
            return _said("found", f"line {pointer.first} of the log")
        if quoted:
            return self._somewhere(words, "it is line {} of the log")
        why = f"line {pointer.first} of the log; what is said of it does not stand there"
        return _said("found", why)

    def _somewhere(self, words: str, why: str) -> Evidence:
        """The first line that holds these words."""
        for number, line in enumerate(self._lines, start=1):
            if words in " ".join(line.split()):
                return _said("found", why.format(number))
        return _said("missing", f"these words are not in the log: {words[:100]}")


def _said(verdict: str, why: str) -> Evidence:
    return Evidence(ref="", verdict=verdict, why=why)
