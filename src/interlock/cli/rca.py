"""The main verb: failing tests in, root causes out. And the one that writes its report anew.

The verb that tells ReportPortal what was found. Only reviewed cases, and dry unless told.

Verbs of what is known: the root causes that were found, and what became of them.
"""

import os
import shutil
import time
from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import msgspec
import typer

from interlock.api.inbox import user
from interlock.api.project import (
    AgentPool,
    Agents,
    Limited,
    Limits,
    Parallel,
    RateLimitPolicy,
    Slots,
    crew_of,
    merged,
)
from interlock.api.sitting import RunResult, sit
from interlock.cli.app import ExitCode, app
from interlock.cli.options import BatchSize, Dispatch, Watching, files_of
from interlock.cli.show import Db, Json, Sets, counted, document, say, table, tell
from interlock.rca import suites
from interlock.rca.config import (
    CaseFiles,
    FamiliesFlag,
    LastGreen,
    PromptDir,
    RecallFlag,
    RepoWords,
    ReviewAbove,
    Reviewing,
    Sources,
    SuiteName,
    WorkspaceFile,
    agreed,
)
from interlock.rca.opening import answered, before, circuit_for, read
from interlock.system.errors import StateError

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from interlock.rca.knowledge.suites import Suite
    from interlock.rca.records import Launch
    from interlock.rca.sources.read import SourceLaunch
    from interlock.rca.sources.reportportal.push import Pushed


Out = Annotated[
    Path | None,
    typer.Option(
        "--out", metavar="DIR", help="The report's folder; default interlock-report/SUITE."
    ),
]
SuiteId = Annotated[
    int | None, typer.Argument(metavar="SUITE", help="The suite's number; default the newest.")
]
New = Annotated[bool, typer.Option("--new", help="Begin a new suite of that name.")]
_BY_HAND = 5


@app.command()
def analyze(
    sources: Sources,
    suite: SuiteName = "",
    repo: RepoWords = None,
    workspace: WorkspaceFile = None,
    last_green: LastGreen = None,
    agent: Agents = None,
    dispatch: Dispatch = None,
    review: Reviewing = None,
    review_above: ReviewAbove = None,
    families: FamiliesFlag = None,
    recall_first: RecallFlag = None,
    sets: Sets = None,
    prompt_dir: PromptDir = None,
    out: Out = None,
    root: CaseFiles = None,
    watch: Watching = None,
    batch_size: BatchSize = None,
    slots: Slots = None,
    budget: Limits = None,
    parallel: Parallel = None,
    rp_key: Annotated[
        Path | None,
        typer.Option("--rp-key", metavar="FILE", help="ReportPortal's token, in a 0600 file."),
    ] = None,
    new: New = False,
    wait: Annotated[bool, typer.Option("--wait", help="Stay and wait for the review.")] = False,
    on_limit: Limited = RateLimitPolicy.WAIT,
    db: Db = None,
    json: Json = False,
) -> None:
    """Find the causes of failing tests. Run again, it takes what is new and goes on."""
    from interlock.journal.database import writing
    from interlock.runtime.settings import database

    intakes = read(sources, suite, rp_key)
    path = database(Path(), db)
    name = suite or suites.name_of(sources, intakes)
    folder = suites.folder_of(name, out)
    suites.refuse_foreign(folder)
    said = {"review": review and str(review), "review_above": review_above}
    said |= {"families": families, "recall_first": recall_first}
    with writing(path) as connection:
        found = None if new else suites.find(connection, name, intakes)
        if found is None and not any(intake.failures for intake in intakes):
            _nothing_failed(intakes, json=json)
            return
        bundle, circuit, changes = circuit_for(sets or [], prompt_dir)
        files = files_of(dispatch, root, watch, batch_size)
        usual = before(connection, found, changes, files)
        terms = agreed(suites.terms_in(usual), repo, workspace, last_green, **said)
        options = answered(merged(usual, agent, slots, budget, parallel, files), terms)
        crew = crew_of(circuit, options, path)
        taken, count = suites.take_in(connection, found, name, bundle, circuit, intakes, options)
        del intakes  # they are kept now, and much to hold while a very red night is worked on
        if found is not None:
            _tell_more(taken, count)
        sat = _work(connection, taken, crew, wait=wait, on_limit=on_limit)
        _show(connection, taken, folder, sat, json=json)
    sat.leave()


@app.command()
def report(
    suite_id: SuiteId = None,
    out: Out = None,
    db: Db = None,
    json: Json = False,
) -> None:
    """Write the report of a suite anew, as it stands."""
    from interlock.journal.database import reading
    from interlock.runtime.settings import database

    with reading(database(Path(), db)) as connection:
        suite = suites.the_suite(connection, suite_id)
        _show(connection, suite, suites.folder_of(suite.name, out), None, json=json)


