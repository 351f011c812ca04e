"""Who may connect over HTTP: the right Host, the right Origin, the token, a body within bounds.

A page in a browser can make it send requests to this machine, also under a name of the attacker's
that resolves to it: hence Host and Origin, on reads too. A browser keeps the token in a cookie that
no script can read and no other site can send along.
"""

import asyncio
import hmac
import ipaddress
from collections.abc import Awaitable, Callable, Mapping, MutableMapping, Sequence
from contextlib import suppress
from html import escape
from http.cookies import CookieError, SimpleCookie
from typing import Any, Final
from urllib.parse import quote, urlsplit

import msgspec

from interlock.system.errors import StoreError
from interlock_web.callers import CALLER_KEY, EVERYBODY, Caller

MAX_BODY: Final = 4 << 20
MIN_TOKEN_LENGTH: Final = 16
COOKIE: Final = "interlock-token"
"""Where a browser keeps the token."""
LOGIN_PATH: Final = "/login"
RULES_KEY: Final = "interlock.rules"
"""Where an application finds, in the scope of each request, what was asked of it."""
IDENTITY_KEY: Final = "interlock.identity"
"""Where it finds the name of whoever asks; empty if the token says nothing of them."""

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Message, Receive, Send], Awaitable[None]]


_MAX_DRAINED = 256 << 20
_DRAIN_TIMEOUT = 10.0


FindCaller = Callable[[str], Awaitable[Caller | None]]


class AccessRules(msgspec.Struct, frozen=True):
    """What a request must look like. Addresses as numbers are no names that an attacker could
    point elsewhere: loopback ones are always right, others where `anywhere` says so."""

    anywhere: bool = False
    hosts: tuple[str, ...] = ()
    origins: tuple[str, ...] = ()
    token: str = ""
    open_paths: tuple[str, ...] = ()
    """Paths that need no token; one that ends in a slash, with all below it."""
    longest_body: int = MAX_BODY
    body_limits: Mapping[str, int] = {}
    """Paths that take other bodies than the longest of all others, each with its limit."""
    find_caller: FindCaller | None = None
    """Finds whose secret a token is that is not the server's own."""

    @property
    def needs_token(self) -> bool:
        return self.anywhere or bool(self.token)

    async def identify(self, secret: str) -> Caller | None:
        """Whose token that is; None if it opens nothing."""
        given = secret.encode("utf-8", "replace")
        if self.token and hmac.compare_digest(given, self.token.encode()):
            return EVERYBODY
        return await self.find_caller(secret) if self.find_caller else None

    def find_body_limit(self, path: str) -> int:
        return self.body_limits.get(path, self.longest_body)


class HttpRefusal(msgspec.Struct, frozen=True):
    status: int
    error: str


async def _drain_request(receive: Receive) -> None:
    """Read what is still sent and drop it: a connection that is closed with bytes unread is reset,
    and whoever is refused would not learn why. Within bounds: who sends for ever is reset."""
    drained = 0
    with suppress(TimeoutError):
        async with asyncio.timeout(_DRAIN_TIMEOUT):
            while drained <= _MAX_DRAINED:
                message = await receive()
                drained += len(message.get("body", b""))
                if not message.get("more_body"):
                    return


class AccessGuard:
    """Stands before an application."""

    def __init__(self, app: App, rules: AccessRules) -> None:
        self._app = app
        self._rules = rules

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        if scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": 1008})
            return
        caller = self._find_refusal(scope) or await self._identify(scope)
        if isinstance(caller, HttpRefusal):
            await _drain_request(receive)
            if _wants_page(scope):
                await _send_page(caller, scope, send)
            else:
                await send_refusal(caller, send)
            return
        scope[RULES_KEY] = self._rules
        scope[CALLER_KEY], scope[IDENTITY_KEY] = caller, caller.name
        most = self._rules.find_body_limit(scope["path"])
        counted = _LimitedRequest(receive, send, most)
        try:
            await self._app(scope, counted.receive, counted.send)
        except _BodyTooLargeError:
            if not counted.has_answered:
                await _drain_request(receive)
                await send_refusal(_build_too_large(most), send)
        except Exception:
            # Whatever an application says of a client that hung up in the middle: nobody reads it.
            if not counted.has_hung_up:
                raise

    def _find_refusal(self, scope: Message) -> HttpRefusal | None:
        rules = self._rules
        host = _read_header(scope, b"host")
        if not _is_known_host(_parse_host(host), rules):
            return HttpRefusal(421, "this Host is not served here; allow it with --allow-host")
        origin = _read_header(scope, b"origin")
        if origin and origin not in rules.origins and not _is_same_origin(origin, host):
            return HttpRefusal(403, "this Origin is not allowed; allow it with --allow-origin")
        writes = scope["method"] not in ("GET", "HEAD", "OPTIONS")
        site = _read_header(scope, b"sec-fetch-site")
        if writes and site not in ("", "same-origin", "none") and origin not in rules.origins:
            return HttpRefusal(403, "another site may not send this")
        length = _read_header(scope, b"content-length")
        most = rules.find_body_limit(scope["path"])
        if length.isdecimal() and int(length[:20]) > most:
            return _build_too_large(most)
        return None

    async def _identify(self, scope: Message) -> Caller | HttpRefusal:
        """Who asks. A cookie may be left over from another server on this machine: where none is
        needed, a wrong one is as good as none; a header is meant."""
        rules = self._rules
        given = _read_header(scope, b"authorization")
        kind, _, secret = given.partition(" ") if given else ("Bearer", "", _read_cookie(scope))
        try:
            caller = await rules.identify(secret) if kind == "Bearer" and secret else None
        except StoreError as error:
            return HttpRefusal(503, f"the token cannot be checked now: {error}")
        if caller is not None:
            return caller
        if _is_open(scope["path"], rules.open_paths) or not (rules.needs_token or given):
            return EVERYBODY
        if given.startswith("Bearer "):
            return HttpRefusal(401, "this token is not known, was revoked or has expired")
        return HttpRefusal(401, "send the token: Authorization: Bearer TOKEN")


