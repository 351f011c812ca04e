"""Leases: which worker holds which dispatch, until when, under which fence.

A fence rises each time a dispatch is handed out; only the newest lease may answer. The book is kept
in a file, so that a coordinator that died and came back knows whom it had handed what.
"""

import hmac
import os
import re
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import msgspec

from interlock.engine.case import Refused

GRACE = 20.0
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


class _Page(msgspec.Struct):
    leases: list[Lease] = []
    fences: dict[int, int] = {}


class LeaseBook:
    """All leases of one coordinator."""

    def __init__(self, path: Path, nonce: Callable[[], str]) -> None:
        self._path = path
        self._nonce = nonce
        self._held: dict[int, Lease] = {}
        self._fences: dict[int, int] = {}

    def open(self, now: float) -> None:
        """Take up what an earlier coordinator had handed out; its workers must come back soon."""
        page = _Page()
        with suppress(OSError, msgspec.DecodeError, UnicodeDecodeError):
            page = msgspec.json.decode(self._path.read_bytes(), type=_Page)
        self._fences = dict(page.fences)
        self._held = {
            each.dispatch_id: msgspec.structs.replace(each, until=now + min(each.ttl, GRACE))
            for each in page.leases
        }

    def keep_only(self, dispatch_ids: set[int]) -> None:
        """Forget dispatches that are no more."""
        for dispatch_id in self._fences.keys() - dispatch_ids:
            self._held.pop(dispatch_id, None)
            del self._fences[dispatch_id]

    def grant(self, dispatch_id: int, worker: str, ttl: float, now: float) -> Lease:
        fence = self._fences.get(dispatch_id, 0) + 1
        token = f"{dispatch_id}.{fence}.{self._nonce()}"
        lease = Lease(dispatch_id, fence, token, worker, ttl, now + ttl)
        self._fences[dispatch_id] = fence
        self._held[dispatch_id] = lease
        self._save()
        return lease

    def of(self, dispatch_id: int) -> Lease | None:
        return self._held.get(dispatch_id)

    def held_by(self, worker: str) -> list[Lease]:
        return [each for each in self._held.values() if each.worker == worker]

    def renew(self, worker: str, now: float, token: str = "") -> None:
        """The worker lives: all its leases last longer, or the one it speaks of."""
        for lease in self.held_by(worker):
            if not token or hmac.compare_digest(token.encode(), lease.token.encode()):
                longer = msgspec.structs.replace(lease, until=now + lease.ttl)
                self._held[lease.dispatch_id] = longer

    def release(self, dispatch_id: int) -> None:
        """Nobody holds it any more; its fence is remembered."""
        if self._held.pop(dispatch_id, None) is not None:
            self._save()

    def forget(self, dispatch_id: int) -> None:
        """The dispatch is over."""
        if self._fences.pop(dispatch_id, None) is not None:
            self._held.pop(dispatch_id, None)
            self._save()

    def run_out(self, now: float) -> list[Lease]:
        return [each for each in self._held.values() if each.until <= now]

    def next_end(self) -> float | None:
        return min((each.until for each in self._held.values()), default=None)

    def problem(self, worker: str, dispatch_id: int, token: str) -> Refused | None:
        """Why this worker may not answer that open dispatch under that lease."""
        lease = self._held.get(dispatch_id)
        if lease is not None and hmac.compare_digest(token.encode(), lease.token.encode()):
            if lease.worker == worker:
                return None
            return Refused("WrongTask", f"Dispatch {dispatch_id} is leased to another worker.")
        spoken = _TOKEN.fullmatch(token)
        if spoken is None or int(spoken[1]) != dispatch_id:
            return Refused("WrongTask", f"This is no lease of dispatch {dispatch_id}; use its own.")
        if int(spoken[2]) > self._fences.get(dispatch_id, 0):
            return Refused("WrongTask", f"This lease of dispatch {dispatch_id} was never given.")
        now = "another worker has the dispatch now" if lease else "the dispatch waits for a worker"
        return Refused("Stale", f"The lease is over and {now}: take work with interlock_next.")

    def _save(self) -> None:
        """Without a sync: what must survive is the death of this process, not of the machine."""
        fresh = self._path.with_name(f".{self._path.name}.{os.getpid()}")
        page = _Page(sorted(self._held.values(), key=lambda each: each.dispatch_id), self._fences)
        with suppress(OSError):
            fresh.touch(mode=0o600)
            fresh.write_bytes(msgspec.json.encode(page))
            fresh.replace(self._path)
