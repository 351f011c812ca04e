"""Child processes: their pipes and lines, their exit, and their end with all they started.

A signal reaches exactly the process that was seen, never another that reused its id: on Linux
through a handle, after whose opening the start time is compared. `kill_tree` finds the members of
the tree anew in every round, and stops them all before it kills, so that nothing outruns it. A dead
child is not reaped until `reap`: until then its id, group and session cannot be reused.
"""

import asyncio
import os
import signal
import subprocess
import threading
from collections.abc import Awaitable, Callable, Iterable, Mapping
from contextlib import suppress
from functools import cache
from typing import IO, Literal

import msgspec

from interlock.system.clock import Clock, pause
from interlock.system.process_table import HOST_VARIABLE, Process, SeenProcess, read_process

HAS_HANDLES = hasattr(os, "pidfd_open") and hasattr(signal, "pidfd_send_signal")


_PR_SET_CHILD_SUBREAPER = 36


@cache
def become_subreaper() -> None:
    """Adopt orphans among our descendants, so that a daemon stays below us whatever it sheds.

    Where the system cannot do that, only tag, session and parents identify a process.
    """
    import ctypes

    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    os.environ[HOST_VARIABLE] = str(os.getpid())


def reap_fallen(processes: Iterable[SeenProcess]) -> None:
    """Reap adopted processes that have ended, so that none stays a zombie."""
    for seen in processes:
        if seen.parent == os.getpid() and not seen.alive:
            with suppress(ChildProcessError):
                os.waitpid(seen.process.pid, os.WNOHANG)


def send_signal(process: Process, number: int) -> bool:
    """Send the signal; return False if the process is gone or not ours."""
    try:
        return _send_by_handle(process, number) if HAS_HANDLES else _send_by_psutil(process, number)
    except OSError:
        return False


def kill_group(group: int, number: int = signal.SIGKILL) -> None:
    """Signal a process group; the caller knows that its number was not reused."""
    with suppress(OSError):
        os.killpg(group, number)


def _send_by_handle(process: Process, number: int) -> bool:
    handle = os.pidfd_open(process.pid)
    try:
        seen = read_process(process.pid)
        if seen is None or seen.process != process:
            return False
        signal.pidfd_send_signal(handle, number)
        return True
    finally:
        os.close(handle)


def _send_by_psutil(process: Process, number: int) -> bool:
    import psutil

    try:
        found = psutil.Process(process.pid)
        if found.create_time() != process.started:
            return False
        found.send_signal(number)
    except psutil.Error:
        return False
    return True


Relatives = Mapping[Process, SeenProcess]
FindRelatives = Callable[[bool], Awaitable[Relatives]]
"""Return all living relatives; with True, also stop each one as soon as it is seen."""
_FIRST_PAUSE = 0.002
_LONGEST_PAUSE = 0.1
_PATIENCE = 5.0
_FREEZES = 50
_LONGEST_NAME = 200


class Survivor(msgspec.Struct, frozen=True, order=True):
    """A process that had to be ended, and the signal that ended it."""

    pid: int
    name: str
    signal: Literal["TERM", "KILL"]


class KillReport(msgspec.Struct, frozen=True):
    """The processes that were ended, and those that survived, as one stuck in the kernel does."""

    left: tuple[Survivor, ...] = ()
    remaining: tuple[Survivor, ...] = ()


async def kill_tree(
    relatives: Relatives, find: FindRelatives, clock: Clock, grace: float, group: int | None = None
) -> KillReport:
    """End all relatives and whatever else `find` finds, until it finds nothing, twice.

    The process group, whose number must still be taken, is killed at one stroke, so that processes
    cannot escape by forking faster than anybody can look.
    """
    survivors: dict[Process, Survivor] = {}
    rest = await _terminate(relatives, find, clock, clock.now() + grace, survivors)
    if rest:
        if group is not None:
            kill_group(group, signal.SIGKILL)
        rest = await _kill(rest, find, clock, survivors)
    remaining = tuple(sorted(_build_survivor(seen, "KILL") for seen in rest.values()))
    return KillReport(tuple(sorted(survivors.values())), remaining)


