"""Home: what waits for me, what runs, what went wrong, what it costs today."""

from typing import Final

from litestar import Response, get
from litestar.response import Redirect

from interlock.api.inspect import list_overviews
from interlock.api.records import FINISHED
from interlock.web.app import Window

_SHOWN: Final = 8
_WRONG: Final = ("unhealthy", "interrupted", "stopped", "budget")


@get("/", sync_to_thread=True)
def show_home(window: Window) -> Response[str]:
    project = window.project
    if not project.has_database:
        return window.render("home.html", title="Home", path="/", first=True)
    overviews = list_overviews(project.db)[::-1]
    return window.render(
        "home.html",
        title="Home",
        path="/",
        first=not overviews,
        questions=project.inbox()[:_SHOWN],
        running=[each for each in overviews if each.status not in (*FINISHED, *_WRONG)],
        wrong=[each for each in overviews if each.status in _WRONG][:_SHOWN],
    )


@get("/favicon.ico", sync_to_thread=False)
def show_icon(window: Window) -> Redirect:
    return Redirect(window.assets.find_url("icon.svg"))
