"""Notifications: what is told of a run, when, how often, and how it gets there."""

import asyncio
import hashlib
import hmac
import json
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from interlock.carriers.background import CrashReporter
from interlock.journal.events import Notification
from interlock.journal.runs import NewCase
from interlock.runtime.notify import (
    DELIVERY_SECONDS,
    MAX_DELIVERIES,
    RETRY,
    Notifier,
    WebhookTarget,
)
from tests.world.clock import START, FakeClock
from tests.world.sample_circuit import GOOD_SCRIPT, PAPER
from tests.world.world import World

STUCK = PAPER.replace("otherwise: dropped\n", "")


def take_notices(world: World) -> list[tuple[str, str]]:
    found = [(str(each.event), each.text) for each in world.notices]
    world.notices.clear()
    return found


def test_gates_of_one_family_are_one_notice_and_told_once(tmp_path: Path) -> None:
    world = World(tmp_path)
    cases = [NewCase(name, {"id": name, "family": "kin"}) for name in ("A", "B", "C")]
    world.begin(*cases, "D")
    assert world.work(inbox=True) == "waiting"
    assert take_notices(world) == [
        ("gate", "A and 2 more at sign: 'interlock answer 9 DECISION'"),
        ("gate", "D at sign: 'interlock answer 12 DECISION'"),
    ]
    assert world.work(inbox=True) == "waiting"
    assert take_notices(world) == []
    for question in (9, 10, 11, 12):
        world.answer(question, "approve")
    assert world.work(inbox=True) == "done"
    assert take_notices(world) == [("over", "run 1: done; 4 done")]


def test_a_case_that_is_stuck_is_told_once(tmp_path: Path) -> None:
    world = World(tmp_path, STUCK)
    world.begin("A", "B")
    agents = GOOD_SCRIPT + "B:\n  write: {crash: oh}\n"
    assert world.work(agents, inbox=True) == "waiting"
    assert take_notices(world) == [
        ("stuck", "B stuck at write: 'interlock explain B'"),
        ("gate", "A at sign: 'interlock answer 5 DECISION'"),
    ]
    world.answer(5, "approve")
    assert world.work(agents, inbox=True) == "unhealthy"
    assert take_notices(world) == [("over", "run 1: unhealthy; 1 done; 1 stuck")]


