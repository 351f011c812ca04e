"""The window's pages of analyses: causes over all suites, and reports."""

import asyncio
from collections import OrderedDict
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib import metadata
from typing import Annotated, Any, Final, Literal

import msgspec
from jinja2 import PackageLoader
from litestar import Response, get
from litestar.params import Parameter, QueryParameter
from litestar.response import Redirect

from interlock.api.project import Project
from interlock.journal.address import identify
from interlock.system.errors import NotFoundError
from interlock_rca.analyze import RANGES
from interlock_rca.case_overview import link_source
from interlock_rca.findings import read_evidence
from interlock_rca.knowledge.overview import (
    CauseOverview,
    FailedTest,
    SuiteOverview,
    list_cause_overviews,
    list_failed_tests,
    list_suite_overviews,
)
from interlock_rca.records import Evidence, Suspect
from interlock_rca.report.words import explain_defect
from interlock_rca.source_page import show_log, show_source
from interlock_rca.test_names import join_names, link_history
from interlock_rca.uploads import HANDLERS, UploadRuns, UploadStore
from interlock_web.extend import NavLink, Section, Window, reading, send_document

_PATIENCE: Final = 0.3
"""Seconds to wait before a page says that the report is being written."""
_KEPT: Final = 12
_NUMBER: Final = 2**53 - 1
_FIRST: Final = "report.html"
Pages = dict[str, bytes]
"""The pages of a report by path."""
_State = Annotated[str, QueryParameter(name="state", max_length=40)]


@get("/causes", sync_to_thread=True)
def show_causes(window: Window, wanted: _State = "", text: str = "") -> Response[str]:
    causes = _read_causes(window.project, archived=wanted == "archived")
    counts = {word: sum(each.state == word for each in causes) for word in _STATES}
    fit = [each for each in causes if wanted in ("", each.state) and _has_text(each, text)]
    return window.render(
        "rca/causes.html",
        title="Causes",
        path="/causes",
        causes=fit[:500],
        total=len(fit),
        counts=counts,
        state=wanted,
        text=text,
    )


_STATES: Final = ("regressed", "open", "fixed")


def _has_text(cause: CauseOverview, text: str) -> bool:
    rca = cause.known.rca
    words = (rca.title, rca.description, rca.component, rca.jira_ticket_id)
    return text.lower() in " ".join(words).lower()


@get("/causes/{rca_id:int}", sync_to_thread=True)
def show_cause(window: Window, rca_id: int) -> Response[str]:
    cause, suspects, tests = _read_cause(window.project, rca_id)
    owner = cause.known.rca.case_no
    return window.render(
        "rca/cause.html",
        title=cause.known.rca.title or f"Cause {rca_id}",
        path="/causes",
        cause=cause,
        suspects=[
            (each, each.url or link_source(owner, f"{each.repo}@{each.commit}"))
            for each in suspects
        ],
        evidence=[_link_evidence(each, owner) for each in read_evidence(cause.known.rca)],
        tests=[(each, _link_test(each)) for each in tests],
        kind=explain_defect(cause.known.rca.defect_type).lower(),
    )


def _link_test(failed: FailedTest) -> str:
    """Return the address of a test's history, if a package is installed that remembers it."""
    if not metadata.entry_points(group=RANGES):
        return ""
    return link_history(join_names("", failed.class_name, failed.name))


def _link_evidence(evidence: Evidence, case_no: int) -> tuple[Evidence, str]:
    own = link_source(case_no, evidence.ref) if evidence.verdict == "found" else ""
    return evidence, evidence.url or own


@get("/reports", sync_to_thread=True)
def show_reports(window: Window) -> Response[str]:
    project = window.project
    suites = _read_suites(project)
    uploads = [each for each in UploadStore(project.db).list() if not each.suite_id][:50]
    return window.render(
        "rca/reports.html", title="Reports", path="/reports", suites=suites, uploads=uploads
    )


