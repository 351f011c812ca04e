"""The promises of every carrier, as tests: authors of carriers subclass `CarrierContract`.

The loop builds on them: a reply names its dispatch, asking twice is harmless, and nothing is left
behind. pytest is needed only to find the tests; it is not imported.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from types import TracebackType
from typing import ClassVar, Self

from interlock.carriers.contract import Ask, Carrier, Reply, Session
from interlock.engine.circuit import Step
from interlock.engine.shape import ANYTHING
from interlock.testing.kit import ManualClock

_PATIENCE = 20
"""Real seconds after which a silent carrier has failed."""
STEPS = {"work": Step("work", "worker", ANYTHING)}
"""The one step that a carrier on the bench knows, unless others are given."""


class CarrierBench:
    """A started carrier in a test: `async with CarrierBench(carrier) as bench`.

    It collects replies, waits for them without sleeping, and closes the carrier at the end.
    """

    def __init__(
        self,
        carrier: Carrier,
        clock: ManualClock | None = None,
        steps: Mapping[str, Step] = STEPS,
    ) -> None:
        self.carrier = carrier
        self.clock = clock or ManualClock()
        self.session = Session(self._take, self.clock, steps=steps)
        self.replies: list[Reply] = []
        self._arrived = asyncio.Event()

    async def __aenter__(self) -> Self:
        self.carrier.start(self.session)
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        await asyncio.wait_for(self.carrier.close(), _PATIENCE)

    async def until(self, count: int) -> list[Reply]:
        """Wait for at least `count` replies; time passes while nothing comes."""
        while len(self.replies) < count:
            if not self.clock.advance():
                self._arrived.clear()
                await asyncio.wait_for(self._arrived.wait(), _PATIENCE)
        return self.replies

    def _take(self, reply: Reply) -> None:
        self.replies.append(reply)
        self._arrived.set()


class CarrierContract:
    """Subclass it as `TestMine`, build your carrier in `make_carrier`, and pytest does the rest.

    The carrier is asked about the cases C1 and C2 (dispatches 1 and 2, step `work`, role `worker`),
    and must answer both; `answers` holds the expected bytes, if they are known.
    """

    answers: ClassVar[dict[int, bytes]] = {}

    def make_carrier(self, folder: Path, clock: ManualClock) -> Carrier:
        """Build a new carrier in a folder of its own, which waits by the clock.

        Called again in the same test, it builds what a restarted process would build.
        """
        raise NotImplementedError

    def prepare_again(self, folder: Path) -> None:
        """Restore the answer of dispatch 1 before it is sent again after it was settled, if
        settling removes answers."""

    def test_the_reply_carries_the_dispatch_it_is_for(self, tmp_path: Path) -> None:
        async def check(bench: CarrierBench) -> None:
            bench.carrier.send([make_ask(2)])
            self._check(await bench.until(1), {2})
            bench.carrier.settle(2)

        self._run(check, tmp_path)

    def test_many_asks_have_a_reply_each(self, tmp_path: Path) -> None:
        async def check(bench: CarrierBench) -> None:
            bench.carrier.send([make_ask(1), make_ask(2)])
            self._check(await bench.until(2), {1, 2})

        self._run(check, tmp_path)

    def test_sending_the_same_ask_twice_is_harmless(self, tmp_path: Path) -> None:
        async def check(bench: CarrierBench) -> None:
            bench.carrier.send([make_ask(1)])
            bench.carrier.send([make_ask(1), make_ask(2)])
            await bench.until(2)
            while {each.dispatch_id for each in bench.replies} != {1, 2}:
                await bench.until(len(bench.replies) + 1)
            self._check(bench.replies, {1, 2})
            bench.carrier.settle(1)
            bench.carrier.settle(2)

        self._run(check, tmp_path)

    def test_it_can_be_asked_again_after_it_was_settled(self, tmp_path: Path) -> None:
        async def check(bench: CarrierBench) -> None:
            bench.carrier.send([make_ask(1)])
            await bench.until(1)
            bench.carrier.settle(1)
            self.prepare_again(tmp_path)
            bench.carrier.send([make_ask(1)])
            self._check(await bench.until(2), {1})

        self._run(check, tmp_path)

    def test_settling_what_is_not_known_is_harmless(self, tmp_path: Path) -> None:
        async def check(bench: CarrierBench) -> None:
            bench.carrier.settle(99)
            bench.carrier.send([make_ask(1)])
            await bench.until(1)
            bench.carrier.settle(1)
            bench.carrier.settle(1)
            self._check(bench.replies, {1})

        self._run(check, tmp_path)

    def test_close_leaves_nothing_behind(self, tmp_path: Path) -> None:
        async def check() -> None:
            async with self._bench(tmp_path) as bench:
                bench.carrier.send([make_ask(1), make_ask(2)])
            before = list(bench.replies)
            assert not bench.clock.advance(), "a timer still runs after close"  # noqa: S101
            left = asyncio.all_tasks() - {asyncio.current_task()}
            assert not left, f"tasks still run after close: {left}"  # noqa: S101
            assert bench.replies == before, "a reply came after close"  # noqa: S101
            await bench.carrier.close()

        asyncio.run(check())

    def test_close_before_anything_was_sent(self, tmp_path: Path) -> None:
        async def check(bench: CarrierBench) -> None:
            assert bench.replies == []  # noqa: S101

        self._run(check, tmp_path)

    def test_it_can_be_started_again_after_it_was_closed(self, tmp_path: Path) -> None:
        """A run that stopped for people continues with the same carriers."""

        async def check() -> None:
            carrier, clock = None, ManualClock()
            for number in (1, 2):
                carrier = carrier or self.make_carrier(tmp_path, clock)
                async with CarrierBench(carrier, clock) as bench:
                    bench.carrier.send([make_ask(number)])
                    self._check(await bench.until(1), {number})
                    bench.carrier.settle(number)

        asyncio.run(check())

    def _bench(self, folder: Path) -> CarrierBench:
        clock = ManualClock()
        return CarrierBench(self.make_carrier(folder, clock), clock)

    def _run(self, check: Callable[[CarrierBench], Awaitable[None]], folder: Path) -> None:
        async def run() -> None:
            async with self._bench(folder) as bench:
                await check(bench)

        asyncio.run(run())

    def _check(self, replies: list[Reply], wanted: set[int]) -> None:
        for reply in replies:
            problem = reply.reason or reply.failure or reply.refused
            assert not problem, f"dispatch {reply.dispatch_id} was not answered: {problem}"  # noqa: S101
            known = self.answers.get(reply.dispatch_id, reply.content)
            assert reply.content == known, f"{reply.content!r} is not {known!r}"  # noqa: S101
        found = {reply.dispatch_id for reply in replies}
        assert found == wanted, f"replies came for {found}, not for {wanted}"  # noqa: S101


def make_ask(number: int) -> Ask:
    """Return the contract's ask with that dispatch number, for case C1, C2, …"""
    return Ask(
        dispatch_id=number,
        run_id=1,
        case_id=f"C{number}",
        step="work",
        attempt=1,
        role="worker",
        prompt="{}",
        case_no=number,
    )
