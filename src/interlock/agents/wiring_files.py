"""Asks that travel as files, or are pulled: from the word of a carrier to the carrier itself.

What the papers of a circuit's dispatches are called is known here, and where they lie.
"""

import secrets
from collections.abc import Callable
from functools import partial
from pathlib import Path

import msgspec

from interlock.agents.carrier import Carrier, Clock
from interlock.agents.files.batch import SIZE, BatchCarrier, PlainBriefer, ProgressGauge, single
from interlock.agents.files.case_folder import Names, plain_names
from interlock.agents.files.file import FileCarrier, ManualCarrier
from interlock.agents.mcp.carrier import McpCarrier
from interlock.engine.circuit import Circuit
from interlock.rca import briefing as rca_papers
from interlock.runtime.settings import DATABASE, pull_folder, query_desk
from interlock.system.folder_watch import Mode

ROOT = ".interlock/runs"
RCA = "rca"
DELIVERY = "delivery"
EPIC = "epic"
PULL = "mcp"
"""The carrier whose asks are pulled by workers."""


class Files(msgspec.Struct, frozen=True):
    """How asks that no agent takes travel as files: the word of a carrier, and its settings."""

    dispatch: str = ""
    root: str = ROOT
    watch: Mode = "auto"
    batch_size: int = SIZE


def file_carrier(
    files: Files,
    circuit: Circuit,
    clock: Clock,
    gauge: ProgressGauge,
    tokens: int,
    db: Path = DATABASE,
) -> Callable[[str], Carrier]:
    """What makes the carrier of a word in FILED, or of PULL, which has its place beside the
    database."""

    def made(word: str) -> Carrier:
        if word != PULL:
            return FILED[word](files, circuit, clock, gauge, tokens)
        nonce = partial(secrets.token_hex, 8)
        return McpCarrier(pull_folder(db), query_desk(db), clock, gauge, nonce)

    return made


def _file(
    files: Files, circuit: Circuit, clock: Clock, _gauge: ProgressGauge, _tokens: int
) -> Carrier:
    return FileCarrier(
        Path(files.root), clock, names=case_names(circuit, files.root), mode=files.watch
    )


def _manual(
    files: Files, circuit: Circuit, clock: Clock, _gauge: ProgressGauge, _tokens: int
) -> Carrier:
    return ManualCarrier(
        Path(files.root), clock, names=case_names(circuit, files.root), mode="poll"
    )


def _batch(
    files: Files, circuit: Circuit, clock: Clock, gauge: ProgressGauge, tokens: int
) -> Carrier:
    return BatchCarrier(
        FileCarrier(
            Path(files.root), clock, names=case_names(circuit, files.root), mode=files.watch
        ),
        clock,
        PlainBriefer(circuit.name, gauge),
        gauge,
        workspace=Path(),
        size=files.batch_size,
        tokens=tokens,
        phase_of=rca_papers.phase_of if circuit.name == RCA else single,
    )


def case_names(circuit: Circuit, root: str) -> Names:
    """What the papers of a circuit's dispatches are called in the folder of that name."""
    return rca_papers.names(Path(root)) if circuit.name == RCA else plain_names


FILED: dict[str, Callable[[Files, Circuit, Clock, ProgressGauge, int], Carrier]] = {
    "batch-file": _batch,
    "file": _file,
    "manual": _manual,
}