@get("/reports/{upload_id:str}", sync_to_thread=True)
def show_upload(window: Window, upload_id: str) -> Response[Any]:
    """Show the report of an upload, or its progress."""
    upload = UploadStore(window.project.db).find(upload_id)
    if upload.suite_id and upload.state != "open":
        return Redirect(f"/suites/{upload.suite_id}")
    page = window.render("rca/upload.html", title=upload.suite, path="/reports", upload=upload)
    if upload.state == "open":
        page.headers["refresh"] = "2"
    return page


@get("/suites/{suite_id:int}", sync_to_thread=False)
def find_report(suite_id: int) -> Redirect:
    """Redirect to a report; its parts are named relative to that address."""
    return Redirect(f"/suites/{suite_id}/{_FIRST}")


@get(["/suites/{suite_id:int}/report.html", "/suites/{suite_id:int}/causes/{part:str}"])
async def show_report(window: Window, suite_id: int, part: str = "") -> Response[Any]:
    """Show the report of a suite, as `interlock analyze` writes it."""
    rendering = asyncio.ensure_future(_REPORTS.render(window.project, suite_id))
    done, _ = await asyncio.wait({rendering}, timeout=_PATIENCE)
    if not done:
        page = window.render("rca/writing.html", title="Report", path="/reports", suite_id=suite_id)
        page.headers["refresh"] = "1"
        return page
    name = f"causes/{part}" if part else _FIRST
    if name not in rendering.result():
        raise NotFoundError(f"the report of suite {suite_id} has no page {part[:40]!r}")
    return send_document(rendering.result()[name])


class ReportPages:
    """Renders reports in threads and caches them until something changes."""

    def __init__(self) -> None:
        self._pages: OrderedDict[tuple[Any, ...], Pages] = OrderedDict()
        self._writing: dict[tuple[Any, ...], asyncio.Task[Pages]] = {}

    async def render(self, project: Project, suite_id: int) -> Pages:
        key = await asyncio.to_thread(self._find_key, project, suite_id)
        if key in self._pages:
            self._pages.move_to_end(key)
            return self._pages[key]
        if key not in self._writing:
            rendering = asyncio.to_thread(render_suite, project, suite_id)
            task = asyncio.create_task(rendering)
            self._writing[key] = task
            task.add_done_callback(lambda done: self._keep(key, done))
        return await asyncio.shield(self._writing[key])

    def _keep(self, key: tuple[Any, ...], done: "asyncio.Task[Pages]") -> None:
        del self._writing[key]
        if not done.cancelled() and done.exception() is None:
            self._pages[key] = done.result()
            while len(self._pages) > _KEPT:
                self._pages.popitem(last=False)

    def _find_key(self, project: Project, suite_id: int) -> tuple[Any, ...]:
        """Return what a report depends on."""
        with project.read() as connection:
            raw = connection.raw
            row = raw.execute(
                "select s.run_id, count(r.case_no), max(r.updated_at), s.status from suites s"
                " join circuits c on c.suite_id = s.suite_id"
                " join launches l on l.circuit_id = c.circuit_id"
                " join rca_cases r on r.launch_id = l.launch_id"
                " where s.suite_id = ? group by s.run_id, s.status",
                (min(suite_id, _NUMBER),),
            ).fetchone()
            if row is None:
                raise NotFoundError(f"there is no suite {suite_id}")
            newest = raw.execute(
                "select max(j.seq) from journal j join cases c on c.case_no = j.case_no"
                " where c.run_id = ?",
                (row[0],),
            ).fetchone()[0]
            causes = raw.execute(
                "select count(*), max(resolved_at), max(verified_at), max(archived_at) from rcas"
            ).fetchone()
        return (identify(project.db), suite_id, *row, newest, *causes)


_REPORTS: Final = ReportPages()


def render_suite(project: Project, suite_id: int) -> Pages:
    """Return the report of a suite, page by page."""
    from interlock_rca import analyze as analysis
    from interlock_rca.report.document import render_pages
    from interlock_rca.report.outline import build_outline

    with project.read() as connection:
        suite = analysis.get_suite(connection, suite_id)
        findings = analysis.collect_findings(connection, suite)
    return dict(render_pages(build_outline(findings)))


def _read_causes(project: Project, *, archived: bool = False) -> list[CauseOverview]:
    if not project.has_database:
        return []
    with project.read() as connection:
        return list_cause_overviews(connection, archived=archived)


