"""The files of a batch: manifest, budget and briefing, as seeds 000 and 001 define them.

Holds their fields, the order of statuses, what a budget still allows, and how text from logs is
shortened and made harmless. Carriers run the cases.
"""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Final, Literal

import msgspec

from interlock.signals.catalogue import find_signal
from interlock.system.strict_json import Problem, format_json, read_record
from interlock.system.text import shorten, strip_colours

BatchStatus = Literal["pending", "in_progress", "done", "error"]
EntryStatus = Literal["pending", "claimed", "done", "error"]
Phase = Literal["triage", "investigation"]


class BatchEntry(msgspec.Struct, frozen=True, kw_only=True):
    """One signal of a batch; the path is relative to the workspace root."""

    case_id: str
    signal_path: str
    status: EntryStatus = "pending"


class BatchManifest(msgspec.Struct, frozen=True, kw_only=True):
    """`batch-manifest.json`, with its fields in the seed's order."""

    batch_id: int
    status: BatchStatus
    phase: Phase
    created_at: str
    updated_at: str
    total: int
    briefing_path: str
    signals: tuple[BatchEntry, ...]


class BatchBudget(msgspec.Struct, frozen=True, kw_only=True):
    """`budget-status.json`; a total of zero means no limit."""

    total_budget: int
    used: int
    remaining: int
    percent_used: float


def build_manifest(
    batch_id: int, phase: Phase, at: str, briefing_path: str, signals: Mapping[str, str]
) -> BatchManifest:
    """Return a pending batch; `signals` maps a case to the path of its signal."""
    entries = tuple(BatchEntry(case_id=case, signal_path=path) for case, path in signals.items())
    return BatchManifest(
        batch_id=batch_id,
        status="pending",
        phase=phase,
        created_at=at,
        updated_at=at,
        total=len(entries),
        briefing_path=briefing_path,
        signals=entries,
    )


def read_manifest(raw: bytes) -> BatchManifest | Problem:
    return read_record(raw, BatchManifest)


def encode_manifest(manifest: BatchManifest) -> bytes:
    return format_json(manifest)


def move_manifest(manifest: BatchManifest, status: BatchStatus, at: str) -> BatchManifest:
    if not _may_follow("batch", manifest.status, status):
        raise ValueError(f"a batch does not go from {manifest.status} to {status}")
    return msgspec.structs.replace(manifest, status=status, updated_at=at)


def move_entry(
    manifest: BatchManifest, case_id: str, status: EntryStatus, at: str
) -> BatchManifest:
    """Return the manifest with one signal in its next status."""
    entry = next((one for one in manifest.signals if one.case_id == case_id), None)
    if entry is None:
        raise ValueError(f"{case_id} is not in this batch")
    if not _may_follow("entry", entry.status, status):
        raise ValueError(f"{case_id} does not go from {entry.status} to {status}")
    moved = msgspec.structs.replace(entry, status=status)
    signals = tuple(moved if one is entry else one for one in manifest.signals)
    return msgspec.structs.replace(manifest, signals=signals, updated_at=at)


def merge_claims(ours: BatchManifest, theirs: BatchManifest) -> BatchManifest:
    """Return our manifest with a responder's claims, which never move an entry back."""
    if theirs.batch_id != ours.batch_id:
        return ours
    noted = {(one.case_id, one.signal_path): one.status for one in theirs.signals}
    signals = tuple(
        _advance_entry(one, noted.get((one.case_id, one.signal_path))) for one in ours.signals
    )
    started = ours.status == "pending" and theirs.status == "in_progress"
    status = "in_progress" if started else ours.status
    return msgspec.structs.replace(ours, signals=signals, status=status)


def _advance_entry(entry: BatchEntry, noted: EntryStatus | None) -> BatchEntry:
    if noted is None or not _may_follow("entry", entry.status, noted):
        return entry
    return msgspec.structs.replace(entry, status=noted)


def close_batch(
    manifest: BatchManifest, at: str, *, deadline_passed: bool = False
) -> BatchManifest:
    """Close the batch if it is over: `done` once every signal is settled, `error` when all failed
    or the deadline passed. A batch with some failures is done; its failed entries are `error`."""
    open_entries = [one for one in manifest.signals if one.status not in ("done", "error")]
    failed = [one for one in manifest.signals if one.status == "error"]
    if open_entries and not deadline_passed:
        return manifest
    all_failed = bool(failed) and len(failed) == len(manifest.signals)
    return move_manifest(manifest, "error" if open_entries or all_failed else "done", at)


def _may_follow(file: str, before: str, after: str) -> bool:
    row = find_signal("file", f"{file}:{before}")
    return row is not None and after in row.then


def build_budget(total: int, used: int) -> BatchBudget:
    # One decimal, never rounded up: 100.0 means that nothing is left.
    percent = used * 1000 // total / 10 if total else 0.0
    return BatchBudget(total_budget=total, used=used, remaining=total - used, percent_used=percent)


def read_budget(raw: bytes) -> BatchBudget | Problem:
    return read_record(raw, BatchBudget)


def encode_budget(budget: BatchBudget) -> bytes:
    """Return the budget on one line, as the seed shows it."""
    return json.dumps(msgspec.to_builtins(budget)).encode() + b"\n"


