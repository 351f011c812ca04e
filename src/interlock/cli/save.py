"""The verb of the manual flow: save gives the answer to a step that was written out."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import msgspec
import typer

from interlock.cli.crew import Options, open_run
from interlock.cli.door import app
from interlock.cli.show import Db, Json, document, say, tell
from interlock.core.errors import SourceError, StateError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from sqlalchemy import Connection

    from interlock.core.circuit import Circuit, Step
    from interlock.store.history import CaseLine, Episode
    from interlock.wire.signal_file import Artifact
    from interlock.wiring import Files


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
    from interlock import wiring
    from interlock.store.database import reading
    from interlock.store.history import find_case
    from interlock.store.lock import writer_of

    path = wiring.database(Path(), db)
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
    connection: "Connection", case: "CaseLine", file: Path, asking: str = ""
) -> "tuple[Episode, Path]":
    """Check a user's artifact and put it where the next sitting looks for the answer to a case's
    open step; `asking` is the command by which a case gets one."""
    from interlock import wiring
    from interlock.dispatch.manual import leave_artifact, read_saved
    from interlock.store.history import life_of
    from interlock.store.runs import find_run
    from interlock.wiring.apps import unfit_review

    found = find_run(connection, case.run_id)
    asking = asking or f"interlock resume {case.run_id}"
    asked = _open_dispatch(case, life_of(connection, case.case_no), asking)
    circuit = open_run(found)
    options = msgspec.convert(found.options, Options)
    files = _files_for(circuit, options, asked)
    artifact = read_saved(file, asked.dispatch_id)
    _check(artifact, circuit.steps[asked.step], file)
    unfit = unfit_review(circuit.name, options.terms, asked.step, artifact.data)
    if unfit:
        raise SourceError(f"{file}: {unfit} Nothing was saved")
    left = leave_artifact(
        *(Path(files.root), case.run_id, case.case_no, asked.step, asked.attempt, artifact),
        names=wiring.names(circuit, files.root),
        given=file,
    )
    return asked, left


def take_laid(connection: "Connection", run_id: int, cases: "Iterable[CaseLine]") -> None:
    """Take what somebody put, by hand, at the place of an open artifact, with or without its
    wrapper; what cannot be used is told and left there."""
    from interlock import wiring
    from interlock.dispatch.manual import laid
    from interlock.store.runs import find_run

    run = find_run(connection, run_id)
    files = msgspec.convert(msgspec.convert(run.options, Options).files, wiring.Files)
    if files.dispatch != "manual":
        return
    names = wiring.names(open_run(run), files.root)
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


def _open_dispatch(case: "CaseLine", life: "list[Episode]", asking: str) -> "Episode":
    found = [each for each in life if each.dispatch_id == case.dispatch_id]
    if not found:
        over = f"it is {case.state.end or case.status}"
        why = over if case.status != "open" else f"'{asking}' asks for one"
        raise StateError(f"case {case.case_id} of run {case.run_id} waits for no answer: {why}")
    return found[0]


def _files_for(circuit: "Circuit", options: Options, asked: "Episode") -> "Files":
    """Where that dispatch's papers lie; StateError if it does not travel by files."""
    from interlock import wiring
    from interlock.core.circuit import HUMAN

    files = msgspec.convert(options.files, wiring.Files)
    if circuit.steps[asked.step].gate and HUMAN not in options.agents:
        raise StateError(
            f"step {asked.step} asks a human: 'interlock answer {asked.dispatch_id} DECISION'"
        )
    spec = wiring.agents_by_role(circuit, options.agents, files.dispatch)[asked.role]
    if spec not in wiring.FILED:
        raise StateError(f"step {asked.step} is answered by {spec}, not by hand")
    return files


def _check(artifact: "Artifact", step: "Step", file: Path) -> None:
    from interlock.core.case import Refused
    from interlock.dispatch.carrier import Reply
    from interlock.runner.absorb import absorb

    found = absorb(Reply(artifact.dispatch_id, msgspec.json.encode(artifact.data)), step)
    if isinstance(found, Refused):
        raise SourceError(f"{file}: {found.sentence} Nothing was saved")