def _read_cause(project: Project, rca_id: int) -> tuple[CauseOverview, list[Suspect], list[Any]]:
    from interlock_rca.findings import mark_suspects, read_investigated_suspects

    with project.read() as connection:
        causes = list_cause_overviews(connection, archived=True)
        found = next((each for each in causes if each.known.rca.rca_id == rca_id), None)
        if found is None:
            raise NotFoundError(f"there is no root cause {rca_id}")
        suspects = list(read_investigated_suspects(connection, found.known.rca.case_no))
        if found.proof is not None:
            suspects = list(mark_suspects(suspects, found.proof))
        return found, suspects, list_failed_tests(connection, rca_id)


class CauseRecord(msgspec.Struct, frozen=True, kw_only=True):
    """A root cause with its history."""

    id: int
    title: str
    description: str
    state: Literal["regressed", "open", "fixed", "archived"]
    defect_type: str
    category: str
    component: str
    ticket: str
    first_seen: float
    last_seen: float
    failures: int
    reviewed: int
    suites: tuple[int, ...]
    trend: tuple[int, ...]
    proof: str
    """The result of running its test, in a sentence; empty if it was not run."""


class CauseList(msgspec.Struct, frozen=True):
    causes: list[CauseRecord]


class SuspectRecord(msgspec.Struct, frozen=True, kw_only=True):
    repo: str
    commit: str
    subject: str
    author: str
    score: float
    why: str
    proof: str
    """`proven`, `cleared`, or empty if no test was run."""


class CauseDetail(msgspec.Struct, frozen=True, kw_only=True):
    cause: CauseRecord
    suspects: list[SuspectRecord]


@reading("/causes", "Known causes", sync_to_thread=True)
def list_causes(
    project: Project, limit: Annotated[int, Parameter(ge=1, le=1000)] = 200
) -> CauseList:
    """List root causes over all suites: regressions first, then open ones."""
    return CauseList([_describe(each) for each in _read_causes(project)[:limit]])


@reading("/causes/{cause_id:int}", "One cause", sync_to_thread=True)
def find_cause(
    project: Project, cause_id: Annotated[int, Parameter(ge=1, le=_NUMBER)]
) -> CauseDetail:
    """Show a root cause with its suspects and their proof."""
    cause, suspects, _ = _read_cause(project, cause_id)
    named = ("repo", "commit", "subject", "author", "score", "why", "proof")
    records = [SuspectRecord(**{name: getattr(each, name) for name in named}) for each in suspects]
    return CauseDetail(cause=_describe(cause), suspects=records)


def _describe(cause: CauseOverview) -> CauseRecord:
    rca = cause.known.rca
    return CauseRecord(
        id=rca.rca_id,
        title=rca.title,
        description=rca.description,
        state=cause.state,
        defect_type=rca.defect_type,
        category=rca.category,
        component=rca.component,
        ticket=rca.jira_ticket_id,
        first_seen=cause.first_seen,
        last_seen=cause.last_seen,
        failures=cause.known.cases,
        reviewed=cause.known.reviewed,
        suites=tuple(each.suite_id for each in cause.suites),
        trend=cause.trend,
        proof=cause.proof.sentence if cause.proof else "",
    )


@asynccontextmanager
async def _open(project: Project) -> AsyncIterator[UploadRuns]:
    """Analyse uploads while the server is open."""
    with UploadRuns(project) as runs:
        yield runs


def _read_suites(project: Project) -> list[SuiteOverview]:
    if not project.has_database:
        return []
    with project.read() as connection:
        return list_suite_overviews(connection)


SECTION: Final = Section(
    "Results",
    (
        NavLink("/causes", "Causes", "u"),
        NavLink("/reports", "Reports", "e"),
    ),
    (
        show_causes,
        show_cause,
        show_reports,
        show_upload,
        find_report,
        show_report,
        show_source,
        show_log,
    ),
    PackageLoader("interlock_rca", "templates"),
    api=(*HANDLERS, list_causes, find_cause),
    background=_open,
    rank=10,
)
