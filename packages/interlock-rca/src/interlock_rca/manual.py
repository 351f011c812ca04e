"""An investigation by hand, a step per call: choose the case, show the next step and its state."""

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec

from interlock.api.manual import SavedArtifact, save_artifact
from interlock.api.project import Project
from interlock.api.work import load_circuit, work_on_run
from interlock.carriers.files.file import read_item_ids
from interlock.carriers.registry import FILE_CARRIERS, FileOptions
from interlock.engine.circuit import HUMAN, UNREADABLE, Circuit
from interlock.journal.connection import Connection
from interlock.journal.history import CaseSummary, list_cases, list_dispatches
from interlock.journal.runs import find_run
from interlock.runtime.agent_pool import assign_agents
from interlock.runtime.application import find_application
from interlock.runtime.settings import RunConfig
from interlock.system.errors import SourceError, StateError
from interlock_rca import analyze
from interlock_rca.case_folder import CaseState, build_state, list_entries, write_case_folders
from interlock_rca.knowledge.suites import Suite, find_case_of_item
from interlock_rca.report.markdown import render_regressions
from interlock_rca.report.outline import build_outline

_MAX_DIGITS = 20
"""No item number has as many digits."""
_MAX_NAMES = 10
_BY_HAND: dict[str, str | int] = {"dispatch": "manual"}


class CaseStanding(msgspec.Struct, frozen=True, kw_only=True):
    """The state of a case, and the decisions made in this call."""

    suite_id: int
    case_id: str
    case_no: int
    step: str
    status: str
    dispatch_id: int | None
    asked_of: str
    """Whose answer is awaited, as --agent and --dispatch name it."""
    prompt_path: str
    artifact_path: str
    folder: str
    complaint: str
    """Why its last answer was refused."""
    decided: list[dict[str, Any]]


def begin_by_hand(
    project: Project, connection: Connection, request: analyze.AnalysisRequest
) -> Suite:
    """Return the suite of these sources, begun if need be, to be answered by hand."""
    request = msgspec.structs.replace(request, files=_BY_HAND, change_options=_dispatch_by_hand)
    intakes = analyze.read_intakes(request)
    name = analyze.name_suite(request.sources, intakes)
    begun = analyze.begin_analysis(project, connection, request, name, intakes)
    if begun is None:
        raise StateError("nothing failed, so there is nothing to investigate")
    return begun[0]


def _dispatch_by_hand(options: RunConfig, suite: Suite | None) -> RunConfig:
    if suite is not None:
        return options
    return msgspec.structs.replace(options, agents={}, files={**options.files, **_BY_HAND})


def save_case_artifact(
    connection: Connection, suite: Suite, word: str, file: Path
) -> tuple[CaseSummary, SavedArtifact]:
    """Save an answer for the named case, or for the case that the artifact names."""
    case = find_case(connection, suite, word or _find_case_in(connection, suite, file))
    saved = save_artifact(connection, case, file, f"asterisk cursor --case-id {case.case_no}")
    return case, saved


def advance_cases(
    project: Project, connection: Connection, suite: Suite, numbers: Sequence[int]
) -> list[CaseStanding]:
    """Take the saved answers of these cases, write their next prompts, and return their states."""
    since = time.time()
    run = find_run(connection, suite.run_id)
    options = msgspec.convert(run.options, RunConfig)
    circuit = load_circuit(run)
    pool = project.build_pool(circuit, options)
    work_on_run(connection, run, pool, display=project.display, only=set(numbers))
    root = Path(msgspec.convert(options.files, FileOptions).root)
    report = render_regressions(build_outline(analyze.collect_findings(connection, suite)))
    write_case_folders(
        connection, root, suite.run_id, suite.suite_id, circuit, report, only=numbers
    )
    cases = {each.case_no: each for each in list_cases(connection, suite.run_id)}
    return [
        _read_standing(connection, suite, cases[number], circuit, options, since)
        for number in numbers
    ]


