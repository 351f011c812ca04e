"""List this machine's processes that we may see: their parents, sessions and tags.

Reads /proc where it exists and asks psutil elsewhere. An id and a start time together identify a
process, so that a reused id is another process. Other users' processes are not listed. An agent's
processes are found by tag, session and descent, never by name. One snapshot serves everyone who
asks at the same moment, and is taken after they asked.
"""

import asyncio
import os
from collections import defaultdict
from collections.abc import Callable, Container, Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

import msgspec

PROC = Path("/proc")
HAS_PROC = (PROC / "self" / "environ").exists()
_TICKS = os.sysconf("SC_CLK_TCK")


HOST_VARIABLE = "SUBREAPER_PID"
"""Set by a process that adopts orphans; whatever it starts inherits the variable."""


class TagNames(NamedTuple):
    """The environment variables that mark processes."""

    tag: str
    """Names a dispatch; everything the agent starts inherits it."""
    above: str
    """The tags of the dispatches inside which this one runs."""
    owner: str
    """The process that supervises the agent."""
    host: str = HOST_VARIABLE


class Process(msgspec.Struct, frozen=True, order=True, gc=False):
    pid: int
    started: float


class SeenProcess(msgspec.Struct, frozen=True, gc=False):
    """One process at one moment."""

    process: Process
    parent: int
    session: int
    state: str
    cpu: float
    name: str
    tags: tuple[str, ...] = ()
    owner: str = ""
    host: str = ""
    threads: int = 1

    @property
    def alive(self) -> bool:
        """Return True if any thread still runs: the first may end before the others."""
        return self.state not in "ZX" or self.threads > 1


ProcessTable = dict[int, SeenProcess]
OnProcess = Callable[[SeenProcess], None]


def list_processes(names: TagNames, on_sight: OnProcess = lambda seen: None) -> ProcessTable:
    """Return this user's processes, youngest first, each passed to `on_sight` at once.

    Processes that fork and end at once are among the youngest. Raise OSError if the list cannot be
    read, as with too many open files: unseen must not mean gone.
    """
    found: ProcessTable = {}
    for pid in _sort_youngest_first(_list_pids()):
        seen = read_process(pid, names)
        if seen is not None:
            on_sight(seen)
            found[pid] = seen
    return found


def read_process(
    pid: int, names: TagNames | None = None, anyone: bool = False
) -> SeenProcess | None:
    """Return one process; None if it is gone, or not ours (or `anyone`'s)."""
    return (_read_proc if HAS_PROC else _read_psutil)(pid, names, anyone)


def is_not_yet_executed(pid: int) -> bool:
    """Return True for a fork of this process that runs no program of its own yet.

    Until then it shows our first environment, without what we have set since.
    """
    try:
        return HAS_PROC and _read_bytes(f"/proc/{pid}/cmdline") == _read_bytes("/proc/self/cmdline")
    except OSError:
        return False


