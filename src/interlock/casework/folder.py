"""The case's folder as the manual flow shows it: state.json, and artifacts of steps that nobody had
to write by hand. A projection of the database, written after each sitting and never read back.
"""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import msgspec
from sqlalchemy import Connection

from interlock.apps.rca.steps import ARTIFACTS, F6
from interlock.casework.facts import told
from interlock.core.circuit import Circuit
from interlock.dispatch.case_folder import Papers, case_folder
from interlock.dispatch.safe_file import write_whole
from interlock.store.history import CaseLine, Episode, cases_of, life_of

STATE = "state.json"
REGRESSIONS = "regression-report.md"
_PAPERS = Papers("prompt.md", "artifact.json")


class Entry(msgspec.Struct, frozen=True):
    """One line of a case's history."""

    step: str
    outcome: str
    heuristic_id: str
    timestamp: str


class CaseState(msgspec.Struct, frozen=True):
    """Where a case stands, in the words of its folder."""

    case_id: int
    suite_id: int
    current_step: str
    loop_counts: dict[str, int]
    status: str
    """running, paused, done or error."""
    history: list[Entry]


def project(
    connection: Connection,
    root: Path,
    run_id: int,
    suite_id: int,
    circuit: Circuit,
    report: str,
    *,
    only: Sequence[int] = (),
) -> None:
    """Bring the folders of a run's cases up to date, or `only` those of some."""
    for case in cases_of(connection, run_id):
        if not only or case.case_no in only:
            _write(connection, root, suite_id, case, circuit, report)


def state_of(case: CaseLine, life: Iterable[Episode], suite_id: int, circuit: Circuit) -> CaseState:
    """A case's state as its folder tells it."""
    begun = [each.sent_at for each in life]
    first = Entry("INIT", "start circuit", "INIT", told(min(begun, default=None)))
    return CaseState(
        case_id=case.case_no,
        suite_id=suite_id,
        current_step="DONE" if case.status == "ended" else case.step,
        loop_counts=dict(case.state.loops),
        status=_status(case),
        history=[first, *_entries(life, circuit)],
    )


def _status(case: CaseLine) -> str:
    if case.status == "ended":
        return "done" if case.state.end == "DONE" else "error"
    if case.status == "stuck":
        return "error"
    return "running" if case.dispatch_id is None else "paused"


def _entries(life: Iterable[Episode], circuit: Circuit) -> Iterable[Entry]:
    for each in life:
        if each.decision is None:
            continue
        rule = circuit.rule(each.decision.rule) or circuit.otherwise
        outcome = each.decision.reason or (rule.why if rule else "")
        yield Entry(each.step, outcome, each.decision.rule, told(each.answered_at))


def _write(
    connection: Connection,
    root: Path,
    suite_id: int,
    case: CaseLine,
    circuit: Circuit,
    report: str,
) -> None:
    life = life_of(connection, case.case_no)
    if not life:
        return
    folder = case_folder(root.resolve(), case.run_id, case.case_no, _PAPERS).folder
    write_whole(folder / STATE, _json(state_of(case, life, suite_id, circuit)))
    answered = {each.step: each for each in life if each.decision is not None}
    for step, each in answered.items():
        path = folder / ARTIFACTS.get(step, step)
        asked_again = case.dispatch_id is not None and case.step == step
        if not asked_again and not path.exists():
            write_whole(path, _json({"dispatch_id": each.dispatch_id, "data": each.answer}))
    if case.step == F6 or case.status == "ended":
        write_whole(folder / REGRESSIONS, report.encode())


def _json(value: Any) -> bytes:
    return msgspec.json.format(msgspec.json.encode(value), indent=2) + b"\n"
