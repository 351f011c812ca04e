"""Answers by hand: prompts are written out as files, and a later command saves the answer."""

from collections.abc import Iterable, Iterator
from pathlib import Path

import msgspec

from interlock.api.inbox import find_user
from interlock.api.work import load_circuit
from interlock.carriers.contract import Reply
from interlock.carriers.files.file import find_saved_artifact, read_saved_artifact, write_artifact
from interlock.carriers.registry import FILE_CARRIERS, FileOptions
from interlock.engine.case import RefusedAnswer
from interlock.engine.circuit import HUMAN, Circuit, Step
from interlock.journal.address import DatabaseAddress
from interlock.journal.connection import Connection
from interlock.journal.database import open_reader
from interlock.journal.history import CaseSummary, DispatchRecord, find_case, list_dispatches
from interlock.journal.runs import find_run
from interlock.runtime.agent_pool import assign_agents
from interlock.runtime.answers import decode_answer
from interlock.runtime.application import find_application
from interlock.runtime.settings import RunConfig
from interlock.signals.signal_file import Artifact
from interlock.system.errors import SourceError, StateError

REVIEWED_BY = "reviewed_by"
"""The name under which a saved answer to a gate is recorded, unless the answer names somebody."""


class SavedArtifact(msgspec.Struct, frozen=True):
    """An answer by hand that was checked and saved."""

    run_id: int
    case_id: str
    step: str
    dispatch_id: int
    artifact_path: str


def save_answer(db: DatabaseAddress, case_id: str, run_id: int | None, file: Path) -> SavedArtifact:
    """Save a user's answer to a case's open step, by default in the newest run that has the
    case."""
    with open_reader(db) as connection:
        return save_artifact(connection, find_case(connection, case_id, run_id), file)


def save_artifact(
    connection: Connection, case: CaseSummary, file: Path, asking: str = ""
) -> SavedArtifact:
    """Check a user's artifact and put it where the next session looks for the answer to a case's
    open step.

    `asking` is the command by which a case gets an open step.
    """
    found = find_run(connection, case.run_id)
    asking = asking or f"interlock resume {case.run_id}"
    asked = _open_dispatch(case, list_dispatches(connection, case_no=case.case_no), asking)
    circuit = load_circuit(found)
    application = find_application(circuit.name)
    options = msgspec.convert(found.options, RunConfig)
    files = _find_files(circuit, options, asked)
    artifact = read_saved_artifact(file, asked.dispatch_id)
    _check_artifact(artifact, circuit.steps[asked.step], file)
    unfit = application.check_review(options.application_config, asked.step, artifact.data)
    if unfit:
        raise SourceError(f"{file}: {unfit} Nothing was saved")
    if circuit.steps[asked.step].gate and not artifact.data.get(REVIEWED_BY):
        named = {**artifact.data, REVIEWED_BY: find_user()}
        artifact = msgspec.structs.replace(artifact, data=named)
    path = write_artifact(
        Path(files.root),
        case.run_id,
        case.case_no,
        application.file_names(Path(files.root))(asked.step, asked.attempt),
        artifact,
        given=file,
    )
    return SavedArtifact(case.run_id, case.case_id, asked.step, asked.dispatch_id, str(path))


def take_saved_files(
    connection: Connection, run_id: int, cases: Iterable[CaseSummary]
) -> Iterator[str]:
    """Take the artifacts that were put in place by hand, with or without their wrapper; yield the
    reason for each that cannot be used and stays there."""
    run = find_run(connection, run_id)
    files = msgspec.convert(msgspec.convert(run.options, RunConfig).files, FileOptions)
    if files.dispatch != "manual":
        return
    names = find_application(run.circuit).file_names(Path(files.root))
    for case in cases:
        paths = names(case.step, case.state.visits.get(case.step, 1))
        asked = case.dispatch_id or 0
        found = (
            find_saved_artifact(Path(files.root), run_id, case.case_no, paths, asked)
            if asked
            else None
        )
        if found is None:
            continue
        try:
            save_artifact(connection, case, found)
        except (SourceError, StateError) as error:
            yield str(error)


def _open_dispatch(case: CaseSummary, life: list[DispatchRecord], asking: str) -> DispatchRecord:
    found = [each for each in life if each.dispatch_id == case.dispatch_id]
    if not found:
        over = f"it is {case.state.end or case.status}"
        why = over if case.status != "open" else f"'{asking}' asks for one"
        raise StateError(f"case {case.case_id} of run {case.run_id} waits for no answer: {why}")
    return found[0]


def _find_files(circuit: Circuit, options: RunConfig, asked: DispatchRecord) -> FileOptions:
    """Return the options of that dispatch's files; StateError if it does not travel by files."""
    files = msgspec.convert(options.files, FileOptions)
    if circuit.steps[asked.step].gate and HUMAN not in options.agents:
        raise StateError(
            f"step {asked.step} asks a human: 'interlock answer {asked.dispatch_id} DECISION'"
        )
    spec = assign_agents(circuit, options.agents, files.dispatch)[asked.role]
    if spec not in FILE_CARRIERS:
        raise StateError(f"step {asked.step} is answered by {spec}, not by hand")
    return files


def _check_artifact(artifact: Artifact, step: Step, file: Path) -> None:
    found = decode_answer(Reply(artifact.dispatch_id, msgspec.json.encode(artifact.data)), step)
    if isinstance(found, RefusedAnswer):
        raise SourceError(f"{file}: {found.sentence} Nothing was saved")
