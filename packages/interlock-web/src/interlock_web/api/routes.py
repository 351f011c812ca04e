"""How handlers of the API are declared: what they need, and what they may answer."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import msgspec
from litestar import Request, get, post
from litestar.openapi.datastructures import ResponseSpec
from litestar.openapi.spec import OpenAPIMediaType, Operation, RequestBody, Schema
from litestar.openapi.spec.enums import OpenAPIFormat, OpenAPIType

from interlock.version import __version__
from interlock_web.callers import ANY, find_caller

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
    """Why something was not done, in a sentence."""

    error: str


_RESPONSES: Final = {
    status: ResponseSpec(Problem, description=sentence, generate_examples=False)
    for status, sentence in ERRORS.items()
}


def reading(path: str, summary: str, *, scopes: Sequence[str] = ("read",), **more: Any) -> get:
    """A handler for GET, in a thread of its own unless it is async."""
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
    """A handler for POST. Bodies of another content type are refused before it is called."""
    opt = {"scopes": tuple(scopes), "content": tuple(content)}
    every = {**_RESPONSES, **(responses or {})}
    if JSON not in content:
        more["operation_class"] = _describe_raw_body(content)
    return post(path, summary=summary, opt=opt, status_code=status, responses=every, **more)


def _describe_raw_body(kinds: Sequence[str]) -> type[Operation]:
    """Litestar does not know of bodies that are read as they come."""

    @dataclass
    class RawBody(Operation):
        def __post_init__(self) -> None:
            body = Schema(type=OpenAPIType.STRING, format=OpenAPIFormat.BINARY, min_length=1)
            content = {kind: OpenAPIMediaType(schema=body) for kind in kinds}
            self.request_body = RequestBody(content, required=True)

    return RawBody


class Me(msgspec.Struct, frozen=True):
    """Who asks, and what they may do."""

    name: str
    """The name of the token; empty if it is the server's own, or none is needed."""
    scopes: tuple[str, ...]
    version: str
    """Interlock's version."""


@reading("/me", "Who I am", scopes=(ANY,), sync_to_thread=False)
def show_caller(request: Request[Any, Any, Any]) -> Me:
    """The name and the scopes of the token that was sent."""
    caller = find_caller(request)
    return Me(caller.name, caller.scopes, __version__)