def _tell_more(suite: "Suite", count: int) -> None:
    more = counted(count, "new failure", "new failures")
    tell(f"suite {suite.suite_id} ({suite.name}) goes on with {more}")


def _nothing_failed(intakes: "Sequence[SourceLaunch]", *, json: bool) -> None:
    tests = sum(intake.launch.tally.tests for intake in intakes)
    if json:
        document({"suite_id": None, "tests": tests, "failures": 0})
        return
    if tests:
        ran = counted(tests, "test", "tests")
        say(f"nothing failed: {ran} and no failure, so nothing to analyse")
    else:
        say("no test ran, as far as this tells, and nothing says why: nothing to analyse")


def _work(
    connection: "Connection",
    suite: "Suite",
    crew: AgentPool,
    *,
    wait: bool,
    on_limit: RateLimitPolicy,
) -> RunResult:
    from interlock.journal.runs import find_run

    sat = sit(connection, find_run(connection, suite.run_id), crew, wait=wait, on_limit=on_limit)
    if sat.application is not None:
        for problem in sat.application.notes():
            tell(f"note: {problem}")
    return sat


def _show(
    connection: "Connection", suite: "Suite", folder: Path, sat: RunResult | None, *, json: bool
) -> None:
    from interlock.journal.runs import find_run
    from interlock.rca.report.document import summary_of
    from interlock.rca.report.outline import outline
    from interlock.rca.report.summary import summary

    findings = suites.findings_now(connection, suite)
    files = suites.write_report(findings, folder)
    if json:
        status = sat.status if sat else find_run(connection, suite.run_id).status
        told = msgspec.to_builtins(summary_of(outline(findings)))
        fields = {"suite_id": suite.suite_id, "run_id": suite.run_id, "status": status}
        document(fields | {"summary": told, "files": [str(path) for path in files]})
        return
    width = shutil.get_terminal_size().columns
    for line in summary(findings, [str(path) for path in files], width):
        say(line.text)
    for waiting in by_hand_lines(sat.by_hand if sat else [], suite.run_id):
        say(waiting)
    if sat and sat.tally.questions > len(sat.by_hand):
        say()
        say("a human is asked: 'interlock inbox', 'interlock answer ID approve', and run it again")


def by_hand_lines(waiting: Sequence[str], run_id: int) -> list[str]:
    """What waits for an answer by hand, in so many lines that the summary is still seen."""
    if len(waiting) <= _BY_HAND:
        return list(waiting)
    more = counted(len(waiting) - _BY_HAND, "more case waits", "more cases wait")
    return [*waiting[:_BY_HAND], f"{more} in the same way: 'interlock status {run_id}' lists them"]


@app.command()
def push(
    suite_id: SuiteId = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run/--send", help="Show the changes, or write them.")
    ] = True,
    url: Annotated[
        str, typer.Option("--rp-url", metavar="URL", help="Default ASTERISK_RP_URL.")
    ] = "",
    project: Annotated[
        str, typer.Option("--rp-project", metavar="NAME", help="Default ASTERISK_RP_PROJECT.")
    ] = "",
    rp_key: Annotated[
        Path | None,
        typer.Option("--rp-key", metavar="FILE", help="The token, in a 0600 file."),
    ] = None,
    by: Annotated[
        str,
        typer.Option(
            "--by", metavar="NAME", help="Who says so; default ASTERISK_USER, or who the token is."
        ),
    ] = "",
    db: Db = None,
    json: Json = False,
) -> None:
    """Tell ReportPortal what was reviewed. Each item gets its defect type and a comment."""
    from interlock.journal.database import reading
    from interlock.rca.findings import updates
    from interlock.rca.knowledge.suites import launches_of, suite_cases
    from interlock.rca.sources.reportportal.client import URL, address
    from interlock.rca.sources.reportportal.project import ReportPortal
    from interlock.rca.sources.reportportal.push import push as send
    from interlock.runtime.settings import database

    with reading(database(Path(), db)) as connection:
        suite = suites.the_suite(connection, suite_id)
        findings = suites.findings_now(connection, suite)
        cases = suite_cases(connection, suite.suite_id)
        launches = [each.launch for each in launches_of(connection, suite.suite_id)]
    origin = min((each for each in launches if each.project), key=_place, default=None)
    if origin and not url and not os.environ.get(URL):
        url = origin.url
    name = project or (origin.project if origin else "")
    said_by = by or os.environ.get("ASTERISK_USER", "")
    wanted, left = updates(findings, cases, said_by)
    if not wanted:
        raise StateError(f"suite {suite.suite_id} has nothing to push: {_why(left)}")
    where = address(os.environ, url=url, project=name, key_file=rp_key)
    with ReportPortal(where) as portal:
        if not said_by:
            wanted, left = updates(findings, cases, portal.user() or user())
        pushed = send(portal, wanted, dry_run=dry_run)
    if json:
        document({"suite_id": suite.suite_id, "left_out": left, **msgspec.to_builtins(pushed)})
    else:
        _tell(pushed, left)
    if pushed.unwritten:
        raise typer.Exit(ExitCode.FAILED)


