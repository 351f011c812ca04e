"""One look for all who ask together, and never an old one."""

import asyncio
import subprocess

from interlock.agents.cli.tag import TAGS
from interlock.system.process_table import ProcessSnapshot


def born() -> "subprocess.Popen[bytes]":
    return subprocess.Popen(["sleep", "300"])


async def test_who_ask_together_get_the_same() -> None:
    lookout = ProcessSnapshot(TAGS)
    first, second = await asyncio.gather(lookout.take(), lookout.take())
    assert first is second
    assert await lookout.take() is not first


async def test_a_look_begins_after_the_question() -> None:
    lookout = ProcessSnapshot(TAGS)
    await lookout.take()
    child = born()
    assert child.pid in await lookout.take()
    child.kill()
    child.wait()
    assert child.pid not in await lookout.take()


async def test_one_who_gives_up_does_not_spoil_it_for_others() -> None:
    lookout = ProcessSnapshot(TAGS)
    hasty, patient = (asyncio.create_task(lookout.take()) for _ in range(2))
    await asyncio.sleep(0)
    hasty.cancel()
    assert await patient
