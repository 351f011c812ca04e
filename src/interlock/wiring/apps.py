"""What circuits have beside their tables: one row for each that has an application.

The rest of the program asks here by a circuit's name, and gets what every circuit has for one that
is not in the table.
"""

from collections.abc import Callable, Collection, Mapping
from typing import Any

import msgspec
from sqlalchemy import Connection

from interlock.apps.delivery import params as delivery_params
from interlock.apps.epic import params as epic_params
from interlock.apps.rca import params as rca_params
from interlock.casework.intake import begin_cases
from interlock.core.circuit import Circuit
from interlock.dispatch.carrier import Carrier
from interlock.expedition import pilot as epic_pilot
from interlock.foreman import steps as foreman_steps
from interlock.store.runs import Run, begin_run
from interlock.wiring import DELIVERY, EPIC, RCA, delivery, epic, rca
from interlock.wiring.staff import Staff

Begin = Callable[..., int]
"""What begins a run of cases that a user wrote down."""


class App(msgspec.Struct, frozen=True):
    """What one circuit has."""

    staff: Callable[..., Staff]
    begin: Begin = begin_run
    unfit_review: Callable[[Any, str, Mapping[str, Any]], str] = lambda _terms, _step, _data: ""
    prompt_names: tuple[str, ...] = ()
    programs: tuple[str, ...] = ()
    """The roles that our own code plays: nobody is asked for an agent for them."""


APPS: dict[str, App] = {
    DELIVERY: App(
        delivery.staff, prompt_names=delivery_params.NAMES, programs=foreman_steps.PROGRAMS
    ),
    EPIC: App(
        epic.staff,
        epic.refuse_cases,
        prompt_names=epic_params.NAMES,
        programs=epic_pilot.PROGRAMS,
    ),
    RCA: App(rca.staff, begin_cases, rca.unfit_review, rca_params.NAMES),
}


def staff(
    connection: Connection,
    run: Run,
    circuit: Circuit,
    carriers: Mapping[str, Carrier],
    terms: Any,
    *,
    only: Collection[int] | None = None,
) -> Staff:
    """The carriers, with our own programs where they belong; an application if the circuit has
    one. Other cases than `only` these rest, if some are named."""
    if run.circuit not in APPS:
        return Staff(circuit, carriers)
    return APPS[run.circuit].staff(connection, run, circuit, carriers, terms, only=only)


def beginning(circuit: str) -> Begin:
    return APPS[circuit].begin if circuit in APPS else begin_run


def unfit_review(circuit: str, terms: Any, step: str, data: Mapping[str, Any]) -> str:
    """Why a reviewer's answer cannot be used, though its shape is right; nothing if it can."""
    return APPS[circuit].unfit_review(terms, step, data) if circuit in APPS else ""


def programs_of(circuit: str) -> tuple[str, ...]:
    return APPS[circuit].programs if circuit in APPS else ()


def prompt_names(circuit: str) -> tuple[str, ...]:
    """The names that prompts of a circuit can read beside those of every circuit."""
    return APPS[circuit].prompt_names if circuit in APPS else ()
