"""Rogue agents: real small processes that do what agents should not, and a reader of their words.

Their language is one word a line: `tool ID`, `done ID`, `result`, `permission`, `limited SECONDS`.
Who is still there is looked up in /proc here, not by the code under test.
"""

import asyncio
import os
import sys
from collections.abc import Iterator
from itertools import count
from math import inf
from pathlib import Path

import msgspec

from interlock.carriers.cli.process import ProcessSpec
from interlock.carriers.cli.timeouts import (
    Alive,
    RateLimited,
    ResultSeen,
    StreamSign,
    Timeouts,
    ToolBegan,
    ToolEnded,
    WaitsForPermission,
)
from interlock.system.process_tree import OutputLine

_NUMBERS = count(1)
WORKSPACE = f"test{os.getpid()}"


class Rogue(msgspec.Struct, frozen=True):
    """What it does, and how it must end."""

    shell: str = ""
    python: str = ""
    by: str = "itself"
    exit_codes: tuple[int, ...] = (0,)
    words: tuple[bytes, ...] = ()
    late: tuple[bytes, ...] = ()
    left: int = 0
    first_byte: float = inf
    silence: float = inf
    after_result: float = inf
    tool: float = inf
    wall: float = 60.0
    grace: float = 5.0

    @property
    def argv(self) -> tuple[str, ...]:
        return ("sh", "-c", self.shell) if self.shell else (sys.executable, "-c", self.python)

    @property
    def clocks(self) -> Timeouts:
        return Timeouts(
            first_byte=self.first_byte,
            silence=self.silence,
            after_result=self.after_result,
            tool=self.tool,
            wall=self.wall,
            grace=self.grace,
        )


_SOON = 0.05
_KILLED = (-9,)
_ENDED = (-15, 143)
_DAEMON = """
import os, time
if os.fork():
    os.wait()
    print("result", flush=True)
    os._exit(0)
os.setsid()
if os.fork():
    os._exit(0)
os.setsid()
time.sleep(300)
"""
_THREADED_DAEMON = """
import ctypes, os, threading, time
done, told = os.pipe()
if os.fork():
    os.read(done, 1)
    print("result", flush=True)
    os._exit(0)
os.setsid()
if os.fork():
    os._exit(0)
def outlive():
    while ") Z" not in open(f"/proc/{os.getpid()}/stat").read():
        time.sleep(0.01)
    os.write(told, b".")
    time.sleep(300)
threading.Thread(target=outlive).start()
ctypes.CDLL(None).pthread_exit(None)
"""
_QUICK_DAEMON = """
import os
done, until_exec = os.pipe()
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        null = os.open(os.devnull, os.O_RDWR)
        for number in range(3):
            os.dup2(null, number)
        limits = "ulimit -S -t 1000; ulimit -S -c 0; ulimit -S -n 64"
        os.execve("/bin/sh", ["sh", "-c", f"{limits}; exec setsid env -i sleep 300"], {})
    os._exit(0)
os.wait()
os.close(until_exec)
os.read(done, 1)
print("result", flush=True)
"""
_RELAY = """
import os, signal
signal.signal(signal.SIGTERM, signal.SIG_IGN)
print("hello", flush=True)
if os.fork():
    signal.pause()
while True:
    if os.fork():
        os._exit(0)
"""

