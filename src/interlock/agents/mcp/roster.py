"""The workers behind one server that many agents speak to: who is who, and who has gone.

A client with a session is one worker for as long as it lasts. Where the protocol has no sessions
each piece of work has a worker of its own, known by its lease. Refuses to know HTTP.
"""

import asyncio
from collections.abc import Callable, Mapping
from typing import Any, Final

from interlock.agents.mcp.worker import Worker

NEXT: Final = "interlock_next"
RECENTLY: Final = 600.0
"""Seconds for which a client without a session is told that a run is over, not that none began."""
_SLACK: Final = 1.0
"""Seconds by which a hand outlives its lease: the coordinator decides when that is over."""

Hire = Callable[[float], Worker]
"""A new worker; it was there so many seconds ago already."""


class _Hand:
    """One piece of work and the worker that holds it; let go when nobody speaks of it."""

    def __init__(self, worker: Worker, work: Mapping[str, Any], let_go: Callable[[], None]) -> None:
        self.worker = worker
        self.dispatch_id = work["dispatch_id"]
        self._ttl = float(work["ttl"])
        self._let_go = let_go
        self._timer: asyncio.TimerHandle | None = None
        self.touch()

    def touch(self) -> None:
        self.rest()
        running = asyncio.get_running_loop()
        self._timer = running.call_later(self._ttl + _SLACK, self._let_go)

    def rest(self) -> None:
        if self._timer is not None:
            self._timer.cancel()


class WorkerRegistry:
    """All workers of a server. `use` and `read` are what the server calls."""

    def __init__(self, hire: Hire) -> None:
        self._hire = hire
        self._sessions: dict[str, Worker] = {}
        self._hands: dict[str, _Hand] = {}
        self._lobby: Worker | None = None
        self._leaving: set[asyncio.Task[None]] = set()

    async def use(
        self, name: str, arguments: Mapping[str, Any], session: str = ""
    ) -> dict[str, Any] | str:
        """What the tool gives to the worker of that session, or of the lease it speaks of."""
        if session:
            return await self._of(session).use(name, arguments)
        if name == NEXT:
            return await self._hand_out(arguments)
        lease = arguments.get("lease")
        hand = self._hands.get(lease) if isinstance(lease, str) else None
        if not isinstance(lease, str) or hand is None:
            return await self._anybody().use(name, arguments)
        hand.touch()
        found = await hand.worker.use(name, arguments)
        if _is_over(found, hand.dispatch_id):
            self._let_go(lease)
        return found

    async def read(self, dispatch_id: int = 0, session: str = "") -> dict[str, Any]:
        worker = self._of(session) if session else self._anybody()
        return await worker.read(dispatch_id)

    def dismiss(self, session: str) -> None:
        """The client of that session has gone: others may have its work."""
        worker = self._sessions.pop(session, None)
        if worker is not None:
            self._send_off(worker)

    async def close(self) -> None:
        for session in list(self._sessions):
            self.dismiss(session)
        for lease in list(self._hands):
            self._let_go(lease)
        if self._lobby is not None:
            await self._lobby.close()
        await asyncio.gather(*self._leaving)

    async def _hand_out(self, arguments: Mapping[str, Any]) -> dict[str, Any] | str:
        worker = self._hire(RECENTLY)
        kept = False
        try:
            found = await worker.use(NEXT, arguments)
            if isinstance(found, dict) and found["available"]:
                lease = str(found["lease"])
                self._hands[lease] = _Hand(worker, found, lambda: self._let_go(lease))
                kept = True
            return found
        finally:
            if not kept:
                self._send_off(worker)

    def _of(self, session: str) -> Worker:
        if session not in self._sessions:
            self._sessions[session] = self._hire(0.0)
        return self._sessions[session]

    def _anybody(self) -> Worker:
        """Who speaks without a lease; it never holds work, and shows that such a lease is none."""
        if self._lobby is None:
            self._lobby = self._hire(RECENTLY)
        return self._lobby

    def _let_go(self, lease: str) -> None:
        hand = self._hands.pop(lease, None)
        if hand is not None:
            hand.rest()
            self._send_off(hand.worker)

    def _send_off(self, worker: Worker) -> None:
        """Without waiting: whoever calls may be on the way out itself."""
        task = asyncio.get_running_loop().create_task(worker.close())
        self._leaving.add(task)
        task.add_done_callback(self._leaving.discard)


def _is_over(found: dict[str, Any] | str, dispatch_id: int) -> bool:
    """Whether a hand has nothing left to do after this answer."""
    if isinstance(found, str) or "accepted" not in found:
        return False
    return found["dispatch_id"] == dispatch_id and not found["open"]
