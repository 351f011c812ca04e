"""The board of work that is pulled: which asks are open, who holds each, and until when.

Knows leases, the steps' own limits, and who may answer now. Refuses to know what workers say, and
what an answer is worth (`pull.py`).
"""

import asyncio
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from interlock.agents.carrier import Ask, Clock
from interlock.agents.mcp.lease import Lease, LeaseBook
from interlock.agents.mcp.stir import WakeEvent, resolve
from interlock.engine.case import Refused

Late = Callable[[Ask, float], None]
"""Told that an ask was not answered within so many seconds of its first worker."""


class LeaseBoard:
    """All asks of one coordinator, in or out of hand."""

    def __init__(self, leases: Path, clock: Clock, nonce: Callable[[], str], late: Late) -> None:
        self.asks: dict[int, Ask] = {}
        self.book = LeaseBook(leases, nonce)
        self.stir = WakeEvent(clock)
        self.closed = False
        self._clock = clock
        self._late = late
        self._settling: dict[int, asyncio.Future[str]] = {}
        self._limits: dict[int, Callable[[], None]] = {}
        self._ring: Callable[[], None] | None = None
        self._first = True

    def open(self) -> None:
        self.book.open(self._clock.now())

    def put(self, asks: Sequence[Ask]) -> None:
        self.asks |= {ask.dispatch_id: ask for ask in asks}
        if self._first:
            self._first = False
            self.book.keep_only(set(self.asks))
            self._watch_leases()
        self.stir.ring()

    def drop(self, dispatch_id: int, error: str = "") -> None:
        """It is settled; who brought the answer is told how that went."""
        self.asks.pop(dispatch_id, None)
        self.book.forget(dispatch_id)
        if cancel := self._limits.pop(dispatch_id, None):
            cancel()
        if waiting := self._settling.pop(dispatch_id, None):
            resolve(waiting, error)

    def close(self, reason: str) -> None:
        self.closed = True
        for cancel in (self._ring, *self._limits.values()):
            if cancel is not None:
                cancel()
        for waiting in self._settling.values():
            resolve(waiting, reason)
        self.stir.ring()

    def free(self) -> Iterator[Ask]:
        """What nobody holds, in the order it was asked."""
        for dispatch_id in sorted(self.asks):
            if self._is_free(dispatch_id):
                yield self.asks[dispatch_id]

    def grant(self, ask: Ask, worker: str, ttl: float, timeout: float | None) -> Lease:
        """Into the hands of this worker; the step's own limit counts from the first one."""
        now = self._clock.now()
        lease = self.book.grant(ask.dispatch_id, worker, ttl, now)
        if timeout is not None and ask.dispatch_id not in self._limits:
            late = self._clock.call_at(now + timeout, lambda: self._time_is_up(ask, timeout))
            self._limits[ask.dispatch_id] = late
        self._watch_leases()
        return lease

    def release(self, dispatch_id: int) -> None:
        self.book.release(dispatch_id)
        self.stir.ring()

    def settling(self, dispatch_id: int) -> "asyncio.Future[str]":
        """An answer is on its way; what comes of it is told by `drop`, or by `close`."""
        found: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self._settling[dispatch_id] = found
        return found

    def out_of_turn(self, worker: str, dispatch_id: int, token: str) -> Refused | None:
        """Why this worker may not answer that dispatch now."""
        if dispatch_id in self._settling:
            return Refused("Stale", f"An answer to dispatch {dispatch_id} is being taken already.")
        if dispatch_id not in self.asks:
            sentence = f"Dispatch {dispatch_id} is not open: it is settled, or never was."
            return Refused("Stale", sentence)
        return self.book.problem(worker, dispatch_id, token)

    def why_none(self, roles: Sequence[str]) -> str:
        free = {ask.role for ask in self.free()}
        if free:
            return f"what waits is for {', '.join(sorted(free))}, not for {', '.join(roles)}"
        if self.asks:
            return "other workers have all that is open; ask again"
        return "nothing is to be done at this moment; ask again"

    def held_by(self, worker: str) -> list[dict[str, Any]]:
        """What a worker has, as it is told."""
        return [
            {
                "dispatch_id": each.dispatch_id,
                "case_id": self.asks[each.dispatch_id].case_id,
                "step": self.asks[each.dispatch_id].step,
                "seconds_left": round(each.until - self._clock.now(), 1),
            }
            for each in sorted(self.book.held_by(worker), key=lambda each: each.dispatch_id)
            if each.dispatch_id in self.asks
        ]

    def leased(self) -> int:
        return len([each for each in self.asks if self.book.of(each) is not None])

    def run_id(self) -> int | None:
        return next((ask.run_id for ask in self.asks.values()), None)

    def _is_free(self, dispatch_id: int) -> bool:
        return self.book.of(dispatch_id) is None and dispatch_id not in self._settling

    def _time_is_up(self, ask: Ask, timeout: float) -> None:
        self._limits.pop(ask.dispatch_id, None)
        if ask.dispatch_id in self.asks and ask.dispatch_id not in self._settling:
            self._late(ask, timeout)

    def _watch_leases(self) -> None:
        """Wake when the first lease runs out; one that was renewed meanwhile is looked at again."""
        if self._ring is not None:
            self._ring()
        end = self.book.next_end()
        self._ring = None if end is None else self._clock.call_at(end, self._look)

    def _look(self) -> None:
        self._ring = None
        for lease in self.book.run_out(self._clock.now()):
            if lease.dispatch_id not in self._settling:
                self.release(lease.dispatch_id)
        if not self.closed:
            self._watch_leases()
