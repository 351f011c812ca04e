"""Workers on other hosts, read through the package that runs them.

The entry-point group `interlock.workers` names a function that takes a database's address and
returns its workers.
"""

import time
from contextlib import suppress
from importlib import metadata
from pathlib import Path

import msgspec

from interlock.carriers.status import AgentStatus
from interlock.journal.address import DatabaseAddress
from interlock.system.errors import StoreError

GROUP = "interlock.workers"


class HeldDetails(msgspec.Struct, frozen=True, omit_defaults=True):
    """A dispatch that a worker holds, as the worker describes it."""

    dispatch_id: int
    run_id: int
    case_id: str
    step: str
    role: str
    seconds: float
    liveness: str = ""


class WorkerStatus(msgspec.Struct, frozen=True):
    """A worker, as others see it."""

    worker_id: str
    name: str
    host: str
    pid: int
    version: str
    state: str
    """`ready`, `draining`, or `dead` if it has not been heard for the time of its lease."""
    agents: dict[str, str]
    labels: tuple[str, ...]
    slots: int
    started_at: float
    silent: float
    """Seconds since it was last heard."""
    dispatches: tuple[HeldDetails, ...]


def list_workers(db: DatabaseAddress) -> list[WorkerStatus]:
    """Return the workers of a database, including those that died a while ago; none for a file."""
    if isinstance(db, Path):
        return []
    return [each for entry in metadata.entry_points(group=GROUP) for each in entry.load()(db)]


def list_worker_agents(db: DatabaseAddress) -> list[AgentStatus]:
    """Return the agents at work on the hosts of live workers."""
    found: list[WorkerStatus] = []
    with suppress(StoreError):  # whoever may read runs need not have a right to the queue
        found = list_workers(db)
    return [
        AgentStatus(
            dispatch_id=each.dispatch_id,
            run_id=each.run_id,
            case_id=each.case_id,
            step=each.step,
            agent=f"{worker.agents.get(each.role, each.role)} on {worker.host}",
            word=each.liveness.partition(": ")[2] or "working",
            reasons=(f"worker {worker.name}, for {each.seconds:.0f} s",),
            pid=worker.pid,
            at=time.time() - worker.silent,
        )
        for worker in found
        if worker.state != "dead"
        for each in worker.dispatches
    ]
