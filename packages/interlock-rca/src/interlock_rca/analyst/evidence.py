"""Evidence: the lines of a failing log that say why it failed, with the reason for each choice.

Where logs of good runs are given, a line counts when it complains, or goes on with a complaint, and
they do not say it too, numbers and names aside. Without them few lines are chosen: the block that
decided it (`decisive_block`). No project is known by name. One pass over the log, in memory that
does not grow with it.
"""

from collections import Counter, deque
from collections.abc import Iterable

import msgspec

from interlock.system.test_output.counts import strip_console
from interlock.system.test_output.names import HEADING, WENT_WRONG, read_name
from interlock.system.text import shorten
from interlock_rca.analyst.decisive_block import BlockChooser
from interlock_rca.analyst.line_kinds import (
    LineKind,
    classify_line,
    is_advice,
    is_consequence,
    is_precise,
)
from interlock_rca.analyst.masking import mask_line


class EvidenceLine(msgspec.Struct, frozen=True):
    """A chosen line."""

    line: int
    """Its number, from 1."""
    text: str
    score: float
    why: str


_CUT = 4_000
"""A longer line is cut here."""
_SHOWN = 500
"""In an excerpt."""
_GAP = "[… {} left out …]"
_MOST = 20_000
_SPARE = 500
_LAST = 25
_CONTINUATION_LINES = 8
"""How many lines may follow a complaint as part of it."""

_SCORES = {
    LineKind.ERROR: 0.8,
    LineKind.WORD: 0.6,
    LineKind.FRAME: 0.4,
    LineKind.PLAIN: 0.35,
    LineKind.HEADLINE: 0.3,
    LineKind.QUIET: 0.2,
    LineKind.EMPTY: 0.05,
}
_WHY = {
    LineKind.ERROR: "an error",
    LineKind.WORD: "a word of failure",
    LineKind.FRAME: "part of a trace",
    LineKind.PLAIN: "goes on with what stands above",
    LineKind.HEADLINE: "a headline",
    LineKind.QUIET: "near the end",
    LineKind.EMPTY: "between two chosen lines",
}


class _SeenLine(msgspec.Struct):
    at: int
    text: str
    kind: LineKind
    named: bool
    fresh: bool
    repeats: int

    def to_evidence(self) -> EvidenceLine:
        score = _SCORES[self.kind]
        if self.kind >= LineKind.WORD:
            text = strip_console(self.text)
            score += 0.1 if self.named else 0.0
            score += 0.08 if is_precise(text) else 0.0
            score -= 0.5 if is_advice(text) else 0.0
            score -= 0.2 if is_consequence(text) else 0.0
            score -= min(self.repeats, 3) * 0.03
        why = "names a failed test" if self.named else _WHY[self.kind]
        suffix = ", not in the good logs" if self.fresh else ""
        return EvidenceLine(self.at, self.text, round(max(score, 0.01), 3), why + suffix)


def hash_known_lines(logs: Iterable[Iterable[str]]) -> frozenset[int]:
    """What good logs say, masked, as hashes."""
    return frozenset(hash(mask_line(line[:_CUT])) for log in logs for line in log)


def choose_evidence(
    lines: Iterable[str], against: Iterable[Iterable[str]] = ()
) -> list[EvidenceLine]:
    """The lines that say why, in their order; of a log that complains of nothing, the last ones."""
    known = hash_known_lines(against)
    if not known:
        return _choose_decisive(lines)
    chooser = _EvidenceChooser(known)
    for line in lines:
        chooser.add_line(line)
    return chooser.finish()


def _choose_decisive(lines: Iterable[str]) -> list[EvidenceLine]:
    chooser = BlockChooser()
    for line in lines:
        chooser.add_line(line[:_CUT])
    return [
        EvidenceLine(
            chosen.line.number,
            chosen.line.text,
            chosen.score,
            "names a failed test" if chosen.line.named else _WHY[chosen.line.kind],
        )
        for chosen in chooser.finish()
    ]


def make_excerpt(text: str, most_chars: int) -> tuple[str, bool]:
    """The best lines of a log in their order, within so many characters; and whether it was cut."""
    if len(text) <= most_chars:
        return text, False
    lines = text.split("\n")
    room = most_chars - len(_GAP) - 20  # for what is left out after the last line
    kept: list[EvidenceLine] = []
    for line in sorted(choose_evidence(lines), key=lambda line: (-line.score, line.line)):
        size = min(len(line.text), _SHOWN) + len(_GAP) + 20
        if size <= room:
            kept.append(line)
            room -= size
    return _join_with_gaps(sorted(kept, key=lambda line: line.line), len(lines)), True


