"""A bench to try a carrier on: sends asks, collects replies, waits without sleeping."""

import asyncio
import os
import time
from collections.abc import Mapping
from pathlib import Path

from interlock.carriers.contract import Ask, Carrier
from interlock.engine.circuit import Step
from interlock.testing.contracts import STEPS, CarrierBench
from tests.world.clock import FakeClock


def ask(dispatch_id: int = 1, prompt: str = "{}", step: str = "work") -> Ask:
    return Ask(dispatch_id, 1, "A", step, 1, "worker", prompt)


class Bench(CarrierBench):
    """The bench of the contract, under the clock of our tests."""

    clock: FakeClock

    def __init__(
        self,
        carrier: Carrier,
        clock: FakeClock | None = None,
        steps: Mapping[str, Step] = STEPS,
    ) -> None:
        super().__init__(carrier, clock or FakeClock(), steps)


async def appears(path: Path, *, whole: bool = True) -> str:
    """What another process is about to write in a file; a `whole` one is a line."""
    give_up = time.monotonic() + 120
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
    give_up = time.monotonic() + 60
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
