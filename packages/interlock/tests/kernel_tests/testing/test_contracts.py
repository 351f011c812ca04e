"""The contract of carriers, as authors of carriers use it: it passes a good one, fails bad ones."""

import asyncio
from collections.abc import Sequence
from pathlib import Path

import pytest

from interlock.carriers.contract import Ask, Carrier, Reply
from interlock.testing import CarrierContract, ManualClock


class Echo(Carrier):
    """Answers after a second of the clock; the simplest carrier with something to wait for."""

    def __init__(self, clock: ManualClock) -> None:
        self._clock = clock
        self._out: set[int] = set()

    def send(self, asks: Sequence[Ask]) -> None:
        for ask in asks:
            if ask.dispatch_id not in self._out:
                self._out.add(ask.dispatch_id)
                self._clock.call_at(self._clock.now() + 1, lambda ask=ask: self._give(ask))  # type: ignore[misc]

    def settle(self, dispatch_id: int, error: str = "") -> None:
        self._out.discard(dispatch_id)

    async def close(self) -> None:
        self._out.clear()
        self._clock.forget_timers()

    def _give(self, ask: Ask) -> None:
        if ask.dispatch_id in self._out:
            self._deliver(self.answer(ask))

    def answer(self, ask: Ask) -> Reply:
        return Reply(ask.dispatch_id, b"{}")


class TestEcho(CarrierContract):
    def make_carrier(self, folder: Path, clock: ManualClock) -> Carrier:
        return Echo(clock)


class Misdirected(Echo):
    def answer(self, ask: Ask) -> Reply:
        return Reply(ask.dispatch_id + 1, b"{}")


class Failing(Echo):
    def answer(self, ask: Ask) -> Reply:
        return Reply(ask.dispatch_id, failure="crash", reason="no ink")


class Littering(Echo):
    async def close(self) -> None:
        self.left = asyncio.create_task(asyncio.sleep(0))


class Ticking(Echo):
    async def close(self) -> None:
        pass


class Brittle(Echo):
    def settle(self, dispatch_id: int, error: str = "") -> None:
        self._out.remove(dispatch_id)


@pytest.mark.parametrize(
    ("kind", "test", "error"),
    [
        (Misdirected, "the_reply_carries_the_dispatch_it_is_for", AssertionError),
        (Failing, "many_asks_have_a_reply_each", AssertionError),
        (Littering, "close_leaves_nothing_behind", AssertionError),
        (Ticking, "close_leaves_nothing_behind", AssertionError),
        (Brittle, "settling_what_is_not_known_is_harmless", KeyError),
    ],
)
def test_a_carrier_that_breaks_a_promise_fails(
    kind: type[Echo], test: str, error: type[Exception], tmp_path: Path
) -> None:
    class Contract(CarrierContract):
        def make_carrier(self, folder: Path, clock: ManualClock) -> Carrier:
            return kind(clock)

    with pytest.raises(error):
        getattr(Contract(), f"test_{test}")(tmp_path)


def test_answers_are_compared_where_they_are_known(tmp_path: Path) -> None:
    class Contract(TestEcho):
        answers = {1: b"{}", 2: b'{"n": 2}'}  # noqa: RUF012 - as an author writes it

    with pytest.raises(AssertionError, match=r"b'{}' is not b'{\"n\": 2}'"):
        Contract().test_many_asks_have_a_reply_each(tmp_path)


def test_a_contract_without_a_carrier_says_so(tmp_path: Path) -> None:
    with pytest.raises(NotImplementedError):
        CarrierContract().test_close_before_anything_was_sent(tmp_path)
