"""The nemesis: a plan of faults made from a seed, and how each is done and undone.

The plan is a function of the seed and of the hosts, so a seed replays it: the same faults, on the
same targets, at the same moments. What the cluster does meanwhile is its own business.
"""

import heapq
import random
import signal
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import NamedTuple

from tests.cluster.hosts import ClusterServer, Daemon, Disk, Host

_SERVER_REST = 8.0
"""Seconds of peace for the server between two of its faults: else nobody gets anywhere."""


class Kind(NamedTuple):
    """A kind of fault: how often it is chosen, what part of a host it befalls, how long it lasts,
    whether nobody can work there meanwhile."""

    weight: int
    part: str
    seconds: tuple[float, float]
    fatal: bool = True
    needs_network: bool = False


KINDS = {
    "kill": Kind(14, "process", (0.0, 6.0)),
    "crash-host": Kind(6, "process", (0.5, 8.0), needs_network=True),
    "terminate": Kind(5, "process", (0.5, 3.0)),
    "stop": Kind(14, "process", (2.0, 14.0)),
    "freeze-host": Kind(6, "process", (2.0, 14.0), needs_network=True),
    "cut": Kind(9, "network", (1.0, 14.0), needs_network=True),
    "link-down": Kind(6, "network", (1.0, 12.0), needs_network=True),
    "loss": Kind(10, "network", (2.0, 12.0), fatal=False, needs_network=True),
    "delay": Kind(10, "network", (2.0, 12.0), fatal=False, needs_network=True),
    "clock": Kind(10, "clock", (1.0, 10.0), fatal=False),
    "disk-full": Kind(6, "disk", (1.0, 8.0), fatal=False, needs_network=True),
    "server-backends": Kind(4, "server", (0.0, 0.1)),
    "server-quit": Kind(4, "server", (0.2, 3.0)),
    "server-kill": Kind(2, "server", (0.5, 3.0)),
    "server-disk-full": Kind(2, "server", (1.0, 5.0), needs_network=True),
    "server-cut": Kind(3, "server", (1.0, 9.0), needs_network=True),
}
"""Faults of different parts of a host may come together; one of each at a time."""
LOSS = 0.3
DELAY = 0.25
"""Seconds each way: half a second for the way there and back, at each end of a link."""


class Fault(NamedTuple):
    """One fault: when it begins, what it is, what it befalls, and for how long."""

    at: float
    kind: str
    target: str
    seconds: float
    size: float


