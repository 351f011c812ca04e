"""Declare handlers of the API: the scopes they need, and the answers they may give."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import msgspec
from litestar import Request, get, post
from litestar.connection import ASGIConnection
from litestar.exceptions import HTTPException
from litestar.handlers import BaseRouteHandler
from litestar.openapi.datastructures import ResponseSpec
from litestar.openapi.spec import OpenAPIMediaType, Operation, RequestBody, Schema
from litestar.openapi.spec.enums import OpenAPIFormat, OpenAPIType

from interlock.version import __version__
from interlock_web.callers import ANY, find_caller

API_PATH: Final = "/api/v1"
JSON: Final = "application/json"
ERRORS: Final = {
    400: "What was sent cannot be read.",
    401: "A token is missing, unknown, revoked or expired.",
    403: "The token lacks a scope, or the Origin is not allowed.",
    404: "There is no such thing.",
    409: "It cannot be done as things stand.",
    413: "The body is too large.",
    415: "The body is of another kind.",
    421: "This Host is not served here.",
    429: "Too many requests; Retry-After says for how many seconds to wait.",
    503: "The database cannot be used now.",
}


class Problem(msgspec.Struct, frozen=True):
    """The reason why something was not done, in one sentence."""

    error: str


_RESPONSES: Final = {
    status: ResponseSpec(Problem, description=sentence, generate_examples=False)
    for status, sentence in ERRORS.items()
}


def reading(path: str, summary: str, *, scopes: Sequence[str] = ("read",), **more: Any) -> get:
    """Declare a handler for GET."""
    opt = {"scopes": tuple(scopes)}
    return get(path, summary=summary, opt=opt, responses=_RESPONSES, **more)


def writing(
    path: str,
    summary: str,
    *,
    scopes: Sequence[str],
    status: int = 200,
    content: Sequence[str] = (JSON,),
    responses: Mapping[int, ResponseSpec] | None = None,
    **more: Any,
) -> post:
    """Declare a handler for POST, which is called with bodies of this content type alone."""
    opt = {"scopes": tuple(scopes), "content": tuple(content)}
    every = {**_RESPONSES, **(responses or {})}
    if JSON not in content:
        more["operation_class"] = _describe_raw_body(content)
    return post(path, summary=summary, opt=opt, status_code=status, responses=every, **more)


def require_json(connection: ASGIConnection[Any, Any, Any, Any], handler: BaseRouteHandler) -> None:
    """Guard the API: a body must name its kind. A form of another site cannot do that."""
    allowed: tuple[str, ...] = handler.opt.get("content", (JSON,))
    given = connection.headers.get("content-type", "").partition(";")[0].strip().lower()
    if connection.scope.get("method") == "POST" and given not in allowed:
        raise HTTPException(
            f"send this as {' or '.join(allowed)}, not as {given[:80] or 'nothing'}",
            status_code=415,
        )


def _describe_raw_body(kinds: Sequence[str]) -> type[Operation]:
    """Describe a body that is read as it comes; Litestar does not know of those."""

    @dataclass
    class RawBody(Operation):
        def __post_init__(self) -> None:
            body = Schema(type=OpenAPIType.STRING, format=OpenAPIFormat.BINARY, min_length=1)
            content = {kind: OpenAPIMediaType(schema=body) for kind in kinds}
            self.request_body = RequestBody(content, required=True)

    return RawBody


class Me(msgspec.Struct, frozen=True):
    """The caller, and the scopes of their token."""

    name: str
    """The name of the token; empty if it is the server's own, or none is needed."""
    scopes: tuple[str, ...]
    version: str
    """Interlock's version."""


@reading("/me", "Who I am", scopes=(ANY,), sync_to_thread=False)
def show_caller(request: Request[Any, Any, Any]) -> Me:
    """Show the name and the scopes of the token that was sent."""
    caller = find_caller(request)
    return Me(caller.name, caller.scopes, __version__)
