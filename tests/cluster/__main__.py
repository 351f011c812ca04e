"""`make cluster`: coordinators and workers on hosts of their own, a PostgreSQL, and faults.

The seed is printed; the same seed gives the same faults at the same moments. At the end everything
heals, the work is finished, and a checker reads the history.
"""

import argparse
import os
import secrets
import shutil
import signal
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple

import psycopg

from interlock.api.project import Project
from interlock.journal.connection import ERRORS
from interlock.journal.runs import FINISHED, list_runs
from interlock.system.errors import InterlockError
from tests.cluster.checker import (
    OF_EPOCHS,
    History,
    Violation,
    find_violations,
    read_history,
)
from tests.cluster.hosts import ClusterServer, Daemon, Host, build_coordinator, build_worker
from tests.cluster.nemesis import Fault, Nemesis, plan_faults
from tests.cluster.network import CannotRunError, Network
from tests.cluster.workload import answer_gates, begin_run, compute_expected, set_up_host

_LOOK = 0.05
_RUNS_AT_ONCE = 6
_PATIENCE = 300.0
"""Seconds in which the work must be finished once everything has healed."""
_PATIENCE_IN_VAIN = 45.0
"""The same for coordinators that do not check their epoch: their work may never be finished."""


class Plan(NamedTuple):
    """What is to be tried."""

    seed: int
    faults: int
    coordinators: int = 2
    workers: int = 4
    seconds: float = float("inf")
    """No fault begins later."""
    namespaces: bool = True
    sabotaged: bool = False
    """Coordinators that do not check their epoch: to see whether that is noticed."""


class Outcome(NamedTuple):
    """How it came out."""

    violations: list[Violation]
    history: History
    faults: "Counter[str]"
    runs: int
    seconds: float


class Feeder(threading.Thread):
    """Keeps the cluster busy: begins runs, and answers what people are asked."""

    def __init__(self, folder: Path, address: str, seed: int, *, workers: bool) -> None:
        super().__init__(name="feeder", daemon=True)
        set_up_host(folder)
        self._project = Project(folder, db=address)
        self._seed = seed
        self._workers = workers
        self._closing = threading.Event()
        self._over = threading.Event()
        self.begun = 0
        self.is_finished = False

    def finish(self) -> None:
        """Begin no more runs."""
        self._closing.set()

    def stop(self) -> None:
        self._over.set()
        self.join()

    def run(self) -> None:
        while not self._over.is_set():
            try:
                with self._project.read() as connection:
                    found = [each for each in list_runs(connection) if each.status not in FINISHED]
                if len(found) < _RUNS_AT_ONCE and not self._closing.is_set():
                    begin_run(self._project, self.begun, self._seed, workers=self._workers)
                    self.begun += 1
                    continue
                answer_gates(self._project)
                self.is_finished = self._closing.is_set() and not found
            except (InterlockError, psycopg.Error, *ERRORS):
                pass  # the server is down; what was begun is found again
            self._over.wait(0.5)


def run_cluster(plan: Plan, folder: Path, say: "Say") -> Outcome:
    """Build it, break it, heal it, check it."""
    begun = time.monotonic()
    expected = compute_expected(folder / "undisturbed", plan.seed)
    with ExitStack() as held:
        server, daemons = _build(plan, folder, held)
        faults = plan_faults(
            plan.seed, plan.faults, [each.name for each in daemons], has_network=plan.namespaces
        )
        nemesis = Nemesis([each for each in faults if each.at <= plan.seconds], daemons, server)
        held.callback(nemesis.close)
        feeder = Feeder(
            folder / "feeder", server.local_address, plan.seed, workers=plan.workers > 0
        )
        feeder.start()
        held.callback(feeder.stop)
        for daemon in daemons:
            daemon.start()
        _wait_until(lambda: server.count_takers() >= min(2, plan.coordinators), "nobody works")
        _disturb(nemesis, say)
        nemesis.heal()
        feeder.finish()
        _wait_for_end(feeder, daemons, say, _PATIENCE_IN_VAIN if plan.sabotaged else _PATIENCE)
        feeder.stop()
        with Project(folder, db=server.local_address).read() as connection:
            history = read_history(connection)
    violations = find_violations(history, expected)
    return Outcome(violations, history, nemesis.done, feeder.begun, time.monotonic() - begun)


def _build(plan: Plan, folder: Path, held: ExitStack) -> tuple[ClusterServer, list[Daemon]]:
    logs = folder / "logs"
    logs.mkdir()
    network = held.enter_context(Network(plan.seed)) if plan.namespaces else None
    builders = {
        f"coordinator-{number + 1}": build_coordinator for number in range(plan.coordinators)
    }
    builders |= {f"worker-{number + 1}": build_worker for number in range(plan.workers)}
    links = {name: network.add(name) if network else None for name in ("server", *builders)}
    if network is not None:
        network.start()
    server = ClusterServer(folder / "server", links["server"])
    held.callback(server.close)
    with Project(folder, db=server.local_address).write():
        pass  # the tables are made
    server.add_witnesses()
    daemons = []
    for name, build in builders.items():
        host = Host(name, folder, links[name], sabotaged=plan.sabotaged)
        held.callback(host.close)
        daemons.append(build(host, server, logs))
        held.callback(daemons[-1].end)
    return server, daemons


