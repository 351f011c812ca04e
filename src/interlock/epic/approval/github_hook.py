"""A door for GitHub's webhooks: a genuine call about an issue that is waited on wakes its desk.

Knows the signature, the delivery's id and which events matter. Never takes an answer from a body:
whoever is woken asks GitHub itself. Refuses to know what a comment says.
"""

import hashlib
import hmac
from collections import OrderedDict
from collections.abc import Callable
from typing import Any, Final

import msgspec
from starlette.applications import Starlette
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse
from starlette.routing import Route

from interlock.system.errors import SourceError

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
