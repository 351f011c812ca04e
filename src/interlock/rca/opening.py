"""Opening a suite at the command line: sources, circuit, what was agreed, and who answers."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from interlock.api.project import RunConfig, open_run, usual_options
from interlock.cli.show import tell
from interlock.rca import suites
from interlock.rca.config import with_prompts

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from interlock.engine.circuit import Circuit
    from interlock.rca.config import RcaConfig
    from interlock.rca.knowledge.suites import Suite
    from interlock.rca.sources.read import SourceLaunch
    from interlock.runtime.circuits import Bundle


def read(sources: Sequence[str], name: str, rp_key: Path | None) -> "list[SourceLaunch]":
    from interlock.rca.sources.read import read_sources

    intakes = read_sources(sources, name=name, environ=os.environ, key_file=rp_key)
    for intake in intakes:
        for note in intake.notes:
            tell(f"note: {note}")
    return intakes


def circuit_for(words: list[str], prompts: Path | None) -> "tuple[Bundle, Circuit, dict[str, Any]]":
    """The circuit, as the project, the command line and the user's own templates change it."""
    from interlock.agents.wiring_files import RCA
    from interlock.cli.circuits import refuse_unsound
    from interlock.runtime.circuits import find_circuit
    from interlock.runtime.settings import read_settings

    bundle = with_prompts(find_circuit(RCA, Path()), prompts)
    written = bundle.open()
    usual = read_settings(Path()).thresholds
    changes = suites.thresholds_of(written.circuit, usual, words)
    circuit = written.circuit.with_thresholds(changes)
    refuse_unsound(msgspec.structs.replace(written, circuit=circuit), written.circuit)
    return bundle, circuit, changes


def before(
    connection: "Connection",
    suite: "Suite | None",
    changes: dict[str, Any],
    files: dict[str, str | int],
) -> RunConfig:
    """What was agreed before: by the suite, or by the project and by what is usual."""
    from interlock.journal.runs import find_run
    from interlock.rca.briefing import CALIBRATE, INVESTIGATIONS
    from interlock.runtime.settings import read_settings

    if suite is not None:
        run = find_run(connection, suite.run_id)
        own = open_run(run).thresholds
        if any(own.get(name) != value for name, value in changes.items()):
            tell("note: a suite keeps the thresholds it began with; --new begins another")
        return msgspec.convert(run.options, RunConfig)
    usual = usual_options(read_settings(Path()), changes)
    by_hand = files.get("dispatch") == "manual"
    terms = msgspec.structs.replace(
        suites.terms_in(usual), recall_first=True, review="dispatch" if by_hand else "human"
    )
    return msgspec.structs.replace(
        usual,
        files={"root": INVESTIGATIONS if by_hand else CALIBRATE},
        terms=msgspec.to_builtins(terms),
    )


def answered(options: RunConfig, terms: "RcaConfig") -> RunConfig:
    """With somebody for every role: the built-in analyst, if nobody else is named. A review that
    went to whoever is asked comes back to humans when they, or a rule, shall give it."""
    from interlock.agents.specs import BASIC
    from interlock.engine.circuit import HUMAN

    agents, dispatch = dict(options.agents), str(options.files.get("dispatch", ""))
    if not dispatch and "" not in agents:
        agents[""] = BASIC
    if terms.review == "dispatch":
        agents.setdefault(HUMAN, agents.get("") or dispatch)
    elif options.terms.get("review") == "dispatch":
        agents.pop(HUMAN, None)
    return msgspec.structs.replace(options, agents=agents, terms=msgspec.to_builtins(terms))
