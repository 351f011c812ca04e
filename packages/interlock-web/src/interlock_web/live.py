"""Live pages: one reader of the journal for all, a bounded queue for each browser.

A thread looks at the database many times a second, as long as somebody watches, and every stream
gets the same message: which runs changed, and how many questions wait. Pages then fetch what they
show. After each look the thread rests in proportion to what that took, so that it never takes more
than a small part of a core. A browser that cannot keep up is cut off; it connects anew and reads
its page again.
"""

import asyncio
import threading
import time
import traceback
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any, Final

import msgspec

from interlock.api.changes import ChangeReader, Changes
from interlock.api.records import DatabaseAddress

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
    """Tells every browser which runs change. `run` lasts as long as the server."""

    def __init__(self, db: DatabaseAddress) -> None:
        self._db = db
        self._queues: set[asyncio.Queue[bytes | None]] = set()
        self._wanted = threading.Event()
        self._stopped = threading.Event()
        self._position = ""
        self._problem = ""

    @property
    def position(self) -> str:
        """The position up to which streams were told of changes; empty if nobody watches."""
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
        """Yield the messages of one browser; `last_seen` is the position that it had come to."""
        if len(self._queues) >= MAX_STREAMS or self._stopped.is_set():
            yield b"retry: 30000\n\n"
            return
        queue: asyncio.Queue[bytes | None] = asyncio.Queue(_QUEUE)
        self._queues.add(queue)
        self._wanted.set()
        try:
            missed = bool(last_seen) and last_seen != self._position
            hello = {"fresh": missed, "problem": self._problem, "runs": {}}
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
        """Read the database in a thread, and hand changes to the loop."""
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
                loop.call_soon_threadsafe(self._tell, changes)
                sent = time.monotonic()
            now = time.monotonic()
            due = max(now + _POLL, sent + _MIN_GAP if changes else 0.0, now + rest)
            self._stopped.wait(due - now)
        reader.close()

    def _tell(self, changes: Changes) -> None:
        self._position, self._problem = changes.position, changes.problem
        data = msgspec.structs.asdict(changes)
        message = _encode(data.pop("position"), data)
        for queue in [*self._queues]:
            try:
                queue.put_nowait(message)
            except asyncio.QueueFull:
                self._cut_off(queue)

    def _cut_off(self, queue: "asyncio.Queue[bytes | None]") -> None:
        """End a stream and drop what it had not sent: the browser reads its page again."""
        self._queues.discard(queue)
        while not queue.empty():
            queue.get_nowait()
        queue.put_nowait(None)


def _encode(position: str, data: Mapping[str, Any]) -> bytes:
    """Return one message of a stream."""
    return b"id: %s\ndata: %s\n\n" % (position.encode(), msgspec.json.encode(data))
