"""What circuits have beside their tables: one module for each that has an application.

The rest of the program asks here by a circuit's name, and gets what every circuit has for one that
is not in the table. A module is loaded when its circuit is asked for: they bring a lot along.
"""

from collections.abc import Collection, Mapping
from functools import cache
from importlib import import_module
from typing import Any

from sqlalchemy import Connection

from interlock.agents.carrier import Carrier
from interlock.agents.wiring_files import DELIVERY, EPIC, RCA
from interlock.engine.circuit import Circuit
from interlock.journal.runs import Run
from interlock.runtime.staff import Application, Begin, RunSetup, plain

APPS = {
    DELIVERY: "interlock.delivery.delivery",
    EPIC: "interlock.epic.epic",
    RCA: "interlock.rca.rca",
}
"""Where each application is wired, as `APP`."""


@cache
def app_of(circuit: str) -> Application:
    if circuit not in APPS:
        return PLAIN
    found: Application = import_module(APPS[circuit]).APP
    return found


PLAIN = Application(plain)


def staff(
    connection: Connection,
    run: Run,
    circuit: Circuit,
    carriers: Mapping[str, Carrier],
    terms: Any,
    *,
    only: Collection[int] | None = None,
) -> RunSetup:
    """The carriers, with our own programs where they belong; an application if the circuit has
    one. Other cases than `only` these rest, if some are named."""
    return app_of(run.circuit).staff(connection, run, circuit, carriers, terms, only=only)


def beginning(circuit: str) -> Begin:
    return app_of(circuit).begin


def unfit_review(circuit: str, terms: Any, step: str, data: Mapping[str, Any]) -> str:
    """Why a reviewer's answer cannot be used, though its shape is right; nothing if it can."""
    return app_of(circuit).unfit_review(terms, step, data)


def programs_of(circuit: str) -> tuple[str, ...]:
    return app_of(circuit).programs


def prompt_names(circuit: str) -> tuple[str, ...]:
    """The names that prompts of a circuit can read beside those of every circuit."""
    return app_of(circuit).prompt_names