def limit_batch_size(wanted: int, budget: BatchBudget | None) -> int:
    """Return the size of the next batch: at most one over 80 %, none when nothing is left."""
    if budget is None or budget.total_budget <= 0:
        return wanted
    if budget.remaining <= 0:
        return 0
    return min(wanted, 1) if budget.percent_used > 80 else wanted


def render_worker_prompt(
    *, case_id: str, step: str, briefing_path: str, signal_path: str, dispatch_id: int | str
) -> str:
    """Return the prompt that a parent agent passes to the worker of one signal."""
    return f"""\
You are analyzing case {case_id} at pipeline step {step}.

1. Read the briefing at {briefing_path} for shared context.
2. Read the signal at {signal_path} to find the prompt and artifact paths.
3. Read the prompt file at the signal's prompt_path.
4. Analyze the failure data in the prompt.
5. Write your JSON artifact to the signal's artifact_path.
   Wrap it: {{"dispatch_id": {dispatch_id}, "data": {{your artifact}}}}.

Do NOT read the files of scenarios or of other cases: they may hold the expected answers.
"""


LARGEST_BRIEFING: Final = 1 << 16
_LONGEST_CELL: Final = 160
_ROW_LIMITS: Final = (100, 50, 25, 12, 6, 3, 1, 0)
_INVISIBLE: Final = re.compile(
    r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b-\u200f\u202a-\u202e\u2060-\u2064\ufeff]"
)
_ESCAPED: Final = {
    ord("|"): r"\|",
    ord("`"): "'",
    ord("<"): "&lt;",
    ord("["): r"\[",
    ord("!"): r"\!",
}
_ESCAPED_IN_CODE: Final = {ord("`"): "'", ord("<"): "&lt;"}


class BriefingSymptom(msgspec.Struct, frozen=True):
    """The triage result of one case of an earlier batch."""

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
    """A root cause found by a completed investigation."""

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
    """The content of a briefing; lists end with the newest."""

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
    """Return the file's text, with as many of the newest rows as the size allows."""
    for limit in _ROW_LIMITS:
        text = _render_with_limit(briefing, limit)
        if len(text.encode()) <= largest:
            return text
    return text


def clean_log_text(text: str, *, quoted: bool = False) -> str:
    """Return text from a log on one line, without markup, control or hidden characters.

    In text `quoted` as code, only what could end the quotation is escaped.
    """
    plain = _INVISIBLE.sub("", strip_colours(text)).translate(
        _ESCAPED_IN_CODE if quoted else _ESCAPED
    )
    return shorten(" ".join(plain.split()), _LONGEST_CELL)


def _render_with_limit(briefing: Briefing, limit: int) -> str:
    clusters = [(c.name, c.representative, ", ".join(c.members), c.key) for c in briefing.clusters]
    tables: list[tuple[str, str, Sequence[Sequence[str]]]] = [
        (
            "Known symptoms (from prior batches)",
            "Case|Category|Component|Defect Hypothesis|Severity",
            [msgspec.structs.astuple(symptom) for symptom in briefing.symptoms],
        ),
        (
            "Cluster assignments (investigation phase only)",
            "Cluster|Representative|Members|Key",
            clusters,
        ),
        (
            "Prior RCAs (from completed investigations)",
            "RCA ID|Component|Defect Type|Summary",
            [msgspec.structs.astuple(cause) for cause in briefing.rcas],
        ),
    ]
    if briefing.phase != "investigation":
        del tables[1]
    sections = [
        _render_context(briefing),
        *(_render_table(title, heads.split("|"), rows, limit) for title, heads, rows in tables),
        _render_patterns(briefing, limit),
    ]
    title = f"# Calibration Briefing — Batch {briefing.batch_id}"
    return "\n\n".join([title, *sections]) + "\n"


def _render_context(briefing: Briefing) -> str:
    return f"""\
## Run context
- Scenario: {clean_log_text(briefing.scenario)}
- Suite ID: {clean_log_text(briefing.suite_id)}
- Phase: {briefing.phase}
- Cases in this batch: {briefing.in_batch}
- Total cases in run: {briefing.total}
- Completed so far: {briefing.completed}"""


def _render_patterns(briefing: Briefing, limit: int) -> str:
    found = [
        f"- `{clean_log_text(p.pattern, quoted=True)}` — seen in {p.seen}/{p.total} cases, "
        f"associated with {clean_log_text(p.component) or 'no component yet'}"
        for p in briefing.patterns
    ]
    return _render_section(
        "Common error patterns", [], found, limit, lambda count: f"- … {count} more"
    )


def _render_table(
    title: str, columns: Sequence[str], found: Sequence[Sequence[str]], limit: int
) -> str:
    head = [f"| {' | '.join(columns)} |", f"|{'|'.join('-' * (len(c) + 2) for c in columns)}|"]
    lines = [f"| {' | '.join(clean_log_text(cell) for cell in cells)} |" for cells in found]
    return _render_section(
        title, head, lines, limit, lambda count: f"\n{count} earlier rows left out"
    )


def _render_section(
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
