"""Who works on a run, once it is open: its circuit, its carriers, its application."""

from collections.abc import Callable, Collection, Mapping

import msgspec

from interlock.core.circuit import Circuit
from interlock.dispatch.carrier import Carrier
from interlock.runner.application import Application
from interlock.wire.briefing import Briefing


class Staff(msgspec.Struct, frozen=True):
    """A run's circuit, application and carriers, once the run is open."""

    circuit: Circuit
    carriers: Mapping[str, Carrier]
    application: Application | None = None
    enrich: Callable[[Briefing], Briefing] | None = None
    unplaced: Collection[str] = frozenset()
    """The roles of our own programs, which take no place from an agent."""
