"""Home: open questions, open runs, failed runs and today's cost; the list of runs."""

from typing import Final

from litestar import Response, get
from litestar.response import Redirect

from interlock.api.browse import list_run_glances, read_today
from interlock.api.records import FINISHED
from interlock_web.pages.inbox import read_sorted_inbox
from interlock_web.window import Window

_SHOWN: Final = 6
_LOOKED_AT: Final = 50
"""The runs among which Home looks for what goes on and what went wrong."""
_WRONG: Final = ("unhealthy", "interrupted", "stopped", "budget")
_PER_PAGE: Final = 50


@get("/", sync_to_thread=True)
def show_home(window: Window) -> Response[str]:
    project = window.project
    if not project.has_database:
        return window.render("home.html", title="Home", path="/", first=True)
    with project.read() as connection:
        glances = list_run_glances(project.db, connection, limit=_LOOKED_AT)
        today = read_today(connection, window.now())
    questions = read_sorted_inbox(project)
    wrong = [each for each in glances if each.status in _WRONG]
    running = [each for each in glances if each.status not in (*FINISHED, *_WRONG)]
    return window.render(
        "home.html",
        title="Home",
        path="/",
        first=not glances,
        questions=questions[:_SHOWN],
        waiting=sum(each.count for each in questions),
        running=running[:_SHOWN],
        running_count=len(running),
        wrong=wrong[:_SHOWN],
        wrong_count=len(wrong),
        recent=[each for each in glances if each.status == "done"][:_SHOWN],
        today=today,
    )


@get("/runs", sync_to_thread=True)
def show_runs(window: Window, before: int = 0) -> Response[str]:
    project = window.project
    glances = []
    if project.has_database:
        with project.read() as connection:
            glances = list_run_glances(
                project.db, connection, limit=_PER_PAGE + 1, before=max(before, 0)
            )
    return window.render(
        "runs.html",
        title="Runs",
        path="/runs",
        runs=glances[:_PER_PAGE],
        older=glances[_PER_PAGE - 1].run_id if len(glances) > _PER_PAGE else 0,
        before=before,
    )


@get("/favicon.ico", sync_to_thread=False)
def show_icon(window: Window) -> Redirect:
    return Redirect(window.assets.find_url("icon.svg"))
