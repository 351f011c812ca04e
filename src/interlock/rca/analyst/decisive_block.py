"""Of a failed job's log without a good one to compare: the block of lines that decided it.

Complaints are gathered into blocks by where lines stand: below each other, indented, under the
name of a failed test. The best block is the one that says most and stands best: inside the step
that failed, before the line that says so, said seldom, and not followed by a pass. What comes close
to it is shown too, of what is further behind only the line that complains.
"""

import math
import re
from collections import Counter, deque
from collections.abc import Sequence

import msgspec

from interlock.rca.analyst.line_kinds import (
    LineKind,
    classify_line,
    has_bare_word,
    is_advice,
    is_consequence,
    is_finding,
    is_precise,
)
from interlock.rca.analyst.masking import mask_line
from interlock.rca.sources.job_log import JobReader, Statement, Weight, is_annotation
from interlock.system.test_output.counts import (
    MOST_SHAPES,
    compute_shape,
    strip_clock,
    strip_console,
)
from interlock.system.test_output.names import HEADING, WENT_WRONG, read_name
from interlock.system.text import strip_colours

_BUDGET = 40
"""Lines in all, the names of further failed tests aside."""
_LONGEST_BLOCK = 30
_GAP = 0.05
"""How far behind the best a block may be and still be shown whole."""
_FAR_GAP = 0.2
"""How far behind its first complaint is still shown."""
_MOST_BEHIND = 3
_MOST_NAMES = 100
_MOST_BLOCKS = 2_000
_MOST_BEGINNINGS = 20_000
_MOST_REPEATS = 5
"""How often one complaint is shown."""
_PLAIN_LINES = 3
"""How many lines that say nothing by themselves may follow without indentation."""
_LAST = 25
_ABOVE = 3
_CUT = 1_000

_NAMED, _LISTED = 0.8, 0.6
"""A failed test whose reason follows, and one in a list."""
_STRENGTHS = {LineKind.WORD: 0.4, LineKind.ERROR: 0.6}
_EXPLAINED = 0.05
_LEAST = 0.05
_STEP = re.compile(
    r"\$ \S|travis_fold:start|##\[(?:group\]Run |section\]Starting)|section_start:|\[Pipeline\] "
)
_TIMED_LOG = re.compile(
    r"\s*\W{0,2}(?:\S{1,30} )?\[?(?:\d{4}[-/]\d\d[-/]\d\d[T ])?\d\d:\d\d:\d\d\b"
)
"""A clock of its own: a program's log, which says much that is nobody's fault."""
_PASSED = re.compile(
    r"(?i)\s*(?:--- pass|\[ +ok \]|[\u2713\u2714\u221a] |ok \d|pass(?:ed)?\b|\.\.\.ignoring)"
    r"|.*\.\.\. ok$|.*\b(?:passed|ok)$|.*\b(?:failures|failed|errors)\W{1,3}0\b"
    r"|.*\b0 (?:failures|failed)\b"
)
_FAILED_COUNT = re.compile(
    r"(?i)\b(?:failures|failed|errors)\W{1,3}[1-9]"
    r"|(?<!\S)[1-9]\d* (?:\w+ )?(?:failed|failures?|failing|errors?)\b"
)
_HEEDED = re.compile(
    r"(?i)pass|fail|error|\bok\b|\u2713|\u2714|\u221a|ignoring"
    rf"|^(?:{_STEP.pattern})|^(?:={{3,}} |\w[\w ]+:$)"
)
"""Words and beginnings after which a line with other numbers may mean something else."""
_LISTING = re.compile(r"\s*\d*\s*[|\u2502](?:\s|$)")
"""A line of source beside its number."""
_BEGINNING = re.compile(r"\S+")
_DIGITS = re.compile(r"\d+")


class BlockLine(msgspec.Struct):
    """A line of a block."""

    number: int
    text: str
    kind: LineKind
    named: bool = False
    strength: float = 0.0
    test: str = ""
    """The failed test it names."""


