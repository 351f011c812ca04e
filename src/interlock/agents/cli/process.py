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

from interlock.agents.cli.health import AgentHealth, HealthFacts, assess_health, collect_facts
from interlock.agents.cli.orphans import describe_owner
from interlock.agents.cli.tag import TAGS, build_tag_variables, parse_tag
from interlock.agents.cli.timeouts import ClockName, LineReader, Timeouts, TimeoutWatch
from interlock.system.errors import SourceError
from interlock.system.process_table import (
    OnProcess,
    Process,
    ProcessSnapshot,
    ProcessTable,
    SeenProcess,
    find_ancestors,
    find_relatives,
    list_processes,
    read_process,
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
    send_signal,
)

PIPE_SIZE: Final = 512 * 1024
"""Bytes an agent may be ahead of us. A hundred such pipes stay under what Linux grants a user."""


class ProcessSpec(msgspec.Struct, frozen=True):
    """What to start. `env` is the whole environment; only our tag is added to it."""

    argv: tuple[str, ...]
    stdin: bytes
    cwd: Path
    env: Mapping[str, str]
    tag: str


def start_process(start: ProcessSpec, marks: Mapping[str, str]) -> "subprocess.Popen[bytes]":
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
    _widen_pipe(child)
    return child


def _widen_pipe(child: "subprocess.Popen[bytes]") -> None:
    """Claude Code exits without waiting for its reader: what does not fit into the pipe is lost,
    and its result stands last. Where the system grants no more, the usual size must do."""
    with suppress(OSError, AttributeError):
        fcntl.fcntl(_file_number(child.stdout), fcntl.F_SETPIPE_SZ, PIPE_SIZE)


def _file_number(pipe: IO[bytes] | None) -> int:
    return -1 if pipe is None else pipe.fileno()


def kill_unwatched(child: "subprocess.Popen[bytes]") -> None:
    """End one that was born but cannot be watched; what it started so far goes with it."""
    kill_group(child.pid)
    for pipe in (child.stdin, child.stdout, child.stderr):
        if pipe is not None:
            pipe.close()
    child.wait()


EndedBy = Literal["itself", "us"] | ClockName


class ProcessEnd(msgspec.Struct, frozen=True, kw_only=True):
    """How it ended. Times are those of the clock that was given."""

    exit_code: int | None
    """Negative for a signal. None: it hangs in the kernel and cannot be waited for."""
    by: EndedBy
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


def describe_end(ended: ProcessEnd, clocks: Timeouts) -> str:
    """One sentence for a person, without judging the answer."""
    if ended.by == "itself":
        return _describe_exit(ended.exit_code)
    if ended.by == "us":
        return "it was stopped"
    return _TIMEOUT_SENTENCES[ended.by].format(seconds=f"{getattr(clocks, ended.by):g}")


def _describe_exit(code: int | None) -> str:
    if code is None:
        return "its exit code is not known"
    return f"exit code {code}" if code >= 0 else f"killed by signal {-code}"


_TIMEOUT_SENTENCES: dict[ClockName, str] = {
    "first_byte": "it said nothing within {seconds} s of its start and was ended",
    "silence": "it was silent for {seconds} s and was ended",
    "after_result": "it gave its result, did not exit within {seconds} s and was ended",
    "tool": "a tool was open and it was silent for {seconds} s; it was ended",
    "wall": "it ran for {seconds} s and was ended",
}


T = TypeVar("T")
_NOT_STARTED = HealthFacts(age=0.0, stream_age=0.0, has_spoken=False, silence=0.0)
_STDERR_TAIL = 16 * 1024


