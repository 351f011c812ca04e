"""Supervise one agent's process: start it, read it, time it, and end it with all it started.

`ProcessFamily` is a process with its descendants. `AgentProcess` runs a `ProcessSpec` in a session
of its own, passes every line to a reader, ends it when one of its five timeouts expires, and
reports how it ended, and by whom. It does not judge the answer: an exit code proves nothing either
way.
"""

import asyncio
import fcntl
import os
import signal
import subprocess
import time
from collections.abc import Callable, Coroutine, Mapping
from contextlib import ExitStack, suppress
from math import inf, isinf
from pathlib import Path
from subprocess import Popen
from typing import Any, Final, Literal, TypeVar

import msgspec

from interlock.carriers.cli.health import AgentHealth, HealthFacts, assess_health, collect_facts
from interlock.carriers.cli.ownership import TAGS, build_tag_variables, parse_tag
from interlock.carriers.cli.timeouts import ClockName, LineReader, Timeouts, TimeoutWatch
from interlock.system.clock import Clock
from interlock.system.errors import SourceError
from interlock.system.process_table import (
    HOST_VARIABLE,
    OnProcess,
    Process,
    ProcessSnapshot,
    ProcessTable,
    SeenProcess,
    find_ancestors,
    find_relatives,
    is_not_yet_executed,
    list_processes,
    read_process,
)
from interlock.system.process_tree import (
    HAS_HANDLES,
    LONGEST,
    KillReport,
    LineSplitter,
    OutputLine,
    PipeReader,
    PipeWriter,
    ProcessExit,
    Survivor,
    become_subreaper,
    kill_group,
    kill_tree,
    reap_fallen,
    send_signal,
)

PIPE_SIZE: Final = 512 * 1024
"""The bytes by which an agent may be ahead of us. A hundred such pipes stay below Linux's limit for
a user."""


NOT_STARTED = assess_health(HealthFacts(age=0.0, stream_age=0.0, has_spoken=False, silence=0.0))
"""The health of an agent without a process yet."""


class ProcessSpec(msgspec.Struct, frozen=True):
    """A process to start; `env` is the whole environment, to which only our tag is added."""

    argv: tuple[str, ...]
    stdin: bytes
    cwd: Path
    env: Mapping[str, str]
    tag: str


def start_process(spec: ProcessSpec, tags: Mapping[str, str]) -> "Popen[bytes]":
    """Start a process with these tags in its environment; SourceError if it cannot be started."""
    if not spec.argv:
        raise SourceError("there is no command to start")
    environment = {name: value for name, value in spec.env.items() if name != HOST_VARIABLE}
    try:
        child = Popen(  # noqa: S603 - a list of words, never a shell's line
            spec.argv,
            bufsize=0,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=spec.cwd,
            env=environment | dict(tags),
            start_new_session=True,
        )
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else str(error)
        if not spec.cwd.is_dir():
            why = f"its work folder {str(spec.cwd)!r} does not exist"
        raise SourceError(f"{spec.argv[0]!r} cannot be started: {why}") from error
    # Claude Code exits without waiting for its reader: what does not fit into the pipe is lost,
    # and its result comes last. Where the system grants no more, the usual size must do.
    with suppress(OSError, AttributeError):
        fcntl.fcntl(child.stdout or -1, fcntl.F_SETPIPE_SZ, PIPE_SIZE)
    return child


_RUNNING: set[Process] = set()
"""The leaders of all families of this process."""