def read_case_state(connection: Connection, suite: Suite, case: CaseSummary) -> CaseState:
    """Return a case with its loops and history."""
    circuit = load_circuit(find_run(connection, suite.run_id))
    dispatches = list_dispatches(connection, case_no=case.case_no)
    return build_state(case, dispatches, suite.suite_id, circuit)


def list_open_cases(connection: Connection, suite: Suite) -> list[CaseSummary]:
    """Return the cases that wait for answers."""
    return [each for each in list_cases(connection, suite.run_id) if each.status == "open"]


def find_case(connection: Connection, suite: Suite, word: str) -> CaseSummary:
    """Return the case with that name, number or item; without a word, the first open one."""
    cases = list_cases(connection, suite.run_id)
    if not cases:
        raise StateError(f"suite {suite.suite_id} has no cases")
    if not word:
        return next((each for each in cases if each.status == "open"), cases[0])
    item = int(word) if word.isdecimal() and word.isascii() and len(word) < _MAX_DIGITS else 0
    known = {name: each for each in cases for name in (str(each.case_no), each.case_id)}
    found = known.get(word) or known.get(str(find_case_of_item(connection, suite.suite_id, item)))
    if found:
        return found
    names = ", ".join(each.case_id for each in cases[:_MAX_NAMES])
    more = f" and {len(cases) - _MAX_NAMES} more" if len(cases) > _MAX_NAMES else ""
    raise StateError(f"suite {suite.suite_id} has no case {word[:80]!r}; it has {names}{more}")


def _find_case_in(connection: Connection, suite: Suite, file: Path) -> str:
    """Return the case that an artifact names by its item's number, or "". Saving the file reports
    its problems."""
    items = read_item_ids(file)
    found = {item: find_case_of_item(connection, suite.suite_id, item) for item in items}
    if not any(found.values()):
        return ""
    if len(found) > 1:
        named = ", ".join(map(str, found))
        raise SourceError(f"{file} names the items {named}; say which case it is for: --case-id")
    return str(*found.values())


def _read_standing(
    connection: Connection,
    suite: Suite,
    case: CaseSummary,
    circuit: Circuit,
    options: RunConfig,
    since: float,
) -> CaseStanding:
    dispatches = list_dispatches(connection, case_no=case.case_no)
    decided = [each for each in dispatches if each.decision]
    last = decided[-1] if decided else None
    complaint = ""
    if last is not None and last.decision is not None and last.decision.signal == UNREADABLE:
        complaint = str(last.answer["reason"])
    root = Path(msgspec.convert(options.files, FileOptions).root)
    names = find_application(circuit.name).file_names(root)
    files = names(case.step, case.state.visits.get(case.step, 1))
    folder = root.resolve() / f"{suite.run_id}" / f"{case.case_no}"
    asked_of = _find_agent(circuit, options, case)
    waits = case.dispatch_id is not None and asked_of in FILE_CARRIERS
    recent = [each for each in decided if each.answered_at and each.answered_at >= since]
    return CaseStanding(
        suite_id=suite.suite_id,
        case_id=case.case_id,
        case_no=case.case_no,
        step=case.end or case.step,
        status=case.status,
        dispatch_id=case.dispatch_id,
        asked_of=asked_of,
        prompt_path=str(folder / files.prompt) if waits else "",
        artifact_path=str(folder / files.artifact) if waits else "",
        folder=str(folder),
        complaint=complaint,
        decided=msgspec.to_builtins(list(list_entries(recent, circuit))),
    )


def _find_agent(circuit: Circuit, options: RunConfig, case: CaseSummary) -> str:
    """Return whose answer an open case waits for."""
    if case.dispatch_id is None:
        return ""
    dispatch = str(options.files.get("dispatch", ""))
    agents = {HUMAN: HUMAN, **assign_agents(circuit, options.agents, dispatch)}
    return agents[circuit.steps[case.step].role]
