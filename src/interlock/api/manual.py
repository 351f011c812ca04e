"""The verb of the manual flow: save gives the answer to a step that was written out."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import msgspec
import typer

from interlock.api.project import RunConfig, open_run
from interlock.cli.app import app
from interlock.cli.show import Db, Json, document, say, tell
from interlock.system.errors import SourceError, StateError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from sqlalchemy import Connection

    from interlock.agents.wiring_files import Files
    from interlock.engine.circuit import Circuit, Step
    from interlock.journal.history import CaseSummary, DispatchRecord
    from interlock.signals.signal_file import Artifact


@app.command()
def save(
    case_id: Annotated[str, typer.Argument(metavar="CASE", help="The case, see status.")],
    file: Annotated[
        Path, typer.Option("-f", "--file", help="The artifact: JSON, with or without its wrapper.")
    ],
    run_id: Annotated[
        int | None, typer.Option("--run", help="The run; default the newest that has the case.")
    ] = None,
    db: Db = None,
    json: Json = False,
) -> None:
    """Save the answer to a case's open step. The run takes it when it works or is resumed."""
    from interlock.journal.database import reading, writer_of
    from interlock.journal.history import find_case
    from interlock.runtime.settings import database

    path = database(Path(), db)
    with reading(path) as connection:
        case = find_case(connection, case_id, run_id)
        asked, left = leave(connection, case, file)
    if json:
        fields = {"run_id": case.run_id, "case_id": case_id, "step": asked.step}
        document(fields | {"dispatch_id": asked.dispatch_id, "artifact_path": str(left)})
        return
    then = (
        "the running process takes it" if writer_of(path) else f"'interlock resume {case.run_id}'"
    )
    say(f"saved the answer of {case_id} to step {asked.step}; {then}")


def leave(
    connection: "Connection", case: "CaseSummary", file: Path, asking: str = ""
) -> "tuple[DispatchRecord, Path]":
    """Check a user's artifact and put it where the next sitting looks for the answer to a case's
    open step; `asking` is the command by which a case gets one."""
    from interlock.agents.files.file import leave_artifact, read_saved
    from interlock.agents.wiring_files import case_names
    from interlock.journal.history import list_dispatches
    from interlock.journal.runs import find_run
    from interlock.runtime.apps import unfit_review

    found = find_run(connection, case.run_id)
    asking = asking or f"interlock resume {case.run_id}"
    asked = _open_dispatch(case, list_dispatches(connection, case_no=case.case_no), asking)
    circuit = open_run(found)
    options = msgspec.convert(found.options, RunConfig)
    files = _files_for(circuit, options, asked)
    artifact = read_saved(file, asked.dispatch_id)
    _check(artifact, circuit.steps[asked.step], file)
    unfit = unfit_review(circuit.name, options.terms, asked.step, artifact.data)
    if unfit:
        raise SourceError(f"{file}: {unfit} Nothing was saved")
    left = leave_artifact(
        *(Path(files.root), case.run_id, case.case_no, asked.step, asked.attempt, artifact),
        names=case_names(circuit, files.root),
        given=file,
    )
    return asked, left


def take_laid(connection: "Connection", run_id: int, cases: "Iterable[CaseSummary]") -> None:
    """Take what somebody put, by hand, at the place of an open artifact, with or without its
    wrapper; what cannot be used is told and left there."""
    from interlock.agents.files.file import laid
    from interlock.agents.wiring_files import Files, case_names
    from interlock.journal.runs import find_run

    run = find_run(connection, run_id)
    files = msgspec.convert(msgspec.convert(run.options, RunConfig).files, Files)
    if files.dispatch != "manual":
        return
    names = case_names(open_run(run), files.root)
    for case in cases:
        papers = names(case.step, case.state.visits.get(case.step, 1))
        asked = case.dispatch_id or 0
        found = laid(Path(files.root), run_id, case.case_no, papers, asked) if asked else None
        if found is None:
            continue
        try:
            leave(connection, case, found)
        except (SourceError, StateError) as error:
            tell(f"note: {error}")


def _open_dispatch(
    case: "CaseSummary", life: "list[DispatchRecord]", asking: str
) -> "DispatchRecord":
    found = [each for each in life if each.dispatch_id == case.dispatch_id]
    if not found:
        over = f"it is {case.state.end or case.status}"
        why = over if case.status != "open" else f"'{asking}' asks for one"
        raise StateError(f"case {case.case_id} of run {case.run_id} waits for no answer: {why}")
    return found[0]


def _files_for(circuit: "Circuit", options: RunConfig, asked: "DispatchRecord") -> "Files":
    """Where that dispatch's papers lie; StateError if it does not travel by files."""
    from interlock.agents.wiring_files import FILED, Files
    from interlock.engine.circuit import HUMAN
    from interlock.runtime.agent_pool import agents_by_role

    files = msgspec.convert(options.files, Files)
    if circuit.steps[asked.step].gate and HUMAN not in options.agents:
        raise StateError(
            f"step {asked.step} asks a human: 'interlock answer {asked.dispatch_id} DECISION'"
        )
    spec = agents_by_role(circuit, options.agents, files.dispatch)[asked.role]
    if spec not in FILED:
        raise StateError(f"step {asked.step} is answered by {spec}, not by hand")
    return files


def _check(artifact: "Artifact", step: "Step", file: Path) -> None:
    from interlock.agents.carrier import Reply
    from interlock.engine.case import Refused
    from interlock.runtime.answers import absorb

    found = absorb(Reply(artifact.dispatch_id, msgspec.json.encode(artifact.data)), step)
    if isinstance(found, Refused):
        raise SourceError(f"{file}: {found.sentence} Nothing was saved")
