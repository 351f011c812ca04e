"""Guards: the right Host, the right Origin, a good token.

A page in a browser can make it send requests to this machine, also under a name of the attacker's
that resolves to it: hence Host and Origin, on reads too. Litestar's `AllowedHostsConfig` cannot do
that: it knows no numbers, and cuts an IPv6 address at its first colon. A browser keeps the token in
a cookie that no script can read and no other site can send along.
"""

import hmac
import ipaddress
from collections.abc import Awaitable, Callable
from http.cookies import CookieError, SimpleCookie
from typing import Any, Final
from urllib.parse import urlsplit

import msgspec
from litestar.connection import ASGIConnection
from litestar.exceptions import HTTPException
from litestar.handlers import BaseRouteHandler

from interlock_web.callers import CALLER_KEY, EVERYBODY, Caller

MIN_TOKEN_LENGTH: Final = 16
COOKIE: Final = "interlock-token"
"""Where a browser keeps the token."""
OPEN: Final = "open"
"""In the `opt` of a handler that needs no token."""


class AccessRules(msgspec.Struct, frozen=True):
    """The rules for requests that are let in. Loopback addresses are always right Hosts, because no
    attacker can point a number elsewhere; other numbers are right with `anywhere`."""

    anywhere: bool = False
    hosts: tuple[str, ...] = ()
    origins: tuple[str, ...] = ()
    token: str = ""
    find_caller: Callable[[str], Awaitable[Caller | None]] | None = None
    """Finds the owner of a token that is not the server's own."""

    @property
    def needs_token(self) -> bool:
        return self.anywhere or bool(self.token)

    async def identify(self, secret: str) -> Caller | None:
        """Return the owner of a token; None if it opens nothing."""
        given = secret.encode("utf-8", "replace")
        if self.token and hmac.compare_digest(given, self.token.encode()):
            return EVERYBODY
        return await self.find_caller(secret) if self.find_caller else None

    async def guard(
        self, connection: ASGIConnection[Any, Any, Any, Any], handler: BaseRouteHandler
    ) -> None:
        """Refuse a request of a wrong Host or Origin or without a good token; note its caller."""
        self._check_host(connection)
        self._check_origin(connection)
        scope: dict[str, Any] = connection.scope  # type: ignore[assignment]
        scope[CALLER_KEY] = await self._find_caller(connection, is_open=bool(handler.opt.get(OPEN)))

    def _check_host(self, connection: ASGIConnection[Any, Any, Any, Any]) -> None:
        host = _parse_host(_read_header(connection, b"host"))
        number = _parse_address(host)
        known = is_loopback(host) or host in self.hosts or (number is not None and self.anywhere)
        if not host or not known:
            raise HTTPException(
                "this Host is not served here; allow it with --allow-host", status_code=421
            )

    def _check_origin(self, connection: ASGIConnection[Any, Any, Any, Any]) -> None:
        origin = _read_header(connection, b"origin")
        if origin in self.origins:
            return
        scheme, _, netloc = origin.partition("://")
        is_own = scheme in ("http", "https") and netloc == _read_header(connection, b"host")
        if origin and not is_own:
            raise HTTPException(
                "this Origin is not allowed; allow it with --allow-origin", status_code=403
            )
        writes = connection.scope.get("method") not in ("GET", "HEAD", "OPTIONS")
        site = _read_header(connection, b"sec-fetch-site")
        if writes and site not in ("", "same-origin", "none"):
            raise HTTPException("another site may not send this", status_code=403)

    async def _find_caller(
        self, connection: ASGIConnection[Any, Any, Any, Any], *, is_open: bool
    ) -> Caller:
        """Return the caller, or refuse it. Where no token is needed, a wrong cookie is ignored: it
        may be from another server on this machine. A wrong header is always refused."""
        given = _read_header(connection, b"authorization")
        kind, _, secret = given.partition(" ")
        if not given:
            kind, secret = "Bearer", _read_cookie(connection)
        caller = await self.identify(secret) if kind == "Bearer" and secret else None
        if caller is not None:
            return caller
        if is_open or not (self.needs_token or given):
            return EVERYBODY
        sentence = "send the token: Authorization: Bearer TOKEN"
        if given.startswith("Bearer "):
            sentence = "this token is not known, was revoked or has expired"
        raise HTTPException(sentence, status_code=401, headers={"www-authenticate": "Bearer"})


def is_loopback(host: str) -> bool:
    """Return whether only this machine can reach an address of that name."""
    number = _parse_address(host)
    return host == "localhost" if number is None else number.is_loopback


def _read_header(connection: ASGIConnection[Any, Any, Any, Any], name: bytes) -> str:
    """Return the one header of that name; several of them are as good as a wrong one."""
    found = [value for key, value in connection.scope["headers"] if key == name]
    return b"\n".join(found).decode("latin-1")


def _read_cookie(connection: ASGIConnection[Any, Any, Any, Any]) -> str:
    try:
        found = SimpleCookie(_read_header(connection, b"cookie")).get(COOKIE)
    except CookieError:
        return ""
    return found.value if found is not None else ""


def _parse_host(header: str) -> str:
    """Return the name in a Host header, without its port; empty if the header is malformed."""
    try:
        parts = urlsplit(f"//{header}")
        named = parts.hostname or ""
        parts.port  # noqa: B018 - a malformed port raises
    except ValueError:
        return ""
    return named if parts.netloc == header and "@" not in header else ""


def _parse_address(host: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(host)
    except ValueError:
        return None
