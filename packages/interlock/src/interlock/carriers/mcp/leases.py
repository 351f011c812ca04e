"""Work that is pulled: which asks are open, who holds each, until when.

`LeaseBoard` knows the steps' own limits and who may answer now. `LeaseBook` keeps the leases: a
fence rises each time a dispatch is handed out. A lease that ended or was given back may not answer
any more. One whose worker went silent may: nobody knows whether it died or thinks, so others are
offered its work as well, and the first valid answer counts. The book is a file, so that a
coordinator that died and came back knows what it handed to whom. `WakeEvent` wakes all who wait
when something has changed, or when their time is up.
"""

import asyncio
import hmac
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec

from interlock.carriers.contract import Ask
from interlock.engine.case import RefusedAnswer
from interlock.system.clock import Clock
from interlock.system.files import write_file

RECONNECT_GRACE = 20.0
"""Seconds a worker has to come back to a coordinator that was started anew."""
_TOKEN = re.compile(r"([0-9]{1,16})\.([0-9]{1,9})\.[0-9a-f]{1,64}", re.ASCII)


class Lease(msgspec.Struct, frozen=True):
    """One dispatch in the hands of one worker."""

    dispatch_id: int
    fence: int
    token: str
    worker: str
    ttl: float
    until: float
    silent: bool = False
    """Its worker has shown no sign of life for a while."""


class _LeaseFile(msgspec.Struct):
    leases: list[Lease] = []
    doubled: list[Lease] = []
    fences: dict[int, int] = {}


