"""Pages of a commit, a file or a log that has no web page.

Only references in the failure's own finding are shown, whatever an address asks for. Repositories
are those that the analysis was begun with, and are only read.
"""

from collections.abc import Iterator
from typing import Any, Final

import msgspec
from litestar import Response, get
from litestar.response import Redirect

from interlock.api.project import Project
from interlock.journal.connection import Connection, is_row_id
from interlock.journal.runs import find_run
from interlock.runtime.settings import RunConfig
from interlock.system.errors import NotFoundError
from interlock_rca.config import RcaConfig
from interlock_rca.findings import read_evidence, read_investigated_suspects
from interlock_rca.knowledge.suites import (
    SuiteCase,
    find_position,
    find_suite,
    find_suite_case,
    list_launches,
    read_input,
)
from interlock_rca.records import Launch
from interlock_rca.sources.git.evidence_refs import EvidencePointer, parse_reference
from interlock_rca.sources.git.repository import Repository
from interlock_rca.workspace import CheckoutSet
from interlock_web.extend import Window

_MOST_SHOWN: Final = 1_000_000
_AROUND: Final = 200
"""Lines shown before and after the line in question."""


class SourceView(msgspec.Struct, frozen=True):
    """The lines that a reference points at."""

    heading: str
    about: str
    lines: tuple[tuple[str, str], ...]
    """Lines with their kinds: add, cut, hunk or same; `here` for the line in question."""
    is_diff: bool = False
    is_cut: bool = False


@get("/failures/{case_no:int}/source", sync_to_thread=True)
def show_source(window: Window, case_no: int, ref: str = "") -> Response[Any]:
    """Show a commit or a file that a failure's finding names."""
    case, launch, config = _read_failure(window.project, case_no, ref)
    checkouts = CheckoutSet(config)
    names = [repo.name for repo in config.repos]
    for pointer in (each for some in parse_reference(ref, names) for each in some):
        if pointer.kind == "log":
            return Redirect(f"/failures/{case_no}/log")
        for name in [pointer.repo] if pointer.repo in names else names:
            repository = checkouts.repositories[name]
            tested = checkouts.find_tested(name, launch)
            view = _view_commit(repository, pointer) or _view_file(repository, pointer, tested)
            if view is not None:
                return _render(window, case, view)
    raise NotFoundError(
        f"{ref[:200]} cannot be read here any more: the repositories of the analysis were moved, "
        "or are on another machine"
    )


@get("/failures/{case_no:int}/log", sync_to_thread=True)
def show_log(window: Window, case_no: int) -> Response[str]:
    """Show the stored message, stack and log of a failure."""
    with window.project.read() as connection:
        case = _find_case(connection, case_no)
        given = read_input(connection, case_no)
    kept = [(word, str(given.get(word) or "")) for word in ("message", "stack", "log")]
    return window.render(
        "rca/log.html",
        title=f"Log of {case.name}",
        path="/reports",
        case=case,
        parts=[(word, text) for word, text in kept if text],
    )


def _find_case(connection: Connection, case_no: int) -> SuiteCase:
    case = find_suite_case(connection, case_no) if is_row_id(case_no) else None
    if case is None:
        raise NotFoundError(f"there is no failure {case_no}")
    return case


def _read_failure(
    project: Project, case_no: int, ref: str
) -> tuple[SuiteCase, Launch | None, RcaConfig]:
    """Return a failure, its launch and the repositories of its analysis. Raise NotFoundError unless
    its finding names the reference."""
    with project.read() as connection:
        case = _find_case(connection, case_no)
        owner = case.rca.case_no if case.rca else case_no
        suspects = read_investigated_suspects(connection, owner)
        named = {each.ref for each in read_evidence(case.rca)}
        named |= {f"{each.repo}@{each.commit}" for each in suspects}
        if ref not in named:
            raise NotFoundError(f"the finding of failure {case_no} does not name {ref[:200]!r}")
        place = find_position(connection, case_no)
        suite = find_suite(connection, suite_id=place.suite_id) if place else None
        if suite is None:
            raise NotFoundError(f"failure {case_no} belongs to no suite")
        launches = list_launches(connection, suite.suite_id)
        run = find_run(connection, suite.run_id, brief=True)
    launch = next((each.launch for each in launches if each.launch_id == case.launch_id), None)
    config = msgspec.convert(run.options, RunConfig).application_config
    return case, launch, msgspec.convert(config, RcaConfig)


def _view_commit(repository: Repository, pointer: EvidencePointer) -> SourceView | None:
    commit = repository.find_commit(pointer.rev) if pointer.kind == "commit" else ""
    if not commit:
        return None
    words = ["show", "--stat", "--patch", "--cc", "-M", "-l400", "--no-ext-diff", "--no-textconv"]
    shown = repository.git.run(*words, "--no-color", commit, "--", max_output=_MOST_SHOWN)
    text = shown.stdout.decode(errors="replace")
    return SourceView(
        heading=f"Commit {commit[:12]}",
        about=f"in {repository.name}",
        lines=tuple(_mark_diff(text)),
        is_diff=True,
        is_cut=shown.cut,
    )


def _mark_diff(text: str) -> Iterator[tuple[str, str]]:
    in_diff = False
    for line in text.splitlines():
        in_diff = in_diff or line.startswith("diff --")
        kind = {"+": "add", "-": "cut", "@": "hunk"}.get(line[:1], "same") if in_diff else "same"
        is_name = line.startswith(("+++ ", "--- ", "diff --", "index "))
        yield "hunk" if in_diff and is_name else kind, line


def _view_file(repository: Repository, pointer: EvidencePointer, tested: str) -> SourceView | None:
    rev = repository.resolve_revision(pointer.rev) or repository.resolve_or_tip(tested)
    entry = repository.read_entry(pointer.path, rev) if pointer.path and rev else None
    if entry is None or entry.content is None:
        return None
    lines = entry.content.decode(errors="replace").splitlines()
    first, last = pointer.first, max(pointer.last, pointer.first)
    begin = max(1, first - _AROUND) if first > 0 else 1
    end = last + _AROUND if first > 0 else 2 * _AROUND
    shown = [
        ("here" if first <= number <= last else "same", f"{number:>5}  {lines[number - 1]}")
        for number in range(begin, min(end, len(lines)) + 1)
    ]
    return SourceView(
        heading=pointer.path,
        about=f"in {repository.name} at {rev[:12]}, which was tested",
        lines=tuple(shown),
        is_cut=len(shown) < len(lines),
    )


def _render(window: Window, case: SuiteCase, view: SourceView) -> Response[str]:
    return window.render(
        "rca/source.html", title=view.heading, path="/reports", case=case, view=view
    )
