"""Which blocks of a failed job's log are shown, and which of their lines.

Every line has to earn its place: the best block is shown with what stands around its complaints, of
other failed tests the name and what was wrong, as long as there is room, then only the name.
"""

import re
from collections.abc import Sequence

import msgspec

from interlock.system.test_output.counts import strip_console
from interlock_rca.analyst.block_lines import LEAST, BlockLine
from interlock_rca.analyst.line_kinds import LineKind

LONGEST_BLOCK = 30
_BUDGET = 40
"""Lines in all, the names of further failed tests aside."""
_FULL = 24
"""So many lines may tell more of failed tests than their names and what was wrong."""
GAP = 0.05
"""How far behind the best a block may be and still be shown whole."""
_FAR_GAP = 0.2
"""How far behind its first complaint is still shown."""
_LOUD = 0.5
"""What a block must say by itself, if it is shown although it is behind."""
MOST_BEHIND = 3
MOST_NAMES = 100
_HEARD = 0.25
"""How much less than the loudest line of its block a complaint may say, and what stands around it
is still shown."""
_LINES_BEFORE, _LINES_AFTER, _FRAMES_AFTER, _LINES_AFTER_BEST = 2, 4, 3, 8
"""How many lines of a block are shown around each that complains."""
_LETTERS = re.compile(r"[^\W\d_]{2}")


class Block(msgspec.Struct):
    """Lines that belong together, at least one of which complains."""

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
    clocks: int = 0
    """How many times stand before it."""
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


def choose_blocks(ranked: Sequence[Block]) -> dict[int, ScoredLine]:
    """Lines by their numbers: the best block; of others that are about as good what they say in
    brief, if they are about tests, and else all."""
    chosen: dict[int, ScoredLine] = {}
    shown: set[str] = set()
    others = 0
    for block in ranked:
        behind, room = ranked[0].score - block.score, _BUDGET - len(chosen)
        if block.lines[0].test in shown or (room <= 0 and not block.named):
            continue
        if len(shown) >= MOST_NAMES:
            break
        if behind > GAP and block.strength < _LOUD <= ranked[0].score:
            continue
        others += behind > GAP
        if behind > _FAR_GAP or others > MOST_BEHIND:
            break
        lines = _trim(block.lines, _LINES_AFTER if chosen else _LINES_AFTER_BEST)
        is_long = len(lines) > (_FULL - len(chosen) if block.named else room)
        if chosen and (is_long or behind > GAP):
            lines = _pick_brief(block) if room > 0 else [line for line in lines if line.named]
        for line in lines:
            chosen[line.number] = ScoredLine(line, score_line(line, block))
        shown.update(line.test for line in lines if line.test)
    return chosen


def _pick_brief(block: Block) -> list[BlockLine]:
    """The names of tests in a block, and the loudest line that says why."""
    named = [line for line in block.lines if line.named]
    reasons = [line for line in block.lines if not line.named and line.strength > LEAST]
    loudest = max(reasons, key=lambda line: (line.strength, -line.number), default=None)
    if loudest is None:
        plain = (line for line in block.lines if not line.named and line.kind == LineKind.PLAIN)
        loudest = next(plain, None)
    return [*named, loudest] if loudest else named


def count_reasons(block: Block) -> int:
    """0 if the block is no more than the name of a test or one complaint, 2 if the name of a test
    has a complaint beside it, else 1."""
    if not block.named:
        return int(block.is_indented or len(block.lines) > 2)
    first = next(line.number for line in block.lines if line.named)
    others = [
        line
        for line in block.lines
        if not line.named
        and line.kind > LineKind.QUIET
        and (line.number > first or not line.text.rstrip().endswith(":"))
    ]
    return any(line.strength > LEAST for line in others) + bool(others)


def _trim(lines: list[BlockLine], lines_after: int) -> list[BlockLine]:
    """What complains, with the lines right above and below it: of a long message, listing or trace
    the rest only fills the page. Nothing blank and no advice at the end."""
    reasons = [line.strength for line in lines if not line.named]
    heard = max(reasons, default=0.0) - _HEARD
    complaints = [
        at for at, line in enumerate(lines) if not line.named and line.strength > max(heard, LEAST)
    ]
    complaints = complaints or [at for at, line in enumerate(lines) if line.named]
    kept = []
    for at, line in enumerate(lines):
        reach = _FRAMES_AFTER if line.kind == LineKind.FRAME else lines_after
        is_near = any(-_LINES_BEFORE <= at - one <= reach for one in complaints or [0])
        if line.named or (is_near and not _is_advice(line)):
            kept.append(line)
    kept = kept[:LONGEST_BLOCK]
    while len(kept) > 1 and kept[-1].kind == LineKind.EMPTY:
        kept = kept[:-1]
    return kept


def _is_advice(line: BlockLine) -> bool:
    return line.strength == LEAST and bool(_LETTERS.search(strip_console(line.text)))


def score_line(line: BlockLine, block: Block) -> float:
    """How much a line of a block says, from 0 to 1."""
    if line.strength:
        return round(max(0.02, block.score - (block.strength - line.strength)), 3)
    return 0.3 if line.kind == LineKind.FRAME else 0.25 if line.kind != LineKind.EMPTY else 0.01
