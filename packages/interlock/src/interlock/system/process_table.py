"""The processes of this machine that we may see: their parents, sessions and tags.

Reads /proc where there is one and asks psutil elsewhere (docs/decisions.md says why). A process is
known by its id and its start time together, so that a reused id is another process. Processes of
other users are not seen. What belongs to an agent is found by tag, by session and by descent, never
by name. One snapshot serves everyone who asks in the same moment, and begins after the question.
"""

import asyncio
import os
import resource
from collections import defaultdict
from collections.abc import Callable, Container, Iterable, Iterator
from contextlib import suppress
from functools import cache
from hashlib import blake2b
from pathlib import Path
from typing import NamedTuple

import msgspec

PROC = Path("/proc")
HAS_PROC = (PROC / "self" / "environ").exists()
_TICKS = os.sysconf("SC_CLK_TCK")


class TagNames(NamedTuple):
    """The environment variables by which processes are known: what marks a process and all it
    starts, the marks it was started under, and who supervises it."""

    tag: str
    above: str
    owner: str


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

    @property
    def alive(self) -> bool:
        return self.state not in "ZX"


ProcessTable = dict[int, SeenProcess]
OnProcess = Callable[[SeenProcess], None]


def list_processes(names: TagNames, on_sight: OnProcess = lambda seen: None) -> ProcessTable:
    """Everything of this user, the youngest first, each handed to `on_sight` at once.

    Processes that live for a moment only, from fork to fork, are young. OSError where it cannot
    look, as with too many open files: not seen must not look like gone.
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
    """One process, or None where there is none that is ours (or `anyone`'s)."""
    return (_read_proc if HAS_PROC else _read_psutil)(pid, names, anyone)


def is_running(pid: int, started: str) -> bool:
    """Whether that process lives, whoever's it is. One that cannot be looked at does."""
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


_PID_BITS = 22  # the most that Linux allows
_MARKED = 1 << 62


class ProcessMark(NamedTuple):
    """What a mark says: the group it is of, and the process that set it."""

    group: int
    owner: int


def choose_mark(group: str, text: str) -> int:
    """A number by which all that a process starts can be known: see `set_mark`. It tells its group
    and us, too, for when we are no more."""
    return (
        _MARKED
        | _hash(group, 2) << 24 + _PID_BITS
        | os.getpid() % (1 << _PID_BITS) << 24
        | _hash(text, 3)
    )


def parse_mark(mark: int) -> ProcessMark | None:
    if mark >> 62 != 1:
        return None
    return ProcessMark(mark >> 24 + _PID_BITS & 0xFFFF, mark >> 24 & (1 << _PID_BITS) - 1)


def belongs_to(mark: ProcessMark, group: str) -> bool:
    return mark.group == _hash(group, 2)


def _hash(text: str, size: int) -> int:
    return int.from_bytes(blake2b(text.encode(), digest_size=size).digest())


def set_mark(pid: int, mark: int) -> None:
    """Mark a process and all that it will start from now on, whatever they do to their environment,
    their session and their parents: limits are inherited, and this one (for real-time scheduling)
    is so high that it limits nothing. Where the system has no such limit, nothing is marked."""
    with suppress(OSError, ValueError, AttributeError):
        hard = resource.prlimit(pid, resource.RLIMIT_RTTIME)[1]
        resource.prlimit(pid, resource.RLIMIT_RTTIME, (mark, hard))


def read_mark(pid: int) -> int:
    """The mark of a process; 0 if it has none, or cannot be looked at."""
    try:
        lines = _read_bytes(f"/proc/{pid}/limits").splitlines()
    except OSError:
        return 0
    values = (line.split()[3] for line in lines if line.startswith(b"Max realtime timeout"))
    value = next(values, b"")
    return int(value) if value.isdigit() else 0


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
    """Numbers are given in rising order, and from the lowest again after the highest."""
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
    )
    if names is None or not seen.alive:
        return seen
    return _add_tags(seen, names, _read_environment(pid, names))


def _read_environment(pid: int, names: TagNames) -> dict[str, str]:
    try:
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
    if not tags:
        return seen
    return msgspec.structs.replace(seen, tags=tuple(tags), owner=environment.get(names.owner, ""))


def find_relatives(
    table: ProcessTable, tag: str, leader: Process, known: Container[Process] = ()
) -> dict[Process, SeenProcess]:
    """All living processes that carry the tag, share the leader's session, were `known` before, or
    descend from one of these.

    The session counts only while its leader is still there, dead or alive: its number is free for
    others afterwards.
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
    """The roots and all below them, each once."""
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
    """The process itself, its parent, and so on up: they must never be killed."""
    found: set[Process] = set()
    while (seen := table.get(pid)) is not None and seen.process not in found:
        found.add(seen.process)
        pid = seen.parent
    return found


class ProcessSnapshot:
    """One listing of all processes for everyone who asks in the same moment."""

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
