"""The window's pages of tests and their HTTP API: the list of tests that need attention, and the
history of one."""

from collections.abc import Sequence
from typing import Annotated, Any, Final

import msgspec
from jinja2 import PackageLoader
from litestar import Request, Response, get
from litestar.params import Parameter, QueryParameter

from interlock.api.project import Project
from interlock.system.errors import NotFoundError
from interlock_history.index import Lane
from interlock_history.ingest import describe_tries
from interlock_history.memory import History, TestResult
from interlock_history.segment import decode_duration
from interlock_history.server import HANDLERS
from interlock_history.settings import read_history_settings
from interlock_history.store import open_store
from interlock_history.verdicts import (
    STATE_MEANINGS,
    DurationTrend,
    TestSummary,
    Verdict,
)
from interlock_rca.knowledge.overview import FailedTest, list_failures_of_test
from interlock_rca.test_names import join_names, link_history
from interlock_web.extend import NavLink, Section, Window, reading

_MOST_TESTS: Final = 300
_MOST_RESULTS: Final = 30
_MOST_VERDICTS: Final = 120
_LONGEST_TEXT: Final = 600
_STATES: Final = ("flaky", "suspected", "broken", "failing", "fixed")


class LaneHistory(msgspec.Struct, frozen=True):
    """One job's view of a test."""

    summary: TestSummary
    meaning: str
    verdicts: tuple[Verdict, ...]
    """The newest verdicts, in time order."""
    durations: DurationTrend | None
    results: tuple[tuple[TestResult, str, float | None], ...]
    """The newest results first, each with its tries in words and its seconds."""


@get("/tests", sync_to_thread=True)
def show_tests(request: Request[Any, Any, Any], window: Window) -> Response[str]:
    """Show the tests of a project that need attention."""
    given = request.query_params
    wanted, text = given.get("state", ""), given.get("text", "").strip()[:_LONGEST_TEXT]
    history = _open_history(window.project)
    chosen = _choose_project(history, given.get("project", ""))
    lanes = history.list_lanes(chosen)
    now = history.find_now(lanes)
    found = [each for lane in lanes for each in _summarize(history, lane, text, now)]
    found = [each for each in found if wanted in ("", each.state)]
    found.sort(key=_rank)
    return window.render(
        "history/tests.html",
        title="Tests",
        path="/tests",
        projects=history.projects,
        project=chosen,
        tests=found[:_MOST_TESTS],
        total=len(found),
        states=_STATES,
        state=wanted,
        text=text,
        lanes=len(lanes),
        meanings=STATE_MEANINGS,
        link=lambda test: link_history(test, chosen),
    )


@get("/tests/history", sync_to_thread=True)
def show_test(request: Request[Any, Any, Any], window: Window) -> Response[str]:
    """Show the history of one test, job by job, and the causes of its failures."""
    wanted = request.query_params.get("test", "")[:_LONGEST_TEXT]
    history = _open_history(window.project)
    chosen = _choose_project(history, request.query_params.get("project", ""))
    lanes = history.list_lanes(chosen)
    meant = history.find_tests(lanes, wanted) if wanted else []
    failures = _list_failures(window.project, wanted)
    test = meant[0] if len(meant) == 1 else wanted
    parts = [each for lane in lanes if (each := _read_lane(history, lane, test, lanes))]
    if not parts and not failures:
        raise NotFoundError(
            f"no test that is remembered is called {wanted[:200]!r}; 'interlock ingest' in every "
            "CI job remembers tests"
        )
    return window.render(
        "history/test.html",
        title=test,
        path="/tests",
        test=test,
        parts=parts,
        failures=failures,
    )


def _open_history(project: Project) -> History:
    settings = read_history_settings(project.path)
    place = settings.store if "://" in settings.store else str(project.path / settings.store)
    return History(open_store(place), settings)


def _choose_project(history: History, wanted: str) -> str:
    return wanted if wanted in history.projects else (history.projects or [""])[0]


def _summarize(history: History, lane: Lane, text: str, now: float) -> Sequence[TestSummary]:
    """Return the tests of a lane that need attention; with a text, all tests with it in their
    names."""
    if not text:
        return history.summarize_lane(lane, now)
    fit = [test for test, _ in history.iterate_rows(lane) if text.lower() in test.lower()]
    found = (history.summarize_test(lane, test, now) for test in fit[:_MOST_TESTS])
    return [each for each in found if each]


def _read_lane(
    history: History, lane: Lane, test: str, lanes: Sequence[Lane]
) -> LaneHistory | None:
    summary = history.summarize_test(lane, test, history.find_now(lanes))
    if summary is None:
        return None
    results = history.read_results(lane, test, _MOST_RESULTS)
    return LaneHistory(
        summary=summary,
        meaning=STATE_MEANINGS[summary.state],
        verdicts=tuple(history.list_verdicts(lane, test)[-_MOST_VERDICTS:]),
        durations=history.compare_durations(lane, test),
        results=tuple(
            (each, describe_tries(each.tries), decode_duration(each.duration)) for each in results
        ),
    )


def _list_failures(project: Project, test: str) -> list[FailedTest]:
    """Return the analysed failures of a test by cause."""
    if not test or not project.has_database:
        return []
    with project.read() as connection:
        found = list_failures_of_test(connection, test.rpartition("::")[2])
    return [each for each in found if _is_called(each, test)]


def _is_called(failed: FailedTest, test: str) -> bool:
    name = join_names("", failed.class_name, failed.name)
    return test == name or test.endswith(f"::{name}")


class TestRecord(msgspec.Struct, frozen=True, kw_only=True):
    """One job's view of a test."""

    test: str
    job: str
    state: str
    meaning: str
    newest: str
    """The newest verdicts in time order: `.` passed, `F` failed, `x` both, `s` skipped."""
    flips: int
    flips_of: int
    failures: int
    failing_since: float | None
    last_pass: float | None


class TestList(msgspec.Struct, frozen=True):
    tests: list[TestRecord]


_Text = Annotated[str, Parameter(max_length=_LONGEST_TEXT)]


@reading("/tests", "Tests", sync_to_thread=True)
def list_tests(
    project: Project,
    text: _Text = "",
    of_project: Annotated[str, QueryParameter(name="project", max_length=200)] = "",
    limit: Annotated[int, Parameter(ge=1, le=_MOST_TESTS)] = 100,
) -> TestList:
    """List the tests that need attention, most failures first; with a text, all tests with it in
    their names."""
    history = _open_history(project)
    lanes = history.list_lanes(_choose_project(history, of_project))
    now = history.find_now(lanes)
    found = [each for lane in lanes for each in _summarize(history, lane, text, now)]
    return TestList([_describe(each) for each in sorted(found, key=_rank)[:limit]])


def _rank(summary: TestSummary) -> tuple[int, int, str]:
    return -summary.failures, -summary.flips.count, summary.test


def _describe(summary: TestSummary) -> TestRecord:
    return TestRecord(
        test=summary.test,
        job=summary.label,
        state=summary.state,
        meaning=STATE_MEANINGS[summary.state],
        newest=summary.strip,
        flips=summary.flips.count,
        flips_of=summary.flips.of,
        failures=summary.failures,
        failing_since=summary.failing_since.at if summary.failing_since else None,
        last_pass=summary.last_pass.at if summary.last_pass else None,
    )


SECTION: Final = Section(
    "Test history",
    (NavLink("/tests", "Tests", "t"),),
    (show_tests, show_test),
    PackageLoader("interlock_history", "templates"),
    api=(list_tests, *HANDLERS),
    rank=11,
)
