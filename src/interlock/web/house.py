"""The one application: its parts by their paths, and their lives from opening to closing.

Knows which requests are under way, and lets them finish before the house closes. Refuses to know
what a part does, and who may come in (`guard.py`).
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, nullcontext
from typing import Any, Final

import msgspec

from interlock.web.access import App, HttpRefusal, Message, Receive, Send, refuse

HEALTH: Final = "/healthz"
CLOSING: Final = HttpRefusal(503, "this server is closing")
LAST_WORDS: Final = 2.0
"""Seconds that requests under way have to finish when the house closes."""


class MountedApp(msgspec.Struct, frozen=True):
    """An application at a path and below it; `alive` lasts as long as it is served."""

    path: str
    app: App
    alive: Callable[[], AbstractAsyncContextManager[Any]] = nullcontext


class WebServer:
    """Leads each request to its part. Use it as an async context; requests come in between."""

    def __init__(self, parts: Sequence[MountedApp]) -> None:
        self._parts = sorted(parts, key=lambda part: len(part.path), reverse=True)
        self._lives = AsyncExitStack()
        self._under_way: dict[asyncio.Task[None], bool] = {}
        """Each with whether it may change something, and is waited for."""
        self._open = False

    async def __aenter__(self) -> "WebServer":
        for part in self._parts:
            await self._lives.enter_async_context(part.alive())
        self._open = True
        return self

    async def __aexit__(self, *_error: object) -> None:
        self._open = False
        awaited = [task for task, waited_for in self._under_way.items() if waited_for]
        if awaited:
            await asyncio.wait(awaited, timeout=LAST_WORDS)
        await self._lives.aclose()
        for task in self._under_way:
            task.cancel()

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        path = scope["path"]
        if path == HEALTH:
            await _healthy(scope, send, up=self._open)
            return
        part = next((each for each in self._parts if _is_below(path, each.path)), None)
        if part is None:
            await refuse(HttpRefusal(404, "nothing is served at this path"), send)
        elif not self._open:
            await refuse(CLOSING, send)
        else:
            await self._led(part.app, scope, receive, send)

    async def _led(self, app: App, scope: Message, receive: Receive, send: Send) -> None:
        """In a task of its own, so that it can be ended when the house closes."""
        answer = _Answer(send)
        task = asyncio.ensure_future(_done(app(scope, receive, answer.send)))
        self._under_way[task] = scope["method"] != "GET"
        try:
            await task
        except asyncio.CancelledError:
            task.cancel()
            if self._open:
                raise
            await answer.cut_off()
        finally:
            del self._under_way[task]


class _Answer:
    """What a request was answered so far."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self._begun = False
        self._over = False

    async def send(self, message: Message) -> None:
        self._begun = True
        last = message["type"] == "http.response.body" and not message.get("more_body", False)
        self._over = self._over or last
        await self._send(message)

    async def cut_off(self) -> None:
        """Say that no more will come."""
        if not self._begun:
            await refuse(CLOSING, self._send)
        elif not self._over:
            await self._send({"type": "http.response.body", "body": b""})


async def _done(work: Awaitable[None]) -> None:
    await work


async def _healthy(scope: Message, send: Send, *, up: bool) -> None:
    if scope["method"] not in ("GET", "HEAD"):
        await refuse(HttpRefusal(405, f"{HEALTH} is only read"), send)
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