class ProcessFamily:
    """A started process with its descendants: found, watched and ended together."""

    def __init__(
        self,
        spec: ProcessSpec,
        snapshot: ProcessSnapshot,
        on_exit: Callable[[], None],
        attach: Callable[["Popen[bytes]", ExitStack], None],
        close_pipes: Callable[[], None],
    ) -> None:
        """Start the process; `attach` takes its pipes. SourceError if it cannot be started or
        watched."""
        self._tag = str(parse_tag(spec.tag))
        self._snapshot = snapshot
        self._close_pipes = close_pipes
        self._known: set[Process] = set()
        self._suspects: set[Process] = set()
        self._last_cpu: tuple[float, float] | None = None
        become_subreaper()
        tags = build_tag_variables(spec.tag, os.environ)
        child = start_process(spec, tags)
        with ExitStack() as undo:
            undo.callback(_kill_unwatched, child)
            try:
                seen = read_process(child.pid)
                self.leader = seen.process if seen else Process(child.pid, 0)
                self.exit = ProcessExit(child, on_exit)
                undo.callback(self.exit.detach)
                attach(child, undo)
            except OSError as error:
                raise SourceError(
                    f"{spec.argv[0]!r} cannot be watched: {error.strerror}; "
                    "run fewer agents at once"
                ) from error
            undo.pop_all()
        self._sessions = {self.leader.pid}
        _RUNNING.add(self.leader)

    def select(self, processes: ProcessTable) -> dict[Process, SeenProcess]:
        """Return the living members, and reap inherited ones that have ended.

        Members are remembered: one that sheds its tag and its parents stays known. One that did so
        before it was ever seen is inherited by us when its parent ends.
        """
        fallen = {seen.process for seen in processes.values() if self._may_be_ours(seen)}
        # In the middle of an exec nothing shows an environment, so one look is no proof.
        known = self._known | (fallen & self._suspects)
        self._suspects = fallen
        found = find_relatives(processes, self._tag, self.leader, known)
        for process in find_ancestors(processes, os.getpid()):
            found.pop(process, None)
        self._known |= found.keys()
        self._sessions |= {seen.session for seen in found.values()} - {os.getsid(0)}
        reap_fallen(
            seen
            for seen in processes.values()
            if seen.process in self._known or seen.session in self._sessions
            if seen.process not in _RUNNING
        )
        return found

    def _may_be_ours(self, seen: SeenProcess) -> bool:
        """Return whether we inherited an unmarked process that only this agent can have left.

        What we start for ourselves has our session or our variable.
        """
        born = seen.process.started
        return (
            seen.parent == os.getpid()
            and seen.alive
            and not seen.tags
            and seen.session != os.getsid(0)
            and seen.host != os.environ.get(HOST_VARIABLE)
            and seen.process not in _RUNNING
            and self.leader.started <= born
            and not any(leader.started <= born for leader in _RUNNING - {self.leader})
            and not is_not_yet_executed(seen.process.pid)
        )

    def reap(self) -> int | None:
        """Return the exit code of the process, and remove it from the running ones."""
        _RUNNING.discard(self.leader)
        return self.exit.reap()

    def read_health(
        self,
        watch: TimeoutWatch,
        now: float,
        wall: float,
        processes: ProcessTable | None,
        *,
        is_mute: bool,
    ) -> AgentHealth:
        """Return the health of the agent; pass one table of processes when asking many."""
        members = self.select(list_processes(TAGS) if processes is None else processes)
        leader = members.get(self.leader)
        return assess_health(
            collect_facts(
                watch,
                now,
                wall,
                state=leader.state if leader else "",
                cpu_share=self._measure_cpu_share(now, sum(seen.cpu for seen in members.values())),
                children=len(members) - (leader is not None),
                is_mute=is_mute,
            )
        )

    def _measure_cpu_share(self, now: float, cpu: float) -> float | None:
        before, self._last_cpu = self._last_cpu, (now, cpu)
        if before is None or now <= before[0]:
            return None
        return max(0.0, cpu - before[1]) / (now - before[0])

    async def kill(
        self, members: dict[Process, SeenProcess], clock: Clock, grace: float
    ) -> KillReport:
        """End these members and all that are found meanwhile."""
        group = self.leader.pid if HAS_HANDLES else None
        return await kill_tree(members, self.find, clock, grace, group)

    async def list_processes(self, on_sight: OnProcess | None = None) -> ProcessTable:
        """List processes; with too many open files, close the pipes first and lose what the agent
        writes when it is ended."""
        try:
            return await self._snapshot.take(on_sight)
        except OSError:
            self._close_pipes()
            return await self._snapshot.take(on_sight)

    async def find(self, stop: bool = False) -> dict[Process, SeenProcess]:
        """Return the living members; with `stop`, suspend each as soon as it is seen."""
        on_sight = self._suspend if stop else None
        found = self.select(await self.list_processes(on_sight))
        if self._suspects - found.keys():
            found = self.select(await self.list_processes(on_sight))
        return found

    def _suspend(self, seen: SeenProcess) -> None:
        if self._tag in seen.tags and seen.process.pid != os.getpid():
            send_signal(seen.process, signal.SIGSTOP)


def _kill_unwatched(child: "Popen[bytes]") -> None:
    """End a process that cannot be watched, with everything it has started."""
    kill_group(child.pid)
    for pipe in (child.stdin, child.stdout, child.stderr):
        if pipe is not None:
            pipe.close()
    child.wait()


