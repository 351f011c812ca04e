"""Write the case's folder for the manual flow: state.json, and the plain artifact of each step.

A projection of the database, written after each session. The wrapper around an artifact only
carries an answer to its dispatch, and is removed once the answer is taken.
"""

from collections.abc import Container, Iterable, Sequence
from pathlib import Path
from typing import Any

import msgspec

from interlock.carriers.files import DispatchFiles
from interlock.carriers.files.case_folder import MAX_ARTIFACT, SIGNAL_FILE, make_case_folder
from interlock.engine.case import Decision
from interlock.engine.circuit import ARTIFACT, Circuit
from interlock.journal.connection import Connection
from interlock.journal.history import CaseSummary, DispatchRecord, list_cases, list_dispatches
from interlock.signals.signal_file import Artifact, read_artifact
from interlock.system.files import UnreadableFile, read_file, write_file
from interlock.system.time import format_timestamp
from interlock_rca.check_answer import list_remarks
from interlock_rca.steps import ARTIFACT_FILES, F6, choose_names

STATE_FILE = "state.json"
REGRESSIONS_FILE = "regression-report.md"
_DEFAULT_FILES = DispatchFiles("prompt.md", "artifact.json")
_SHOWN = 80
"""The most characters of a value that a line of history repeats."""


class FolderEntry(msgspec.Struct, frozen=True):
    """One line of a case's history."""

    step: str
    outcome: str
    heuristic_id: str
    timestamp: str


class CaseState(msgspec.Struct, frozen=True):
    """The state of a case as its folder shows it."""

    case_id: int
    suite_id: int
    current_step: str
    loop_counts: dict[str, int]
    status: str
    """running, paused, done or error."""
    history: list[FolderEntry]


def write_case_folders(
    connection: Connection,
    root: Path,
    run_id: int,
    suite_id: int,
    circuit: Circuit,
    report: str,
    *,
    only: Sequence[int] = (),
) -> None:
    """Update the folders of a run's cases, or of those in `only`."""
    for case in list_cases(connection, run_id):
        if not only or case.case_no in only:
            _write_case_folder(connection, root, suite_id, case, circuit, report)


def build_state(
    case: CaseSummary, dispatches: Iterable[DispatchRecord], suite_id: int, circuit: Circuit
) -> CaseState:
    """Return the state that a case's folder shows."""
    sent_times = [each.sent_at for each in dispatches]
    first = FolderEntry(
        "INIT", "start circuit", "INIT", format_timestamp(min(sent_times, default=None))
    )
    return CaseState(
        case_id=case.case_no,
        suite_id=suite_id,
        current_step=case.state.end if case.status == "ended" else case.step,
        loop_counts=dict(case.state.loops),
        status=_find_status(case),
        history=[first, *list_entries(dispatches, circuit)],
    )


def _find_status(case: CaseSummary) -> str:
    if case.status == "ended":
        return "done" if case.state.end == "DONE" else "error"
    if case.status == "stuck":
        return "error"
    return "running" if case.dispatch_id is None else "paused"


def list_entries(dispatches: Iterable[DispatchRecord], circuit: Circuit) -> Iterable[FolderEntry]:
    """Yield the decisions among these dispatches, each with its reason."""
    for each in dispatches:
        if each.decision is not None:
            outcome = _format_outcome(each, each.decision, circuit)
            yield FolderEntry(
                each.step, outcome, each.decision.rule, format_timestamp(each.answered_at)
            )


def _format_outcome(each: DispatchRecord, decision: Decision, circuit: Circuit) -> str:
    """Say why the rule was taken, with the values that it read."""
    rule = circuit.find_rule(decision.rule) or circuit.otherwise
    answer = each.answer if isinstance(each.answer, dict) else {}
    parts = [decision.reason or (rule.why if rule else "")]
    if decision.signal != ARTIFACT:
        parts.insert(0, f"{decision.signal}: {answer.get('reason') or answer.get('reasoning', '')}")
    values = [
        f"{name} = {_format_value(value)}"
        for name, value in decision.read.items()
        if name != "answer" and not name.startswith("has(")
    ]
    parts += [f"({', '.join(values)})"] if values else []
    if decision.signal == ARTIFACT:
        parts += [f"Note: {remark}." for remark in list_remarks(decision.step, answer)]
    for noted in decision.noted:
        also = circuit.find_rule(noted)
        parts.append(f"{noted}: {also.why if also else ''}")
    return " ".join(part for part in parts if part)


def _format_value(value: Any) -> str:
    text = msgspec.json.encode(value).decode()
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"


def _write_case_folder(
    connection: Connection,
    root: Path,
    suite_id: int,
    case: CaseSummary,
    circuit: Circuit,
    report: str,
) -> None:
    dispatches = list_dispatches(connection, case_no=case.case_no)
    if not dispatches:
        return
    folder = make_case_folder(root.resolve(), case.run_id, case.case_no, _DEFAULT_FILES).folder
    if not (folder / STATE_FILE).exists():
        _restore_prompts(connection, root, folder, case)
    write_file(folder / STATE_FILE, _encode_json(build_state(case, dispatches, suite_id, circuit)))
    settled = {each.dispatch_id: each for each in dispatches if each.decision is not None}
    _unwrap_artifacts(folder, settled)
    answered = {
        each.step: each
        for each in settled.values()
        if each.decision and each.decision.signal == ARTIFACT
    }
    for step, each in answered.items():
        path = folder / ARTIFACT_FILES.get(step, step)
        asked_again = case.dispatch_id is not None and case.step == step
        if not asked_again and not path.exists():
            write_file(path, _encode_json(each.answer))
    if case.step == F6 or case.status == "ended":
        write_file(folder / REGRESSIONS_FILE, report.encode())


def _restore_prompts(connection: Connection, root: Path, folder: Path, case: CaseSummary) -> None:
    """Write the earlier prompts from the journal if a case's folder is new or was deleted."""
    names = choose_names(root)
    for each in list_dispatches(connection, case_no=case.case_no, texts=True):
        path = folder / names(each.step, each.attempt).prompt
        if each.prompt and not path.exists():
            write_file(path, each.prompt.encode())


def _unwrap_artifacts(folder: Path, settled: Container[int]) -> None:
    """Replace accepted wrappers by their plain artifacts."""
    for path in sorted(folder.glob("*.json")):
        raw = b"" if path.name in (STATE_FILE, SIGNAL_FILE) else read_file(path, MAX_ARTIFACT)
        found = raw if isinstance(raw, UnreadableFile) else read_artifact(raw)
        if isinstance(found, Artifact) and found.dispatch_id in settled:
            write_file(path, _encode_json(found.data))


def _encode_json(value: Any) -> bytes:
    return msgspec.json.format(msgspec.json.encode(value), indent=2) + b"\n"
