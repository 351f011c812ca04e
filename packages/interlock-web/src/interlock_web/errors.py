"""Show errors: as a page to people, as a JSON object to programs."""

import traceback
from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import quote

import msgspec
from litestar import Request, Response
from litestar.exceptions import HTTPException, ValidationException
from litestar.response import Redirect
from litestar.types import ExceptionHandlersMap

from interlock.system.errors import (
    CircuitError,
    InterlockError,
    NoDatabaseError,
    NotFoundError,
    SourceError,
    StateError,
    StoreError,
    UsageError,
)
from interlock_web.api.routes import API_PATH, JSON, Problem
from interlock_web.window import Window

LOGIN_PATH: Final = "/login"
_STATUS: Final[tuple[tuple[type[InterlockError], int], ...]] = (
    (NoDatabaseError, 404),
    (NotFoundError, 404),
    (StoreError, 503),
    (StateError, 409),
    (CircuitError, 409),
    (UsageError, 409),
    (SourceError, 409),
)
"""A request that is well formed and cannot be carried out now is a conflict."""
_SENTENCES: Final = {
    404: "there is nothing at this address; it may be mistyped, or what it showed is gone",
    405: "this address cannot be used in this way",
    413: "this is too large",
    429: "too many requests; wait as many seconds as Retry-After says",
}
_CSRF: Final = (
    "this form is not from a page of this server, or from before it was restarted: open the page "
    "again and repeat the answer. Nothing was saved"
)


def build_error_handlers(window: Window) -> ExceptionHandlersMap:
    """Return the handlers of all exceptions of one server."""

    def show(
        request: Request[Any, Any, Any], status: int, sentence: str, headers: Mapping[str, str]
    ) -> Response[Any]:
        if not _wants_page(request):
            body = msgspec.json.encode(Problem(sentence))
            return Response(body, status_code=status, headers=dict(headers), media_type=JSON)
        if status == 401 and request.method == "GET":
            return Redirect(_find_login(request), status_code=303)
        found = window.render_problem(status, f"{sentence[:1].upper()}{sentence[1:]}.")
        found.headers.update(headers)
        return found

    def show_error(request: Request[Any, Any, Any], error: InterlockError) -> Response[Any]:
        status = next((code for kind, code in _STATUS if isinstance(error, kind)), 500)
        return show(request, status, str(error), {"retry-after": "5"} if status == 503 else {})

    def show_refusal(request: Request[Any, Any, Any], error: HTTPException) -> Response[Any]:
        headers = dict(error.headers or {})
        if reset := headers.get("RateLimit-Reset"):
            headers["retry-after"] = reset
        return show(request, error.status_code, _explain_refusal(error), headers)

    def show_unreadable(request: Request[Any, Any, Any], _error: Exception) -> Response[Any]:
        # Litestar decodes a body before it calls anything of ours.
        return show(request, 400, "this is not JSON in UTF-8, or nested too deeply", {})

    def show_fault(request: Request[Any, Any, Any], error: Exception) -> Response[Any]:
        traceback.print_exception(error)
        sentence = "something is broken in Interlock; the server's terminal shows where"
        return show(request, 500, sentence, {})

    return {
        InterlockError: show_error,
        HTTPException: show_refusal,
        UnicodeError: show_unreadable,
        RecursionError: show_unreadable,
        Exception: show_fault,
    }


def _wants_page(request: Request[Any, Any, Any]) -> bool:
    accepts = "text/html" in request.headers.get("accept", "")
    return accepts and not request.url.path.startswith(API_PATH)


def _find_login(request: Request[Any, Any, Any]) -> str:
    wanted = request.url.path + (f"?{request.url.query}" if request.url.query else "")
    return LOGIN_PATH if wanted == "/" else f"{LOGIN_PATH}?next={quote(wanted, safe='')}"


def _explain_refusal(error: HTTPException) -> str:
    if isinstance(error, ValidationException) and error.extra:
        return "; ".join(map(_format_problem, error.extra))
    if error.detail.startswith("CSRF"):
        return _CSRF
    return _SENTENCES.get(error.status_code) or error.detail


def _format_problem(found: Any) -> str:
    if isinstance(found, dict):
        return f"{found.get('key', 'body')}: {found.get('message', 'not valid')}"
    return str(found)