def _join_with_gaps(kept: list[EvidenceLine], total: int) -> str:
    parts: list[str] = []
    at = 0
    for line in kept:
        if line.line > at + 1:
            parts.append(_format_gap(line.line - at - 1))
        parts.append(shorten(line.text, _SHOWN))
        at = line.line
    if at < total:
        parts.append(_format_gap(total - at))
    return "\n".join(parts)


def _format_gap(count: int) -> str:
    return _GAP.format(f"{count} line{'' if count == 1 else 's'}")


class _EvidenceChooser:
    """Chooses what the good logs do not say."""

    def __init__(self, known: frozenset[int]) -> None:
        self.known = known
        self.chosen: list[_SeenLine] = []
        self.spare: deque[_SeenLine] = deque(maxlen=_SPARE)
        """Complaints that the good logs have too: better than nothing."""
        self.last: deque[_SeenLine] = deque(maxlen=_LAST)
        self.before_end: list[_SeenLine] = []
        """What stood directly above the line that says that all has failed."""
        self.repeated: Counter[int] = Counter()
        self.line_number = 0
        self.is_continuing = False
        self.followed = 0
        self.gap: list[_SeenLine] = []
        self.before, self.section = "", ""
        self.pending: _SeenLine | None = None

    def add_line(self, raw: str) -> None:
        self.line_number += 1
        raw = raw[:_CUT]
        text = strip_console(raw)
        wrong = self.pending is not None and bool(WENT_WRONG.match(text))
        kind = LineKind.ERROR if wrong else classify_line(raw)
        named = self._names_failed_test(raw, text)
        line = _SeenLine(self.line_number, raw, LineKind.ERROR if named else kind, named, True, 0)
        if line.kind == LineKind.EMPTY:
            self.gap.append(line)
            self.is_continuing = self.is_continuing and len(self.gap) == 1
            return
        self._compare_with_known(line)
        if line.kind == LineKind.HEADLINE and (above := self._find_lines_above()):
            self.before_end = above
        self.last.append(line)
        if self._is_wanted(line):
            self._choose(line)
        else:
            self.is_continuing = False
            if line.kind >= LineKind.WORD:
                self.spare.append(line)
        self.gap = []

    def finish(self) -> list[EvidenceLine]:
        best = self.chosen or [*self.spare] or self.before_end or [*self.last]
        return [line.to_evidence() for line in best]

    def _find_lines_above(self) -> list[_SeenLine]:
        """The last lines without chatter between them."""
        lines: list[_SeenLine] = []
        for line in reversed(self.last):
            if line.kind == LineKind.QUIET:
                break
            lines.insert(0, line)
        return lines

    def _names_failed_test(self, raw: str, text: str) -> bool:
        """Whether the line names a failed test; some tools say only on the next that it did."""
        if self.pending and WENT_WRONG.match(text):
            self._choose(self.pending)
        self.pending = None
        found = read_name(text, self.before, self.section)
        if heading := HEADING.match(text):
            self.section = heading["title"] or heading["line"]
        self.before = text or self.before
        if found and found[0].pending:
            self.pending = _SeenLine(self.line_number, raw, LineKind.ERROR, True, True, 0)
            return False
        return found is not None

    def _compare_with_known(self, line: _SeenLine) -> None:
        """Whether good logs say it too, and how often it was said before."""
        masked = hash(mask_line(line.text))
        line.fresh = masked not in self.known
        if line.kind >= LineKind.WORD:
            if len(self.repeated) > _MOST:
                self.repeated.clear()
            line.repeats = self.repeated[masked]
            self.repeated[masked] += 1

    def _is_wanted(self, line: _SeenLine) -> bool:
        if line.kind == LineKind.ERROR:
            return line.fresh or self.is_continuing
        more = self.is_continuing and self.followed < _CONTINUATION_LINES
        return line.fresh and (
            line.kind in (LineKind.WORD, LineKind.FRAME) or (line.kind == LineKind.PLAIN and more)
        )

    def _choose(self, line: _SeenLine) -> None:
        if len(self.chosen) >= _MOST:
            return
        if self.is_continuing and len(self.gap) == 1:
            self.chosen.append(self.gap[0])
        self.chosen.append(line)
        self.followed = self.followed + 1 if line.kind == LineKind.PLAIN else 0
        self.is_continuing = True