def plan_faults(seed: int, count: int, daemons: Sequence[str], *, has_network: bool) -> list[Fault]:
    """So many faults. At most half of the hosts are out of work at a time."""
    chance = random.Random(seed)
    kinds = [name for name, kind in KINDS.items() if has_network or not kind.needs_network]
    weights = [KINDS[name].weight for name in kinds]
    busy_until: dict[tuple[str, str], float] = {}
    out_until: dict[str, float] = {}
    found: list[Fault] = []
    now = 0.0
    while len(found) < count:
        now += chance.uniform(0.1, 0.9)
        name = chance.choices(kinds, weights)[0]
        kind = KINDS[name]
        targets = ["server"] if kind.part == "server" else sorted(daemons)
        free = [each for each in targets if busy_until.get((each, kind.part), 0.0) <= now]
        seconds, size = chance.uniform(*kind.seconds), chance.uniform(-1.0, 1.0)
        target = chance.choice(free) if free else ""
        out = {each for each in daemons if out_until.get(each, 0.0) > now}
        if kind.fatal and kind.part != "server":
            out.add(target)
        if not target or len(out) > max(1, len(daemons) // 2):
            continue
        rest = _SERVER_REST if target == "server" else 0.3
        busy_until[target, kind.part] = now + seconds + rest
        if kind.fatal:
            out_until[target] = max(out_until.get(target, 0.0), now + seconds + rest)
        found.append(Fault(now, name, target, seconds, size))
    return found


class Nemesis:
    """Carries out a plan, as time passes."""

    def __init__(
        self, plan: Sequence[Fault], daemons: Sequence[Daemon], server: ClusterServer
    ) -> None:
        self.done: Counter[str] = Counter()
        self._server = server
        self._daemons = {each.name: each for each in daemons}
        self._next = 0
        self._events: list[tuple[float, int, bool, Fault]] = []
        for number, fault in enumerate(plan):
            heapq.heappush(self._events, (fault.at, number, True, fault))

    @property
    def is_over(self) -> bool:
        return not self._events

    def tick(self, now: float) -> list[Fault]:
        """Do and undo what is due; the faults that began."""
        begun = []
        while self._events and self._events[0][0] <= now:
            _, number, begins, fault = heapq.heappop(self._events)
            if begins:
                self._begin(fault)
                self.done[fault.kind] += 1
                begun.append(fault)
                heapq.heappush(self._events, (now + fault.seconds, number, False, fault))
            else:
                self._end(fault)
        return begun

    def heal(self) -> None:
        """Everything works again."""
        if self._server.disk is not None:
            self._server.disk.free()
        self._restart_server()
        for daemon in self._daemons.values():
            for part in ("network", "clock", "disk"):
                _heal_host(daemon.host, part)
            daemon.send(signal.SIGCONT)
            daemon.start()

    def _begin(self, fault: Fault) -> None:
        if fault.target == "server":
            self._begin_server(fault)
            return
        daemon = self._daemons[fault.target]
        host = daemon.host
        acts: dict[str, Callable[[], None]] = {
            "kill": lambda: daemon.send(signal.SIGKILL),
            "terminate": lambda: daemon.send(signal.SIGTERM),
            "stop": lambda: daemon.send(signal.SIGSTOP),
            "crash-host": lambda: host.signal_all(signal.SIGKILL),
            "freeze-host": lambda: host.signal_all(signal.SIGSTOP),
            "clock": lambda: host.set_clock(7200.0 * fault.size),
            "disk-full": lambda: _fill(host.disk),
            "link-down": lambda: _switch_off(host),
            "cut": lambda: _set_link(host, cut=True),
            "loss": lambda: _set_link(host, loss=LOSS),
            "delay": lambda: _set_link(host, delay=DELAY),
        }
        acts[fault.kind]()

    def _begin_server(self, fault: Fault) -> None:
        server = self._server
        acts: dict[str, Callable[[], None]] = {
            "server-backends": server.end_backends,
            "server-quit": lambda: server.crash(signal.SIGQUIT),
            "server-kill": lambda: server.crash(signal.SIGKILL),
            "server-disk-full": lambda: _fill(server.disk),
            "server-cut": lambda: server.cut(is_cut=True),
        }
        acts[fault.kind]()

    def _end(self, fault: Fault) -> None:
        if fault.target == "server":
            if self._server.disk is not None:
                self._server.disk.free()
            self._server.cut(is_cut=False)
            self._restart_server()
            return
        daemon = self._daemons[fault.target]
        part = KINDS[fault.kind].part
        if part != "process":
            # A clock that was wrong for a while is right again, or stays wrong.
            if part != "clock" or fault.size > 0:
                _heal_host(daemon.host, part)
            return
        if fault.kind == "freeze-host":
            daemon.host.signal_all(signal.SIGCONT)
        daemon.send(signal.SIGCONT)
        if fault.kind == "terminate" and not daemon.wait(10.0):
            daemon.send(signal.SIGKILL)
            daemon.wait(10.0)
        daemon.start()

    def _restart_server(self) -> None:
        """A server whose first process was killed leaves others behind for a moment, which are in
        the way of a new one."""
        for _ in range(20):
            with suppress(RuntimeError):
                self._server.start_again()
                return
        self._server.start_again()


def _set_link(host: Host, *, cut: bool = False, loss: float = 0.0, delay: float = 0.0) -> None:
    assert host.link is not None
    host.link.is_cut, host.link.loss, host.link.delay = cut, loss, delay


def _switch_off(host: Host) -> None:
    assert host.link is not None
    host.link.set_up(up=False)


def _fill(disk: Disk | None) -> None:
    assert disk is not None
    disk.fill()


def _heal_host(host: Host, part: str) -> None:
    if part == "clock":
        host.set_clock(0.0)
    elif part == "disk" and host.disk is not None:
        host.disk.free()
    elif part == "network" and host.link is not None:
        _set_link(host)
        host.link.set_up(up=True)
