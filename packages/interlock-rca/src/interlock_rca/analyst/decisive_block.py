"""Of a failed job's log without a good one to compare: the block of lines that decided it.

Complaints are gathered into blocks by where lines stand: below each other, indented, under the
name of a failed test. The best block is the one that says most and stands best: inside the step
that failed, before the line that says so, said seldom, and not followed by a pass. What comes close
to it is shown too, of what is further behind only the line that complains.
"""

import math
import re
from bisect import bisect_left
from collections import Counter, deque
from collections.abc import Sequence

from interlock.system.test_output.counts import (
    MOST_SHAPES,
    compute_shape,
    count_clocks,
    strip_clock,
    strip_console,
)
from interlock.system.test_output.failures import RUN_EVENT
from interlock.system.test_output.names import HEADING, WENT_WRONG, read_name
from interlock.system.text import strip_colours
from interlock_rca.analyst.block_choice import (
    GAP,
    LONGEST_BLOCK,
    MOST_BEHIND,
    MOST_NAMES,
    Block,
    ScoredLine,
    choose_blocks,
    count_reasons,
    score_line,
)
from interlock_rca.analyst.block_lines import (
    LOOKED_AT,
    NAMED,
    WORD,
    BlockLine,
    classify,
    is_led_to,
    is_wrapper,
    rate,
)
from interlock_rca.analyst.line_kinds import LineKind
from interlock_rca.analyst.masking import mask_line
from interlock_rca.sources.job_log import JobReader, Statement, Weight, is_annotation

_EXPLAINED = 0.05
"""What a reason beside it adds to a complaint."""
_MOST_BLOCKS = 2_000
_MOST_BEGINNINGS = 20_000
_MOST_REPEATS = 5
"""How often one complaint is shown."""
_PLAIN_LINES = 3
"""How many lines that say nothing by themselves may follow without indentation."""
_LAST = 25
_ABOVE = 3
_STOPPED = ("timeout", "cancelled")
"""Kinds of ends that are their own reason."""
_CLOCK_EVERY = 16
"""Of so many lines one is asked whether times stand before it."""

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
_LISTING = re.compile(r"\s*(?:\d+\s*)?[|\u2502](?:\s|$)")
"""A line of source beside its number."""
_BEGINNING = re.compile(r"\S+")
_DIGITS = re.compile(r"\d+")


