"""Opening a suite at the command line: sources, circuit, what was agreed, and who answers."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from interlock.cli import suites
from interlock.cli.analysing import with_prompts
from interlock.cli.crew import Options, open_run, usual_options
from interlock.cli.show import tell

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from interlock.casework.terms import Terms
    from interlock.core.circuit import Circuit
    from interlock.runner.library import Bundle
    from interlock.sources.intake import Intake
    from interlock.store.suites import Suite


def read(sources: Sequence[str], name: str, rp_key: Path | None) -> "list[Intake]":
    from interlock.sources.intake import read_sources

    intakes = read_sources(sources, name=name, environ=os.environ, key_file=rp_key)
    for intake in intakes:
        for note in intake.notes:
            tell(f"note: {note}")
    return intakes


def circuit_for(words: list[str], prompts: Path | None) -> "tuple[Bundle, Circuit, dict[str, Any]]":
    """The circuit, as the project, the command line and the user's own templates change it."""
    from interlock import wiring
    from interlock.cli.verdict import refuse_unsound
    from interlock.runner.library import find_circuit

    bundle = with_prompts(find_circuit(wiring.RCA, Path()), prompts)
    written = bundle.open()
    usual = wiring.settings(Path()).thresholds
    changes = suites.thresholds_of(written.circuit, usual, words)
    circuit = written.circuit.with_thresholds(changes)
    refuse_unsound(msgspec.structs.replace(written, circuit=circuit), written.circuit)
    return bundle, circuit, changes


def before(
    connection: "Connection",
    suite: "Suite | None",
    changes: dict[str, Any],
    files: dict[str, str | int],
) -> Options:
    """What was agreed before: by the suite, or by the project and by what is usual."""
    from interlock import wiring
    from interlock.casework.papers import CALIBRATE, INVESTIGATIONS
    from interlock.store.runs import find_run

    if suite is not None:
        run = find_run(connection, suite.run_id)
        own = open_run(run).thresholds
        if any(own.get(name) != value for name, value in changes.items()):
            tell("note: a suite keeps the thresholds it began with; --new begins another")
        return msgspec.convert(run.options, Options)
    usual = usual_options(wiring.settings(Path()), changes)
    by_hand = files.get("dispatch") == "manual"
    terms = msgspec.structs.replace(
        suites.terms_in(usual), recall_first=True, review="dispatch" if by_hand else "human"
    )
    return msgspec.structs.replace(
        usual,
        files={"root": INVESTIGATIONS if by_hand else CALIBRATE},
        terms=msgspec.to_builtins(terms),
    )


def answered(options: Options, terms: "Terms") -> Options:
    """With somebody for every role: the built-in analyst, if nobody else is named. A review that
    went to whoever is asked comes back to humans when they, or a rule, shall give it."""
    from interlock import wiring
    from interlock.core.circuit import HUMAN

    agents, dispatch = dict(options.agents), str(options.files.get("dispatch", ""))
    if not dispatch and "" not in agents:
        agents[""] = wiring.BASIC
    if terms.review == "dispatch":
        agents.setdefault(HUMAN, agents.get("") or dispatch)
    elif options.terms.get("review") == "dispatch":
        agents.pop(HUMAN, None)
    return msgspec.structs.replace(options, agents=agents, terms=msgspec.to_builtins(terms))
