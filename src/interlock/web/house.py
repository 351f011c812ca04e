"""The one application: its parts by their paths, and their lives from opening to closing.

Knows which requests are under way, and lets them finish before the house closes. Refuses to know
what a part does, and who may come in (`guard.py`).
"""

import asyncio
from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, nullcontext
from typing import Any, Final

import msgspec

from interlock.web.guard import App, Message, Receive, Refusal, Send, refuse

HEALTH: Final = "/healthz"
LAST_WORDS: Final = 2.0
"""Seconds that requests under way have to finish when the house closes."""


class Part(msgspec.Struct, frozen=True):
    """An application at a path and below it; `alive` lasts as long as it is served."""

    path: str
    app: App
    alive: Callable[[], AbstractAsyncContextManager[Any]] = nullcontext


class House:
    """Leads each request to its part. Use it as an async context; requests come in between."""

    def __init__(self, parts: Sequence[Part]) -> None:
        self._parts = sorted(parts, key=lambda part: len(part.path), reverse=True)
        self._lives = AsyncExitStack()
        self._under_way: set[asyncio.Task[Any]] = set()
        self._open = False

    async def __aenter__(self) -> "House":
        for part in self._parts:
            await self._lives.enter_async_context(part.alive())
        self._open = True
        return self

    async def __aexit__(self, *_error: object) -> None:
        self._open = False
        if self._under_way:
            await asyncio.wait(self._under_way, timeout=LAST_WORDS)
        await self._lives.aclose()

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        path = scope["path"]
        if path == HEALTH:
            await _healthy(scope, send, up=self._open)
            return
        part = next((each for each in self._parts if _is_below(path, each.path)), None)
        if part is None:
            await refuse(Refusal(404, "nothing is served at this path"), send)
        elif not self._open:
            await refuse(Refusal(503, "this server is closing"), send)
        else:
            await self._led(part.app, scope, receive, send)

    async def _led(self, app: App, scope: Message, receive: Receive, send: Send) -> None:
        """A stream that stays open is not waited for: only what may change something is."""
        task = asyncio.current_task()
        assert task is not None  # noqa: S101 - a request runs in a task
        if scope["method"] != "GET":
            self._under_way.add(task)
        try:
            await app(scope, receive, send)
        finally:
            self._under_way.discard(task)


async def _healthy(scope: Message, send: Send, *, up: bool) -> None:
    if scope["method"] not in ("GET", "HEAD"):
        await refuse(Refusal(405, f"{HEALTH} is only read"), send)
        return
    said = msgspec.json.encode({"status": "ok" if up else "closing"})
    headers = [
        (b"content-type", b"application/json"),
        (b"content-length", str(len(said)).encode()),
        (b"cache-control", b"no-store"),
    ]
    await send(
        {"type": "http.response.start", "status": 200 if up else 503, "headers": headers},
    )
    await send({"type": "http.response.body", "body": b"" if scope["method"] == "HEAD" else said})


def _is_below(path: str, root: str) -> bool:
    return path == root or path.startswith(f"{root.rstrip('/')}/")
