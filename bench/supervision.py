"""What it costs to watch agents: 100 of them that say a line a second, and one that floods.

Starts real processes, as cheap as can be, and measures the CPU of this one alone.
`python -m bench.supervision` prints the numbers. Knows nothing of the report.
"""

import asyncio
import os
import shutil
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import msgspec

from interlock.carriers.cli.ownership import TAGS
from interlock.carriers.cli.process import AgentProcess, ProcessSpec
from interlock.carriers.cli.timeouts import Alive, StreamSign, Timeouts
from interlock.system.clock import SystemClock
from interlock.system.process_table import ProcessSnapshot, list_processes
from interlock.system.process_tree import CHUNK, LineSplitter, OutputLine

AGENTS = 100
STREAM = 200_000_000
_HEARTBEAT = "exec 9<>$1; while printf '%s\\n' \"$2\"; do read -rt 1 -u 9; done"
_MARGIN_S = 3.0


class Event(msgspec.Struct):
    """As much of an event as a profile needs to tell what a line means."""

    type: str
    subtype: str = ""


_DECODER = msgspec.json.Decoder(Event)
_TEXT = "The suite fails since the pool of connections is closed before the last worker returns. "
_LINE = msgspec.json.encode(
    {
        "type": "assistant",
        "message": {"id": "msg_01", "content": [{"type": "text", "text": _TEXT * 8}]},
        "session_id": "0f7c4c1e-93a2-4b0e-9f0a-1d2c3b4a5968",
    }
)


def watching(workdir: Path, seconds: float, agents: int = AGENTS) -> dict[str, float]:
    """CPU of supervision, in per cent of one core; then the seconds to end them all at once."""
    return asyncio.run(_watching(workdir, seconds, agents))


def parsing(workdir: Path, size: int = STREAM) -> dict[str, float]:
    """MB/s of a stream of JSON lines: cut and read in memory, and through the pipe of an agent."""
    return {
        "parse_mb_s": _in_memory(size),
        "pipe_mb_s": asyncio.run(_through_a_pipe(workdir, size)),
    }


def read(line: OutputLine) -> tuple[StreamSign, ...]:
    return (_ALIVE,) if _DECODER.decode(line.text).type else ()


_ALIVE = Alive()


async def _watching(workdir: Path, seconds: float, count: int) -> dict[str, float]:
    bash = shutil.which("bash")
    if bash is None:
        raise ValueError("there is no bash to play the agents")
    fifo = workdir / "fifo"
    os.mkfifo(fifo)
    argv = (bash, "-c", _HEARTBEAT, "agent", str(fifo), _LINE.decode())
    heard = [0]

    def reader(line: OutputLine) -> tuple[StreamSign, ...]:
        heard[0] += 1
        return read(line)

    snapshot = ProcessSnapshot(TAGS)
    agents = [
        AgentProcess(
            ProcessSpec(argv, b"", workdir, dict(os.environ), f"bench:1:{number}:{os.getpid()}"),
            Timeouts(),
            reader,
            SystemClock(),
            snapshot=snapshot,
        )
        for number in range(count)
    ]
    tasks = [asyncio.create_task(agent.run()) for agent in agents]
    await asyncio.sleep(_MARGIN_S)
    heard[0] = 0
    plain = await _cpu_percent(seconds, [])
    if heard[0] < count * (seconds - 1):
        raise ValueError(f"only {heard[0]} lines were heard of {count} agents in {seconds} s")
    asked = await _cpu_percent(seconds, agents)
    before, cpu = time.monotonic(), time.process_time()
    for agent in agents:
        agent.stop()
    ended = await asyncio.gather(*tasks)
    if any(each.remaining or each.by != "us" for each in ended):
        raise ValueError("not all of them were ended by us")
    return {
        "cpu_percent": plain,
        "asked_percent": asked,
        "end_s": time.monotonic() - before,
        "end_cpu_s": time.process_time() - cpu,
    }


async def _cpu_percent(seconds: float, asked: list[AgentProcess]) -> float:
    """Once a second each of `asked` is asked how it stands, as a page that shows them does."""
    started, cpu = time.monotonic(), time.process_time()
    while (rest := started + seconds - time.monotonic()) > 0:
        processes = list_processes(TAGS) if asked else {}
        for agent in asked:
            if agent.read_health(processes).word != "working":
                raise ValueError("an agent that speaks every second is taken for something else")
        await asyncio.sleep(min(1.0, rest))
    return (time.process_time() - cpu) / (time.monotonic() - started) * 100


def _in_memory(size: int) -> float:
    lines, total, started = LineSplitter(), 0, time.perf_counter()
    for chunk in _chunks(size):
        total += len(chunk)
        for line in lines.feed(chunk):
            read(line)
    return total / (time.perf_counter() - started) / 1e6


def _chunks(size: int) -> Iterator[bytes]:
    block = (_LINE + b"\n") * (CHUNK // 64)
    for _ in range(0, size, len(block)):
        for begin in range(0, len(block), CHUNK):
            yield block[begin : begin + CHUNK]


async def _through_a_pipe(workdir: Path, size: int) -> float:
    file = workdir / "stream"
    count = size // (len(_LINE) + 1)
    file.write_bytes((_LINE + b"\n") * count)
    start = ProcessSpec(
        ("cat", str(file)), b"", workdir, dict(os.environ), f"bench:2:1:{os.getpid()}"
    )
    before = time.perf_counter()
    ended = await AgentProcess(start, Timeouts(), read, SystemClock()).run()
    seconds = time.perf_counter() - before
    if ended.lines != count:
        raise ValueError(f"{ended.lines:,} of {count:,} lines came through the pipe")
    return ended.stdout_bytes / seconds / 1e6


if __name__ == "__main__":
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        print(parsing(Path(folder)))
        print(watching(Path(folder), float(sys.argv[1]) if sys.argv[1:] else 10.0))
