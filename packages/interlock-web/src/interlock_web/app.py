"""The window: one Litestar application of pages, made anew for each server.

Pages are rendered here, can be read without JavaScript, and run no script but ours. Handlers, those
of other packages too (`sections`), ask for `window: Window` and answer with `window.render(…)`.
"""

import time
import traceback
from collections.abc import Mapping
from contextlib import suppress
from contextvars import ContextVar
from types import MappingProxyType
from typing import Any, Final

from jinja2 import ChoiceLoader, PrefixLoader
from litestar import Litestar, Request, Response
from litestar.di import Provide
from litestar.exceptions import HTTPException

from interlock.api.browse import count_open_questions
from interlock.api.project import Project
from interlock.api.records import make_absolute
from interlock.system.errors import (
    InterlockError,
    NoDatabaseError,
    NotFoundError,
    SourceError,
    StateError,
    StoreError,
    UsageError,
)
from interlock.system.html import load_templates
from interlock_web import assets, filters
from interlock_web.access import App, Message, Receive, Send
from interlock_web.callers import require_scope
from interlock_web.forms import COOKIE, FormMarks
from interlock_web.live import LiveFeed
from interlock_web.sections import NavLink, Section
from interlock_web.server import MountedApp

__all__ = ["NavLink", "Section", "Window", "build_window"]

HTML: Final = "text/html"
_POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
)
_HEADERS: Final = (
    (b"content-security-policy", _POLICY.encode()),
    (b"x-content-type-options", b"nosniff"),
    # Not no-referrer: a form of ours would then be sent with `Origin: null`.
    (b"referrer-policy", b"same-origin"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
)
NOTHING: Final[Mapping[str, str]] = MappingProxyType({})
_COUNTED_FOR: Final = 1.0
_POSITION: ContextVar[str] = ContextVar("position", default="")
"""How far the journal was read before a page read anything: a stream that goes on from there misses
nothing."""
_STATUS: Final[tuple[tuple[type[InterlockError], int], ...]] = (
    (NoDatabaseError, 404),
    (NotFoundError, 404),
    (StoreError, 503),
    (StateError, 409),
    (UsageError, 400),
    (SourceError, 400),
)
_HEADINGS: Final = {404: "Not found", 409: "Not now", 413: "Too large", 503: "Not available"}
_SENTENCES: Final = {
    404: "There is no page at this address. It may have been mistyped, or what it showed is gone.",
    405: "This address cannot be used in this way.",
    413: "This is too large.",
}


class Window:
    """What all pages of one server share."""

    def __init__(
        self, project: Project, sections: Mapping[str, Section], left_out: Mapping[str, str]
    ) -> None:
        self.project = project
        self.sections = sections
        self.assets = assets.load_assets()
        self.feed = LiveFeed(make_absolute(project.db))
        self.forms = FormMarks()
        self._waiting = (0.0, 0)
        self._templates = load_templates("interlock_web", "templates")
        own = {name: each.templates for name, each in sections.items() if each.templates}
        loaders = [each for each in (self._templates.loader, PrefixLoader(own)) if each]
        self._templates.loader = ChoiceLoader(loaders)
        self._templates.filters.update(filters.FILTERS)
        self._templates.globals.update(
            asset=self.assets.find_url,
            sections=sorted(sections.values(), key=lambda each: each.rank),
            left_out=left_out,
        )

    def render(
        self, template: str, /, *, title: str, path: str = "", status: int = 200, **values: Any
    ) -> Response[str]:
        """A page. `path` is the entry of the navigation that it belongs to."""
        page = self._templates.get_template(template)
        if "waiting" not in values:
            values["waiting"] = self._count_waiting()
        values["position"] = _POSITION.get()
        text = page.render(title=title, path=path, now=self.now(), **values)
        headers = {"cache-control": "no-store"}
        return Response(text, media_type=HTML, status_code=status, headers=headers)

    def _count_waiting(self) -> int:
        """How many questions wait, a moment old at most. A page is shown all the same if nobody
        knows."""
        at, found = self._waiting
        if time.monotonic() - at > _COUNTED_FOR:
            found = 0
            with suppress(InterlockError), self.project.read() as connection:
                found = count_open_questions(self.project.db, connection)
            self._waiting = (time.monotonic(), found)
        return found

    def now(self) -> float:
        return self.project.clock.now() if self.project.clock else time.time()

    def render_problem(self, status: int, sentence: str) -> Response[str]:
        """A page with one sentence that says what is wrong and what to do."""
        found = self.render(
            "problem.html",
            title=_HEADINGS.get(status, "This did not work"),
            status=status,
            sentence=sentence,
            retry=status == 503,
        )
        if status == 503:
            found.headers["refresh"] = "5"
        return found


def build_window(
    project: Project, sections: Mapping[str, Section], left_out: Mapping[str, str] = NOTHING
) -> MountedApp:
    """The pages of a project, with those of installed packages; why others are `left_out` is said
    on Home."""
    from interlock_web.pages import OWN_SECTIONS

    window = Window(project, {**OWN_SECTIONS, **sections}, left_out)

    def show_error(_request: Request[Any, Any, Any], error: InterlockError) -> Response[str]:
        status = next((code for kind, code in _STATUS if isinstance(error, kind)), 500)
        return window.render_problem(status, str(error))

    def show_refusal(_request: Request[Any, Any, Any], error: HTTPException) -> Response[str]:
        known = _SENTENCES.get(error.status_code, "")
        return window.render_problem(error.status_code, known or error.detail)

    def show_fault(_request: Request[Any, Any, Any], error: Exception) -> Response[str]:
        # Ours to mend: whoever runs the server sees where, the reader only that it happened.
        traceback.print_exception(error)
        return window.render_problem(
            500, "Something is broken in Interlock; the server's terminal shows where."
        )

    app = Litestar(
        [each for section in window.sections.values() for each in section.handlers],
        dependencies={"window": Provide(lambda: window, sync_to_thread=False)},
        guards=[require_scope],
        exception_handlers={
            InterlockError: show_error,
            HTTPException: show_refusal,
            Exception: show_fault,
        },
        openapi_config=None,
        logging_config=None,
    )
    return MountedApp("/", _prepare_requests(app, window.feed), window.feed.run)


def _prepare_requests(app: Any, feed: LiveFeed) -> App:
    """The application with headers that keep foreign script, style and frames out."""

    async def handle(scope: Message, receive: Receive, send: Send) -> None:
        # The server leaves the body of an answer to HEAD out.
        inner = {**scope, "method": "GET" if scope["method"] == "HEAD" else scope["method"]}

        async def send_guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                cookie = f"{COOKIE}={inner.get(COOKIE)}; Path=/; HttpOnly; SameSite=Strict"
                given = [(b"set-cookie", cookie.encode())] if COOKIE in inner else []
                own = [*message.get("headers", ()), *given]
                named = {name for name, _ in own}
                message["headers"] = [*own, *(each for each in _HEADERS if each[0] not in named)]
            await send(message)

        _POSITION.set(feed.position)
        await app(inner, receive, send_guarded)

    return handle
