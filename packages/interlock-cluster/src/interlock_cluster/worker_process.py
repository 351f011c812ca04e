"""Build a worker of this host from the words that name its agents; list all workers."""

import asyncio
import os
import signal
import socket
import threading
import time
import uuid
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec

from interlock.api.project import Project
from interlock.api.workers import WorkerStatus
from interlock.carriers.background import CrashReporter
from interlock.carriers.contract import Carrier
from interlock.carriers.registry import (
    FILE_CARRIERS,
    MCP,
    AgentContext,
    agents_folder,
    build_agent,
    is_label,
)
from interlock.carriers.status import read_agent_status
from interlock.engine.circuit import HUMAN
from interlock.engine.circuit_file import is_valid_name
from interlock.journal.address import PostgresAddress, beside
from interlock.journal.database import explain_errors
from interlock.journal.events import Report
from interlock.runtime.settings import open_query_broker
from interlock.system.clock import SystemClock
from interlock.system.errors import UsageError
from interlock.version import __version__
from interlock_cluster.postgres import open_driver
from interlock_cluster.queue import WorkerIdentity, describe_queue, list_workers
from interlock_cluster.telemetry import WorkerObserver
from interlock_cluster.worker.checkout import CheckoutStore
from interlock_cluster.worker.host import WorkerHost

LEASE = 15.0
"""Seconds without a heartbeat after which a worker's dispatches go to others."""
GRACE = 600.0
"""Seconds for agents to finish after SIGTERM."""
_NOT_ON_WORKERS = (*FILE_CARRIERS, MCP, "worker")


class WorkerOptions(msgspec.Struct, frozen=True):
    """How a worker presents itself, and how long others wait for it."""

    name: str = ""
    """What people see; empty for the host's name."""
    slots: int = 1
    labels: Sequence[str] = ()
    lease: float = LEASE
    grace: float = GRACE


class Worker:
    """A process that answers dispatches of some roles, until it is stopped."""

    def __init__(
        self,
        project: Project,
        roles: Mapping[str, str],
        report: Report,
        options: WorkerOptions,
    ) -> None:
        """`roles` has the words that name the agent of each role, as `--agent` does."""
        if not isinstance(project.db, PostgresAddress):
            raise UsageError(
                f"a worker needs a PostgreSQL database; {project.db} is a file. On one machine "
                "agents need no worker; over MCP or HTTP, use --dispatch mcp with 'interlock mcp' "
                "or 'interlock serve'"
            )
        _check_words(roles, options.labels)
        self._address = project.db
        self._report = report
        self._loop: asyncio.AbstractEventLoop | None = None
        self._starting = threading.Lock()
        agents = _build_agents(roles, _build_context(project, self._address))
        self.identity = WorkerIdentity(
            worker_id=uuid.uuid4().hex,
            name=options.name or socket.gethostname(),
            host=socket.gethostname(),
            pid=os.getpid(),
            version=__version__,
            queues=_name_queues(agents, options.labels),
            agents=dict(roles),
            labels=tuple(options.labels),
            slots=options.slots,
            lease=options.lease,
        )
        self._host = WorkerHost(
            self._address,
            self.identity,
            agents,
            WorkerObserver(report, roles, self.identity.name, options.slots),
            checkouts=CheckoutStore(beside(self._address, "checkouts").resolve()),
            grace=options.grace,
            read_liveness=self._read_liveness,
        )

    def run(self) -> int:
        """Work until SIGTERM or SIGINT, and return how many replies were accepted. A second signal
        gives back at once what is under way."""
        asyncio.run(self._run())
        return self._host.done

    def stop(self) -> None:
        """Stop as a signal would; safe to call from another thread, and before it runs."""
        with self._starting:
            if self._loop is None:
                self._host.stop()
                return
        with suppress(RuntimeError):  # it has ended by itself meanwhile
            self._loop.call_soon_threadsafe(self._host.stop)

    async def _run(self) -> None:
        loop = asyncio.get_running_loop()
        with self._starting:
            self._loop = loop
        for number in (signal.SIGINT, signal.SIGTERM):
            with suppress(ValueError, RuntimeError):  # only the main thread hears signals
                loop.add_signal_handler(number, self._host.stop)
        with CrashReporter(beside(self._address, "crashes"), self._report).install():
            await self._host.run()

    def _read_liveness(self) -> dict[int, str]:
        return {
            each.dispatch_id: f"{each.agent}: {each.word}"
            for each in read_agent_status(agents_folder(self._address))
        }


def read_worker_statuses(address: PostgresAddress) -> list[WorkerStatus]:
    """Return the workers that the database knows."""
    with explain_errors(address):
        server = open_driver(address, "ro")
        try:
            return list_workers(server) if describe_queue(server) else []
        finally:
            server.close()


def _check_words(roles: Mapping[str, str], labels: Sequence[str]) -> None:
    if not roles:
        raise UsageError("name at least one role: --role ROLE=AGENT, as in --role developer=claude")
    for role, words in roles.items():
        if not is_valid_name(role) or role == HUMAN:
            raise UsageError(f"--role {role}={words}: {role!r} is no role that an agent plays")
        if words.partition(":")[0] in _NOT_ON_WORKERS:
            raise UsageError(
                f"--role {role}={words}: a worker needs an agent that answers by itself, such as "
                "claude or exec:COMMAND"
            )
    for label in labels:
        if not is_label(label):
            raise UsageError(f"--label {label}: use letters, digits, '.', '_' and '-'")


def _build_context(project: Project, address: PostgresAddress) -> AgentContext:
    settings = project.settings
    return AgentContext(
        project=Path(project.path),
        db=address,
        clock=SystemClock(),
        settings=settings.written,
        environment=os.environ,
        queries=open_query_broker(address, settings.inbox),
    )


def _build_agents(roles: Mapping[str, str], context: AgentContext) -> dict[str, Carrier]:
    found: dict[str, Carrier] = {}
    for words in dict.fromkeys(roles.values()):
        named = tuple(role for role, each in roles.items() if each == words)
        made = build_agent(words, msgspec.structs.replace(context, roles=named))
        found |= dict.fromkeys(named, made)
    return found


def _name_queues(agents: Mapping[str, Carrier], labels: Sequence[str]) -> dict[str, str]:
    """Return the queues of these roles, with and without a label, and the account of each."""
    found: dict[str, str] = {}
    for role, carrier in agents.items():
        account = carrier.account_of(role)
        for name in (role, *(f"{role}:{label}" for label in labels)):
            found[name] = account
    return found


def describe_since(status: WorkerStatus) -> str:
    """Return when a worker came, by this machine's clock."""
    return time.strftime("%Y-%m-%d %H:%M", time.localtime(status.started_at))


def to_dict(status: WorkerStatus) -> dict[str, Any]:
    found: dict[str, Any] = msgspec.to_builtins(status)
    return found
