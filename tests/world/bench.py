"""A bench to try a carrier on: sends asks, collects replies, waits without sleeping."""

import asyncio
import os
import time
from pathlib import Path
from types import TracebackType
from typing import Self

from tests.world.clock import FakeClock

from interlock.agents.carrier import Ask, Carrier, Reply


def ask(dispatch_id: int = 1, prompt: str = "{}", step: str = "work") -> Ask:
    return Ask(dispatch_id, 1, "A", step, 1, "worker", prompt)


class Bench:
    """`async with Bench(carrier)`: started, and closed at the end."""

    def __init__(self, carrier: Carrier, clock: FakeClock | None = None) -> None:
        self.carrier = carrier
        self.clock = clock or FakeClock()
        self.replies: list[Reply] = []
        self._arrived = asyncio.Event()

    async def __aenter__(self) -> Self:
        self.carrier.start(self._take)
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        await asyncio.wait_for(self.carrier.close(), 20)

    async def until(self, count: int) -> list[Reply]:
        """That many replies, at least; time passes while nothing comes."""
        while len(self.replies) < count:
            if not self.clock.advance():
                self._arrived.clear()
                await asyncio.wait_for(self._arrived.wait(), 20)
        return self.replies

    def _take(self, reply: Reply) -> None:
        self.replies.append(reply)
        self._arrived.set()


async def appears(path: Path, *, whole: bool = True) -> str:
    """What another process is about to write in a file; a `whole` one is a line."""
    give_up = time.monotonic() + 20
    while not (noted(path) if whole else os.access(path, os.F_OK)):
        assert time.monotonic() < give_up, f"{path} never appeared"
        await asyncio.sleep(0)
    return noted(path)


def noted(path: Path) -> str:
    """The one line in a file, if it is there and whole."""
    text = path.read_text(encoding="utf-8") if path.exists() else ""
    return text.strip() if text.endswith("\n") else ""


def gone(pid: int) -> bool:
    """Whether a process that was ended is no more; one that nobody buried counts as gone."""
    give_up = time.monotonic() + 5
    while _lives(pid):
        if time.monotonic() > give_up:
            return False
        os.sched_yield()
    return True


def _lives(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return False
    return state != "Z"
