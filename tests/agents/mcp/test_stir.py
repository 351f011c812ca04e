"""The bell: it wakes all, at a change or at the end of their time."""

import asyncio

from tests.world.clock import FakeClock

from interlock.agents.mcp.leases import WakeEvent


async def test_one_ring_wakes_all_and_leaves_no_timer() -> None:
    clock = FakeClock()
    stir = WakeEvent(clock)
    waiting = [asyncio.create_task(stir.wait(clock.time + 5)) for _ in range(3)]
    await asyncio.sleep(0)
    stir.ring()
    stir.ring()
    await asyncio.gather(*waiting)
    assert not clock.advance()


async def test_time_wakes_whose_time_it_is() -> None:
    clock = FakeClock()
    stir = WakeEvent(clock)
    soon = asyncio.create_task(stir.wait(clock.time + 1))
    late = asyncio.create_task(stir.wait(clock.time + 9))
    await asyncio.sleep(0)
    clock.advance()
    await soon
    assert not late.done()
    late.cancel()
    await asyncio.gather(late, return_exceptions=True)
    assert not clock.advance()
