"""The whole server as one Litestar application: pages, HTTP API and MCP, with what installed
packages add."""

import secrets
import warnings
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any, Final

import msgspec
from litestar import Litestar, Router, get
from litestar.config.csrf import CSRFConfig
from litestar.datastructures import MutableScopeHeaders
from litestar.di import Provide
from litestar.exceptions import LitestarDeprecationWarning
from litestar.handlers import HTTPRouteHandler
from litestar.middleware.rate_limit import RateLimitConfig
from litestar.types import ControllerRouterHandler, Message, Scope

from interlock.api.checks import DoctorCheck
from interlock.api.project import Project
from interlock.api.pull import open_pull_tools
from interlock.api.records import make_absolute
from interlock.carriers.pull.tools import PullTools
from interlock_web.access import OPEN, AccessRules
from interlock_web.api import catalog, inbox, runs, work
from interlock_web.api.description import KernelTypes, describe_api, forbid_unknown_fields
from interlock_web.api.routes import API_PATH, require_json, show_caller
from interlock_web.assets import PATH as ASSETS_PATH
from interlock_web.callers import ANY, require_scope
from interlock_web.errors import LOGIN_PATH, build_error_handlers
from interlock_web.live import LiveFeed
from interlock_web.pages import OWN_SECTIONS
from interlock_web.sections import Section, find_sections, leave_out_rejected
from interlock_web.window import Window, note_position
from interlock_web.workers import MAX_BODY, MCP_PATH, McpApplication, handle_mcp

HEALTH_PATH: Final = "/healthz"
DEFAULT_RATE: Final = 3000
"""Requests per minute that one address may send."""
_POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
)
_HEADERS: Final = {
    "content-security-policy": _POLICY,
    "x-content-type-options": "nosniff",
    # Not no-referrer: a form of ours would then be sent with `Origin: null`.
    "referrer-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
}


class Parts(msgspec.Struct, frozen=True):
    """The parts that a server is built of."""

    project: Project
    tools: PullTools
    rules: AccessRules
    sections: Mapping[str, Section]
    left_out: dict[str, str]
    """The reasons why sections of other packages are left out; building adds to them."""
    rate: int = DEFAULT_RATE


def build_app(parts: Parts) -> Litestar:
    """Return the server's application; sections that it cannot take are left out."""

    def build(taken: Mapping[str, Section]) -> Litestar:
        return _build(parts, {**OWN_SECTIONS, **taken})

    with warnings.catch_warnings():
        # Litestar 3 will not infer what parameters are; until then handlers say it in fewer words.
        warnings.simplefilter("ignore", LitestarDeprecationWarning)
        return leave_out_rejected(parts.sections, parts.left_out, build)


def _refuse_doubles(handlers: list[ControllerRouterHandler]) -> list[ControllerRouterHandler]:
    """Return the handlers; ValueError if two have one path, where Litestar takes the last."""
    taken: set[tuple[str, str]] = set()
    for handler in handlers:
        if isinstance(handler, HTTPRouteHandler):
            own = {(path, method) for path in handler.paths for method in handler.http_methods}
            if own & taken:
                path, method = min(own & taken)
                raise ValueError(f"{method} {path} is taken")
            taken |= own
    return handlers


def _build(parts: Parts, sections: Mapping[str, Section]) -> Litestar:
    project, tools = parts.project, parts.tools
    feed = LiveFeed(make_absolute(project.db))
    window = Window(project, sections, parts.left_out, feed)
    mcp = McpApplication(tools)

    @asynccontextmanager
    async def lifespan(app: Litestar) -> AsyncIterator[None]:
        async with AsyncExitStack() as stack:
            stack.push_async_callback(tools.close)
            await stack.enter_async_context(feed.run())
            await stack.enter_async_context(mcp.run())
            for name, section in sections.items():
                if section.background is not None:
                    try:
                        opened = await stack.enter_async_context(section.background(project))
                        app.state[name] = opened
                    except Exception as error:  # whatever a foreign package raises
                        parts.left_out[name] = (
                            f"what works behind them cannot start: {type(error).__name__}: {error}"
                        )
            yield

    pages = Router(
        "/",
        route_handlers=_refuse_doubles(
            [each for section in sections.values() for each in section.handlers]
        ),
        guards=[note_position],
        include_in_schema=False,
    )
    api = Router(
        API_PATH,
        route_handlers=_refuse_doubles(
            [
                show_caller,
                *runs.HANDLERS,
                *inbox.HANDLERS,
                *catalog.HANDLERS,
                *work.HANDLERS,
                *(each for section in sections.values() for each in section.api),
            ]
        ),
        guards=[require_json],
    )
    app = Litestar(
        [pages, api, handle_mcp, show_health],
        dependencies={
            "project": Provide(lambda: project, sync_to_thread=False),
            "tools": Provide(lambda: tools, sync_to_thread=False),
            "window": Provide(lambda: window, sync_to_thread=False),
        },
        guards=[parts.rules.guard, require_scope],
        # It stands before the guards, so that wrong tokens count too.
        middleware=[_limit_rate(parts.rate)] if parts.rate else [],
        csrf_config=CSRFConfig(
            secrets.token_hex(32),
            # Browsers send the cookies of all ports, also those from before a restart.
            cookie_name=f"interlock-form-{secrets.token_hex(4)}",
            cookie_httponly=True,
            cookie_samesite="strict",
            exclude=[f"^{API_PATH}", f"^{MCP_PATH}", f"^{LOGIN_PATH}$"],
        ),
        exception_handlers=build_error_handlers(window),
        before_send=[_add_headers],
        lifespan=[lifespan],
        request_max_body_size=MAX_BODY,
        openapi_config=describe_api(needs_token=parts.rules.needs_token),
        plugins=[KernelTypes()],
        logging_config=None,
    )
    app.state.update({"feed": feed, "access": parts.rules, "mcp": mcp})
    forbid_unknown_fields(app)
    return app


def _limit_rate(rate: int) -> Any:
    exclude = [f"^{ASSETS_PATH}", f"^{HEALTH_PATH}$"]
    return RateLimitConfig(("minute", rate), exclude=exclude).middleware


async def _add_headers(message: Message, _scope: Scope) -> None:
    """Keep foreign script, style and frames out, unless a response has a policy of its own."""
    if message["type"] == "http.response.start":
        headers = MutableScopeHeaders(message)
        for name, value in _HEADERS.items():
            headers.setdefault(name, value)


@get(HEALTH_PATH, opt={OPEN: True, "scopes": (ANY,)}, sync_to_thread=False, include_in_schema=False)
def show_health() -> dict[str, str]:
    """Say that the server is up."""
    return {"status": "ok"}


def explain_left_out(project: Project) -> dict[str, str]:
    """Return why sections of installed packages are left out when a server starts."""
    sections, left_out = find_sections()
    build_app(Parts(project, open_pull_tools(project), AccessRules(), sections, left_out))
    return left_out


def check_pages(project: Project) -> Iterator[DoctorCheck]:
    """Yield a failed check for each package whose pages `interlock serve` cannot show."""
    for name, why in explain_left_out(project).items():
        yield DoctorCheck(f"pages.{name}", False, why)
