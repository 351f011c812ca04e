"""The HTTP API as one Litestar application: its errors, its limits, and its description.

Each error is an object with one sentence. What can be asked is described by OpenAPI at
/api/v1/openapi.json. A package adds to it with the `api` of its `Section`; its handlers ask for
`project: Project`.
"""

import math
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any, Final

import msgspec
from litestar import Litestar, Request, Response
from litestar.connection import ASGIConnection
from litestar.di import Provide
from litestar.exceptions import HTTPException, ValidationException
from litestar.handlers import BaseRouteHandler
from litestar.openapi.config import OpenAPIConfig
from litestar.openapi.plugins import JsonRenderPlugin
from litestar.openapi.spec import Components, Schema, SecurityScheme
from litestar.openapi.spec.enums import OpenAPIType
from litestar.plugins import OpenAPISchemaPlugin
from litestar.typing import FieldDefinition

from interlock.api.project import Project
from interlock.api.records import make_absolute
from interlock.carriers.pull.messages import TOOLS
from interlock.carriers.pull.tools import PullTools
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
from interlock.version import __version__
from interlock_web.access import HttpRefusal, Message, Receive, Send, send_refusal
from interlock_web.api import catalog, inbox, routes, runs, work
from interlock_web.api.limits import RateLimiter
from interlock_web.app import Section
from interlock_web.callers import CALLER_KEY, EVERYBODY, require_scope
from interlock_web.live import LiveFeed
from interlock_web.server import MountedApp

API_PATH: Final = "/api/v1"
DEFAULT_RATE: Final = 50.0
"""Requests per second that a caller may send in the long run."""
_STATUS: Final[tuple[tuple[type[InterlockError], int], ...]] = (
    (NoDatabaseError, 404),
    (NotFoundError, 404),
    (StoreError, 503),
    (StateError, 409),
    (CircuitError, 409),
    (UsageError, 409),
    (SourceError, 409),
)
"""What is well formed and cannot be done as things stand is a conflict; see `docs/decisions.md`."""
_SENTENCES: Final = {
    404: "there is nothing at this address; /api/v1/openapi.json lists what there is",
    405: "this address cannot be used in this way; /api/v1/openapi.json lists how",
    413: "this is too large",
}


def build_api(
    project: Project,
    tools: PullTools,
    sections: Mapping[str, Section],
    left_out: dict[str, str],
    rate: float = DEFAULT_RATE,
    *,
    needs_token: bool = True,
) -> MountedApp:
    """The API of a project, with what installed packages add. Its description says whether a token
    is needed at all. What fails when the server opens is added to `left_out`."""
    feed = LiveFeed(make_absolute(project.db))
    app = Litestar(
        [
            routes.show_caller,
            *runs.HANDLERS,
            *inbox.HANDLERS,
            *catalog.HANDLERS,
            *work.HANDLERS,
            *(each for section in sections.values() for each in section.api),
        ],
        path=API_PATH,
        dependencies={
            "project": Provide(lambda: project, sync_to_thread=False),
            "tools": Provide(lambda: tools, sync_to_thread=False),
        },
        guards=[require_scope, _require_json],
        exception_handlers={
            InterlockError: _show_error,
            HTTPException: _show_refusal,
            UnicodeError: _show_unreadable,
            RecursionError: _show_unreadable,
            Exception: _show_failure,
        },
        openapi_config=_describe_api(needs_token=needs_token),
        logging_config=None,
        plugins=[_KernelTypes()],
        request_max_body_size=None,  # the door counts bytes, and knows which path takes how many
    )

    _forbid_unknown_fields(app)

    @asynccontextmanager
    async def lifespan() -> AsyncIterator[None]:
        async with AsyncExitStack() as stack:
            stack.push_async_callback(tools.close)
            await stack.enter_async_context(app.lifespan())
            await stack.enter_async_context(feed.run())
            app.state["feed"] = feed
            for name, section in sections.items():
                if section.background is not None:
                    try:
                        opened = await stack.enter_async_context(section.background(project))
                        app.state[name] = opened
                    except Exception as error:  # whatever a foreign package raises
                        left_out[name] = (
                            f"what works behind them cannot start: {type(error).__name__}: {error}"
                        )
            yield

    return MountedApp(API_PATH, _limit(app, RateLimiter(rate)), lifespan)


