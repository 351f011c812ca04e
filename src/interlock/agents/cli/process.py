"""One agent's process under supervision: started, heard, timed, and ended with all it started.

`AgentProcess` (or `supervise`) runs a `ProcessSpec` in a session of its own, hands every line to a
reader, ends it when one of its five clocks rings, and tells how it ended, and by whom. It knows
neither what was asked nor whether the answer is good: an exit code proves nothing either way.
"""

import asyncio
import fcntl
import os
import signal
import subprocess
import time
from collections.abc import Callable, Coroutine, Mapping
from contextlib import ExitStack, suppress
from math import isinf
from pathlib import Path
from subprocess import Popen
from typing import IO, Any, Final, Literal, TypeVar

import msgspec

from interlock.agents.cli.health import AgentHealth, HealthFacts, facts_of, standing
from interlock.agents.cli.orphans import owner
from interlock.agents.cli.tag import TAGS, checked, variables
from interlock.agents.cli.timeouts import ClockName, Reader, Timeouts, TimeoutWatch
from interlock.system.errors import SourceError
from interlock.system.process_table import (
    Census,
    OnSight,
    Process,
    ProcessSnapshot,
    SeenProcess,
    census,
    family,
    line_above,
    look,
)
from interlock.system.process_tree import (
    HAS_HANDLES,
    LONGEST,
    Clock,
    Inlet,
    KillReport,
    Lines,
    Outlet,
    OutputLine,
    ProcessExit,
    Survivor,
    kill_group,
    kill_tree,
    send,
)

WIDE: Final = 512 * 1024
"""Bytes an agent may be ahead of us. A hundred such pipes stay under what Linux grants a user."""


class ProcessSpec(msgspec.Struct, frozen=True):
    """What to start. `env` is the whole environment; only our tag is added to it."""

    argv: tuple[str, ...]
    stdin: bytes
    cwd: Path
    env: Mapping[str, str]
    tag: str


def spawn(start: ProcessSpec, marks: Mapping[str, str]) -> "subprocess.Popen[bytes]":
    if not start.argv:
        raise SourceError("there is no command to start")
    try:
        child = subprocess.Popen(  # noqa: S603 - a list of words, never a shell's line
            start.argv,
            bufsize=0,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=start.cwd,
            env={**start.env, **marks},
            start_new_session=True,
        )
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else str(error)
        if not start.cwd.is_dir():
            why = f"its work folder {str(start.cwd)!r} is not there"
        raise SourceError(f"{start.argv[0]!r} cannot be started: {why}") from error
    _widen(child)
    return child


def _widen(child: "subprocess.Popen[bytes]") -> None:
    """Claude Code exits without waiting for its reader: what does not fit into the pipe is lost,
    and its result stands last. Where the system grants no more, the usual size must do."""
    with suppress(OSError, AttributeError):
        fcntl.fcntl(_fd(child.stdout), fcntl.F_SETPIPE_SZ, WIDE)


def _fd(pipe: IO[bytes] | None) -> int:
    return -1 if pipe is None else pipe.fileno()


def abandon(child: "subprocess.Popen[bytes]") -> None:
    """End one that was born but cannot be watched; what it started so far goes with it."""
    kill_group(child.pid)
    for pipe in (child.stdin, child.stdout, child.stderr):
        if pipe is not None:
            pipe.close()
    child.wait()


By = Literal["itself", "us"] | ClockName


class ProcessEnd(msgspec.Struct, frozen=True, kw_only=True):
    """How it ended. Times are those of the clock that was given."""

    exit_code: int | None
    """Negative for a signal. None: it hangs in the kernel and cannot be waited for."""
    by: By
    started_at: float
    ended_at: float
    first_byte_at: float | None = None
    result_at: float | None = None
    """When the reader last saw a result that counts."""
    signalled_at: float | None = None
    """When we first sent it, or what it left behind, a signal: what came later does not count."""
    stderr: bytes = b""
    """The last 16 KB of it, before our own signal."""
    lines: int = 0
    cut_lines: int = 0
    stdout_bytes: int = 0
    open_tools: tuple[str, ...] = ()
    left: tuple[Survivor, ...] = ()
    """What it left running, or was ended with it: everything but the agent itself."""
    remaining: tuple[Survivor, ...] = ()
    """What lives although it was killed. Empty, unless the kernel holds it."""
    slept: float = 0.0
    last: AgentHealth
    """How it stood in the moment before it ended or was ended."""


def why(ended: ProcessEnd, clocks: Timeouts) -> str:
    """One sentence for a person, without judging the answer."""
    if ended.by == "itself":
        return _exit_words(ended.exit_code)
    if ended.by == "us":
        return "it was stopped"
    return _RANG[ended.by].format(seconds=f"{getattr(clocks, ended.by):g}")


def _exit_words(code: int | None) -> str:
    if code is None:
        return "its exit code is not known"
    return f"exit code {code}" if code >= 0 else f"killed by signal {-code}"


