"""A run: its circuit with the cases on it, and the table of its cases."""

from typing import Any, Final, get_args
from urllib.parse import urlencode

import msgspec
from litestar import Request, Response, get
from litestar.response import Redirect

from interlock.api import browse
from interlock.api.browse import (
    CaseFilter,
    SortKey,
    list_case_lines,
    read_run_view,
)
from interlock_web.case_overview import show_names
from interlock_web.circuit_map import count_by_place, map_circuit
from interlock_web.window import Window

_PER_PAGE: Final = 100
_MOST_PRINTED: Final = 20_000
_LONGEST_SEARCH: Final = 200


@get("/runs/{run_id:int}", sync_to_thread=True)
def show_run(request: Request[Any, Any, Any], window: Window, run_id: int) -> Response[str]:
    given = request.query_params
    wanted = _read_filter(given)
    everything = given.get("all") == "1"
    page = max(1, _read_number(given.get("page", "1")))
    limit = _MOST_PRINTED if everything else _PER_PAGE
    with window.project.read() as connection:
        view = read_run_view(window.project.db, connection, run_id, window.now())
        lines, total = list_case_lines(
            window.project.db,
            connection,
            view,
            wanted,
            limit=limit,
            offset=0 if everything else (page - 1) * _PER_PAGE,
            at=window.now(),
        )
        names = show_names(connection, view.run, [line.row.case_no for line in lines])
    return window.render(
        "run.html",
        title=f"Run {run_id}: {view.circuit.name}",
        path="/runs",
        view=view,
        map=map_circuit(view.circuit),
        counts=count_by_place(view.places),
        lines=lines,
        names=names,
        total=total,
        page=page,
        pages=max(1, -(-total // _PER_PAGE)),
        everything=everything,
        wanted=wanted,
        link=_Links(run_id, wanted),
    )


@get("/runs/{run_id:int}/cases", sync_to_thread=True)
def find_case(request: Request[Any, Any, Any], window: Window, run_id: int) -> Redirect:
    """Redirect to the page of a case by its id."""
    case_id = request.query_params.get("id", "")
    with window.project.read() as connection:
        number = browse.find_case(connection, case_id, run_id).case_no
    return Redirect(f"/runs/{run_id}/cases/{number}")


class _Links:
    """Builds addresses of the same table with another order or page."""

    def __init__(self, run_id: int, wanted: CaseFilter) -> None:
        self._path = f"/runs/{run_id}"
        self._wanted = wanted

    def sort(self, key: SortKey) -> str:
        descending = self._wanted.sort == key and not self._wanted.descending
        return self._build(msgspec.structs.replace(self._wanted, sort=key, descending=descending))

    def direction(self, key: SortKey) -> str:
        """Return the value of `aria-sort` for a column."""
        if self._wanted.sort != key:
            return "none"
        return "descending" if self._wanted.descending else "ascending"

    def page(self, number: int) -> str:
        return self._build(self._wanted, page=str(number))

    def print(self) -> str:
        return self._build(self._wanted, all="1")

    def step(self, name: str) -> str:
        return self._build(CaseFilter(step=name))

    def _build(self, wanted: CaseFilter, **more: str) -> str:
        words = {"q": wanted.text, "state": wanted.state, "step": wanted.step}
        words |= {"sort": wanted.sort} if wanted.sort != "case" else {}
        words |= {"desc": "1"} if wanted.descending else {}
        given = {name: value for name, value in {**words, **more}.items() if value}
        return f"{self._path}?{urlencode(given)}" if given else self._path


def _read_filter(given: Any) -> CaseFilter:
    """Return the filter that an address names; values that make no sense are ignored."""
    sort = given.get("sort", "case")
    return CaseFilter(
        text=given.get("q", "").strip()[:_LONGEST_SEARCH],
        state=given.get("state", "")[:_LONGEST_SEARCH],
        step=given.get("step", "")[:_LONGEST_SEARCH],
        sort=sort if sort in get_args(SortKey) else "case",
        descending=given.get("desc") == "1",
    )


def _read_number(text: str) -> int:
    return int(text) if text.isascii() and text.isdigit() and len(text) < 8 else 1