class _KernelTypes(OpenAPISchemaPlugin):
    """Describes the types of our records that Litestar takes for others: paths, and records that
    msgspec writes as lists."""

    def is_plugin_supported_field(self, field_definition: FieldDefinition) -> bool:
        kind = field_definition.annotation
        config = getattr(kind, "__struct_config__", None)
        return kind is Path or bool(config and config.array_like)

    def to_openapi_schema(self, field_definition: FieldDefinition, schema_creator: Any) -> Schema:
        if field_definition.annotation is Path:
            return Schema(type=OpenAPIType.STRING)
        names = ", ".join(field_definition.annotation.__struct_fields__)
        return Schema(type=OpenAPIType.ARRAY, items=Schema(), description=f"[{names}]")


def _forbid_unknown_fields(app: Litestar) -> None:
    """Describe the calls of agents as they are decoded: fields of other names are refused."""
    schemas = app.openapi_schema.components.schemas or {}
    for name in {tool.arguments.__name__ for tool in TOOLS} & {*schemas}:
        schemas[name].additional_properties = False


def _describe_api(*, needs_token: bool) -> OpenAPIConfig:
    return OpenAPIConfig(
        title="Interlock",
        version=__version__,
        description="Runs, cases, questions, results and an agent's work, over HTTP.",
        path="/openapi.json",
        render_plugins=[JsonRenderPlugin(path="/")],
        components=Components(
            security_schemes={"token": SecurityScheme(type="http", scheme="bearer")}
        ),
        security=[{"token": []}] if needs_token else [{}, {"token": []}],
        use_handler_docstrings=True,
    )


def _limit(app: Litestar, limiter: RateLimiter) -> Any:
    """The application behind a limit; with HEAD wherever there is GET."""

    async def handle(scope: Message, receive: Receive, send: Send) -> None:
        caller = scope.get(CALLER_KEY, EVERYBODY)
        address = (scope.get("client") or ("",))[0]
        wait = limiter.take(f"token {caller.name}" if caller.name else f"address {address}")
        if wait > 0:
            seconds = math.ceil(wait)
            refusal = HttpRefusal(429, f"too many requests: wait {seconds} s")
            await send_refusal(refusal, send, ((b"retry-after", str(seconds).encode()),))
            return
        # The server leaves the body of an answer to HEAD out. Litestar's own answer to OPTIONS
        # names the methods of one handler alone; its refusal names all of a path.
        method = {"HEAD": "GET", "OPTIONS": "TRACE"}.get(scope["method"], scope["method"])
        scope = {**scope, "method": method}
        await app(scope, receive, send)  # type: ignore[arg-type]

    return handle


def _require_json(
    connection: ASGIConnection[Any, Any, Any, Any], handler: BaseRouteHandler
) -> None:
    """A guard: what is sent must be called what it is. A form of another site cannot do that."""
    allowed: tuple[str, ...] = handler.opt.get("content", (routes.JSON,))
    given = connection.headers.get("content-type", "").partition(";")[0].strip().lower()
    if connection.scope.get("method") == "POST" and given not in allowed:
        raise HTTPException(
            f"send this as {' or '.join(allowed)}, not as {given[:80] or 'nothing'}",
            status_code=415,
        )


def _show_error(_request: Request[Any, Any, Any], error: InterlockError) -> Response[Any]:
    status = next((code for kind, code in _STATUS if isinstance(error, kind)), 500)
    headers = {"retry-after": "5"} if status == 503 else {}
    return _build_problem(status, str(error), headers)


def _show_refusal(_request: Request[Any, Any, Any], error: HTTPException) -> Response[Any]:
    sentence = _SENTENCES.get(error.status_code) or error.detail
    if isinstance(error, ValidationException) and error.extra:
        sentence = "; ".join(_format_problem(each) for each in error.extra)
    return _build_problem(error.status_code, sentence, dict(error.headers or {}))


def _format_problem(found: Any) -> str:
    if isinstance(found, dict):
        return f"{found.get('key', 'body')}: {found.get('message', 'not valid')}"
    return str(found)


def _show_unreadable(_request: Request[Any, Any, Any], _error: Exception) -> Response[Any]:
    """Litestar decodes a body before anything of ours is called."""
    return _build_problem(400, "this is no JSON in UTF-8, or nested too deeply", {})


def _show_failure(_request: Request[Any, Any, Any], _error: Exception) -> Response[Any]:
    return _build_problem(500, "this failed inside Interlock; nothing was changed", {})


def _build_problem(status: int, sentence: str, headers: Mapping[str, str]) -> Response[Any]:
    body = msgspec.json.encode(routes.Problem(sentence))
    return Response(body, status_code=status, headers=dict(headers), media_type=routes.JSON)