def _disturb(nemesis: Nemesis, say: "Say") -> None:
    begun = time.monotonic()
    while not nemesis.is_over:
        for fault in nemesis.tick(time.monotonic() - begun):
            say.fault(fault)
        time.sleep(_LOOK)


def _wait_until(holds: Callable[[], bool], problem: str) -> None:
    limit = time.monotonic() + _PATIENCE
    while not holds():
        if time.monotonic() > limit:
            raise RuntimeError(problem)
        time.sleep(_LOOK)


def _wait_for_end(feeder: Feeder, daemons: list[Daemon], say: "Say", patience: float) -> None:
    say.line("everything has healed; waiting for the work to be finished")
    limit = time.monotonic() + patience
    while not feeder.is_finished and time.monotonic() < limit:
        for daemon in daemons:
            daemon.start()  # one that gave up is started again, as a supervisor would
        time.sleep(_LOOK)


class Say:
    """What is told while it goes on."""

    def __init__(self, *, every: bool) -> None:
        self._every = every
        self._count = 0
        self._begun = time.monotonic()

    def line(self, text: str) -> None:
        sys.stdout.write(f"{time.monotonic() - self._begun:7.1f} s  {text}\n")
        sys.stdout.flush()

    def fault(self, fault: Fault) -> None:
        self._count += 1
        if self._every:
            self.line(f"{fault.kind} on {fault.target} for {fault.seconds:.1f} s")
        elif self._count % 25 == 0:
            self.line(f"{self._count} faults")


def describe(outcome: Outcome) -> str:
    """The report, a line each."""
    history = outcome.history
    kinds = ", ".join(f"{count} {kind}" for kind, count in outcome.faults.most_common())
    most = max(Counter(each.run_id for each in history.taken).values(), default=0)
    refused = ", ".join(f"{count} {reason}" for reason, count in history.refusals.items())
    lines = [
        f"{sum(outcome.faults.values())} faults in {outcome.seconds:.0f} s: {kinds}",
        f"{outcome.runs} runs, {len(history.decided)} decisions of {len(history.dispatched)} asked",
        f"runs were taken {len(history.taken)} times, one of them {most} times",
        (
            f"workers took {len(history.offered)} dispatches, gave {len(history.replied)} replies;"
            f" {history.late} came too late"
        ),
        f"answers refused: {refused or 'none'}",
        *(f"VIOLATION {each}" for each in outcome.violations[:50]),
        f"{len(outcome.violations)} violations",
    ]
    return "\n".join(lines)


def main() -> int:
    reader = argparse.ArgumentParser(prog="python -m tests.cluster", description=__doc__)
    reader.add_argument("--seed", type=int, default=secrets.randbelow(2**31))
    reader.add_argument("--faults", type=int, default=100, help="how many; default 100")
    reader.add_argument("--seconds", type=float, default=float("inf"), help="no fault after that")
    reader.add_argument("--workers", type=int, default=4, help="how many; default 4")
    reader.add_argument("--verbose", action="store_true", help="tell every fault")
    reader.add_argument("--keep", action="store_true", help="keep the folder with the logs")
    reader.add_argument(
        "--here", action="store_true", help="without namespaces: only processes, clocks and server"
    )
    reader.add_argument(
        "--sabotage", action="store_true", help="do not check epochs; violations must be found"
    )
    words = reader.parse_args()
    plan = Plan(
        words.seed,
        words.faults,
        workers=words.workers,
        seconds=words.seconds,
        namespaces=not words.here,
        sabotaged=words.sabotage,
    )
    folder = Path(tempfile.mkdtemp(prefix="interlock-cluster-"))
    folder.chmod(0o755)  # PostgreSQL's user must come through
    say = Say(every=words.verbose)
    say.line(f"seed {plan.seed}: --seed {plan.seed} --faults {plan.faults} replays it")
    say.line(f"logs are in {folder}/logs")
    try:
        outcome = run_cluster(plan, folder, say)
    except CannotRunError as reason:
        sys.stdout.write(f"no cluster can be built here: {reason}\n")
        return 1
    finally:
        if not words.keep:
            shutil.rmtree(folder, ignore_errors=True)
    sys.stdout.write(f"{describe(outcome)}\n")
    if words.sabotage:  # what is lost or unfinished says nothing of epochs
        return not any(each.law in OF_EPOCHS for each in outcome.violations)
    return bool(outcome.violations)


def _leave(number: int, _frame: object) -> None:
    """Take everything down, once."""
    for each in (signal.SIGTERM, signal.SIGINT):
        signal.signal(each, signal.SIG_IGN)
    sys.exit(128 + number)


if __name__ == "__main__":
    os.umask(0o022)
    for _number in (signal.SIGTERM, signal.SIGINT):  # in the background, too
        signal.signal(_number, _leave)
    sys.exit(main())
