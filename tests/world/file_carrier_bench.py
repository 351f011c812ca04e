"""A file carrier on a bench, and hands that write what a responder writes."""

import asyncio
import json
from pathlib import Path
from typing import Any

import msgspec

from interlock.carriers.contract import Ask
from interlock.carriers.files.file import FileCarrier
from interlock.system.folder_watch import Mode
from tests.world.carrier_bench import Bench
from tests.world.clock import FakeClock


class FileBench(Bench):
    """One file carrier below a folder, under a clock that moves when it is told to."""

    def __init__(self, root: Path, mode: Mode = "poll", clock: FakeClock | None = None) -> None:
        clock = clock or FakeClock()
        self.root = root
        super().__init__(FileCarrier(root, clock, mode=mode), clock)

    def place(self, case_no: int = 7) -> Path:
        return self.root / "1" / f"{case_no}"

    def signal(self, case_no: int = 7) -> dict[str, Any]:
        found: dict[str, Any] = json.loads((self.place(case_no) / "signal.json").read_bytes())
        return found

    def status(self, case_no: int = 7) -> str:
        return str(self.signal(case_no)["status"])

    def answer(self, content: object, case_no: int = 7, name: str = "work-result.json") -> Path:
        """Write it whole: to a temporary file, then under its name."""
        path = self.place(case_no) / name
        fresh = path.with_suffix(".tmp")
        fresh.write_bytes(content if isinstance(content, bytes) else json.dumps(content).encode())
        fresh.rename(path)
        return path

    async def passes(self, seconds: float) -> None:
        """Let that much time pass, and everything happen that then happens."""
        await turn()
        over: list[bool] = []
        self.clock.call_at(self.clock.time + seconds, lambda: over.append(True))
        while not over:
            self.clock.advance()
            await turn()

    def describe_replies(self) -> list[str]:
        """What came back, in words: `refused Stale`, `failed crash: why`, or the answer."""
        return [
            f"refused {each.refused}"
            if each.refused
            else f"failed {each.failure}: {each.reason}"
            if each.failure
            else each.content.decode()
            for each in self.replies
        ]


async def turn() -> None:
    """A few turns of the event loop, so that the kernel's news are heard."""
    for _ in range(4):
        await asyncio.sleep(0)


def ask_for(dispatch_id: int = 1, *, case_no: int = 7, step: str = "work", attempt: int = 1) -> Ask:
    return Ask(
        *(dispatch_id, 1, f"C{case_no}", step, attempt, "worker", "Do it.", case_no),
        at=1_771_243_200.0,
    )


def wrapped(dispatch_id: object = 1, data: object = None) -> dict[str, object]:
    return {"dispatch_id": dispatch_id, "data": {"n": 1} if data is None else data}


def again(ask: Ask, **changes: Any) -> Ask:
    return msgspec.structs.replace(ask, **changes)
