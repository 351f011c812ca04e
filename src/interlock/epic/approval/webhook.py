"""A door for GitHub's webhooks: a genuine call about an issue that is waited on wakes its desk.

Knows the signature, the delivery's id and which events matter. Never takes an answer from a body:
whoever is woken asks GitHub itself. Refuses to know what a comment says.

A desk that is also told by GitHub: while its questions wait, a webhook's door stands open.

Knows how the door is served in the desk's own loop, and closes it before the desk. It has no guard
before it: calls come through tunnels under any name, and each must be signed. Refuses to know what
a call says, and what is asked.
"""

import asyncio
import hashlib
import hmac
import socket
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Final

import msgspec
import uvicorn
from starlette.applications import Starlette
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse
from starlette.routing import Route

from interlock.agents.carrier import Ask, Carrier, Deliver
from interlock.system.errors import SourceError
from interlock.web.server import MountedApp, WebServer, open_socket

PATH: Final = "/github"
LARGEST: Final = 1024 * 1024
_EVENTS: Final = frozenset({"issue_comment", "issues", "label"})
_REMEMBERED: Final = 4_096
SHORTEST_SECRET: Final = 16
Bound = Callable[[str, int], bool]
Wake = Callable[[int], None]


class _Repository(msgspec.Struct):
    full_name: str


class _IssueNumber(msgspec.Struct):
    number: int


class _Delivery(msgspec.Struct):
    repository: _Repository
    issue: _IssueNumber | None = None


class GithubHook:
    """Checks deliveries. Each one that is genuine and new counts once."""

    def __init__(self, secret: str, bound: Bound, wake: Wake) -> None:
        if len(secret) < SHORTEST_SECRET:
            raise SourceError(f"A webhook's secret needs at least {SHORTEST_SECRET} characters.")
        self._secret = secret.encode()
        self._bound = bound
        self._wake = wake
        self._seen: OrderedDict[str, None] = OrderedDict()

    def app(self) -> Starlette:
        """The ASGI application, with one path."""
        return Starlette(routes=[Route(PATH, self._receive, methods=["POST"])])

    async def _receive(self, request: Request) -> JSONResponse:
        body = await _read(request)
        if body is None:
            return _said(413, "the body is too large")
        if not self._is_genuine(request.headers.get("x-hub-signature-256", ""), body):
            return _said(401, "the signature is wrong")
        delivery_id = request.headers.get("x-github-delivery", "")
        if not 0 < len(delivery_id) <= 128:
            return _said(400, "the delivery has no id")
        if delivery_id in self._seen:
            return _said(409, "this delivery came before")
        self._remember(delivery_id)
        return self._act(request.headers.get("x-github-event", ""), body)

    def _is_genuine(self, signature: str, body: bytes) -> bool:
        right = "sha256=" + hmac.new(self._secret, body, hashlib.sha256).hexdigest()
        return hmac.compare_digest(signature.encode("utf-8", "replace"), right.encode())

    def _remember(self, delivery_id: str) -> None:
        self._seen[delivery_id] = None
        if len(self._seen) > _REMEMBERED:
            self._seen.popitem(last=False)

    def _act(self, event: str, body: bytes) -> JSONResponse:
        if event not in _EVENTS:
            return _said(202, "not an event that matters here")
        try:
            delivery = msgspec.json.decode(body, type=_Delivery)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return _said(400, "the body cannot be read")
        issue = delivery.issue
        if issue is None or not self._bound(delivery.repository.full_name, issue.number):
            return _said(202, "not an issue that is waited on")
        self._wake(issue.number)
        return _said(202, "looking")


async def _read(request: Request) -> bytes | None:
    """The body, unless it is too large; what a client says about its size is not believed."""
    body = bytearray()
    try:
        async for part in request.stream():
            body += part
            if len(body) > LARGEST:
                return None
    except ClientDisconnect:
        return b""
    return bytes(body)


def _said(status: int, sentence: str) -> JSONResponse:
    content: dict[str, Any] = {"said": sentence}
    return JSONResponse(content, status)


LOOPBACK: Final = "127.0.0.1"
_MOST_AT_ONCE: Final = 64
_PATIENCE: Final = 3


class WebhookGate:
    """Carries what its desk carries, and serves the door from start to close."""

    def __init__(self, desk: Carrier, hook: GithubHook, listening: socket.socket) -> None:
        self._desk = desk
        self._house = WebServer([MountedApp(PATH, hook.app())])
        self._server = _Server(_config(self._house))
        self._listening = listening
        self._serving: asyncio.Task[None]

    def start(self, deliver: Deliver) -> None:
        self._desk.start(deliver)
        self._serving = asyncio.get_running_loop().create_task(self._serve())

    def send(self, asks: Sequence[Ask]) -> None:
        self._desk.send(asks)

    def settle(self, dispatch_id: int, error: str = "") -> None:
        self._desk.settle(dispatch_id, error)

    async def close(self) -> None:
        self._server.over.set()
        await asyncio.gather(self._serving, return_exceptions=True)
        self._listening.close()
        await self._desk.close()

    async def _serve(self) -> None:
        async with self._house:
            await self._server.serve([self._listening])


class _Server(uvicorn.Server):
    """Sleeps until it is over: a day of waiting must cost nothing. Signals are the run's."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.over = asyncio.Event()

    async def main_loop(self) -> None:
        await self.over.wait()

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


def _config(house: WebServer) -> uvicorn.Config:
    return uvicorn.Config(
        house,
        lifespan="off",
        ws="none",
        log_config=None,
        log_level="warning",
        access_log=False,
        server_header=False,
        date_header=False,
        limit_concurrency=_MOST_AT_ONCE,
        timeout_graceful_shutdown=_PATIENCE,
    )


def door(word: str) -> socket.socket:
    """The socket that `[HOST:]PORT` names; without a host only this machine reaches it."""
    host, _, port = word.rpartition(":")
    if not port.isascii() or not port.isdecimal() or int(port[:6]) > 65535:
        raise SourceError(f"--hook {word!r}: write PORT or HOST:PORT, with a port from 0 to 65535")
    return open_socket(host.removeprefix("[").removesuffix("]") or LOOPBACK, int(port), "--hook")


def secret_of(environment: Mapping[str, str], name: str) -> str:
    """The webhook's secret; without one everybody could knock."""
    found = environment.get(name, "").strip()
    if len(found) < SHORTEST_SECRET:
        raise SourceError(
            f"--hook needs the webhook's secret, at least {SHORTEST_SECRET} characters: "
            f"set {name} to what GitHub has for the webhook"
        )
    return found
