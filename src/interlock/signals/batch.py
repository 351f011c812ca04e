"""The batch files of seeds 000 and 001: manifest and budget.

Knows their fields, lifecycles and what a budget still allows. Refuses to know who runs the cases.
"""

import json
from collections.abc import Mapping
from typing import Literal

import msgspec

from interlock.signals.catalogue import row_of
from interlock.system.strict_json import Problem, decode_record, encode_pretty

BatchStatus = Literal["pending", "in_progress", "done", "error"]
EntryStatus = Literal["pending", "claimed", "done", "error"]
Phase = Literal["triage", "investigation", "single"]


class BatchEntry(msgspec.Struct, frozen=True, kw_only=True):
    """One signal of a batch; the path is relative to the workspace root."""

    case_id: str
    signal_path: str
    status: EntryStatus = "pending"


class BatchManifest(msgspec.Struct, frozen=True, kw_only=True):
    """`batch-manifest.json`; fields in the seed's order."""

    batch_id: int
    status: BatchStatus
    phase: Phase
    created_at: str
    updated_at: str
    total: int
    briefing_path: str
    signals: tuple[BatchEntry, ...]


class BatchBudget(msgspec.Struct, frozen=True, kw_only=True):
    """`budget-status.json`; a total of zero means that nothing is limited."""

    total_budget: int
    used: int
    remaining: int
    percent_used: float


def new_manifest(
    batch_id: int, phase: Phase, at: str, briefing_path: str, signals: Mapping[str, str]
) -> BatchManifest:
    """A pending batch; `signals` maps a case to the path of its signal."""
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
    return decode_record(raw, BatchManifest)


def encode_manifest(manifest: BatchManifest) -> bytes:
    return encode_pretty(manifest)


def move_manifest(manifest: BatchManifest, status: BatchStatus, at: str) -> BatchManifest:
    if not _may_follow("batch", manifest.status, status):
        raise ValueError(f"a batch does not go from {manifest.status} to {status}")
    return msgspec.structs.replace(manifest, status=status, updated_at=at)


def move_entry(
    manifest: BatchManifest, case_id: str, status: EntryStatus, at: str
) -> BatchManifest:
    """The manifest with one signal in its next status."""
    entry = next((one for one in manifest.signals if one.case_id == case_id), None)
    if entry is None:
        raise ValueError(f"{case_id} is not in this batch")
    if not _may_follow("entry", entry.status, status):
        raise ValueError(f"{case_id} does not go from {entry.status} to {status}")
    moved = msgspec.structs.replace(entry, status=status)
    signals = tuple(moved if one is entry else one for one in manifest.signals)
    return msgspec.structs.replace(manifest, signals=signals, updated_at=at)


def merge_claims(ours: BatchManifest, theirs: BatchManifest) -> BatchManifest:
    """Our manifest with what a responder noted meanwhile: its claims, never a step back."""
    if theirs.batch_id != ours.batch_id:
        return ours
    noted = {(one.case_id, one.signal_path): one.status for one in theirs.signals}
    signals = tuple(
        _advanced(one, noted.get((one.case_id, one.signal_path))) for one in ours.signals
    )
    started = ours.status == "pending" and theirs.status == "in_progress"
    status = "in_progress" if started else ours.status
    return msgspec.structs.replace(ours, signals=signals, status=status)


def _advanced(entry: BatchEntry, noted: EntryStatus | None) -> BatchEntry:
    if noted is None or not _may_follow("entry", entry.status, noted):
        return entry
    return msgspec.structs.replace(entry, status=noted)


def close_batch(
    manifest: BatchManifest, at: str, *, deadline_passed: bool = False
) -> BatchManifest:
    """Set the batch's end, if it has come: `done` once every signal is settled, `error` when all
    failed or the deadline passed. A batch with some failures is done; the failed entries say so."""
    open_entries = [one for one in manifest.signals if one.status not in ("done", "error")]
    failed = [one for one in manifest.signals if one.status == "error"]
    if open_entries and not deadline_passed:
        return manifest
    all_failed = bool(failed) and len(failed) == len(manifest.signals)
    return move_manifest(manifest, "error" if open_entries or all_failed else "done", at)


def _may_follow(file: str, before: str, after: str) -> bool:
    row = row_of("file", f"{file}:{before}")
    return row is not None and after in row.then


def budget_of(total: int, used: int) -> BatchBudget:
    percent = used / total * 100 if total else 0.0
    return BatchBudget(total_budget=total, used=used, remaining=total - used, percent_used=percent)


def read_budget(raw: bytes) -> BatchBudget | Problem:
    return decode_record(raw, BatchBudget)


def encode_budget(budget: BatchBudget) -> bytes:
    """On one line, as the seed shows it."""
    return json.dumps(msgspec.to_builtins(budget)).encode() + b"\n"


def allowed_size(wanted: int, budget: BatchBudget | None) -> int:
    """How many signals the next batch may hold: one over 80 %, none when nothing is left."""
    if budget is None or budget.total_budget <= 0:
        return wanted
    if budget.remaining <= 0:
        return 0
    return min(wanted, 1) if budget.percent_used > 80 else wanted


def subagent_prompt(
    *, case_id: str, step: str, briefing_path: str, signal_path: str, dispatch_id: int | str
) -> str:
    """What a parent agent hands to the worker of one signal."""
    return f"""\
You are analyzing case {case_id} at pipeline step {step}.

1. Read the briefing at {briefing_path} for shared context.
2. Read the signal at {signal_path} to find the prompt and artifact paths.
3. Read the prompt file at the signal's prompt_path.
4. Analyze the failure data in the prompt.
5. Write your JSON artifact to the signal's artifact_path.
   Wrap it: {{"dispatch_id": {dispatch_id}, "data": {{your artifact}}}}.
"""