class LeaseBook:
    """All leases of one coordinator."""

    def __init__(self, path: Path, nonce: Callable[[], str]) -> None:
        self._path = path
        self._nonce = nonce
        self._held: dict[int, Lease] = {}
        self._doubled: list[Lease] = []
        """Of workers that went silent before another one was given the same dispatch."""
        self._fences: dict[int, int] = {}

    def open(self, now: float) -> None:
        """Take up what an earlier coordinator had handed out; its workers must come back soon."""
        page = _LeaseFile()
        with suppress(OSError, msgspec.DecodeError, UnicodeDecodeError):
            page = msgspec.json.decode(self._path.read_bytes(), type=_LeaseFile)
        self._fences = dict(page.fences)
        held, self._doubled = (
            [
                msgspec.structs.replace(each, until=now + min(each.ttl, RECONNECT_GRACE))
                for each in leases
            ]
            for leases in (page.leases, page.doubled)
        )
        self._held = {each.dispatch_id: each for each in held}

    def forget_others(self, dispatch_ids: set[int]) -> None:
        """Forget dispatches that are no more."""
        for dispatch_id in self._fences.keys() - dispatch_ids:
            self._held.pop(dispatch_id, None)
            del self._fences[dispatch_id]
        self._doubled = [each for each in self._doubled if each.dispatch_id in dispatch_ids]

    def grant(self, dispatch_id: int, worker: str, ttl: float, now: float) -> Lease:
        """Lease it to this worker. Who held it and went silent may still answer."""
        fence = self._fences.get(dispatch_id, 0) + 1
        if before := self._held.get(dispatch_id):
            self._doubled.append(before)
        token = f"{dispatch_id}.{fence}.{self._nonce()}"
        lease = Lease(dispatch_id, fence, token, worker, ttl, now + ttl)
        self._fences[dispatch_id] = fence
        self._held[dispatch_id] = lease
        self._save()
        return lease

    def find_lease(self, dispatch_id: int) -> Lease | None:
        return self._held.get(dispatch_id)

    def list_held(self, worker: str) -> list[Lease]:
        return [each for each in self._held.values() if each.worker == worker]

    def list_silent(self) -> list[Lease]:
        return [each for each in self._held.values() if each.silent]

    def renew(self, worker: str, now: float, token: str = "", *, lives: bool = True) -> None:
        """All leases of the worker last longer, or the one it speaks of; and it `lives`, unless
        that is only known of whoever carries its calls."""

        def renew(lease: Lease) -> Lease:
            named = not token or hmac.compare_digest(token.encode(), lease.token.encode())
            if lease.worker != worker or not named:
                return lease
            silent = lease.silent and not lives
            return msgspec.structs.replace(lease, until=now + lease.ttl, silent=silent)

        self._change_all(renew)

    def mark_silent(self, worker: str) -> None:
        """Nothing was heard of the worker: others may be offered what it holds."""
        self._change_all(
            lambda lease: (
                msgspec.structs.replace(lease, silent=True) if lease.worker == worker else lease
            )
        )
        self._save()

    def find_end(self, worker: str) -> float | None:
        """When the last lease of this worker ends, if it has one."""
        every = (*self._held.values(), *self._doubled)
        return max((each.until for each in every if each.worker == worker), default=None)

    def release(self, dispatch_id: int) -> None:
        """Nobody holds it any more; its fence is remembered."""
        if self._held.pop(dispatch_id, None) is not None:
            self._save()

    def release_doubled(self, over: Callable[[Lease], bool]) -> None:
        """Silent workers whose lease is `over` may not answer any more."""
        before = len(self._doubled)
        self._doubled = [each for each in self._doubled if not over(each)]
        if len(self._doubled) < before:
            self._save()

    def forget(self, dispatch_id: int) -> None:
        """The dispatch is over."""
        if self._fences.pop(dispatch_id, None) is not None:
            self._held.pop(dispatch_id, None)
            self._doubled = [each for each in self._doubled if each.dispatch_id != dispatch_id]
            self._save()

    def list_expired(self, now: float) -> list[Lease]:
        return [each for each in self._held.values() if each.until <= now]

    def find_next_expiry(self) -> float | None:
        return min((each.until for each in (*self._held.values(), *self._doubled)), default=None)

    def find_problem(self, worker: str, dispatch_id: int, token: str) -> RefusedAnswer | None:
        """Why this worker may not answer that open dispatch under that lease."""
        lease = self._held.get(dispatch_id)
        if lease is not None and hmac.compare_digest(token.encode(), lease.token.encode()):
            if lease.worker == worker:
                return None
            return RefusedAnswer(
                "WrongTask", f"Dispatch {dispatch_id} is leased to another worker."
            )
        for each in self._doubled:
            if each.worker == worker and hmac.compare_digest(token.encode(), each.token.encode()):
                return None
        parts = _TOKEN.fullmatch(token)
        if parts is None or int(parts[1]) != dispatch_id:
            return RefusedAnswer(
                "WrongTask", f"This is not a lease of dispatch {dispatch_id}; use its own."
            )
        if int(parts[2]) > self._fences.get(dispatch_id, 0):
            return RefusedAnswer(
                "WrongTask", f"This lease of dispatch {dispatch_id} was never granted."
            )
        state = (
            "another worker has the dispatch now" if lease else "the dispatch waits for a worker"
        )
        return RefusedAnswer(
            "Stale", f"The lease is over and {state}: take work with interlock_next."
        )

    def _change_all(self, change: Callable[[Lease], Lease]) -> None:
        self._held = {number: change(lease) for number, lease in self._held.items()}
        self._doubled = [change(lease) for lease in self._doubled]

    def _save(self) -> None:
        """Without a sync: what must survive is the death of this process, not of the machine."""
        held = sorted(self._held.values(), key=lambda each: each.dispatch_id)
        page = _LeaseFile(held, self._doubled, self._fences)
        with suppress(OSError):
            write_file(self._path, msgspec.json.encode(page), sync=False)