async def run_supervised(
    start: ProcessSpec,
    clocks: Timeouts,
    reader: LineReader,
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
        reader: LineReader,
        clock: Clock,
        *,
        wall: Callable[[], float] = time.time,
        longest_line: int = LONGEST,
        lookout: ProcessSnapshot | None = None,
        most_stdout: float = float("inf"),
    ) -> None:
        self._spec = start
        self._tag = parse_tag(start.tag)
        self._reader = reader
        self._clock = clock
        self._wall = wall
        self._timeouts = TimeoutWatch(clocks, clock.now(), wall())
        self._lines = Lines(longest_line)
        self._snapshot = lookout or ProcessSnapshot(TAGS)
        self._stdout_bytes = 0
        self._most_stdout = most_stdout
        self._stderr = b""
        self._signalled_at: float | None = None
        self._stopped = False
        self._timer: Callable[[], None] = _do_nothing
        self._rings_at = float("inf")
        self._last_cpu: tuple[float, float] | None = None
        self._leader: Process | None = None
        self._known: set[Process] = set()
        self._failure: Exception | None = None
        self._ended_by: asyncio.Future[EndedBy] | None = None
        self._process_exit: ProcessExit
        self._stdout_pipe: Inlet
        self._stderr_pipe: Inlet
        self._stdin_pipe: Outlet

    async def run(self) -> ProcessEnd:
        if self._stopped:
            return self._build_end("us", None, KillReport(), assess_health(_NOT_STARTED))
        self._ended_by = asyncio.get_running_loop().create_future()
        self._start_process()
        try:
            by = await self._ended_by
        except asyncio.CancelledError:
            await _run_to_end(self._finish("us"))
            raise
        ended = await _run_to_end(self._finish(by))
        if self._failure is not None:
            raise self._failure
        return ended

    def stop(self) -> None:
        """End it: by us. Harmless before the start, at any time, and again."""
        self._stopped = True
        self._end_by("us")

    @property
    def process(self) -> Process | None:
        return self._leader

    def read_health(self, people: ProcessTable | None = None) -> AgentHealth:
        """How it stands now. Hand in one census when asking many."""
        if self._leader is None:
            return assess_health(_NOT_STARTED)
        now = self._clock.now()
        kin = self._select_family(people if people is not None else list_processes(TAGS))
        leader = kin.get(self._leader)
        cpu = self._measure_cpu_share(now, sum(seen.cpu for seen in kin.values()))
        facts = collect_facts(
            self._timeouts,
            now,
            self._wall(),
            state=leader.state if leader else "",
            cpu_share=cpu,
            children=len(kin) - (leader is not None),
            is_mute=not self._stdout_pipe.is_open,
        )
        return assess_health(facts)

    def _start_process(self) -> None:
        child = start_process(
            self._spec, build_tag_variables(self._tag, describe_owner(), os.environ)
        )
        self._timeouts = TimeoutWatch(self._timeouts.clocks, self._clock.now(), self._wall())
        with ExitStack() as undo:
            undo.callback(kill_unwatched, child)
            try:
                self._attach(child, undo)
            except OSError as error:
                raise SourceError(
                    f"{self._spec.argv[0]!r} cannot be watched: {error.strerror}; "
                    "run fewer agents at once"
                ) from error
            undo.pop_all()
        self._set_timer()

    def _attach(self, child: "Popen[bytes]", undo: ExitStack) -> None:
        seen = read_process(child.pid)
        self._leader = seen.process if seen else Process(child.pid, 0)
        self._process_exit = ProcessExit(child, self._on_exit)
        undo.callback(self._process_exit.let_go)
        self._stdout_pipe = Inlet(child.stdout, self._on_stdout)
        undo.callback(self._stdout_pipe.close)
        self._stderr_pipe = Inlet(child.stderr, self._on_stderr)
        undo.callback(self._stderr_pipe.close)
        self._stdin_pipe = Outlet(child.stdin, self._spec.stdin)

    def _on_stdout(self, data: bytes) -> None:
        self._stdout_bytes += len(data)
        late = self._signalled_at is not None
        if not late:
            self._timeouts.note_stdout(self._clock.now())
        self._read_lines(self._lines.feed(data, late))
        if self._stdout_bytes > self._most_stdout:
            self._end_by("us")

    def _read_lines(self, lines: list[OutputLine]) -> None:
        """A reader that fails ends the agent; its error is told when all is cleared away."""
        if self._failure is not None:
            return
        try:
            for line in lines:
                for sight in self._reader(line):
                    if not line.late:
                        self._timeouts.note_sign(sight, self._clock.now())
        except Exception as error:
            self._failure = error
            self._end_by("us")
        self._set_timer()

    def _on_stderr(self, data: bytes) -> None:
        if self._signalled_at is None:
            self._stderr = (self._stderr + data[-_STDERR_TAIL:])[-_STDERR_TAIL:]
            self._timeouts.note_stderr(self._clock.now())

    def _set_timer(self) -> None:
        """Only ever to an earlier time: one that rings too early looks again."""
        due = self._timeouts.next_due().when
        if self._signalled_at is None and due < self._rings_at and not isinf(due):
            self._timer()
            self._rings_at = due
            self._timer = self._clock.call_at(due, self._on_timer)

    def _on_timer(self) -> None:
        self._rings_at = float("inf")
        if self._signalled_at is not None:
            return
        self._drain_pipes()
        self._timeouts.check_suspend(self._clock.now(), self._wall())
        due = self._timeouts.next_due()
        if self._clock.now() < due.when:
            self._set_timer()
        elif self._process_exit.has_come:
            self._end_by("itself")
        else:
            self._end_by(due.name)

    def _on_exit(self) -> None:
        self._drain_pipes()
        self._end_by("itself")

    def _drain_pipes(self) -> None:
        """What was said before we act, also if the loop had no time yet to hear it."""
        self._stdout_pipe.drain()
        self._stderr_pipe.drain()

    def _end_by(self, by: EndedBy) -> None:
        if self._ended_by is not None and not self._ended_by.done():
            self._ended_by.set_result(by)

    async def _finish(self, by: EndedBy) -> ProcessEnd:
        self._timer()
        people = await self._take_census()
        self._drain_pipes()
        last = self.read_health(people)
        felled = await self._kill_family(self._select_family(people))
        self._close_pipes()
        self._read_lines(self._lines.end(late=self._signalled_at is not None))
        return self._build_end(by, self._process_exit.bury(), felled, last)

    async def _kill_family(self, kin: dict[Process, SeenProcess]) -> KillReport:
        if not kin:
            return KillReport()
        self._signalled_at = self._clock.now()
        group = self._leader.pid if self._leader and HAS_HANDLES else None
        return await kill_tree(
            kin, self._find_family, self._clock, self._timeouts.clocks.grace, group
        )

    async def _find_family(self, stop: bool) -> dict[Process, SeenProcess]:
        return self._select_family(await self._take_census(self._suspend if stop else None))

    def _suspend(self, seen: SeenProcess) -> None:
        if self._spec.tag in seen.tags and seen.process.pid != os.getpid():
            send_signal(seen.process, signal.SIGSTOP)

    async def _take_census(self, on_sight: OnProcess | None = None) -> ProcessTable:
        """With too many open files nobody can look around: then ours are closed before their time,
        and what it says when it is ended is not heard."""
        try:
            return await self._snapshot.take(on_sight)
        except OSError:
            self._close_pipes()
            return await self._snapshot.take(on_sight)

    def _close_pipes(self) -> None:
        self._drain_pipes()
        self._stdin_pipe.close()
        self._stdout_pipe.close()
        self._stderr_pipe.close()
        self._process_exit.let_go()

    def _select_family(self, people: ProcessTable) -> dict[Process, SeenProcess]:
        """Remembered from look to look: one that sheds its tag and its parents stays known."""
        if self._leader is None:
            return {}
        kin = find_relatives(people, self._spec.tag, self._leader, self._known)
        for process in find_ancestors(people, os.getpid()):
            kin.pop(process, None)
        self._known = set(kin)
        return kin

    def _build_end(
        self, by: EndedBy, exit_code: int | None, felled: KillReport, last: AgentHealth
    ) -> ProcessEnd:
        watch = self._timeouts
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

    def _measure_cpu_share(self, now: float, cpu: float) -> float | None:
        before, self._last_cpu = self._last_cpu, (now, cpu)
        if before is None or now <= before[0]:
            return None
        return max(0.0, cpu - before[1]) / (now - before[0])


async def _run_to_end(work: Coroutine[Any, Any, T]) -> T:
    """Done to its end, also if whoever waits for it is cancelled."""
    task = asyncio.ensure_future(work)
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        if not task.done():
            await asyncio.wait([task])
        raise


def _do_nothing() -> None:
    return None