async def _terminate(
    relatives: Relatives,
    find: FindRelatives,
    clock: Clock,
    give_up: float,
    survivors: dict[Process, Survivor],
) -> Relatives:
    """Send SIGTERM once to each; return those that remain after the grace period."""
    while relatives:
        for process, seen in relatives.items():
            if process not in survivors:
                survivors[process] = _build_survivor(seen, "TERM")
                send_signal(process, signal.SIGTERM)
                send_signal(process, signal.SIGCONT)  # a stopped process would not receive it
        await _wait_until_gone(relatives, clock, give_up)
        relatives = await find(False) or await find(False)
        if clock.now() >= give_up:
            break
    return relatives


async def _kill(
    relatives: Relatives, find: FindRelatives, clock: Clock, survivors: dict[Process, Survivor]
) -> Relatives:
    give_up = clock.now() + _PATIENCE
    while relatives:
        for process, seen in (await _freeze(relatives, find)).items():
            survivors[process] = _build_survivor(seen, "KILL")
            send_signal(process, signal.SIGKILL)
        await _wait_until_gone(relatives, clock, give_up)
        relatives = await find(True) or await find(True)
        if clock.now() >= give_up:
            break
    return relatives


async def _freeze(relatives: Relatives, find: FindRelatives) -> Relatives:
    """Stop all until no new one appears: a stopped process cannot fork."""
    frozen: set[Process] = set()
    for _ in range(_FREEZES):
        new = relatives.keys() - frozen
        if not new:
            break
        for process in sorted(new):
            send_signal(process, signal.SIGSTOP)
        frozen |= new
        relatives = {**relatives, **await find(True)}
    return relatives


async def _wait_until_gone(relatives: Relatives, clock: Clock, give_up: float) -> None:
    """Wait until these are gone, looking at them alone, which is cheaper than listing all."""
    wait = _FIRST_PAUSE
    while any(_is_alive(process) for process in relatives):
        rest = give_up - clock.now()
        if rest <= 0:
            return
        await pause(clock, min(wait, rest))
        wait = min(wait * 2, _LONGEST_PAUSE)


def clean_name(text: str) -> str:
    """Return a name from another program, shortened and free of terminal codes."""
    return "".join(sign if sign.isprintable() else "?" for sign in text[:_LONGEST_NAME])


def _build_survivor(seen: SeenProcess, number: Literal["TERM", "KILL"]) -> Survivor:
    return Survivor(seen.process.pid, clean_name(seen.name), number)


def _is_alive(process: Process) -> bool:
    seen = read_process(process.pid)
    return seen is not None and seen.process == process and seen.alive


