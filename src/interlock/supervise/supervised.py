"""One agent under supervision: started, heard, timed, ended with all its processes.

Knows the order of these things; pipes, clocks, lines and trees have files of their own. Refuses to
know what was asked and whether the answer is good: it tells how the process ended, and by whom.
"""

import asyncio
import os
import time
from collections.abc import Callable, Coroutine
from math import isinf
from typing import Any, TypeVar

from interlock.supervise.census import Census, Process, Seen, census, look
from interlock.supervise.clocks import Clocks, Watch
from interlock.supervise.ended import By, Ended
from interlock.supervise.exits import Exit
from interlock.supervise.kinship import family
from interlock.supervise.lines import LONGEST, Lines
from interlock.supervise.pipes import Inlet, Outlet
from interlock.supervise.sight import Line, Reader
from interlock.supervise.standing import Facts, Standing, standing
from interlock.supervise.start import Start, owner, spawn
from interlock.supervise.tag import checked, variables
from interlock.supervise.tree import Clock, Felled, fell

T = TypeVar("T")
_STDERR_TAIL = 16 * 1024


async def supervise(
    start: Start,
    clocks: Clocks,
    reader: Reader,
    clock: Clock,
    *,
    wall: Callable[[], float] = time.time,
    longest_line: int = LONGEST,
) -> Ended:
    """Start it, watch it, end it. Cancelled, it ends the agent first."""
    agent = Supervised(start, clocks, reader, clock, wall=wall, longest_line=longest_line)
    return await agent.run()


class Supervised:
    """The same with a handle: `stop` and `standing` while `run` is awaited."""

    def __init__(
        self,
        start: Start,
        clocks: Clocks,
        reader: Reader,
        clock: Clock,
        *,
        wall: Callable[[], float] = time.time,
        longest_line: int = LONGEST,
    ) -> None:
        self._start = start
        self._tag = checked(start.tag)
        self._reader = reader
        self._clock = clock
        self._wall = wall
        self._watch = Watch(clocks, clock.now(), wall())
        self._lines = Lines(longest_line)
        self._stdout_bytes = 0
        self._stderr = b""
        self._signalled_at: float | None = None
        self._stopped = False
        self._timer: Callable[[], None] = _nothing
        self._rings_at = float("inf")
        self._looked: tuple[float, float] | None = None
        self._leader: Process | None = None
        self._over: asyncio.Future[By]
        self._exit: Exit
        self._out: Inlet
        self._err: Inlet
        self._in: Outlet

    async def run(self) -> Ended:
        self._over = asyncio.get_running_loop().create_future()
        self._begin()
        try:
            by = await self._over
        except BaseException:
            await _surely(self._finish("us"))
            raise
        return await _surely(self._finish(by))

    def stop(self) -> None:
        """End it: by us. Harmless before the start, at any time, and again."""
        self._stopped = True
        self._end("us")

    @property
    def process(self) -> Process | None:
        return self._leader

    def standing(self, people: Census | None = None) -> Standing:
        """How it stands now. Hand in one census when asking many."""
        now = self._clock.now()
        watch = self._watch
        if self._leader is None:
            return standing(Facts(age=0.0, stream_age=0.0, has_spoken=False, silence=1.0))
        kin = family(people if people is not None else census(), self._start.tag, self._leader)
        leader = kin.get(self._leader)
        allowed = watch.clocks.tool if watch.tools else watch.clocks.silence
        return standing(
            Facts(
                state=leader.state if leader else "",
                age=now - watch.started,
                stream_age=now - watch.heard_at,
                has_spoken=watch.first_byte_at is not None,
                silence=allowed,
                tools=tuple((name, now - began) for name, began in watch.tools.items()),
                result_age=None if watch.result_at is None else now - watch.result_at,
                permission=watch.permission,
                limited=watch.limited,
                resets_in=None if watch.resets_at is None else watch.resets_at - self._wall(),
                cpu_share=self._cpu_share(now, sum(seen.cpu for seen in kin.values())),
                children=len(kin) - (leader is not None),
                is_mute=not self._out.is_open,
                slept=watch.slept,
            )
        )

    def _begin(self) -> None:
        child = spawn(self._start, variables(self._tag, owner(), os.environ))
        seen = look(child.pid)
        self._leader = seen.process if seen else Process(child.pid, 0)
        self._watch = Watch(self._watch.clocks, self._clock.now(), self._wall())
        self._exit = Exit(child, self._exits)
        self._out = Inlet(child.stdout, self._hear)
        self._err = Inlet(child.stderr, self._murmur)
        self._in = Outlet(child.stdin, self._start.stdin)
        self._set_timer()
        if self._stopped:
            self._end("us")

    def _hear(self, data: bytes) -> None:
        self._stdout_bytes += len(data)
        late = self._signalled_at is not None
        if not late:
            self._watch.hear(self._clock.now())
        self._read(self._lines.feed(data, late))

    def _read(self, lines: list[Line]) -> None:
        """A reader that fails ends the agent, and its error is told."""
        try:
            for line in lines:
                for sight in self._reader(line):
                    if not line.late:
                        self._watch.see(sight, self._clock.now())
        except Exception as error:
            if not self._over.done():
                self._over.set_exception(error)
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
        if self._over.done():
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
        if hasattr(self, "_over") and not self._over.done():
            self._over.set_result(by)

    async def _finish(self, by: By) -> Ended:
        self._timer()
        self._take_in()
        last = self.standing()
        felled = await self._fell()
        exit_code = self._exit.bury()
        self._in.close()
        self._take_in()
        self._read(self._lines.end(late=self._signalled_at is not None))
        self._out.close()
        self._err.close()
        return self._told(by, exit_code, felled, last)

    async def _fell(self) -> Felled:
        kin = self._kin()
        if not kin:
            return Felled()
        self._signalled_at = self._clock.now()
        return await fell(self._kin, self._clock, self._watch.clocks.grace)

    def _kin(self) -> dict[Process, Seen]:
        return family(census(), self._start.tag, self._leader)

    def _told(self, by: By, exit_code: int | None, felled: Felled, last: Standing) -> Ended:
        watch = self._watch
        pid = self._leader.pid if self._leader else 0
        return Ended(
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
