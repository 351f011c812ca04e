"""The nemesis: a plan of faults made from a seed, and how each is done and undone.

The plan is a function of the seed and of the hosts, so a seed replays it: the same faults, on the
same targets, at the same moments. What the cluster does meanwhile is its own business.
"""

import heapq
import random
import signal
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from typing import NamedTuple

from interlock.journal.ownership import LEASE
from tests.cluster.hosts import ClusterServer, Daemon, Disk, Host, Stall

_CATCH = 8.0
"""Seconds for which a coordinator's turn is waited for, to stop it there."""
_RECOVERY = 5.0
"""Seconds in which coordinators that were out are at work again."""
_SERVER_REST = 8.0
"""Seconds of peace for the server between two of its faults: else nobody gets anywhere."""


class Kind(NamedTuple):
    """A kind of fault: how often it is chosen, what part of a host it befalls, how long it lasts,
    whether nobody can work there meanwhile. One that `needs_heir` befalls a coordinator, while
    another is well and can take its runs: it lasts longer than a lease."""

    weight: int
    part: str
    seconds: tuple[float, float]
    fatal: bool = True
    needs_network: bool = False
    needs_heir: bool = False


_PAST_LEASE = (LEASE + 4.0, LEASE + 6.0)
"""Long enough to be taken for dead, and too short for a connection to be given up."""


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
    "hold": Kind(0, "network", _PAST_LEASE, needs_network=True, needs_heir=True),
    "stall": Kind(0, "process", (LEASE + 3.0 + _CATCH, LEASE + 5.0 + _CATCH), needs_heir=True),
    "server-backends": Kind(8, "server", (0.0, 0.1)),
    "server-quit": Kind(8, "server", (0.2, 3.0)),
    "server-kill": Kind(5, "server", (0.5, 3.0)),
    "server-disk-full": Kind(5, "server", (1.0, 5.0), needs_network=True),
    "server-cut": Kind(6, "server", (1.0, 9.0), needs_network=True),
}
"""Faults of different parts of a host may come together; one of each at a time. Two make sure that
a coordinator has something to write when it comes back too late: "hold" keeps its packets and
brings them afterwards, "stall" stops it in the middle of a turn. They are not left to chance."""
BUSIEST = "busiest coordinator"
"""Whom these befall: whoever has most to lose then. The rest of a plan is known before."""
_DUE = (3, 23, 43)
_EVERY = 40
"""After how many faults each of the first of these comes, and how many it is to the next later."""
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


