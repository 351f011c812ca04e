"""GitHub's webhooks: a genuine call about an issue that awaits an answer makes us poll at once.

No answer is ever taken from a call's body: whoever is woken asks GitHub itself. The server accepts
calls for any host name, because they come through tunnels; each must be signed.
"""

import asyncio
import hashlib
import hmac
import socket
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Final

import msgspec
import uvicorn
from starlette.applications import Starlette
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse
from starlette.routing import Route

from interlock.agents.background import report_failure
from interlock.agents.carrier import Carrier, CarrierWrapper, Session
from interlock.system.errors import SourceError
from interlock.web.server import MountedApp, WebServer

PATH: Final = "/github"
LARGEST: Final = 1024 * 1024
_EVENTS: Final = frozenset({"issue_comment", "issues", "label"})
_REMEMBERED: Final = 4_096
SHORTEST_SECRET: Final = 16


class _Repository(msgspec.Struct):
    full_name: str


class _IssueNumber(msgspec.Struct):
    number: int


class _Delivery(msgspec.Struct):
    repository: _Repository
    issue: _IssueNumber | None = None


class GithubHook:
    """Checks deliveries. Each one that is genuine and new counts once."""

    def __init__(
        self, secret: str, is_watching: Callable[[str, int], bool], wake: Callable[[int], None]
    ) -> None:
        if len(secret) < SHORTEST_SECRET:
            raise SourceError(f"A webhook's secret needs at least {SHORTEST_SECRET} characters.")
        self._secret = secret.encode()
        self._is_watching = is_watching
        self._wake = wake
        self._seen: OrderedDict[str, None] = OrderedDict()

    def app(self) -> Starlette:
        """The ASGI application, with one path."""
        return Starlette(routes=[Route(PATH, self._receive, methods=["POST"])])

    async def _receive(self, request: Request) -> JSONResponse:
        body = await _read_body(request)
        if body is None:
            return _build_response(413, "the body is too large")
        if not self._is_genuine(request.headers.get("x-hub-signature-256", ""), body):
            return _build_response(401, "the signature is wrong")
        delivery_id = request.headers.get("x-github-delivery", "")
        if not 0 < len(delivery_id) <= 128:
            return _build_response(400, "the delivery has no id")
        if delivery_id in self._seen:
            return _build_response(409, "this delivery was received before")
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
            return _build_response(202, "this event does not matter here")
        try:
            delivery = msgspec.json.decode(body, type=_Delivery)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return _build_response(400, "the body cannot be read")
        issue = delivery.issue
        if issue is None or not self._is_watching(delivery.repository.full_name, issue.number):
            return _build_response(202, "no answer is awaited on this issue")
        self._wake(issue.number)
        return _build_response(202, "looking")


async def _read_body(request: Request) -> bytes | None:
    """The body, unless it is too large, whatever its header says about its size."""
    body = bytearray()
    try:
        async for part in request.stream():
            body += part
            if len(body) > LARGEST:
                return None
    except ClientDisconnect:
        return b""
    return bytes(body)


def _build_response(status: int, sentence: str) -> JSONResponse:
    return JSONResponse({"said": sentence}, status)


_LOOPBACK: Final = "127.0.0.1"
_MOST_AT_ONCE: Final = 64
_PATIENCE: Final = 3


class WebhookGate(CarrierWrapper):
    """Wraps a carrier, and serves the webhook from its start to its close."""

    def __init__(self, carrier: Carrier, hook: GithubHook, listening: socket.socket) -> None:
        super().__init__(carrier)
        self._web = WebServer([MountedApp(PATH, hook.app())])
        self._server = _Server(
            uvicorn.Config(
                self._web,
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
        )
        self._listening = listening
        self._serving: asyncio.Task[None]

    def start(self, session: Session) -> None:
        super().start(session)
        self._serving = asyncio.get_running_loop().create_task(self._serve())
        self._serving.add_done_callback(report_failure)

    async def close(self) -> None:
        self._server.closing.set()
        await asyncio.gather(self._serving, return_exceptions=True)
        self._listening.close()
        await super().close()

    async def _serve(self) -> None:
        async with self._web:
            await self._server.serve([self._listening])


class _Server(uvicorn.Server):
    """Sleeps until it is closed: a day of waiting must cost nothing. Signals are the run's."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.closing = asyncio.Event()

    async def main_loop(self) -> None:
        await self.closing.wait()

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


def parse_hook_address(word: str) -> tuple[str, int]:
    """The host and port that `[HOST:]PORT` names; without a host only this machine reaches it."""
    host, _, port = word.rpartition(":")
    if not port.isascii() or not port.isdecimal() or int(port[:6]) > 65535:
        raise SourceError(f"--hook {word!r}: write PORT or HOST:PORT, with a port from 0 to 65535")
    return host.removeprefix("[").removesuffix("]") or _LOOPBACK, int(port)


def read_hook_secret(environment: Mapping[str, str], name: str) -> str:
    """The webhook's secret; without one anybody could call."""
    found = environment.get(name, "").strip()
    if len(found) < SHORTEST_SECRET:
        raise SourceError(
            f"--hook needs the webhook's secret, at least {SHORTEST_SECRET} characters: "
            f"set {name} to what GitHub has for the webhook"
        )
    return found