def test_a_run_that_only_rests_is_not_over(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.begin("A", "B")
    assert world.work(budget="dispatches=1", inbox=True, places=1) == "budget"
    about = "run 1 has spent its budget (dispatches=1): raise it, or stop?"
    assert take_notices(world) == [("budget-low", LOW), ("budget", about)]


LOW = "100% of the budget's dispatches is spent"


Answer = Callable[[asyncio.StreamWriter], Awaitable[None]]
OVER = Notification("over", 7, START, "run 7: done", "done")


class Post:
    """A web server that keeps what it was sent, and answers as it is told, in turn."""

    def __init__(self, *answers: Answer) -> None:
        self.got: list[tuple[dict[str, str], bytes]] = []
        self.url = ""
        self.tasks: set[asyncio.Task[None]] = set()
        self._answers = list(answers)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self.tasks.add(task)
        try:
            await self._answer(reader, writer)
        except (ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass
        finally:
            writer.close()

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode().splitlines()[1:]
        fields = dict(line.lower().split(": ", 1) for line in head if line)
        body = await reader.readexactly(int(fields["content-length"]))
        self.got.append((fields, body))
        answer = self._answers.pop(0) if len(self._answers) > 1 else self._answers[0]
        await answer(writer)

    @property
    def bodies(self) -> list[dict[str, Any]]:
        return [json.loads(body) for _, body in self.got]


def status(code: int, body: bytes = b"ok") -> Answer:
    async def answer(writer: asyncio.StreamWriter) -> None:
        writer.write(f"HTTP/1.1 {code} X\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body)
        await writer.drain()

    return answer


async def huge(writer: asyncio.StreamWriter) -> None:
    """An answer without an end."""
    writer.write(b"HTTP/1.1 200 X\r\n\r\n")
    while True:
        writer.write(b"x" * 65536)
        await writer.drain()


async def silent(_writer: asyncio.StreamWriter) -> None:
    await asyncio.Event().wait()


async def rude(writer: asyncio.StreamWriter) -> None:
    writer.write(b"\x00\xff nonsense\r\n\r\n")
    await writer.drain()


@asynccontextmanager
async def post(*answers: Answer) -> AsyncIterator[Post]:
    made = Post(*answers)
    server = await asyncio.start_server(made.serve, "127.0.0.1", 0)
    made.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/hook"
    try:
        yield made
    finally:
        server.close()
        for task in made.tasks:
            task.cancel()
        await asyncio.gather(*made.tasks)


async def until(
    true: Callable[[], object], clock: FakeClock | None = None, most: float = DELIVERY_SECONDS
) -> None:
    """Let real sockets and processes work; with a clock, time passes too, but never `most` seconds
    at once: who is answered in time must not seem late."""
    for _ in range(4000):
        if true():
            return
        await asyncio.sleep(0.002)
        if clock is not None and _next_timer(clock) < most:
            clock.advance()
    raise AssertionError("waited in vain")


def _next_timer(clock: FakeClock) -> float:
    timers = [when for when, number, _ in clock._timers if number not in clock._cancelled]
    return min(timers, default=float("inf")) - clock.time


def herald(**more: Any) -> tuple[Notifier, FakeClock, list[str]]:
    clock = FakeClock()
    result: list[str] = []
    return Notifier(clock, complain=result.append, **more), clock, result


async def test_a_notice_is_posted_once_and_signed() -> None:
    async with post(status(204, b"")) as server:
        made, _, result = herald(address=WebhookTarget(server.url, b"secret"))
        made.notify(OVER)
        await made.close()
    ((fields, body),) = server.got
    mark = hmac.new(b"secret", body, hashlib.sha256).hexdigest()
    assert fields["x-interlock-signature"] == f"sha256={mark}"
    assert result == []
    (output,) = server.bodies
    assert (output["schema_version"], output["event"], output["run_id"]) == (1, "over", 7)
    assert (output["text"], output["id"]) == ("run 7: done", f"7/over/done/{START}")


async def test_an_unexpected_error_in_a_delivery_leaves_its_traceback(tmp_path: Path) -> None:
    """Nobody waits for it, and the run goes on."""
    notes: list[str] = []
    with CrashReporter(tmp_path / "crashes", notes.append).install():
        made, _, said = herald(command=("no such\0name",))
        made.notify(OVER)
        await made.close()
    [file] = (tmp_path / "crashes").iterdir()
    problem = "ValueError: embedded null byte"
    assert notes == [f"an internal error in Interlock: {problem}; the traceback is in {file}"]
    assert said == []
    assert problem in file.read_text()


async def test_without_a_secret_nothing_is_signed() -> None:
    async with post(status(200)) as server:
        made, _, _ = herald(address=WebhookTarget(server.url))
        made.notify(OVER)
        await made.close()
    assert "x-interlock-signature" not in server.got[0][0]


async def test_a_server_in_trouble_is_tried_again_a_few_times() -> None:
    async with post(status(500), status(503), status(200)) as server:
        made, clock, result = herald(address=WebhookTarget(server.url))
        made.notify(OVER)
        await until(lambda: len(server.got) == 3 and not made._tasks, clock)
        await made.close()
    assert result == []
    assert len({body for _, body in server.got}) == 1


@pytest.mark.parametrize(
    ("answer", "tries", "problem"),
    [
        pytest.param(
            status(500), 1 + len(RETRY.delays), "webhook: the address answered 500", id="500"
        ),
        pytest.param(status(404), 1, "webhook: the address answered 404", id="404"),
        pytest.param(status(301), 1, "webhook: the address answered 301", id="elsewhere"),
        pytest.param(rude, 1 + len(RETRY.delays), "webhook: RemoteProtocolError", id="nonsense"),
        pytest.param(silent, 1 + len(RETRY.delays), "webhook: it took too long", id="silent"),
    ],
)
async def test_an_address_that_does_not_take_it(answer: Answer, tries: int, problem: str) -> None:
    async with post(answer) as server:
        made, clock, result = herald(address=WebhookTarget(server.url))
        made.notify(OVER)
        await until(lambda: len(server.got) == 1)
        most = float("inf") if answer is silent else DELIVERY_SECONDS
        await until(lambda: not made._tasks, clock, most)
        made.notify(OVER)
        await until(lambda: not made._tasks, clock, most)
        await made.close()
        if answer is not silent:
            assert len(server.got) == 2 * tries
    assert len(result) == 1
    assert result[0].startswith(problem)


async def test_an_endless_answer_is_not_read() -> None:
    async with post(huge) as server:
        made, _, result = herald(address=WebhookTarget(server.url))
        made.notify(OVER)
        await until(lambda: not made._tasks)
        await made.close()
    assert result == []


async def test_nobody_there() -> None:
    made, clock, result = herald(address=WebhookTarget("http://127.0.0.1:1/hook"))
    made.notify(OVER)
    await until(lambda: not made._tasks, clock)
    assert result[0].startswith("webhook: ConnectError")


async def test_the_end_waits_only_so_long() -> None:
    async with post(silent) as server:
        made, clock, result = herald(address=WebhookTarget(server.url))
        made.notify(OVER)
        await until(lambda: server.got)
        closing = asyncio.create_task(made.close())
        await until(closing.done, clock)
    assert result == ["some notifications could not be delivered before the end"]


async def test_too_many_at_once_are_dropped_and_said_once() -> None:
    async with post(silent) as server:
        made, clock, result = herald(address=WebhookTarget(server.url))
        for _ in range(MAX_DELIVERIES + 50):
            made.notify(OVER)
        assert len(made._tasks) == MAX_DELIVERIES
        closing = asyncio.create_task(made.close())
        await until(closing.done, clock)
    assert (
        result[0] == f"more than {MAX_DELIVERIES} notifications are under way; others are dropped"
    )
    assert len(result) == 2


COPY = "import sys; open(sys.argv[1], 'a').write(sys.stdin.read() + chr(10))"


async def test_a_command_gets_the_notice_on_its_stdin(tmp_path: Path) -> None:
    received = tmp_path / "heard"
    made, _, result = herald(command=[sys.executable, "-c", COPY, str(received)])
    made.notify(OVER)
    await until(lambda: not made._tasks)
    await made.close()
    (line,) = received.read_text().splitlines()
    assert (json.loads(line)["text"], result) == ("run 7: done", [])


async def test_a_command_that_fails_is_named_once(tmp_path: Path) -> None:
    made, _, result = herald(command=[sys.executable, "-c", "raise SystemExit(3)"])
    for _ in range(2):
        made.notify(OVER)
    await until(lambda: not made._tasks)
    assert result == [f"notify command {sys.executable!r}: exit code 3"]
    gone, _, lost = herald(command=[str(tmp_path / "nobody")])
    gone.notify(OVER)
    await until(lambda: not gone._tasks)
    assert lost == [f"notify command {str(tmp_path / 'nobody')!r}: No such file or directory"]


async def test_a_command_that_never_ends_is_ended_with_all_it_started(tmp_path: Path) -> None:
    pids = tmp_path / "pids"
    script = (
        "import os, subprocess, sys, time; child = subprocess.Popen(['sleep', '600']);"
        "open(sys.argv[1], 'w').write(f'{os.getpid()} {child.pid}\\n'); time.sleep(600)"
    )
    made, clock, result = herald(command=[sys.executable, "-c", script, str(pids)])
    made.notify(OVER)
    await until(lambda: pids.exists() and pids.read_text().endswith("\n"))
    await until(clock.advance)
    await until(lambda: not made._tasks)
    assert result == [f"notify command {sys.executable!r} took longer than 10 s"]
    for pid in pids.read_text().split():
        await until(lambda: _is_gone(pid))  # noqa: B023


def _is_gone(pid: str) -> bool:
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return True
    return stat.rsplit(")", 1)[1].split()[0] == "Z"