EndedBy = Literal["itself", "us"] | ClockName


class ProcessEnd(msgspec.Struct, frozen=True, kw_only=True):
    """The end of a process; times are those of the given clock."""

    exit_code: int | None
    """The exit code; negative for a signal, None if the process hangs in the kernel."""
    by: EndedBy
    started_at: float
    ended_at: float
    first_byte_at: float | None = None
    result_at: float | None = None
    """The time of the last result that counts."""
    signalled_at: float | None = None
    """The time of our first signal to it or to what it left; later output does not count."""
    stderr: bytes = b""
    """The last 16 KB of stderr before our own signal."""
    lines: int = 0
    cut_lines: int = 0
    stdout_bytes: int = 0
    open_tools: tuple[str, ...] = ()
    left: tuple[Survivor, ...] = ()
    """The processes it left running or that were ended with it, without the agent itself."""
    remaining: tuple[Survivor, ...] = ()
    """The processes that live although they were killed; usually empty."""
    slept: float = 0.0
    last: AgentHealth
    """The health just before the end."""


def describe_end(ended: ProcessEnd, timeouts: Timeouts) -> str:
    """Return a sentence about the end, without judging the answer."""
    if ended.by == "itself":
        return describe_exit(ended.exit_code)
    if ended.by == "us":
        return "it was stopped"
    return _TIMEOUT_SENTENCES[ended.by].format(seconds=f"{getattr(timeouts, ended.by):g}")


def describe_exit(code: int | None) -> str:
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


class OutputLimits(msgspec.Struct, frozen=True, kw_only=True):
    """The bytes a process may write to stdout."""

    line: int = LONGEST
    """The longest line; what goes beyond is cut."""
    total: float = inf
    """All lines together; a process that writes more is ended."""


USUAL_OUTPUT = OutputLimits()
T = TypeVar("T")
_STDERR_TAIL = 16 * 1024