class ProcessExit:
    def __init__(
        self,
        child: "subprocess.Popen[bytes]",
        on_exit: Callable[[], None],
        handles: bool = HAS_HANDLES,
    ) -> None:
        self._child = child
        self._on_exit = on_exit
        self._loop = asyncio.get_running_loop()
        self._handles = handles
        self._handle = os.pidfd_open(child.pid) if handles else -1
        if handles:
            self._loop.add_reader(self._handle, self._over)
        else:
            threading.Thread(target=self._wait, daemon=True).start()

    @property
    def has_exited(self) -> bool:
        """Return True if the child is dead, even before the callback has run."""
        if not self._handles:
            return self._child.returncode is not None
        try:
            found = os.waitid(os.P_PID, self._child.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        except ChildProcessError:
            return True
        return found is not None

    def reap(self) -> int | None:
        """Return the exit code, negative for a signal; None for a child that cannot die."""
        self.detach()
        with suppress(subprocess.TimeoutExpired):
            return self._child.wait(timeout=0.1 if self._child.returncode is None else None)
        return None

    def _over(self) -> None:
        self.detach()
        self._on_exit()

    def detach(self) -> None:
        """Make sure the callback is not called any more."""
        if self._handle >= 0:
            self._loop.remove_reader(self._handle)
            os.close(self._handle)
            self._handle = -1

    def _wait(self) -> None:
        self._child.wait()
        with suppress(RuntimeError):  # the loop is already closed
            self._loop.call_soon_threadsafe(self._on_exit)


CHUNK = 64 * 1024
"""Bytes for one turn of the loop: what a pipe holds, and little enough not to delay others."""


class PipeReader:
    """Pass on an agent's output as it comes, one chunk per turn of the loop.

    `on_close` is called once, however the pipe is closed.
    """

    def __init__(
        self,
        pipe: IO[bytes] | None,
        take: Callable[[bytes], None],
        on_close: Callable[[], None] = lambda: None,
    ) -> None:
        self._loop = asyncio.get_running_loop()
        self._fd = fd = _own(pipe)
        self._take = take
        self._on_close = on_close
        self.is_open = True
        self._loop.add_reader(fd, self._read)

    def drain(self, most: int = CHUNK) -> bool:
        """Read what is already there, at most a pipe's content; return True if there was
        anything."""
        taken = 0
        while self.is_open and taken < most:
            size = self._read()
            if not size:
                break
            taken += size
        return taken > 0

    def close(self) -> None:
        if self.is_open:
            self.is_open = False
            self._loop.remove_reader(self._fd)
            os.close(self._fd)
            self._on_close()

    def _read(self) -> int:
        try:
            data = os.read(self._fd, CHUNK)
        except BlockingIOError:
            return 0
        except OSError:
            data = b""
        if data:
            self._take(data)
        else:
            self.close()
        return len(data)


class PipeWriter:
    """Write an agent's input as fast as it reads; the rest is buffered.

    An agent that is gone or does not read is noticed elsewhere.
    """

    def __init__(self, pipe: IO[bytes] | None) -> None:
        self._loop = asyncio.get_running_loop()
        self._fd = _own(pipe)
        self._rest = bytearray()
        self._is_finished = False
        self.is_open = True

    @property
    def unread_bytes(self) -> int:
        return len(self._rest)

    def write(self, data: bytes) -> None:
        if self.is_open:
            is_waiting = bool(self._rest)
            self._rest += data
            if not is_waiting:
                self._flush()

    def finish(self) -> None:
        """Close the pipe as soon as everything is written."""
        self._is_finished = True
        if not self._rest:
            self.close()

    def close(self) -> None:
        if self.is_open:
            self.is_open = False
            self._loop.remove_writer(self._fd)
            os.close(self._fd)

    def _flush(self) -> None:
        try:
            while self._rest:
                written = os.write(self._fd, self._rest[:CHUNK])
                del self._rest[:written]
        except BlockingIOError:
            self._loop.add_writer(self._fd, self._flush)
            return
        except OSError:
            self.close()
            return
        self._loop.remove_writer(self._fd)
        if self._is_finished:
            self.close()


def _own(pipe: IO[bytes] | None) -> int:
    """Return a descriptor that is ours to close and never blocks."""
    assert pipe is not None  # noqa: S101
    fd = os.dup(pipe.fileno())
    pipe.close()
    os.set_blocking(fd, False)
    return fd


LONGEST = 8 * 1024 * 1024
"""Bytes of one line; the rest of a longer line is dropped as it comes."""


class OutputLine(msgspec.Struct, frozen=True, gc=False):
    """One line of stdout as bytes, without its end of line, never longer than the limit."""

    text: bytes
    cut: bool = False
    """The line was longer than the limit; `text` is its beginning."""
    half: bool = False
    """The stream ended before the line did."""
    late: bool = False
    """The line came after our own signal to the process, so it does not count."""


class LineSplitter:
    """Turn chunks into whole lines; the lines do not depend on how chunks are cut."""

    def __init__(self, longest: int = LONGEST) -> None:
        self._longest = longest
        self._held = bytearray()
        self._is_cut = False
        self.count = 0
        self.cut = 0

    def feed(self, data: bytes, late: bool = False) -> list[OutputLine]:
        parts = data.split(b"\n")
        rest = parts.pop()
        lines: list[OutputLine] = []
        if parts:
            if self._held or self._is_cut:
                self._hold(parts[0])
                parts[0] = bytes(self._held)
                lines.append(self._line(parts[0], self._is_cut, late))
                self._held.clear()
                self._is_cut = False
                del parts[0]
            lines += [self._line(part, False, late) for part in parts]
        self._hold(rest)
        return lines

    def end(self, late: bool = False) -> list[OutputLine]:
        """Return the line that the stream's end left unfinished, if there is one."""
        if not self._held and not self._is_cut:
            return []
        line = self._line(bytes(self._held), self._is_cut, late, half=True)
        self._held.clear()
        self._is_cut = False
        return [line]

    def _hold(self, data: bytes) -> None:
        room = self._longest - len(self._held)
        self._is_cut = self._is_cut or len(data) > room
        if room and data:
            self._held += data[:room]

    def _line(self, text: bytes, is_cut: bool, late: bool, half: bool = False) -> OutputLine:
        if len(text) > self._longest:
            text, is_cut = text[: self._longest], True
        self.count += 1
        self.cut += is_cut
        if text.endswith(b"\r") and not is_cut:
            text = text[:-1]
        return OutputLine(text, is_cut, half, late)
