"""Callers over HTTP and their scopes: the server's own token, tokens with scopes, or nobody.

The server's own token, and a server that only this machine reaches and that asks for none, open
everything. A token made with `interlock token` opens what its scopes say; the database is asked
about it at each request, so that one that is revoked opens nothing any more.
"""

import asyncio
from typing import Any, Final

import msgspec
from litestar.connection import ASGIConnection
from litestar.exceptions import PermissionDeniedException
from litestar.handlers import BaseRouteHandler

from interlock.api.project import Project
from interlock.api.tokens import SCOPES, check_token

CALLER_KEY: Final = "interlock.caller"
"""The key of a request's scope that holds the caller."""
ANY: Final = "any"
"""The scope of handlers that every caller may use."""


class Caller(msgspec.Struct, frozen=True):
    """The sender of a request."""

    name: str = ""
    """The name of the token; empty for the server's own, or where none is needed."""
    scopes: tuple[str, ...] = SCOPES


EVERYBODY: Final = Caller()


class TokenChecker:
    """Looks tokens up in the database of a project."""

    def __init__(self, project: Project) -> None:
        self._project = project

    async def find_caller(self, secret: str) -> Caller | None:
        """Return the owner of a secret; None if it opens nothing."""
        found = await asyncio.to_thread(check_token, self._project, secret)
        return Caller(found.name, found.scopes) if found else None


def find_caller(connection: ASGIConnection[Any, Any, Any, Any]) -> Caller:
    """Return the sender of a request."""
    found = connection.scope.get(CALLER_KEY, EVERYBODY)
    return found if isinstance(found, Caller) else EVERYBODY


def explain_missing_scope(caller: Caller, *allowed: str) -> str:
    """Return why a caller may not do this; empty if they may."""
    if ANY in allowed or set(allowed) & set(caller.scopes):
        return ""
    needed = " or ".join(allowed)
    return (
        f"this needs a token with the scope {needed}; {caller.name} has {', '.join(caller.scopes)}"
    )


def require_scope(
    connection: ASGIConnection[Any, Any, Any, Any], handler: BaseRouteHandler
) -> None:
    """Guard handlers by scope: that of `opt={"scopes": ("upload",)}`; else `read` for reading and
    `answer` for writing."""
    reads = connection.scope.get("method") in ("GET", "HEAD")
    allowed = handler.opt.get("scopes") or (("read",) if reads else ("answer",))
    if problem := explain_missing_scope(find_caller(connection), *allowed):
        raise PermissionDeniedException(problem)