class _Block(msgspec.Struct):
    lines: list[BlockLine]
    indent: int
    step: int
    named: bool
    strength: float
    says: int
    """Its strongest complaint, masked, as a hash."""
    beginning: str
    """The first word of its first complaint, without digits."""
    gutter: str = ""
    """The sign that begins its first complaint, and may begin the lines that belong to it."""
    plain: int = 0
    is_indented: bool = False
    """It has lines below and right of its first."""
    is_timed: bool = False
    passed: bool = False
    """A pass was reported below, before any other result."""
    score: float = 0.0

    @property
    def last(self) -> int:
        return self.lines[-1].number


class ScoredLine(msgspec.Struct, frozen=True):
    """A chosen line, with how much it says from 0 to 1."""

    line: BlockLine
    score: float


class BlockChooser:
    """Lines in, the decisive ones out. One pass, in memory that does not grow with the log."""

    def __init__(self) -> None:
        self._job = JobReader()
        self._blocks: list[_Block] = []
        self._open: _Block | None = None
        self._gap: list[BlockLine] = []
        self._above: deque[BlockLine] = deque(maxlen=_ABOVE)
        self._last: deque[BlockLine] = deque(maxlen=_LAST)
        self._before_end: list[BlockLine] = []
        self._repeats: Counter[int] = Counter()
        self._begun: Counter[str] = Counter()
        """How many lines begin with a word, and how many of them complain."""
        self._complained: Counter[str] = Counter()
        self._steps: list[tuple[int, int]] = [(0, 0)]
        """The lines at which steps begin."""
        self._unsettled: list[_Block] = []
        """Blocks since the last result of a test."""
        self._number = 0
        self._idle_shapes: dict[bytes, tuple[LineKind, str]] = {}
        """Lines, whatever their numbers, that neither complain nor say how anything went."""
        self._before, self._section = "", ""
        self._pending: BlockLine | None = None

    def add_line(self, raw: str) -> None:
        """The next line of the log."""
        self._number += 1
        statement = self._job.add_line(raw)
        shape = compute_shape(raw)
        if self._open is None and shape in self._idle_shapes:
            self._pass_idle(raw, *self._idle_shapes[shape])
            return
        text = strip_console(raw)
        bare = strip_clock(strip_colours(raw)).rstrip()
        if _STEP.match(bare):
            self._begin_step()
        line = BlockLine(self._number, raw, _classify(raw, text, statement))
        if statement and statement.weight >= Weight.STEP and not is_annotation(statement):
            self._settle_step(line, statement.kind)
            return
        is_heading = self._read_name(line, text)
        if line.kind == LineKind.EMPTY and not line.named:
            self._add_gap(line, bare)
            return
        is_wrapper = _is_wrapper(statement, text)
        beginning = self._count_beginning(text, line.kind)
        if line.kind >= LineKind.WORD:
            line.strength = _rate(line, text, is_listed=not is_heading, is_wrapper=is_wrapper)
            self._repeats[_hash(text)] += 1
        self._settle_results(text)
        block = self._open
        if line.named and (is_heading or not block or self._gap):
            self._begin(line, text, beginning)
        elif block and self._continues(block, line, text, beginning, is_wrapper):
            self._extend(block, line, text)
        elif line.kind >= LineKind.WORD:
            self._begin(line, text, beginning).is_timed = bool(_TIMED_LOG.match(bare))
        else:
            self._open = None
            if statement is None and not self._pending:
                self._learn_idle(shape, bare, line.kind, beginning)
        self._remember(line)

    def _pass_idle(self, raw: str, kind: LineKind, beginning: str) -> None:
        self._begun[beginning] += 1
        self._before, self._pending = "", None
        self._remember(BlockLine(self._number, raw, kind))

    def _learn_idle(self, shape: bytes, bare: str, kind: LineKind, beginning: str) -> None:
        if _HEEDED.search(bare):
            return
        if len(self._idle_shapes) >= MOST_SHAPES:
            self._idle_shapes.clear()
        self._idle_shapes[shape] = kind, beginning

    def finish(self) -> list[ScoredLine]:
        """The chosen lines in their order; of a log that complains of nothing, the last ones."""
        verdict = self._job.finish()
        end = verdict.failed_step.line if verdict.failed_step else self._number
        step = next(step for line, step in reversed(self._steps) if line <= end)
        for block in self._blocks:
            block.score = self._score(block, end, step)
        if not self._blocks:
            lines = self._before_end or [line for line in self._last if line.number <= end]
            return [ScoredLine(line, 0.2) for line in lines or self._last]
        return self._choose(end)

    def _begin_step(self) -> None:
        self._steps.append((self._number, self._steps[-1][1] + 1))
        if len(self._steps) > _MOST_BLOCKS:
            del self._steps[1]
        self._open = None

    def _settle_step(self, line: BlockLine, kind: str) -> None:
        """The system's own word ends what stood above; it is evidence itself where it stopped it"""
        self._open = None
        self._above.clear()
        self._gap, self._unsettled = [], []
        if kind in ("timeout", "cancelled"):
            line.kind, line.strength = LineKind.ERROR, 1.0
            self._begin(line, line.text, "")
        elif self._last and not self._blocks:
            self._before_end = self._find_lines_above() or self._before_end
        self._last.append(line)

    def _remember(self, line: BlockLine) -> None:
        self._gap = []
        if line.kind == LineKind.QUIET:
            self._above.clear()
        else:
            self._above.append(line)
        if line.kind == LineKind.HEADLINE:
            self._before_end = self._find_lines_above() or self._before_end
        self._last.append(line)

    def _count_beginning(self, text: str, kind: LineKind) -> str:
        found = _BEGINNING.search(text[:_CUT])
        beginning = _DIGITS.sub("#", found[0])[:40] if found else ""
        if len(self._begun) > _MOST_BEGINNINGS:
            self._begun.clear()
            self._complained.clear()
        self._begun[beginning] += 1
        self._complained[beginning] += kind >= LineKind.WORD
        return beginning

    def _is_progress(self, beginning: str) -> bool:
        """Whether many lines begin so, and few of them complain."""
        return self._begun[beginning] >= 5 and (
            self._complained[beginning] * 5 <= self._begun[beginning]
        )

    def _read_name(self, line: BlockLine, text: str) -> bool:
        """Mark a line that names a failed test; whether the reason follows."""
        if self._pending and WENT_WRONG.match(text):
            above = self._pending
            above.named, above.kind, above.strength = True, LineKind.ERROR, _NAMED
            self._begin(above, above.text, "")
            line.kind = LineKind.ERROR
        self._pending = None
        found = read_name(text, self._before, self._section)
        if heading := HEADING.match(text):
            self._section = heading["title"] or heading["line"]
        self._before = text or self._before
        if not found:
            return False
        row, named = found
        if row.pending:
            self._pending, line.test = line, named.name
            return False
        line.named, line.kind, line.test = True, LineKind.ERROR, named.name
        return row.block

    def _settle_results(self, text: str) -> None:
        """Note which blocks a pass follows."""
        if not self._unsettled:
            return
        if _FAILED_COUNT.search(text[:500]):
            self._unsettled = []
        elif _PASSED.match(text[:500]):
            for block in self._unsettled:
                block.passed = not block.named
            self._unsettled = []

    def _add_gap(self, line: BlockLine, bare: str) -> None:
        if self._open and _LISTING.match(bare):
            self._open.lines.append(line)
            return
        self._gap.append(line)
        self._above.clear()
        most = 2 if self._open and self._open.named else 1
        block = self._open
        is_rule = len(bare) > 60 and not bare[:1].isspace()
        if len(self._gap) > most or (block and is_rule and len(block.lines) > 1):
            self._open = None

    def _continues(
        self, block: _Block, line: BlockLine, text: str, beginning: str, is_wrapper: bool
    ) -> bool:
        is_deeper = _measure_indent(text) > block.indent
        if is_deeper and block.named:
            return True
        if line.kind in (LineKind.QUIET, LineKind.HEADLINE) or HEADING.match(text) or is_wrapper:
            return False
        if line.kind == LineKind.FRAME or _LISTING.match(text):
            return True
        is_next = text.startswith("=== ") or (not block.named and self._is_progress(beginning))
        if line.kind == LineKind.PLAIN and is_next:
            return False
        if is_deeper or (block.gutter and text.startswith(block.gutter)):
            return True
        if block.named and not (self._gap and block.is_indented):
            return block.plain < _LONGEST_BLOCK and not _FAILED_COUNT.search(text[:_CUT])
        if self._gap:
            return False
        if line.strength >= block.strength + 0.2 and not block.is_indented:
            return False  # the cause, which stands below something lesser
        most_plain = _PLAIN_LINES if block.strength > _STRENGTHS[LineKind.WORD] else 0
        return line.kind >= LineKind.WORD or block.plain < most_plain

    def _extend(self, block: _Block, line: BlockLine, text: str) -> None:
        if line.strength and not line.named and self._repeats[_hash(text)] > _MOST_REPEATS:
            return
        if len(block.lines) < _LONGEST_BLOCK:
            block.lines += [*self._gap, line]
        elif line.strength and len(block.lines) < 3 * _LONGEST_BLOCK:
            block.lines.append(line)
        is_deeper = _measure_indent(text) > block.indent
        block.is_indented |= is_deeper
        block.plain = 0 if line.kind >= LineKind.FRAME or is_deeper else block.plain + 1
        if line.strength > block.strength:
            block.strength, block.says = line.strength, _hash(text)

    def _begin(self, line: BlockLine, text: str, beginning: str) -> _Block:
        above: list[BlockLine] = []
        taken = self._blocks[-1].last if self._blocks else 0
        for one in reversed(self._above if not self._gap else ()):
            if one.number <= taken or not one.text.rstrip().endswith(":"):
                break
            above.insert(0, one)
        block = _Block(
            lines=[*above, line],
            indent=_measure_indent(text),
            step=self._steps[-1][1],
            named=line.named,
            strength=line.strength,
            says=_hash(text),
            beginning=beginning,
            gutter="" if text[:1].isalnum() or text[:1].isspace() else text[:1],
        )
        self._open = block
        self._blocks.append(block)
        self._unsettled.append(block)
        if len(self._blocks) > _MOST_BLOCKS:
            ranked = sorted(self._blocks, key=lambda one: (one.strength, one.last))
            dropped = set(map(id, ranked[: _MOST_BLOCKS // 2]))
            self._blocks = [one for one in self._blocks if id(one) not in dropped]
            self._unsettled = [block]
            if len(self._repeats) > _MOST_BEGINNINGS:
                self._repeats.clear()
        return block

    def _find_lines_above(self) -> list[BlockLine]:
        """The last lines without chatter between them."""
        lines: list[BlockLine] = []
        for line in reversed(self._last):
            if line.kind == LineKind.QUIET:
                break
            lines.insert(0, line)
        return lines

    def _score(self, block: _Block, end: int, step: int) -> float:
        score = block.strength
        score += _EXPLAINED if block.is_indented or len(block.lines) > 2 else 0.0
        score -= 0.04 * math.log2(max(1, self._repeats[block.says] - 1))
        score -= 0.25 if block.passed else 0.0
        score -= 0.2 if block.is_timed else 0.0
        score -= 0.3 if not block.named and self._is_progress(block.beginning) else 0.0
        if block.lines[0].number > end:
            return score - 0.5
        score -= 0.3 if block.step < step else 0.0
        away = 0.0 if block.named else 0.03 * math.log2(1 + max(0, end - block.last) / 10)
        return score - away

    def _choose(self, end: int) -> list[ScoredLine]:
        first: dict[tuple[int, int], _Block] = {}
        for block in self._blocks:
            said_first = first.setdefault((block.step, block.says), block)
            said_first.score = max(said_first.score, block.score)
        ranked = sorted(first.values(), key=lambda block: (-block.score, block.last))
        chosen = _choose_blocks(ranked)
        shown = {line.line.test for line in chosen.values()}
        for block in ranked:  # every failed test is named once
            for line in block.lines if block.lines[0].number <= end else ():
                if line.named and line.test not in shown and len(shown) < _MOST_NAMES:
                    shown.add(line.test)
                    chosen.setdefault(line.number, ScoredLine(line, _score_line(line, block)))
        return [chosen[number] for number in sorted(chosen)]


def _choose_blocks(ranked: Sequence[_Block]) -> dict[int, ScoredLine]:
    """Lines by their numbers: whole blocks as long as they are near the best, then the loudest
    line of a few."""
    chosen: dict[int, ScoredLine] = {}
    shown: set[str] = set()
    others = 0
    for block in ranked:
        behind, room = ranked[0].score - block.score, _BUDGET - len(chosen)
        if block.lines[0].test in shown or (room <= 0 and not block.named):
            continue
        others += behind > _GAP
        if behind > _FAR_GAP or others > _MOST_BEHIND:
            break
        lines = _trim(block.lines)
        if behind > _GAP or len(lines) > room:
            lines = [max(block.lines, key=lambda line: (line.strength, -line.number))]
        for line in lines:
            chosen[line.number] = ScoredLine(line, _score_line(line, block))
        shown.update(line.test for line in lines if line.test)
    return chosen


def _classify(raw: str, text: str, statement: Statement | None) -> LineKind:
    kind = classify_line(raw)
    if kind == LineKind.PLAIN and is_finding(text):
        kind = LineKind.WORD
    elif kind == LineKind.WORD and not has_bare_word(text):
        kind = LineKind.PLAIN
    is_known = statement is not None and statement.weight == Weight.COMPLAINT
    return LineKind.ERROR if is_known and kind == LineKind.WORD else kind


def _is_wrapper(statement: Statement | None, text: str) -> bool:
    """Whether a build tool says that what it called has failed."""
    return statement is not None and statement.weight == Weight.TOOL and not is_finding(text)


def _rate(line: BlockLine, text: str, *, is_listed: bool, is_wrapper: bool) -> float:
    """How much a complaint says by itself."""
    text = text[:_CUT]
    if is_advice(text):
        return _LEAST
    if line.named:
        return _LISTED if is_listed else _NAMED
    strength = _STRENGTHS[line.kind]
    if is_wrapper:
        strength -= 0.2
    elif is_precise(text):
        strength += 0.15
    elif not has_bare_word(text):
        strength -= 0.2  # marked as an error, but says nothing of one
    strength -= 0.3 if is_consequence(text) else 0.0
    return max(strength, _LEAST)


def _trim(lines: list[BlockLine]) -> list[BlockLine]:
    """Without blank lines and advice at the end; of a long one the beginning and what complains."""
    kept = lines[:_LONGEST_BLOCK]
    loudest = sorted(lines[3:], key=lambda line: (-line.strength, line.number))
    if loudest and loudest[0].number > kept[-1].number:
        kept = lines[:3] + sorted(loudest[: _LONGEST_BLOCK // 2], key=lambda line: line.number)
    while len(kept) > 1 and (kept[-1].kind == LineKind.EMPTY or kept[-1].strength == _LEAST):
        kept = kept[:-1]
    return kept


def _score_line(line: BlockLine, block: _Block) -> float:
    if line.strength:
        return round(max(0.02, block.score - (block.strength - line.strength)), 3)
    return 0.3 if line.kind == LineKind.FRAME else 0.25 if line.kind != LineKind.EMPTY else 0.01


def _hash(text: str) -> int:
    return hash(mask_line(text[:_CUT]))


def _measure_indent(text: str) -> int:
    return len(text) - len(text.lstrip())
