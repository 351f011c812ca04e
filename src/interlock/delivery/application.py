"""Delivery as an application: its workspace, its hooks, and the roles its own code plays."""

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

import msgspec
from sqlalchemy import Connection

from interlock.agents.carrier import Carrier, Clock
from interlock.agents.function import AsyncHandler
from interlock.delivery.hooks import DeliveryHooks
from interlock.delivery.inspection import TaskEnvironment
from interlock.delivery.parameters import NAMES
from interlock.delivery.plan.watch import PlanWatch, load_usable_plan
from interlock.delivery.steps import PROGRAMS
from interlock.delivery.terms import DeliveryConfig
from interlock.delivery.worktrees.workspace import DeliveryWorkspace
from interlock.engine.circuit import Circuit
from interlock.journal.runs import Run, load_inputs
from interlock.runtime.application import Application, RunSetup


class Delivery(Application):
    """The circuit `delivery`: a plan's tasks in trees of their own, checked and merged by us."""

    own_roles = PROGRAMS
    prompt_names = NAMES

    def set_up_run(
        self,
        connection: Connection,
        run: Run,
        circuit: Circuit,
        carriers: Mapping[str, Carrier],
        terms: Mapping[str, Any],
        *,
        clock: Clock,
        only: Collection[int] | None = None,
    ) -> RunSetup:
        """The workshop is opened, our programs take their places, and the application its own."""
        agreed = msgspec.convert(terms, DeliveryConfig)
        plan = load_usable_plan(agreed)
        shop = DeliveryWorkspace.create(
            Path(agreed.source),
            Path(agreed.home),
            agreed.slug,
            agreed.base,
            keep_hooks=agreed.work.hooks,
        )
        told = _published(shop)
        watch = PlanWatch(agreed, plan, load_inputs(connection, run.run_id), clock.now, told.append)
        ground = TaskEnvironment(shop, agreed, watch.plan)
        foreman = DeliveryHooks(connection, run.run_id, circuit, ground, watch, clock, told)
        ours: dict[str, Carrier] = dict.fromkeys(
            PROGRAMS, AsyncHandler(foreman.labours, shop.close)
        )
        timed = _with_timeouts(circuit, agreed.timeouts)
        return RunSetup(timed, {**carriers, **ours}, foreman, unplaced=PROGRAMS)

    def report(self, connection: Connection, run: Run) -> str:
        from interlock.delivery.delivering import told_of
        from interlock.delivery.report.render import render_markdown

        return render_markdown(told_of(connection, run))


def _published(shop: DeliveryWorkspace) -> list[str]:
    """What an earlier sitting merged and could not show, as when its branch was checked out; with
    the reason if it still cannot."""
    if shop.merge_branch.tip == shop.base:
        return []
    published = shop.merge_branch.publish()
    return [] if published.is_done else [published.sentence]


def _with_timeouts(circuit: Circuit, timeouts: Mapping[str, float]) -> Circuit:
    """The circuit with the time that somebody gives a role."""
    steps = {
        name: msgspec.structs.replace(step, timeout=timeouts.get(step.role, step.timeout))
        for name, step in circuit.steps.items()
    }
    return msgspec.structs.replace(circuit, steps=steps)