class BlockChooser:
    """Lines in, the decisive ones out. One pass, in memory that does not grow with the log."""

    def __init__(self) -> None:
        self._job = JobReader()
        self._blocks: list[Block] = []
        self._open: Block | None = None
        self._gap: list[BlockLine] = []
        self._above: deque[BlockLine] = deque(maxlen=_ABOVE)
        self._last: deque[BlockLine] = deque(maxlen=_LAST)
        self._before_end: list[BlockLine] = []
        self._repeats: Counter[int] = Counter()
        self._begun: Counter[str] = Counter()
        """How many lines begin with a word, and how many of them complain."""
        self._complained: Counter[str] = Counter()
        self._clocks: Counter[int] = Counter()
        self._usual_clocks = 0
        self._ends: list[tuple[int, bool]] = []
        """The lines that say that a step or the job failed, and whether of the job."""
        self._annotation = 0
        self._steps: list[tuple[int, int]] = [(0, 0)]
        """The lines at which steps begin."""
        self._unsettled: list[Block] = []
        """Blocks since the last result of a test."""
        self._number = 0
        self._idle_shapes: dict[bytes, tuple[LineKind, str]] = {}
        """Lines, whatever their numbers, that neither complain nor say how anything went."""
        self._before, self._section = "", ""
        self._pending: BlockLine | None = None
        self._running = ""
        self._outputs: dict[str, deque[BlockLine]] = {}
        """What tests printed that run now, where a tool says which they are."""

    def add_line(self, raw: str) -> None:
        """The next line of the log."""
        self._number += 1
        if self._number % _CLOCK_EVERY == 1:
            self._clocks[count_clocks(strip_colours(raw))] += 1
        statement = self._job.add_line(raw)
        shape = compute_shape(raw)
        if self._open is None and not self._running and shape in self._idle_shapes:
            self._pass_idle(raw, *self._idle_shapes[shape])
            return
        text = strip_console(raw)
        bare = strip_clock(strip_colours(raw)).rstrip()
        if _STEP.match(bare):
            self._begin_step()
        line = BlockLine(self._number, raw, classify(raw, text, statement))
        if statement and self._settle_statement(line, statement):
            return
        is_heading = self._read_name(line, text)
        if line.kind == LineKind.EMPTY and not line.named:
            self._add_gap(line, bare)
            return
        is_wrapping = is_wrapper(statement, text)
        beginning = self._count_beginning(text, line.kind)
        self._rate_line(line, text, is_listed=not is_heading, is_wrapping=is_wrapping)
        self._settle_results(text)
        self._follow_run(line, text)
        block = self._open
        if line.named and (is_heading or not block or self._gap or line.path in self._outputs):
            self._begin(line, text, beginning)
        elif block and self._continues(block, line, text, beginning, is_wrapping):
            self._extend(block, line, text)
        elif line.kind >= LineKind.WORD:
            clocks = count_clocks(strip_colours(raw)) + bool(_TIMED_LOG.match(bare))
            self._begin(line, text, beginning).clocks = clocks
        else:
            self._open = None
            if statement is None:
                self._learn_idle(shape, bare, line.kind, beginning)
        self._remember(line)

    def _rate_line(self, line: BlockLine, text: str, *, is_listed: bool, is_wrapping: bool) -> None:
        if self._open and not self._gap and line.kind == LineKind.PLAIN and is_led_to(text):
            line.kind = LineKind.WORD
        if line.kind >= LineKind.WORD:
            line.strength = rate(line, text, is_listed=is_listed, is_wrapping=is_wrapping)
            self._repeats[_hash(text)] += 1

    def _settle_statement(self, line: BlockLine, statement: Statement) -> bool:
        """Whether the line is the system's own word that a step or the job has failed."""
        if statement.weight < Weight.STEP:
            return False
        if statement.kind not in _STOPPED and is_annotation(statement):
            self._annotation = self._number  # it only repeats a complaint
            return False
        self._settle_step(line, statement)
        return True

    def _pass_idle(self, raw: str, kind: LineKind, beginning: str) -> None:
        self._begun[beginning] += 1
        self._before, self._pending = "", None
        self._remember(BlockLine(self._number, raw, kind))

    def _learn_idle(self, shape: bytes, bare: str, kind: LineKind, beginning: str) -> None:
        if self._pending or _HEEDED.search(bare) or RUN_EVENT.match(bare):
            return
        if len(self._idle_shapes) >= MOST_SHAPES:
            self._idle_shapes.clear()
        self._idle_shapes[shape] = kind, beginning

    def finish(self) -> list[ScoredLine]:
        """The chosen lines in their order; of a log that complains of nothing, the last ones."""
        ends = self._list_ends()
        self._usual_clocks = max(self._clocks, key=lambda count: self._clocks[count], default=0)
        for block in self._blocks:
            block.score = self._score(block, ends)
        if not self._blocks:
            lines = self._before_end or [line for line in self._last if line.number <= ends[0]]
            return [ScoredLine(line, 0.2) for line in lines or self._last]
        return self._choose(ends[-1])

    def _list_ends(self) -> list[int]:
        """The lines at which steps failed; else those at which the job did; else the last line."""
        steps = [line for line, is_job in self._ends if not is_job]
        jobs = [line for line, is_job in self._ends if is_job]
        return steps or jobs or [self._annotation or self._number]

    def _begin_step(self) -> None:
        self._steps.append((self._number, self._steps[-1][1] + 1))
        if len(self._steps) > _MOST_BLOCKS:
            del self._steps[1]
        self._open = None

    def _settle_step(self, line: BlockLine, statement: Statement) -> None:
        """The system's own word ends what stood above; it is evidence itself where it stopped it"""
        if len(self._ends) < _MOST_BLOCKS:
            self._ends.append((self._number, statement.weight == Weight.JOB))
        self._open = None
        self._above.clear()
        self._gap, self._unsettled = [], []
        if statement.kind in _STOPPED:
            line.kind, line.strength = LineKind.ERROR, 1.0
            self._begin(line, line.text, "")
            self._open = None
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
        found = _BEGINNING.search(text[:LOOKED_AT])
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
            above.named, above.kind, above.strength = True, LineKind.ERROR, NAMED
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
        line.path = named.path
        return row.block

    def _follow_run(self, line: BlockLine, text: str) -> None:
        """Some tools name a test before what it prints, and say at the end how it went."""
        if event := RUN_EVENT.match(text):
            self._open = None
            self._running = event["running"] or event["begun"] or ""
            if self._running and len(self._outputs) < MOST_NAMES:
                self._outputs.setdefault(self._running, deque(maxlen=LONGEST_BLOCK))
            self._outputs.pop(event["ended"] or event["done"] or "", None)
        elif self._running in self._outputs and not line.named:
            self._outputs[self._running].append(line)

    def _take_output(self, path: str) -> list[BlockLine]:
        """What a failed test printed: its complaints are no blocks of their own."""
        output = self._outputs.pop(path)
        self._running = ""
        numbers = {line.number for line in output}
        self._blocks = [one for one in self._blocks if one.lines[0].number not in numbers]
        return list(output)

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
        is_rule = len(bare) > 60 and " " not in bare
        if len(self._gap) > most or (block and is_rule and len(block.lines) > 1):
            self._open = None

    def _continues(
        self, block: Block, line: BlockLine, text: str, beginning: str, is_wrapping: bool
    ) -> bool:
        is_deeper = _measure_indent(text) > block.indent
        if is_deeper and block.named:
            return True
        if is_wrapping or _is_end(line, text):
            return False
        is_led = line.kind == LineKind.WORD and not self._gap and is_led_to(text)
        if is_led or line.kind == LineKind.FRAME or _LISTING.match(text):
            return True
        is_next = text.startswith("=== ") or (not block.named and self._is_progress(beginning))
        if line.kind == LineKind.PLAIN and is_next:
            return False
        if is_deeper or (block.gutter and text.startswith(block.gutter)):
            return True
        if block.named and not (self._gap and block.is_indented):
            return block.plain < LONGEST_BLOCK and not _FAILED_COUNT.search(text[:LOOKED_AT])
        if self._gap:
            return False
        is_alike = beginning == block.beginning and len(beginning) > 1
        if line.strength >= block.strength + 0.2 and not (block.is_indented or is_alike):
            return False  # the cause, which stands below something lesser
        most_plain = _PLAIN_LINES if block.strength > WORD else 0
        return line.kind >= LineKind.WORD or block.plain < most_plain

    def _extend(self, block: Block, line: BlockLine, text: str) -> None:
        if line.strength and not line.named and self._repeats[_hash(text)] > _MOST_REPEATS:
            return
        if len(block.lines) < LONGEST_BLOCK:
            block.lines += [*self._gap, line]
        elif line.strength and len(block.lines) < 3 * LONGEST_BLOCK:
            block.lines.append(line)
        is_deeper = _measure_indent(text) > block.indent
        block.is_indented |= is_deeper
        block.plain = 0 if line.kind >= LineKind.FRAME or is_deeper else block.plain + 1
        if line.strength > block.strength:
            block.strength, block.says = line.strength, _hash(text)

    def _begin(self, line: BlockLine, text: str, beginning: str) -> Block:
        above: list[BlockLine] = []
        taken = self._blocks[-1].last if self._blocks else 0
        for one in reversed(self._above if not self._gap else ()):
            if one.number <= taken or not one.text.rstrip().endswith(":"):
                break
            above.insert(0, one)
        is_told = bool(line.path and self._outputs.get(line.path))
        if line.path in self._outputs:
            above = self._take_output(line.path)
        block = Block(
            lines=[*above, line],
            indent=_measure_indent(text),
            step=self._steps[-1][1],
            named=line.named,
            strength=line.strength,
            says=_hash(text),
            beginning=beginning,
            gutter="" if text[:1].isalnum() or text[:1].isspace() else text[:1],
        )
        self._open = None if is_told else block
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

    def _score(self, block: Block, ends: Sequence[int]) -> float:
        score = block.strength
        score += _EXPLAINED * count_reasons(block)
        score -= 0.04 * math.log2(max(1, self._repeats[block.says] - 1))
        score -= 0.25 if block.passed else 0.0
        score -= 0.2 if block.clocks > self._usual_clocks else 0.0
        score -= 0.3 if not block.named and self._is_progress(block.beginning) else 0.0
        at = bisect_left(ends, block.lines[0].number)
        if at == len(ends):
            return score - 0.5
        step = self._steps[bisect_left(self._steps, (ends[at] + 1, 0)) - 1][1]
        score -= 0.3 if block.step < step else 0.0
        away = max(0, ends[at] - block.last)
        score -= 0.0 if block.named else 0.03 * math.log2(1 + away / 10)
        return score - min(at, MOST_BEHIND) * GAP

    def _choose(self, end: int) -> list[ScoredLine]:
        first: dict[tuple[int, int], Block] = {}
        for block in self._blocks:
            said_first = first.setdefault((block.step, block.says), block)
            said_first.score = max(said_first.score, block.score)
        ranked = sorted(first.values(), key=lambda block: (-block.score, block.last))
        chosen = choose_blocks(ranked)
        shown = {line.line.test for line in chosen.values()}
        for block in ranked:  # every failed test is named once
            for line in block.lines if block.lines[0].number <= end else ():
                if line.named and line.test not in shown and len(shown) < MOST_NAMES:
                    shown.add(line.test)
                    chosen.setdefault(line.number, ScoredLine(line, score_line(line, block)))
        return [chosen[number] for number in sorted(chosen)]


def _hash(text: str) -> int:
    return hash(mask_line(text[:LOOKED_AT]))


def _measure_indent(text: str) -> int:
    return len(text) - len(text.lstrip())


def _is_end(line: BlockLine, text: str) -> bool:
    """Whether a line belongs to no complaint above it."""
    is_quiet = line.kind in (LineKind.QUIET, LineKind.HEADLINE)
    return is_quiet or bool(HEADING.match(text) or _PASSED.match(text[:LOOKED_AT]))