class _Hosts:
    """What is wrong with whom, and until when, while a plan is made."""

    def __init__(self, daemons: Sequence[str]) -> None:
        self._daemons = sorted(daemons)
        self._coordinators = [each for each in self._daemons if each.startswith("coordinator")]
        self._busy_until: dict[tuple[str, str], float] = {}
        self._out_until: dict[str, float] = {}
        self._peace_until = 0.0
        self.wants_peace = False
        """Whether coordinators and server are to be left alone, so that all are well soon."""

    def list_free(self, kind: Kind, now: float) -> list[str]:
        """Whom it may befall: at most half of the hosts are out of work at a time."""
        critical = [*self._coordinators, "server"]
        if kind.needs_heir:
            well = not any(self._is_out(each, now - _RECOVERY) for each in critical)
            free = all(self._is_free(each, kind, now) for each in self._coordinators)
            return [BUSIEST] if well and free and len(self._coordinators) > 1 else []
        targets = ["server"] if kind.part == "server" else self._daemons
        out = {each for each in self._daemons if self._is_out(each, now)}
        in_peace = self.wants_peace or self._peace_until > now
        return [
            each
            for each in targets
            if self._is_free(each, kind, now)
            and (each == "server" or len({*out, each}) <= max(1, len(self._daemons) // 2))
            and not (kind.fatal and each in critical and in_peace)
        ]

    def befall(self, target: str, kind: Kind, until: float) -> None:
        if target == BUSIEST:
            self._peace_until = until
        for each in self._coordinators if target == BUSIEST else [target]:
            rest = _SERVER_REST if target == "server" else 0.3
            self._busy_until[each, kind.part] = until + rest
            if kind.fatal:
                self._out_until[each] = max(self._out_until.get(each, 0.0), until + 0.3)

    def _is_free(self, host: str, kind: Kind, now: float) -> bool:
        return self._busy_until.get((host, kind.part), 0.0) <= now

    def _is_out(self, host: str, now: float) -> bool:
        return self._out_until.get(host, 0.0) > now


def plan_faults(seed: int, count: int, daemons: Sequence[str], *, has_network: bool) -> list[Fault]:
    """So many faults, about one a second."""
    chance = random.Random(seed)
    kinds = [name for name, kind in KINDS.items() if has_network or not kind.needs_network]
    weights = [KINDS[name].weight for name in kinds]
    specials = [name for name in kinds if KINDS[name].needs_heir]
    chance.shuffle(specials)
    hosts = _Hosts(daemons)
    found: list[Fault] = []
    now, made = 0.0, 0
    while len(found) < count:
        now += chance.uniform(0.1, 0.9)
        name, special = chance.choices(kinds, weights)[0], specials[made % len(specials)]
        due = _DUE[made] if made < len(_DUE) else _DUE[-1] + (made + 1 - len(_DUE)) * _EVERY
        hosts.wants_peace = len(found) >= due
        if hosts.wants_peace and hosts.list_free(KINDS[special], now):
            name, made = special, made + 1
        kind = KINDS[name]
        seconds, size = chance.uniform(*kind.seconds), chance.uniform(-1.0, 1.0)
        if free := hosts.list_free(kind, now):
            target = chance.choice(free)
            hosts.befall(target, kind, now + seconds)
            found.append(Fault(now, name, target, seconds, size))
    return found


class Nemesis:
    """Carries out a plan, as time passes. What takes its time, such as the start of a server, is
    done by threads: the next fault does not wait for it. They live as long as what they started,
    which ends with them."""

    def __init__(
        self, plan: Sequence[Fault], daemons: Sequence[Daemon], server: ClusterServer
    ) -> None:
        self.done: Counter[str] = Counter()
        self._threads = ThreadPoolExecutor(len(daemons) + 1, thread_name_prefix="nemesis")
        self._of_server = ThreadPoolExecutor(1, thread_name_prefix="nemesis-server")
        self._tasks: list[Future[None]] = []
        self._server = server
        self._daemons = {each.name: each for each in daemons}
        self._stalls: dict[str, tuple[float, Stall | None]] = {}
        """Coordinators to be stopped in a turn: until when that is tried, and what holds them."""
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
                if fault.target == BUSIEST:
                    fault = fault._replace(target=self._server.find_busiest([*self._daemons]))
                self._begin(fault, now)
                self.done[fault.kind] += 1
                begun.append(fault)
                heapq.heappush(self._events, (now + fault.seconds, number, False, fault))
            else:
                self._end(fault)
        for task in [each for each in self._tasks if each.done()]:
            task.result()
            self._tasks.remove(task)
        for name in [*self._stalls]:
            self._try_to_stall(name, now)
        return begun

    def heal(self) -> None:
        """Everything works again."""
        for task in self._tasks:
            task.result()
        if self._server.disk is not None:
            self._server.disk.free()
        self._restart_server()
        for daemon in self._daemons.values():
            self._end_stall(daemon.name)
            for part in ("network", "clock", "disk"):
                _heal_host(daemon.host, part)
            daemon.send(signal.SIGCONT)
            daemon.start()

    def _begin(self, fault: Fault, now: float) -> None:
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
            "hold": lambda: _set_link(host, held=True),
            "stall": lambda: self._stalls.update({daemon.name: (now + _CATCH, None)}),
        }
        acts[fault.kind]()

    def _try_to_stall(self, name: str, now: float) -> None:
        """Hold a coordinator in its next turn, and stop it when it is there."""
        limit, stall = self._stalls[name]
        stall = stall or self._server.stall(name)
        self._stalls[name] = (limit, stall)
        if stall is not None and not stall.is_caught and stall.catches():
            self._daemons[name].send(signal.SIGSTOP)
        elif now > limit and not (stall and stall.is_caught):
            self._end_stall(name)

    def _end_stall(self, name: str) -> None:
        _, stall = self._stalls.pop(name, (0.0, None))
        if stall is not None:
            stall.end()

    def _begin_server(self, fault: Fault) -> None:
        server = self._server
        acts: dict[str, Callable[[], None]] = {
            "server-backends": server.end_backends,
            "server-quit": lambda: self._do_to_server(partial(server.crash, signal.SIGQUIT)),
            "server-kill": lambda: self._do_to_server(partial(server.crash, signal.SIGKILL)),
            "server-disk-full": lambda: _fill(server.disk),
            "server-cut": lambda: server.cut(is_cut=True),
        }
        acts[fault.kind]()

    def _end(self, fault: Fault) -> None:
        if fault.target == "server":
            if self._server.disk is not None:
                self._server.disk.free()
            self._server.cut(is_cut=False)
            self._do_to_server(self._restart_server)
            return
        daemon = self._daemons[fault.target]
        part = KINDS[fault.kind].part
        if part != "process":
            # A clock that was wrong for a while is right again, or stays wrong.
            if part != "clock" or fault.size > 0:
                _heal_host(daemon.host, part)
            return
        if fault.kind == "stall":
            self._end_stall(daemon.name)
        if fault.kind == "freeze-host":
            daemon.host.signal_all(signal.SIGCONT)
        daemon.send(signal.SIGCONT)
        if fault.kind == "terminate":
            self._tasks.append(self._threads.submit(_let_end, daemon))
        else:
            daemon.start()

    def _do_to_server(self, act: Callable[[], None]) -> None:
        """In the order in which it was asked for."""
        self._tasks.append(self._of_server.submit(act))

    def close(self) -> None:
        self._threads.shutdown()
        self._of_server.shutdown()

    def _restart_server(self) -> None:
        """A server whose first process was killed leaves others behind for a moment, which are in
        the way of a new one."""
        for _ in range(20):
            with suppress(RuntimeError):
                self._server.start_again()
                return
        self._server.start_again()


def _let_end(daemon: Daemon) -> None:
    """Wait for one that was asked to stop, and start it again."""
    if not daemon.wait(10.0):
        daemon.end()
    daemon.start()


def _set_link(
    host: Host, *, cut: bool = False, held: bool = False, loss: float = 0.0, delay: float = 0.0
) -> None:
    assert host.link is not None
    host.link.is_cut, host.link.is_held = cut, held
    host.link.loss, host.link.delay = loss, delay


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