class AgentProcess:
    """One process from its start to its end; `stop` and `read_health` work while `run` is awaited.

    A reader may call `stop`. Agents that share a `snapshot` share the cost of listing processes.
    """

    def __init__(
        self,
        spec: ProcessSpec,
        timeouts: Timeouts,
        reader: LineReader,
        clock: Clock,
        *,
        wall: Callable[[], float] = time.time,
        limits: OutputLimits = USUAL_OUTPUT,
        snapshot: ProcessSnapshot | None = None,
    ) -> None:
        self._spec = spec
        self._reader = reader
        self._clock = clock
        self._wall = wall
        self._watch = TimeoutWatch(timeouts, clock.now(), wall())
        self._lines = LineSplitter(limits.line)
        self._snapshot = snapshot or ProcessSnapshot(TAGS)
        self._stdout_bytes = 0
        self._max_stdout = limits.total
        self._stderr = b""
        self._signalled_at: float | None = None
        self._stopped = False
        self._timer: Callable[[], None] = _do_nothing
        self._timer_due = inf
        self._family: ProcessFamily | None = None
        self._failure: Exception | None = None
        self._ended_by: asyncio.Future[EndedBy] | None = None
        self._stdout_pipe: PipeReader
        self._stderr_pipe: PipeReader
        self._stdin_pipe: PipeWriter

    async def run(self) -> ProcessEnd:
        """Run the process to its end; when cancelled, end the agent first."""
        if self._stopped:
            return self._build_end("us", None, KillReport(), NOT_STARTED)
        self._ended_by = asyncio.get_running_loop().create_future()
        family = self._family = ProcessFamily(
            self._spec, self._snapshot, self._on_exit, self._attach, self._close_pipes
        )
        self._watch = TimeoutWatch(self._watch.timeouts, self._clock.now(), self._wall())
        self._set_timer()
        try:
            by = await self._ended_by
        except asyncio.CancelledError:
            await _run_to_end(self._finish(family, "us"))
            raise
        ended = await _run_to_end(self._finish(family, by))
        if self._failure is not None:
            raise self._failure
        return ended

    def stop(self) -> None:
        """End the agent; harmless before the start, at any time, and again."""
        self._stopped = True
        self._end_by("us")

    @property
    def process(self) -> Process | None:
        return self._family.leader if self._family else None

    def read_health(self, processes: ProcessTable | None = None) -> AgentHealth:
        """Return the health now; pass one table of processes when asking many agents."""
        if self._family is None:
            return NOT_STARTED
        is_mute = not self._stdout_pipe.is_open
        now, wall = self._clock.now(), self._wall()
        return self._family.read_health(self._watch, now, wall, processes, is_mute=is_mute)

    def _attach(self, child: "Popen[bytes]", undo: ExitStack) -> None:
        self._stdout_pipe = PipeReader(child.stdout, self._on_stdout)
        undo.callback(self._stdout_pipe.close)
        self._stderr_pipe = PipeReader(child.stderr, self._on_stderr)
        undo.callback(self._stderr_pipe.close)
        self._stdin_pipe = PipeWriter(child.stdin)
        self._stdin_pipe.write(self._spec.stdin)
        self._stdin_pipe.finish()

    def _on_stdout(self, data: bytes) -> None:
        self._stdout_bytes += len(data)
        late = self._signalled_at is not None
        if not late:
            self._watch.note_stdout(self._clock.now())
        self._read_lines(self._lines.feed(data, late))
        if self._stdout_bytes > self._max_stdout:
            self._end_by("us")

    def _read_lines(self, lines: list[OutputLine]) -> None:
        """Pass lines to the reader; if it fails, end the agent and raise its error after cleaning
        up."""
        if self._failure is not None:
            return
        try:
            for line in lines:
                for sign in self._reader(line):
                    if not line.late:
                        self._watch.note_sign(sign, self._clock.now())
        except Exception as error:
            self._failure = error
            self._end_by("us")
        self._set_timer()

    def _on_stderr(self, data: bytes) -> None:
        if self._signalled_at is None:
            self._stderr = (self._stderr + data[-_STDERR_TAIL:])[-_STDERR_TAIL:]
            self._watch.note_stderr(self._clock.now())

    def _set_timer(self) -> None:
        """Move the timer, only ever to an earlier time: one that rings too early looks again."""
        due = self._watch.next_due().when
        if self._signalled_at is None and due < self._timer_due and not isinf(due):
            self._timer()
            self._timer_due = due
            self._timer = self._clock.call_at(due, self._on_timer)

    def _on_timer(self) -> None:
        self._timer_due = inf
        if self._signalled_at is not None or self._family is None:
            return
        self._drain_pipes()
        self._watch.check_suspend(self._clock.now(), self._wall())
        due = self._watch.next_due()
        if self._clock.now() < due.when:
            self._set_timer()
        elif self._family.exit.has_exited:
            self._end_by("itself")
        else:
            self._end_by(due.name)

    def _on_exit(self) -> None:
        self._drain_pipes()
        self._end_by("itself")

    def _drain_pipes(self) -> None:
        """Read what was already written, even if the loop had no time to read it yet."""
        self._stdout_pipe.drain()
        self._stderr_pipe.drain()

    def _end_by(self, by: EndedBy) -> None:
        if self._ended_by is not None and not self._ended_by.done():
            self._ended_by.set_result(by)

    async def _finish(self, family: ProcessFamily, by: EndedBy) -> ProcessEnd:
        self._timer()
        processes = await family.list_processes()
        self._drain_pipes()
        last = self.read_health(processes)
        members = await family.find()
        killed = KillReport()
        if members:
            self._signalled_at = self._clock.now()
            killed = await family.kill(members, self._clock, self._watch.timeouts.grace)
        self._close_pipes()
        self._read_lines(self._lines.end(late=self._signalled_at is not None))
        return self._build_end(by, family.reap(), killed, last)

    def _close_pipes(self) -> None:
        self._drain_pipes()
        self._stdin_pipe.close()
        self._stdout_pipe.close()
        self._stderr_pipe.close()
        if self._family is not None:
            self._family.exit.detach()

    def _build_end(
        self, by: EndedBy, exit_code: int | None, killed: KillReport, last: AgentHealth
    ) -> ProcessEnd:
        watch = self._watch
        pid = self.process.pid if self.process else 0
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
            left=tuple(each for each in killed.left if each.pid != pid),
            remaining=killed.remaining,
            slept=watch.slept,
            last=last,
        )


async def _run_to_end(work: Coroutine[Any, Any, T]) -> T:
    """Run the work to its end, even if the waiting task is cancelled."""
    task = asyncio.ensure_future(work)
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        if not task.done():
            await asyncio.wait([task])
        raise


def _do_nothing() -> None:
    return None