_RANG: dict[ClockName, str] = {
    "first_byte": "it said nothing within {seconds} s of its start and was ended",
    "silence": "it was silent for {seconds} s and was ended",
    "after_result": "it gave its result, did not exit within {seconds} s and was ended",
    "tool": "a tool was open and it was silent for {seconds} s; it was ended",
    "wall": "it ran for {seconds} s and was ended",
}


T = TypeVar("T")
_UNBORN = HealthFacts(age=0.0, stream_age=0.0, has_spoken=False, silence=0.0)
_STDERR_TAIL = 16 * 1024


async def supervise(
    start: ProcessSpec,
    clocks: Timeouts,
    reader: Reader,
    clock: Clock,
    *,
    wall: Callable[[], float] = time.time,
    longest_line: int = LONGEST,
    lookout: ProcessSnapshot | None = None,
) -> ProcessEnd:
    """Start it, watch it, end it. Cancelled, it ends the agent first."""
    agent = AgentProcess(
        start, clocks, reader, clock, wall=wall, longest_line=longest_line, lookout=lookout
    )
    return await agent.run()


class AgentProcess:
    """The same with a handle: `stop` and `standing` while `run` is awaited.

    A reader may call `stop`. Agents that share a `lookout` share what it costs to look around.
    """

    def __init__(
        self,
        start: ProcessSpec,
        clocks: Timeouts,
        reader: Reader,
        clock: Clock,
        *,
        wall: Callable[[], float] = time.time,
        longest_line: int = LONGEST,
        lookout: ProcessSnapshot | None = None,
        most_stdout: float = float("inf"),
    ) -> None:
        self._start = start
        self._tag = checked(start.tag)
        self._reader = reader
        self._clock = clock
        self._wall = wall
        self._watch = TimeoutWatch(clocks, clock.now(), wall())
        self._lines = Lines(longest_line)
        self._lookout = lookout or ProcessSnapshot(TAGS)
        self._stdout_bytes = 0
        self._most_stdout = most_stdout
        self._stderr = b""
        self._signalled_at: float | None = None
        self._stopped = False
        self._timer: Callable[[], None] = _nothing
        self._rings_at = float("inf")
        self._looked: tuple[float, float] | None = None
        self._leader: Process | None = None
        self._known: set[Process] = set()
        self._failure: Exception | None = None
        self._over: asyncio.Future[By] | None = None
        self._exit: ProcessExit
        self._out: Inlet
        self._err: Inlet
        self._in: Outlet

    async def run(self) -> ProcessEnd:
        if self._stopped:
            return self._told("us", None, KillReport(), standing(_UNBORN))
        self._over = asyncio.get_running_loop().create_future()
        self._begin()
        try:
            by = await self._over
        except asyncio.CancelledError:
            await _surely(self._finish("us"))
            raise
        ended = await _surely(self._finish(by))
        if self._failure is not None:
            raise self._failure
        return ended

    def stop(self) -> None:
        """End it: by us. Harmless before the start, at any time, and again."""
        self._stopped = True
        self._end("us")

    @property
    def process(self) -> Process | None:
        return self._leader

    def standing(self, people: Census | None = None) -> AgentHealth:
        """How it stands now. Hand in one census when asking many."""
        if self._leader is None:
            return standing(_UNBORN)
        now = self._clock.now()
        kin = self._kin(people if people is not None else census(TAGS))
        leader = kin.get(self._leader)
        cpu = self._cpu_share(now, sum(seen.cpu for seen in kin.values()))
        facts = facts_of(
            self._watch,
            now,
            self._wall(),
            state=leader.state if leader else "",
            cpu_share=cpu,
            children=len(kin) - (leader is not None),
            is_mute=not self._out.is_open,
        )
        return standing(facts)

    def _begin(self) -> None:
        child = spawn(self._start, variables(self._tag, owner(), os.environ))
        self._watch = TimeoutWatch(self._watch.clocks, self._clock.now(), self._wall())
        with ExitStack() as undo:
            undo.callback(abandon, child)
            try:
                self._attach(child, undo)
            except OSError as error:
                raise SourceError(
                    f"{self._start.argv[0]!r} cannot be watched: {error.strerror}; "
                    "run fewer agents at once"
                ) from error
            undo.pop_all()
        self._set_timer()

    def _attach(self, child: "Popen[bytes]", undo: ExitStack) -> None:
        seen = look(child.pid)
        self._leader = seen.process if seen else Process(child.pid, 0)
        self._exit = ProcessExit(child, self._exits)
        undo.callback(self._exit.let_go)
        self._out = Inlet(child.stdout, self._hear)
        undo.callback(self._out.close)
        self._err = Inlet(child.stderr, self._murmur)
        undo.callback(self._err.close)
        self._in = Outlet(child.stdin, self._start.stdin)

    def _hear(self, data: bytes) -> None:
        self._stdout_bytes += len(data)
        late = self._signalled_at is not None
        if not late:
            self._watch.hear(self._clock.now())
        self._read(self._lines.feed(data, late))
        if self._stdout_bytes > self._most_stdout:
            self._end("us")

    def _read(self, lines: list[OutputLine]) -> None:
        """A reader that fails ends the agent; its error is told when all is cleared away."""
        if self._failure is not None:
            return
        try:
            for line in lines:
                for sight in self._reader(line):
                    if not line.late:
                        self._watch.see(sight, self._clock.now())
        except Exception as error:
            self._failure = error
            self._end("us")
        self._set_timer()

    def _murmur(self, data: bytes) -> None:
        if self._signalled_at is None:
            self._stderr = (self._stderr + data[-_STDERR_TAIL:])[-_STDERR_TAIL:]
            self._watch.murmur(self._clock.now())

    def _set_timer(self) -> None:
        """Only ever to an earlier time: one that rings too early looks again."""
        due = self._watch.due().when
        if self._signalled_at is None and due < self._rings_at and not isinf(due):
            self._timer()
            self._rings_at = due
            self._timer = self._clock.call_at(due, self._ring)

    def _ring(self) -> None:
        self._rings_at = float("inf")
        if self._signalled_at is not None:
            return
        self._take_in()
        self._watch.wake(self._clock.now(), self._wall())
        due = self._watch.due()
        if self._clock.now() < due.when:
            self._set_timer()
        elif self._exit.has_come:
            self._end("itself")
        else:
            self._end(due.name)

    def _exits(self) -> None:
        self._take_in()
        self._end("itself")

    def _take_in(self) -> None:
        """What was said before we act, also if the loop had no time yet to hear it."""
        self._out.drain()
        self._err.drain()

    def _end(self, by: By) -> None:
        if self._over is not None and not self._over.done():
            self._over.set_result(by)

    async def _finish(self, by: By) -> ProcessEnd:
        self._timer()
        people = await self._look()
        self._take_in()
        last = self.standing(people)
        felled = await self._fell(self._kin(people))
        self._let_go()
        self._read(self._lines.end(late=self._signalled_at is not None))
        return self._told(by, self._exit.bury(), felled, last)

    async def _fell(self, kin: dict[Process, SeenProcess]) -> KillReport:
        if not kin:
            return KillReport()
        self._signalled_at = self._clock.now()
        group = self._leader.pid if self._leader and HAS_HANDLES else None
        return await kill_tree(kin, self._find, self._clock, self._watch.clocks.grace, group)

    async def _find(self, stop: bool) -> dict[Process, SeenProcess]:
        return self._kin(await self._look(self._stop_it if stop else None))

    def _stop_it(self, seen: SeenProcess) -> None:
        if self._start.tag in seen.tags and seen.process.pid != os.getpid():
            send(seen.process, signal.SIGSTOP)

    async def _look(self, on_sight: OnSight | None = None) -> Census:
        """With too many open files nobody can look around: then ours are closed before their time,
        and what it says when it is ended is not heard."""
        try:
            return await self._lookout.look(on_sight)
        except OSError:
            self._let_go()
            return await self._lookout.look(on_sight)

    def _let_go(self) -> None:
        self._take_in()
        self._in.close()
        self._out.close()
        self._err.close()
        self._exit.let_go()

    def _kin(self, people: Census) -> dict[Process, SeenProcess]:
        """Remembered from look to look: one that sheds its tag and its parents stays known."""
        if self._leader is None:
            return {}
        kin = family(people, self._start.tag, self._leader, self._known)
        for process in line_above(people, os.getpid()):
            kin.pop(process, None)
        self._known = set(kin)
        return kin

    def _told(
        self, by: By, exit_code: int | None, felled: KillReport, last: AgentHealth
    ) -> ProcessEnd:
        watch = self._watch
        pid = self._leader.pid if self._leader else 0
        return ProcessEnd(
            exit_code=exit_code,
            by=by,
            started_at=watch.started,
            ended_at=self._clock.now(),
            first_byte_at=watch.first_byte_at,
            result_at=watch.result_at,
            signalled_at=self._signalled_at,
            stderr=self._stderr,
            lines=self._lines.count,
            cut_lines=self._lines.cut,
            stdout_bytes=self._stdout_bytes,
            open_tools=tuple(watch.tools),
            left=tuple(each for each in felled.left if each.pid != pid),
            remaining=felled.remaining,
            slept=watch.slept,
            last=last,
        )

    def _cpu_share(self, now: float, cpu: float) -> float | None:
        before, self._looked = self._looked, (now, cpu)
        if before is None or now <= before[0]:
            return None
        return max(0.0, cpu - before[1]) / (now - before[0])


async def _surely(work: Coroutine[Any, Any, T]) -> T:
    """Done to its end, also if whoever waits for it is cancelled."""
    task = asyncio.ensure_future(work)
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        if not task.done():
            await asyncio.wait([task])
        raise


def _nothing() -> None:
    return None