ROGUES = {
    "answers and exits": Rogue("cat; echo result", words=(b"ask", b"result")),
    "exits 0 without a word": Rogue("exit 0"),
    "exits 3 after its result": Rogue("echo result; exit 3", exit_codes=(3,), words=(b"result",)),
    "kills itself": Rogue("kill -9 $$", exit_codes=_KILLED),
    "never says a word": Rogue(
        "exec sleep 300", by="first_byte", exit_codes=_ENDED, first_byte=_SOON
    ),
    "talks to stderr only": Rogue(
        "while :; do echo . >&2; sleep 0.01; done",
        by="first_byte",
        exit_codes=_ENDED,
        first_byte=_SOON,
        left=-1,
    ),
    "falls silent": Rogue(
        "echo hello; exec sleep 300",
        by="silence",
        exit_codes=_ENDED,
        words=(b"hello",),
        silence=_SOON,
    ),
    "hangs after its result": Rogue(
        "echo result; exec sleep 300",
        by="after_result",
        exit_codes=_ENDED,
        words=(b"result",),
        after_result=_SOON,
        silence=0.01,
    ),
    "chatters on after its result": Rogue(
        "echo result; while :; do sleep 0.01; printf '' ; done",
        by="after_result",
        exit_codes=_ENDED,
        words=(b"result",),
        after_result=_SOON,
        left=-1,
    ),
    "hangs in a tool": Rogue(
        "echo tool 1; exec sleep 300",
        by="tool",
        exit_codes=_ENDED,
        words=(b"tool 1",),
        silence=0.01,
        tool=_SOON,
    ),
    "hangs after a tool": Rogue(
        "echo tool 1; echo done 1; exec sleep 300",
        by="silence",
        exit_codes=_ENDED,
        words=(b"tool 1", b"done 1"),
        silence=_SOON,
    ),
    "never stops talking": Rogue(
        "exec yes", by="wall", exit_codes=_ENDED, silence=5, wall=_SOON, words=(b"y",)
    ),
    "waits for a permission for ever": Rogue(
        "echo permission; exec sleep 300",
        by="silence",
        exit_codes=_ENDED,
        words=(b"permission",),
        silence=_SOON,
    ),
    "ignores TERM": Rogue(
        "trap '' TERM; echo hello; while :; do sleep 300; done",
        by="silence",
        exit_codes=_KILLED,
        words=(b"hello",),
        silence=_SOON,
        grace=_SOON,
        left=1,
    ),
    "is stopped": Rogue(
        "echo hello; kill -STOP $$",
        by="silence",
        exit_codes=_ENDED,
        words=(b"hello",),
        silence=_SOON,
    ),
    "says it is done when it is ended": Rogue(
        "trap 'echo result; exit 0' TERM; echo hello; while :; do sleep 0.01; done",
        by="silence",
        words=(b"hello",),
        late=(b"result",),
        silence=_SOON,
        left=-1,
    ),
    "closes its stdout and lives on": Rogue(
        "echo hello; exec >&-; exec sleep 300",
        by="silence",
        exit_codes=_ENDED,
        words=(b"hello",),
        silence=_SOON,
    ),
    "closes all its pipes and lives on": Rogue(
        "echo hello; exec <&- >&- 2>&-; exec sleep 300",
        by="silence",
        exit_codes=_ENDED,
        words=(b"hello",),
        silence=_SOON,
    ),
    "leaves a child": Rogue("sleep 300 & echo result", words=(b"result",), left=1),
    "leaves a child that ignores TERM": Rogue(
        "(trap '' TERM; sleep 300) & echo result", words=(b"result",), left=-1, grace=_SOON
    ),
    "leaves a session of its own": Rogue(
        "setsid sleep 300 & echo result", words=(b"result",), left=1
    ),
    "leaves a daemon": Rogue(python=_DAEMON, words=(b"result",), left=1),
    "leaves a daemon whose main thread has ended": Rogue(
        python=_THREADED_DAEMON, words=(b"result",), left=1
    ),
    "leaves a daemon that shed everything at once": Rogue(
        python=_QUICK_DAEMON, words=(b"result",), left=1
    ),
    "leaves a child that has a last word": Rogue(
        "(trap 'echo result; exit' TERM; echo hello; while :; do sleep 0.01; done) & "
        "while :; do sleep 0.05; exit; done",
        words=(b"hello",),
        late=(b"result",),
        left=-1,
    ),
    "leaves a child that forgot its tag": Rogue(
        "env -i sleep 300 & echo result", words=(b"result",), left=1
    ),
    "leaves a child that talks on": Rogue("yes & echo result", words=(b"result",), left=1),
    "forks faster than one can look": Rogue(
        python=_RELAY,
        by="silence",
        exit_codes=_KILLED,
        words=(b"hello",),
        silence=_SOON,
        grace=_SOON,
        left=-1,
    ),
}


class LineRecorder:
    """A reader that keeps the first lines, and says what they mean."""

    def __init__(self, most: int = 1_000) -> None:
        self.lines: list[OutputLine] = []
        self._most = most
        self._more = asyncio.Event()

    async def hears(self, word: bytes) -> None:
        """Until that line has come."""
        async with asyncio.timeout(120):
            while word not in self.words:
                self._more.clear()
                await self._more.wait()

    def __call__(self, line: OutputLine) -> Iterator[StreamSign]:
        if len(self.lines) < self._most:
            self.lines.append(line)
            self._more.set()
        word, _, rest = line.text.decode(errors="replace").partition(" ")
        match word:
            case "tool":
                yield ToolBegan(rest)
            case "done":
                yield ToolEnded(rest)
            case "result":
                yield ResultSeen()
            case "permission":
                yield WaitsForPermission(rest)
            case "limited":
                yield RateLimited(float(rest) if rest else None)
            case "alive":
                yield Alive()

    @property
    def words(self) -> list[bytes]:
        return [line.text for line in self.lines if not line.late]

    @property
    def late(self) -> list[bytes]:
        return [line.text for line in self.lines if line.late]


def new_tag(workspace: str = WORKSPACE, run: str = "1") -> str:
    return f"{workspace}:{run}:{next(_NUMBERS)}:n{os.getpid()}"


def start(*argv: str, stdin: bytes = b"ask\n", tag: str = "") -> ProcessSpec:
    env = {"PATH": os.environ["PATH"], "HOME": "/none"}
    return ProcessSpec(argv, stdin, Path("/"), env, tag or new_tag())


def shell(command: str, stdin: bytes = b"ask\n", tag: str = "") -> ProcessSpec:
    return start("sh", "-c", command, stdin=stdin, tag=tag)


def tagged(tag: str) -> list[int]:
    """Everybody in /proc who carries the tag and is no corpse."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            variables = (folder / "environ").read_bytes().split(b"\0")
        except OSError:
            continue
        if f"INTERLOCK_TAG={tag}".encode() in variables:
            found.append(int(folder.name))
    return found