class WakeEvent:
    """Any number may wait; `wake_all` wakes them all, and each looks for itself."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._waiters: list[asyncio.Future[None]] = []

    async def wait(self, until: float) -> None:
        """Return when woken, or at that time."""
        waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        cancel = self._clock.call_at(until, lambda: resolve_future(waiter, None))
        self._waiters.append(waiter)
        try:
            await waiter
        finally:
            cancel()
            self._waiters.remove(waiter)

    def wake_all(self) -> None:
        for waiter in self._waiters:
            resolve_future(waiter, None)


def resolve_future(waiting: "asyncio.Future[Any]", value: object) -> None:
    """Give it its value, unless it has one or nobody waits any more."""
    if not waiting.done():
        waiting.set_result(value)


OnTimeout = Callable[[Ask, float], None]
"""Told that an ask was not answered within so many seconds after the first worker took it."""


class LeaseBoard:
    """All asks of one coordinator, leased or free."""

    def __init__(
        self, leases: Path, clock: Clock, nonce: Callable[[], str], on_timeout: OnTimeout
    ) -> None:
        self.asks: dict[int, Ask] = {}
        self.book = LeaseBook(leases, nonce)
        self.wake = WakeEvent(clock)
        self.is_closed = False
        self._clock = clock
        self._tell_timeout = on_timeout
        self._settling: dict[int, asyncio.Future[str]] = {}
        self._timeouts: dict[int, Callable[[], None]] = {}
        self._cancel_expiry: Callable[[], None] | None = None
        self._first = True

    def open(self) -> None:
        self.book.open(self._clock.now())

    def add(self, asks: Sequence[Ask]) -> None:
        self.asks |= {ask.dispatch_id: ask for ask in asks}
        if self._first:
            self._first = False
            self.book.forget_others(set(self.asks))
            self._schedule_expiry()
        self.wake.wake_all()

    def drop(self, dispatch_id: int, error: str = "") -> None:
        """It is settled; the worker that answered learns the outcome."""
        self.asks.pop(dispatch_id, None)
        self.book.forget(dispatch_id)
        if cancel := self._timeouts.pop(dispatch_id, None):
            cancel()
        if waiting := self._settling.pop(dispatch_id, None):
            resolve_future(waiting, error)

    def close(self, reason: str) -> None:
        self.is_closed = True
        for cancel in (self._cancel_expiry, *self._timeouts.values()):
            if cancel is not None:
                cancel()
        for waiting in self._settling.values():
            resolve_future(waiting, reason)
        self.wake.wake_all()

    def list_offered(self, worker: str) -> Iterator[Ask]:
        """What this worker may take: what nobody holds, then what only silent ones hold."""
        yield from self.list_free()
        for lease in sorted(self.book.list_silent(), key=lambda each: each.dispatch_id):
            is_open = lease.dispatch_id in self.asks and lease.dispatch_id not in self._settling
            if is_open and lease.worker != worker:
                yield self.asks[lease.dispatch_id]

    def list_free(self) -> Iterator[Ask]:
        """What nobody holds, in the order it was asked."""
        for dispatch_id in sorted(self.asks):
            if self._is_free(dispatch_id):
                yield self.asks[dispatch_id]

    def grant(self, ask: Ask, worker: str, ttl: float, timeout: float | None) -> Lease:
        """Lease it to this worker; the step's own timeout counts from the first lease."""
        now = self._clock.now()
        lease = self.book.grant(ask.dispatch_id, worker, ttl, now)
        if timeout is not None and ask.dispatch_id not in self._timeouts:
            late = self._clock.call_at(now + timeout, lambda: self._on_timeout(ask, timeout))
            self._timeouts[ask.dispatch_id] = late
        self._schedule_expiry()
        return lease

    def release(self, dispatch_id: int) -> None:
        self.book.release(dispatch_id)
        self.wake.wake_all()

    def mark_silent(self, worker: str) -> float:
        """Nothing was heard of the worker; seconds until the last of its leases ends."""
        self.book.mark_silent(worker)
        self.wake.wake_all()
        end = self.book.find_end(worker)
        return 0.0 if end is None else max(0.0, end - self._clock.now())

    def release_all(self, worker: str) -> None:
        """The worker has gone: others may have what it held."""
        self.book.release_doubled(lambda lease: lease.worker == worker)
        for lease in self.book.list_held(worker):
            self.release(lease.dispatch_id)

    def begin_settling(self, dispatch_id: int) -> "asyncio.Future[str]":
        """An answer is on its way; `drop` or `close` resolves what this returns."""
        found: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self._settling[dispatch_id] = found
        return found

    def find_problem(self, worker: str, dispatch_id: int, token: str) -> RefusedAnswer | None:
        """Why this worker may not answer that dispatch now."""
        if dispatch_id in self._settling:
            return RefusedAnswer(
                "Stale", f"An answer to dispatch {dispatch_id} is already being processed."
            )
        if dispatch_id not in self.asks:
            sentence = f"Dispatch {dispatch_id} is not open: it is settled, or never was."
            return RefusedAnswer("Stale", sentence)
        return self.book.find_problem(worker, dispatch_id, token)

    def explain_no_work(self, roles: Sequence[str]) -> str:
        free = {ask.role for ask in self.list_free()}
        if free:
            return f"what waits is for {', '.join(sorted(free))}, not for {', '.join(roles)}"
        if self.asks:
            return "other workers have all that is open; ask again"
        return "nothing is to be done at this moment; ask again"

    def find_held(self, worker: str, roles: Sequence[str]) -> Lease | None:
        """The oldest dispatch of these roles that the worker holds and has not answered."""
        held = (
            lease
            for lease in self.book.list_held(worker)
            if lease.dispatch_id in self.asks and lease.dispatch_id not in self._settling
            if not roles or self.asks[lease.dispatch_id].role in roles
        )
        return min(held, key=lambda lease: lease.dispatch_id, default=None)

    def describe_held(self, worker: str) -> list[dict[str, Any]]:
        """What a worker holds, as it is told."""
        return [
            {
                "dispatch_id": each.dispatch_id,
                "case_id": self.asks[each.dispatch_id].case_id,
                "step": self.asks[each.dispatch_id].step,
                "seconds_left": round(each.until - self._clock.now(), 1),
            }
            for each in sorted(self.book.list_held(worker), key=lambda each: each.dispatch_id)
            if each.dispatch_id in self.asks
        ]

    def count_leased(self) -> int:
        return len([each for each in self.asks if self.book.find_lease(each) is not None])

    def has_work_out(self) -> bool:
        """Whether some worker of which we hear holds a dispatch, or one waits for what becomes of
        its answer."""
        return bool(self._settling) or self.count_leased() > len(self.book.list_silent())

    def find_run_id(self) -> int | None:
        return next((ask.run_id for ask in self.asks.values()), None)

    def _is_free(self, dispatch_id: int) -> bool:
        return self.book.find_lease(dispatch_id) is None and dispatch_id not in self._settling

    def _on_timeout(self, ask: Ask, timeout: float) -> None:
        self._timeouts.pop(ask.dispatch_id, None)
        if ask.dispatch_id in self.asks and ask.dispatch_id not in self._settling:
            self._tell_timeout(ask, timeout)

    def _schedule_expiry(self) -> None:
        """Wake when the first lease runs out; one that was renewed meanwhile is looked at again."""
        if self._cancel_expiry is not None:
            self._cancel_expiry()
        end = self.book.find_next_expiry()
        self._cancel_expiry = (
            None if end is None else self._clock.call_at(end, self._release_expired)
        )

    def _release_expired(self) -> None:
        self._cancel_expiry = None
        now = self._clock.now()
        self.book.release_doubled(
            lambda lease: lease.until <= now and lease.dispatch_id not in self._settling
        )
        for lease in self.book.list_expired(now):
            if lease.dispatch_id not in self._settling:
                self.release(lease.dispatch_id)
        if not self.is_closed:
            self._schedule_expiry()
