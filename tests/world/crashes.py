"""A carrier that fails in a way nobody foresaw: what its dispatch and its user see."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

from interlock.carriers.background import CarrierGuard, CrashReporter
from interlock.carriers.contract import Ask, Carrier, Reply, Session
from interlock.signals.batch import Briefing


def boom(*_words: object) -> Any:
    raise KeyError("story_id")


async def check_crash(
    carrier: Carrier, ask: Ask, folder: Path, enrich: Callable[[Briefing], Briefing] = lambda it: it
) -> None:
    """The dispatch ends as `crash`, once, with the traceback on file and a line for the user."""
    replies: asyncio.Queue[Reply] = asyncio.Queue()
    notes: list[str] = []
    guard = CarrierGuard(carrier)
    with CrashReporter(folder / "crashes", notes.append).install():
        guard.start(Session(replies.put_nowait, enrich=enrich))
        guard.send([ask])
        reply = await asyncio.wait_for(replies.get(), 120)
        guard.settle(ask.dispatch_id, reply.reason)
        await guard.close()
    [file] = (folder / "crashes").iterdir()
    reason = f"an internal error in Interlock: KeyError: 'story_id'; the traceback is in {file}"
    assert reply == Reply(ask.dispatch_id, failure="crash", reason=reason)
    assert notes[0].startswith(reason)
    assert "in boom" in file.read_text()
    assert replies.empty()