def is_running(pid: int, started: str) -> bool:
    """Return True if that process lives, for any owner, or cannot be checked."""
    seen = read_process(pid, anyone=True)
    if seen is not None:
        return seen.alive and str(seen.process.started) == started
    try:
        os.kill(pid, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:
        return True
    return True


def _list_pids() -> Iterator[int]:
    if not HAS_PROC:
        import psutil

        yield from psutil.pids()
        return
    with os.scandir(PROC) as entries:
        for entry in entries:
            if entry.name.isdigit():
                yield int(entry.name)


def _sort_youngest_first(pids: Iterable[int]) -> list[int]:
    """Sort by age: ids rise, and begin again with the lowest after the highest."""
    last = int(_read_bytes("/proc/loadavg").split()[-1]) if HAS_PROC else 0
    return sorted(pids, key=lambda pid: (pid > last, -pid))


def _read_proc(pid: int, names: TagNames | None, anyone: bool) -> SeenProcess | None:
    try:
        if not anyone and os.stat(f"/proc/{pid}").st_uid != os.geteuid():  # noqa: PTH116
            return None
        stat = _read_bytes(f"/proc/{pid}/stat")
    except (FileNotFoundError, ProcessLookupError, PermissionError):
        return None
    head, _, rest = stat.rpartition(b")")
    fields = rest.split()
    seen = SeenProcess(
        process=Process(pid, int(fields[19])),
        parent=int(fields[1]),
        session=int(fields[3]),
        state=fields[0].decode(),
        cpu=(int(fields[11]) + int(fields[12])) / _TICKS,
        name=head.partition(b"(")[2].decode(errors="replace"),
        threads=int(fields[17]),
    )
    if names is None or not seen.alive:
        return seen
    return _add_tags(seen, names, _read_environment(seen, names))


def _read_environment(seen: SeenProcess, names: TagNames) -> dict[str, str]:
    pid = seen.process.pid
    try:
        if seen.state == "Z":  # an ended thread has no environment; the last one does
            pid = max(int(path.name) for path in Path(f"/proc/{pid}/task").iterdir())
        content = _read_bytes(f"/proc/{pid}/environ")
    except (FileNotFoundError, ProcessLookupError, PermissionError):
        return {}
    marks = _encode_names(names)
    if not any(mark in content for mark in marks):
        return {}
    pairs = (part.partition(b"=") for part in content.split(b"\0") if part.startswith(marks))
    return {name.decode(): value.decode(errors="replace") for name, _, value in pairs}


@cache
def _encode_names(names: TagNames) -> tuple[bytes, ...]:
    return tuple(name.encode() + b"=" for name in names)


def _read_bytes(path: str) -> bytes:
    file = os.open(path, os.O_RDONLY)
    try:
        parts = []
        while part := os.read(file, 65_536):
            parts.append(part)
        return b"".join(parts)
    finally:
        os.close(file)


def _read_psutil(pid: int, names: TagNames | None, anyone: bool) -> SeenProcess | None:
    import psutil

    try:
        found = psutil.Process(pid)
        with found.oneshot():
            if not anyone and found.uids().effective != os.geteuid():
                return None
            times = found.cpu_times()
            zombie = found.status() == psutil.STATUS_ZOMBIE
            seen = SeenProcess(
                process=Process(pid, found.create_time()),
                parent=found.ppid(),
                session=-1,
                state="Z" if zombie else "T" if found.status() == psutil.STATUS_STOPPED else "S",
                cpu=times.user + times.system,
                name=found.name(),
            )
            if names is None or not seen.alive:
                return seen
            return _add_tags(seen, names, found.environ())
    except (psutil.Error, OSError):
        return None


def _add_tags(seen: SeenProcess, names: TagNames, environment: dict[str, str]) -> SeenProcess:
    tags = f"{environment.get(names.above, '')} {environment.get(names.tag, '')}".split()
    owner, host = environment.get(names.owner, ""), environment.get(names.host, "")
    if not tags and not host:
        return seen
    return msgspec.structs.replace(seen, tags=tuple(tags), owner=owner, host=host)


def find_relatives(
    table: ProcessTable, tag: str, leader: Process, known: Container[Process] = ()
) -> dict[Process, SeenProcess]:
    """Return the living processes that belong to a tag, and their descendants.

    They carry the tag, share the leader's session, or were `known` before. The session counts only
    while its leader is still listed, dead or alive: afterwards its number may be reused.
    """
    first = table.get(leader.pid)
    session = leader.pid if first is not None and first.process == leader else -2
    roots = [
        seen
        for seen in table.values()
        if tag in seen.tags or seen.session == session or seen.process in known
    ]
    return {seen.process: seen for seen in find_descendants(table, roots) if seen.alive}


def find_descendants(table: ProcessTable, roots: Iterable[SeenProcess]) -> list[SeenProcess]:
    """Return the roots and all processes below them, each once."""
    children: dict[int, list[SeenProcess]] = defaultdict(list)
    for seen in table.values():
        children[seen.parent].append(seen)
    found: dict[int, SeenProcess] = {}
    waiting = list(roots)
    while waiting:
        seen = waiting.pop()
        if seen.process.pid not in found:
            found[seen.process.pid] = seen
            waiting += children[seen.process.pid]
    return list(found.values())


def find_ancestors(table: ProcessTable, pid: int) -> set[Process]:
    """Return the process, its parent, and so on up: they must never be killed."""
    found: set[Process] = set()
    while (seen := table.get(pid)) is not None and seen.process not in found:
        found.add(seen.process)
        pid = seen.parent
    return found


class ProcessSnapshot:
    """Take one listing of all processes for everyone who asks at the same moment."""

    def __init__(self, names: TagNames) -> None:
        self._names = names
        self._next: asyncio.Future[ProcessTable] | None = None
        self._watchers: list[OnProcess] = []

    async def take(self, on_sight: OnProcess | None = None) -> ProcessTable:
        if self._next is None:
            loop = asyncio.get_running_loop()
            self._next = loop.create_future()
            loop.call_soon(self._deliver, self._next)
        if on_sight is not None:
            self._watchers.append(on_sight)
        return await asyncio.shield(self._next)

    def _deliver(self, waiting: "asyncio.Future[ProcessTable]") -> None:
        watchers, self._watchers, self._next = self._watchers, [], None

        def on_sight(seen: SeenProcess) -> None:
            for watcher in watchers:
                watcher(seen)

        try:
            waiting.set_result(list_processes(self._names, on_sight))
        except OSError as error:
            waiting.set_exception(error)
