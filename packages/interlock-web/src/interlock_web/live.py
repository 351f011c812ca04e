"""Live pages: one reader of the journal for all, a bounded queue for each browser.

A thread looks at the database many times a second, as long as somebody watches, and hands what
changed to every stream: the same bytes, encoded once. After each look it rests in proportion to
what that took, so that it never takes more than a small part of a core. A browser that cannot keep
up is cut off; it comes back by itself, says how far it had come, and reads anew what it shows.
"""

import asyncio
import threading
import time
import traceback
from collections import Counter
from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import asynccontextmanager
from typing import Any, Final

import msgspec

from interlock.api.browse import CaseLine, PlaceCount
from interlock.api.changes import ChangeReader, Changes
from interlock.api.records import DatabaseAddress
from interlock_web.filters import find_case_tone, find_tone, format_money

MAX_STREAMS: Final = 400
_POLL: Final = 0.04
"""Seconds between looks at the journal."""
_MIN_GAP: Final = 0.07
"""Seconds between two messages, at least."""
_REST: Final = 6.0
"""After a look that took long, this many times as long is rested."""
_LONGEST_REST: Final = 1.0
_QUEUE: Final = 32
_UNREADABLE: Final = "the journal cannot be read; see the server's terminal"
_HEARTBEAT: Final = 15.0
"""Seconds of silence after which a comment shows that the connection stands."""


class LiveFeed:
    """Tells every browser what changes. `run` lasts as long as the server."""

    def __init__(self, db: DatabaseAddress) -> None:
        self._db = db
        self._queues: set[asyncio.Queue[bytes | None]] = set()
        self._wanted = threading.Event()
        self._stopped = threading.Event()
        self._position = ""
        self._problem = ""

    @property
    def position(self) -> str:
        """How far the journal was read for the streams; empty if nobody watches."""
        return self._position if self._queues else ""

    @asynccontextmanager
    async def run(self) -> AsyncIterator[None]:
        loop = asyncio.get_running_loop()
        thread = threading.Thread(target=self._look, args=(loop,), name="interlock-live")
        thread.start()
        try:
            yield
        finally:
            self._stopped.set()
            self._wanted.set()
            for queue in [*self._queues]:
                self._cut_off(queue)
            await asyncio.to_thread(thread.join)

    async def stream(self, last_seen: str) -> AsyncIterator[bytes]:
        """What one browser gets; `last_seen` is how far it had come before."""
        if len(self._queues) >= MAX_STREAMS or self._stopped.is_set():
            yield b"retry: 30000\n\n"
            return
        queue: asyncio.Queue[bytes | None] = asyncio.Queue(_QUEUE)
        self._queues.add(queue)
        self._wanted.set()
        try:
            missed = bool(last_seen) and last_seen != self._position
            hello = {"fresh": missed, "problem": self._problem, "runs": []}
            yield b"retry: 2000\n\n" + _encode(self._position, hello)
            while True:
                try:
                    async with asyncio.timeout(_HEARTBEAT):
                        message = await queue.get()
                except TimeoutError:
                    message = b": still here\n\n"
                if message is None:
                    return
                yield message
        finally:
            self._queues.discard(queue)
            if not self._queues:
                self._wanted.clear()

    def _look(self, loop: asyncio.AbstractEventLoop) -> None:
        """In a thread of its own: the database is read, and handed to the loop."""
        reader = ChangeReader(self._db)
        sent = 0.0
        while not self._stopped.is_set():
            if not self._wanted.is_set():
                reader.close()
                self._wanted.wait()
                continue
            began = time.thread_time()  # of this thread alone: a busy machine is no reason to rest
            try:
                changes = reader.read()
                rest = min((time.thread_time() - began) * _REST, _LONGEST_REST)
            except Exception as error:  # one bad row must not end the streams of everybody
                reader.begin_anew()
                changes, rest = None, _LONGEST_REST
                if self._problem != _UNREADABLE:  # it is told once, not at every look
                    traceback.print_exception(error)
                    changes = Changes("", problem=_UNREADABLE)
            if changes is not None:
                message = encode_changes(changes)
                loop.call_soon_threadsafe(self._tell, changes.position, changes.problem, message)
                sent = time.monotonic()
            now = time.monotonic()
            due = max(now + _POLL, sent + _MIN_GAP if changes else 0.0, now + rest)
            self._stopped.wait(due - now)
        reader.close()

    def _tell(self, position: str, problem: str, message: bytes) -> None:
        self._position, self._problem = position, problem
        for queue in [*self._queues]:
            try:
                queue.put_nowait(message)
            except asyncio.QueueFull:
                self._cut_off(queue)

    def _cut_off(self, queue: "asyncio.Queue[bytes | None]") -> None:
        """The stream ends; what it had not sent is dropped, and the browser reads anew."""
        self._queues.discard(queue)
        while not queue.empty():
            queue.get_nowait()
        queue.put_nowait(None)


def encode_changes(changes: Changes) -> bytes:
    """One message of a stream."""
    runs = [
        {
            "run": each.run_id,
            "circuit": each.circuit,
            "changed": each.changed_at,
            "status": each.status,
            "tone": find_tone(each.status),
            "ends": each.ends,
            "cost": format_money(each.cost.money),
            "tokens": each.cost.tokens,
            "places": count_by_place(each.places),
            "cases": [encode_line(line) for line in each.cases],
            "many": each.many,
        }
        for each in changes.runs
    ]
    data: dict[str, Any] = {"waiting": changes.waiting, "fresh": changes.fresh, "runs": runs}
    data["problem"] = changes.problem
    return _encode(changes.position, data)


def encode_line(line: CaseLine) -> dict[str, Any]:
    """A case, as the script fills it into its row."""
    row = line.row
    return {
        "no": row.case_no,
        "step": row.step,
        "attempt": row.attempt,
        "agent": line.agent,
        "word": line.word,
        "tone": find_case_tone(line),
        "reason": line.reason,
        "since": row.since or row.moved_at,
        "cost": format_money(row.money),
    }


def count_by_place(places: Iterable[PlaceCount]) -> Mapping[str, list[int]]:
    """Open cases at each step, those asked among them, those stuck; cases at each end."""
    found: dict[str, Counter[str]] = {}
    for each in places:
        name = each.end or each.step
        kind = "stuck" if each.status == "stuck" else "there"
        counts = found.setdefault(name, Counter())
        counts[kind] += each.cases
        counts["asked"] += each.asked
    return {
        name: [counts["there"], counts["asked"], counts["stuck"]] for name, counts in found.items()
    }


def _encode(position: str, data: Mapping[str, Any]) -> bytes:
    return b"id: %s\ndata: %s\n\n" % (position.encode(), msgspec.json.encode(data))