def _place(launch: "Launch") -> tuple[str, str]:
    return launch.project, launch.url


def _why(left: dict[str, int]) -> str:
    why = ", ".join(f"{count} {reason}" for reason, count in left.items()) or "no cases"
    waits = "; 'interlock inbox' shows what waits for review" if "not reviewed" in left else ""
    return why + waits


def _tell(pushed: "Pushed", left: dict[str, int]) -> None:
    from interlock.rca.sources.reportportal.push import shown

    for change in pushed.changes:
        for line in shown(change):
            say(line)
        say()
    for item_id, why in pushed.refused:
        say(f"item {item_id} was left alone: {why}")
    for note in pushed.notes:
        say(f"note: {note}")
    for reason, count in left.items():
        say(f"{counted(count, 'case', 'cases')} left out: {reason}")
    same = counted(len(pushed.unchanged), "item is", "items are")
    many = counted(len(pushed.changes), "item", "items")
    if pushed.dry_run:
        say(f"{many} would change, {same} as they should be; --send writes it")
    else:
        lost = len(pushed.unwritten)
        not_written = f", {counted(lost, 'item was', 'items were')} not written" if lost else ""
        say(f"{many} changed, {same} as they should be{not_written}")


class CauseStatus(StrEnum):
    """The life of a root cause."""

    OPEN = "open"
    RESOLVED = "resolved"
    VERIFIED = "verified"
    ARCHIVED = "archived"


@app.command()
def causes(
    everything: Annotated[bool, typer.Option("--all", help="Archived ones, too.")] = False,
    db: Db = None,
    json: Json = False,
) -> None:
    """The root causes that are known, of all suites."""
    from interlock.journal.database import reading
    from interlock.rca.knowledge.causes import causes as known
    from interlock.runtime.settings import database

    with reading(database(Path(), db)) as connection:
        found = known(connection, archived=everything)
    if json:
        document({"causes": msgspec.to_builtins(found)})
        return
    if not found:
        say("no root cause is known yet; 'interlock analyze' finds some")
    table(
        ("ID", "STATUS", "TYPE", "CASES", "REVIEWED", "TICKET", "CAUSE"),
        (
            (
                *(each.rca.rca_id, each.rca.status, each.rca.defect_type, each.cases),
                *(each.reviewed, each.rca.jira_ticket_id or "-", each.rca.title),
            )
            for each in found
        ),
    )


@app.command()
def cause(
    rca_id: Annotated[int, typer.Argument(metavar="ID", help="The root cause, see causes.")],
    status: Annotated[
        CauseStatus | None, typer.Argument(metavar="[STATUS]", help="What it becomes.")
    ] = None,
    ticket: Annotated[str, typer.Option("--ticket", metavar="KEY", help="Its ticket.")] = "",
    link: Annotated[str, typer.Option("--link", metavar="URL", help="The ticket's page.")] = "",
    db: Db = None,
    json: Json = False,
) -> None:
    """Say what became of a root cause. When one that is resolved comes back, it is a regression."""
    from interlock.journal.database import reading, writing
    from interlock.rca.knowledge.causes import rca, set_rca_status, set_ticket
    from interlock.runtime.settings import database
    from interlock.system.errors import SourceError

    if link and not link.startswith(("http://", "https://")):
        raise SourceError(f"--link {link[:200]!r} should begin with https://")
    path = database(Path(), db)
    if status is not None or ticket:
        with writing(path) as connection:
            if ticket:
                set_ticket(connection, rca_id, ticket, link)
            if status is not None:
                set_rca_status(connection, rca_id, str(status), time.time())
    with reading(path) as connection:
        found = rca(connection, rca_id)
    if found is None:
        raise SourceError(f"there is no root cause {rca_id}; 'interlock causes' lists them")
    if json:
        document(msgspec.to_builtins(found))
        return
    say(f"root cause {rca_id} is {found.status}: {found.title}")
    say(f"  {found.defect_type}, {found.category}, ticket {found.jira_ticket_id or '-'}")
    say(f"  {found.description}")
