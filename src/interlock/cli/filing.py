"""Flags of the verbs that ask through files or let asks be pulled: which carrier, where, how."""

from collections.abc import Collection, Iterator
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import msgspec
import typer

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from interlock.engine.circuit import Circuit
    from interlock.journal.runs import Run


class DispatchMode(StrEnum):
    """Carriers whose asks and answers are files, or are pulled by MCP workers."""

    FILE = "file"
    BATCH_FILE = "batch-file"
    MANUAL = "manual"
    MCP = "mcp"


class WatchMode(StrEnum):
    """How folders are watched."""

    AUTO = "auto"
    INOTIFY = "inotify"
    POLL = "poll"


Dispatch = Annotated[
    DispatchMode | None,
    typer.Option("--dispatch", help="How roles without an agent are asked: by files, or pulled."),
]
Root = Annotated[
    Path | None, typer.Option("--root", help="The folder of those files; default .interlock/runs.")
]
Watching = Annotated[
    WatchMode | None, typer.Option("--watch", help="How answers are noticed; default auto.")
]
BatchSize = Annotated[
    int | None, typer.Option("--batch-size", min=1, help="Signals in one batch; default 4.")
]


def written_out(
    connection: "Connection", found: "Run", circuit: "Circuit", roles: Collection[str]
) -> Iterator[str]:
    """Which steps wait for an answer by hand, and what to do about them."""
    from interlock.agents.wiring_files import Files, case_names
    from interlock.journal.history import cases_of

    root = Path(msgspec.convert(found.options.get("files", {}), Files).root)
    papers = case_names(circuit, str(root))
    for case in cases_of(connection, found.run_id):
        step = circuit.steps.get(case.step)
        if case.dispatch_id is None or step is None or step.role not in roles:
            continue
        prompt = papers(step.name, case.state.visits.get(step.name, 1)).prompt
        path = root / f"{case.run_id}" / f"{case.case_no}" / prompt
        verbs = f"'interlock save {case.case_id} -f FILE' and 'interlock resume {case.run_id}'"
        yield f"case {case.case_id} waits for an answer to {path}: {verbs}"


def files_of(
    dispatch: DispatchMode | None,
    root: Path | None,
    watch: WatchMode | None,
    batch_size: int | None,
) -> dict[str, str | int]:
    """What was said about files, and only that: the rest stays as it was."""
    said = {"dispatch": dispatch, "root": root, "watch": watch, "batch_size": batch_size}
    return {
        name: value if isinstance(value, int) else str(value)
        for name, value in said.items()
        if value is not None
    }
