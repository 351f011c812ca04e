"""`briefing.md`: what the workers of a batch should know before they start.

Knows the sections of seed 001 and how to keep text from logs harmless and short.
Refuses to know where the facts come from.
"""

import re
from collections.abc import Callable, Sequence
from typing import Final

import msgspec

from interlock.signals.batch import Phase

LARGEST_BRIEFING: Final = 1 << 16
_LONGEST_CELL: Final = 160
_ROW_LIMITS: Final = (100, 50, 25, 12, 6, 3, 1, 0)
_ANSI: Final = re.compile(r"\x1b(?:\[[0-?]*+[ -/]*+[@-~]|.?)")
_UNSEEN: Final = re.compile(
    r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b-\u200f\u202a-\u202e\u2060-\u2064\ufeff]"
)
_HARMLESS: Final = {
    ord("|"): r"\|",
    ord("`"): "'",
    ord("<"): "&lt;",
    ord("["): r"\[",
    ord("!"): r"\!",
}
_QUOTED: Final = {ord("`"): "'", ord("<"): "&lt;"}


class BriefingSymptom(msgspec.Struct, frozen=True):
    """What triage found for one case of an earlier batch."""

    case_id: str
    category: str
    component: str
    hypothesis: str
    severity: str


class Cluster(msgspec.Struct, frozen=True):
    """Cases that are investigated together."""

    name: str
    representative: str
    members: tuple[str, ...]
    key: str


class BriefingCause(msgspec.Struct, frozen=True):
    """A root cause that a completed investigation has found."""

    rca_id: str
    component: str
    defect_type: str
    summary: str


class ErrorPattern(msgspec.Struct, frozen=True):
    """A message seen in several cases."""

    pattern: str
    seen: int
    total: int
    component: str


class Briefing(msgspec.Struct, frozen=True, kw_only=True):
    """All that a briefing tells; lists have the newest last."""

    batch_id: int
    scenario: str
    suite_id: str
    phase: Phase
    in_batch: int
    total: int
    completed: int
    symptoms: tuple[BriefingSymptom, ...] = ()
    clusters: tuple[Cluster, ...] = ()
    rcas: tuple[BriefingCause, ...] = ()
    patterns: tuple[ErrorPattern, ...] = ()


def render_briefing(briefing: Briefing, largest: int = LARGEST_BRIEFING) -> str:
    """The file's text, with as many of the newest rows as the size allows."""
    for limit in _ROW_LIMITS:
        text = _render(briefing, limit)
        if len(text.encode()) <= largest:
            return text
    return text


def harmless(text: str, *, quoted: bool = False) -> str:
    """Text from a log as one line of plain words: no markup, no control, nothing hidden. Where it
    is `quoted` as code, only what could end the quotation is markup."""
    plain = _UNSEEN.sub("", _ANSI.sub("", text)).translate(_QUOTED if quoted else _HARMLESS)
    plain = " ".join(plain.split())
    return plain if len(plain) <= _LONGEST_CELL else plain[: _LONGEST_CELL - 1] + "…"


def _render(briefing: Briefing, limit: int) -> str:
    sections = [_context(briefing), _symptoms(briefing, limit)]
    if briefing.phase == "investigation":
        sections.append(_clusters(briefing, limit))
    sections += [_rcas(briefing, limit), _patterns(briefing, limit)]
    title = f"# Calibration Briefing — Batch {briefing.batch_id}"
    return "\n\n".join([title, *sections]) + "\n"


def _context(briefing: Briefing) -> str:
    return f"""\
## Run context
- Scenario: {harmless(briefing.scenario)}
- Suite ID: {harmless(briefing.suite_id)}
- Phase: {briefing.phase}
- Cases in this batch: {briefing.in_batch}
- Total cases in run: {briefing.total}
- Completed so far: {briefing.completed}"""


def _symptoms(briefing: Briefing, limit: int) -> str:
    columns = ("Case", "Category", "Component", "Defect Hypothesis", "Severity")
    found = [
        (s.case_id, s.category, s.component, s.hypothesis, s.severity) for s in briefing.symptoms
    ]
    return _table("Known symptoms (from prior batches)", columns, found, limit)


def _clusters(briefing: Briefing, limit: int) -> str:
    columns = ("Cluster", "Representative", "Members", "Key")
    found = [(c.name, c.representative, ", ".join(c.members), c.key) for c in briefing.clusters]
    return _table("Cluster assignments (investigation phase only)", columns, found, limit)


def _rcas(briefing: Briefing, limit: int) -> str:
    columns = ("RCA ID", "Component", "Defect Type", "Summary")
    found = [(r.rca_id, r.component, r.defect_type, r.summary) for r in briefing.rcas]
    return _table("Prior RCAs (from completed investigations)", columns, found, limit)


def _patterns(briefing: Briefing, limit: int) -> str:
    found = [
        f"- `{harmless(p.pattern, quoted=True)}` — seen in {p.seen}/{p.total} cases"
        + (f", associated with {harmless(p.component)}" if p.component else "")
        for p in briefing.patterns
    ]
    return _section("Common error patterns", [], found, limit, lambda count: f"- … {count} more")


def _table(title: str, columns: Sequence[str], found: Sequence[Sequence[str]], limit: int) -> str:
    head = [f"| {' | '.join(columns)} |", f"|{'|'.join('-' * (len(c) + 2) for c in columns)}|"]
    lines = [f"| {' | '.join(harmless(cell) for cell in cells)} |" for cells in found]
    return _section(title, head, lines, limit, lambda count: f"\n{count} earlier rows left out")


def _section(
    title: str,
    head: Sequence[str],
    lines: Sequence[str],
    limit: int,
    left_out: Callable[[int], str],
) -> str:
    if not lines:
        return f"## {title}\nnone yet"
    kept = lines[len(lines) - limit :] if limit < len(lines) else lines
    more = [left_out(len(lines) - len(kept))] if len(kept) < len(lines) else []
    return "\n".join([f"## {title}", *head, *kept, *more])
