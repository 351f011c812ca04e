"""Delivery as an application: its workspace, its hooks, and the roles that its own code plays."""

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

import msgspec

from interlock.carriers.contract import Carrier
from interlock.carriers.function import AsyncHandler
from interlock.engine.circuit import Circuit
from interlock.journal.connection import Connection
from interlock.journal.runs import Run, load_inputs
from interlock.runtime.application import Application, RunSetup
from interlock.system.clock import Clock
from interlock_delivery.config import DeliveryConfig
from interlock_delivery.hooks import DeliveryHooks
from interlock_delivery.inspection import TaskEnvironment
from interlock_delivery.parameters import NAMES
from interlock_delivery.plan.watch import PlanWatch, load_usable_plan
from interlock_delivery.steps import PROGRAMS
from interlock_delivery.worktrees.remote import connect_workers
from interlock_delivery.worktrees.workspace import DeliveryWorkspace


class Delivery(Application):
    """The circuit `delivery`: the tasks of a plan, each in its own worktree, checked and merged."""

    own_roles = PROGRAMS
    prompt_names = NAMES

    def set_up_run(
        self,
        connection: Connection,
        run: Run,
        circuit: Circuit,
        carriers: Mapping[str, Carrier],
        config: Mapping[str, Any],
        *,
        clock: Clock,
        only: Collection[int] | None = None,
    ) -> RunSetup:
        """Open the workspace, and let our own handlers play the roles of `PROGRAMS`."""
        own = msgspec.convert(config, DeliveryConfig)
        plan = load_usable_plan(own)
        workspace = DeliveryWorkspace.create(
            Path(own.source),
            Path(own.home),
            own.slug,
            own.base,
            keep_hooks=own.work.hooks,
        )
        notes = _retry_publishing(workspace)
        watch = PlanWatch(own, plan, load_inputs(connection, run.run_id), clock.now, notes.append)
        environment = TaskEnvironment(workspace, own, watch.plan)
        hooks = DeliveryHooks(connection, run.run_id, circuit, environment, watch, clock, notes)
        handlers: dict[str, Carrier] = dict.fromkeys(
            PROGRAMS, AsyncHandler(hooks.handlers, workspace.close)
        )
        agents = connect_workers(carriers, own, hooks.find_tree_of)
        timed = _set_timeouts(circuit, own.timeouts)
        return RunSetup(timed, {**agents, **handlers}, hooks, unplaced=PROGRAMS)

    def report(self, connection: Connection, run: Run) -> str:
        from interlock_delivery.report.collect import load_report
        from interlock_delivery.report.render import render_markdown

        return render_markdown(load_report(connection, run.run_id))


def _retry_publishing(workspace: DeliveryWorkspace) -> list[str]:
    """Publish what an earlier session merged but could not publish; return the reason if it fails
    again.
    """
    if workspace.merge_branch.tip == workspace.base:
        return []
    published = workspace.merge_branch.publish()
    return [] if published.is_done else [published.sentence]


def _set_timeouts(circuit: Circuit, timeouts: Mapping[str, float]) -> Circuit:
    """Return the circuit with the project's timeouts for roles."""
    steps = {
        name: msgspec.structs.replace(step, timeout=timeouts.get(step.role, step.timeout))
        for name, step in circuit.steps.items()
    }
    return msgspec.structs.replace(circuit, steps=steps)
