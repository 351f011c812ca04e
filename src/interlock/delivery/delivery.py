"""Wiring of delivery: its workshop, its application, and who of ours answers what."""

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

import msgspec
from sqlalchemy import Connection

from interlock.agents.carrier import Carrier, Clock
from interlock.agents.labour import LabourDesk
from interlock.delivery.application import Foreman
from interlock.delivery.params import NAMES
from interlock.delivery.plan.watch import PlanWatch, usable_plan
from interlock.delivery.site import Ground
from interlock.delivery.steps import PROGRAMS
from interlock.delivery.terms import Terms
from interlock.delivery.worktrees.workshop import Workshop
from interlock.engine.circuit import Circuit
from interlock.journal.runs import Run, given_cases
from interlock.runtime.staff import App, Staff
from interlock.system.clock import RealClock


def staff(
    connection: Connection,
    run: Run,
    circuit: Circuit,
    carriers: Mapping[str, Carrier],
    terms: Any,
    *,
    only: Collection[int] | None = None,
    clock: Clock | None = None,
) -> Staff:
    """The workshop is opened, our programs take their places, and the application its own."""
    agreed = msgspec.convert(terms, Terms)
    clock, plan = clock or RealClock(), usable_plan(agreed)
    shop = Workshop.found(
        *(Path(agreed.source), Path(agreed.home), agreed.slug, agreed.base),
        keep_hooks=agreed.work.hooks,
    )
    told = _published(shop)
    watch = PlanWatch(agreed, plan, given_cases(connection, run.run_id), clock.now, told.append)
    ground = Ground(shop, agreed, watch.plan)
    foreman = Foreman(connection, run.run_id, circuit, ground, watch, clock, told)
    ours: dict[str, Carrier] = dict.fromkeys(PROGRAMS, LabourDesk(foreman.labours, shop.close))
    timed = _with_timeouts(circuit, agreed.timeouts)
    return Staff(timed, {**carriers, **ours}, foreman, unplaced=PROGRAMS)


def _published(shop: Workshop) -> list[str]:
    """What an earlier sitting merged and could not show, as when its branch was checked out; with
    the reason if it still cannot."""
    if shop.line.tip == shop.base:
        return []
    published = shop.line.publish()
    return [] if published.is_done else [published.sentence]


def _with_timeouts(circuit: Circuit, timeouts: Mapping[str, float]) -> Circuit:
    """The circuit with the time that somebody gives a role."""
    steps = {
        name: msgspec.structs.replace(step, timeout=timeouts.get(step.role, step.timeout))
        for name, step in circuit.steps.items()
    }
    return msgspec.structs.replace(circuit, steps=steps)


APP = App(staff, prompt_names=NAMES, programs=PROGRAMS)
