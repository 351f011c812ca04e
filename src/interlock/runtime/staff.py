"""Who works on a run, once it is open, and what a circuit has beside its table: the records."""

from collections.abc import Callable, Collection, Mapping
from typing import Any

import msgspec
from sqlalchemy import Connection

from interlock.agents.carrier import Carrier
from interlock.engine.circuit import Circuit
from interlock.journal.runs import Run, begin_run
from interlock.runtime.application import CaseHooks
from interlock.signals.batch import Briefing


class RunSetup(msgspec.Struct, frozen=True):
    """A run's circuit, application and carriers, once the run is open."""

    circuit: Circuit
    carriers: Mapping[str, Carrier]
    application: CaseHooks | None = None
    enrich: Callable[[Briefing], Briefing] | None = None
    unplaced: Collection[str] = frozenset()
    """The roles of our own programs, which take no place from an agent."""


Begin = Callable[..., int]
"""What begins a run of cases that a user wrote down."""


class Application(msgspec.Struct, frozen=True):
    """What one circuit has."""

    staff: Callable[..., RunSetup]
    begin: Begin = begin_run
    unfit_review: Callable[[Any, str, Mapping[str, Any]], str] = lambda _terms, _step, _data: ""
    prompt_names: tuple[str, ...] = ()
    programs: tuple[str, ...] = ()
    """The roles that our own code plays: nobody is asked for an agent for them."""


def plain(
    _connection: Connection,
    _run: Run,
    circuit: Circuit,
    carriers: Mapping[str, Carrier],
    _terms: Any,
    *,
    only: Collection[int] | None = None,
) -> RunSetup:
    """The staff of a circuit that has no application."""
    return RunSetup(circuit, carriers)
