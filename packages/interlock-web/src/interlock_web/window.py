"""The window: what all pages of one server share.

Pages are rendered here, can be read without JavaScript, and run no script but ours. Handlers, those
of other packages too (`sections`), ask for `window: Window` and answer with `window.render(…)`.
"""

import time
from collections.abc import Mapping
from contextlib import suppress
from contextvars import ContextVar
from typing import Any, Final

from jinja2 import ChoiceLoader, PrefixLoader
from litestar import Response
from litestar.connection import ASGIConnection
from litestar.handlers import BaseRouteHandler

from interlock.api.browse import count_open_questions
from interlock.api.project import Project
from interlock.system.errors import InterlockError
from interlock.system.html import load_templates
from interlock_web import assets, filters
from interlock_web.live import LiveFeed
from interlock_web.sections import Section

HTML: Final = "text/html"
_COUNTED_FOR: Final = 1.0
_POSITION: ContextVar[str] = ContextVar("position", default="")
"""The position of the live stream before a page read anything: a stream that goes on from there
misses nothing."""
_HEADINGS: Final = {404: "Not found", 409: "Not now", 413: "Too large", 503: "Not available"}


async def note_position(
    connection: ASGIConnection[Any, Any, Any, Any], _handler: BaseRouteHandler
) -> None:
    """Guard pages: note the position of the live stream before anything is read."""
    _POSITION.set(connection.app.state["feed"].position)


class Window:
    """What all pages of one server share."""

    def __init__(
        self,
        project: Project,
        sections: Mapping[str, Section],
        left_out: Mapping[str, str],
        feed: LiveFeed,
    ) -> None:
        self.project = project
        self.assets = assets.load_assets()
        self.feed = feed
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
        """Render a page. `path` is the entry of the navigation that it belongs to."""
        page = self._templates.get_template(template)
        if "waiting" not in values:
            values["waiting"] = self._count_waiting()
        values["position"] = _POSITION.get()
        text = page.render(title=title, path=path, now=self.now(), **values)
        headers = {"cache-control": "no-store"}
        return Response(text, media_type=HTML, status_code=status, headers=headers)

    def _count_waiting(self) -> int:
        """Count the questions that wait, a moment old at most; 0 if they cannot be counted."""
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
        """Render a page with one sentence that says what is wrong and what to do. It shows nothing
        of the project: it may be for somebody who was not let in."""
        found = self.render(
            "problem.html",
            title=_HEADINGS.get(status, "This did not work"),
            status=status,
            sentence=sentence,
            retry=status == 503,
            waiting=0,
        )
        if status == 503:
            found.headers["refresh"] = "5"
        return found