class _BodyTooLargeError(Exception):
    pass


class _LimitedRequest:
    """A request whose body is counted as it comes."""

    def __init__(self, receive: Receive, send: Send, most: int) -> None:
        self._receive = receive
        self._send = send
        self._left = most
        self.has_answered = False
        self.has_hung_up = False

    async def receive(self) -> Message:
        message = await self._receive()
        self.has_hung_up = self.has_hung_up or message["type"] == "http.disconnect"
        self._left -= len(message.get("body", b""))
        if self._left < 0:
            raise _BodyTooLargeError
        return message

    async def send(self, message: Message) -> None:
        self.has_answered = True
        await self._send(message)


async def send_refusal(
    refusal: HttpRefusal, send: Send, more: Sequence[tuple[bytes, bytes]] = ()
) -> None:
    """A JSON object with one sentence, with `more` headers; the connection ends, whatever was still
    to come."""
    headers = [(b"content-type", b"application/json"), (b"connection", b"close"), *more]
    if refusal.status == 401:
        headers.append((b"www-authenticate", b"Bearer"))
    await send({"type": "http.response.start", "status": refusal.status, "headers": headers})
    body = msgspec.json.encode({"error": refusal.error})
    await send({"type": "http.response.body", "body": body})


def _wants_page(scope: Message) -> bool:
    """Whether a person reads the answer."""
    return "text/html" in _read_header(scope, b"accept")


async def _send_page(refusal: HttpRefusal, scope: Message, send: Send) -> None:
    """The same for a person: one sentence, or the way to the page that asks for the token."""
    headers = [(b"content-type", b"text/html; charset=utf-8"), (b"connection", b"close")]
    status = refusal.status
    if status == 401 and scope["method"] == "GET":
        query = scope.get("query_string", b"").decode("latin-1")
        wanted = scope["path"] + (f"?{query}" if query else "")
        target = LOGIN_PATH if wanted == "/" else f"{LOGIN_PATH}?next={quote(wanted, safe='')}"
        status, headers = 303, [*headers, (b"location", target.encode())]
    elif status == 401:
        headers.append((b"www-authenticate", b"Bearer"))
    headers.append((b"content-security-policy", b"default-src 'none'"))
    sentence = escape(f"{refusal.error[:1].upper()}{refusal.error[1:]}.")
    text = f'<!DOCTYPE html><html lang="en"><title>Interlock</title><p>{sentence}</p></html>'
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": text.encode()})


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach an address of that name."""
    number = _parse_address(host)
    return host == "localhost" if number is None else number.is_loopback


def _build_too_large(most: int) -> HttpRefusal:
    return HttpRefusal(413, f"the body may have at most {most:,} bytes")


def _read_header(scope: Message, name: bytes) -> str:
    """The one header of that name; several of them are as good as a wrong one."""
    found = [value for key, value in scope["headers"] if key == name]
    return b"\n".join(found).decode("latin-1")


def _read_cookie(scope: Message) -> str:
    try:
        found = SimpleCookie(_read_header(scope, b"cookie")).get(COOKIE)
    except CookieError:
        return ""
    return found.value if found is not None else ""


def _is_open(path: str, open_paths: tuple[str, ...]) -> bool:
    """Whether a path needs no token. Only plain paths: none that leads elsewhere by dots."""
    below = [each for each in open_paths if each.endswith("/")]
    return path in open_paths or (".." not in path and any(map(path.startswith, below)))


def _parse_host(header: str) -> str:
    """The name in a Host header, without its port; empty if it is no such header."""
    try:
        parts = urlsplit(f"//{header}")
        named = parts.hostname or ""
        parts.port  # noqa: B018 - a port that is none raises
    except ValueError:
        return ""
    return named if parts.netloc == header and "@" not in header else ""


def _is_known_host(host: str, rules: AccessRules) -> bool:
    if not host:
        return False
    number = _parse_address(host)
    return is_loopback(host) or host in rules.hosts or (number is not None and rules.anywhere)


def _parse_address(host: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(host)
    except ValueError:
        return None


def _is_same_origin(origin: str, host: str) -> bool:
    """Whether the page that asks came from here."""
    scheme, _, netloc = origin.partition("://")
    return scheme in ("http", "https") and netloc == host
