"""The main verb: failing tests in, root causes out. And the one that writes its report anew."""

import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import msgspec
import typer

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
from interlock.cli.door import app
from interlock.cli.filing import BatchSize, Dispatch, Watching, files_of
from interlock.cli.show import Db, Json, Sets, counted, document, say, tell
from interlock.rca import suites
from interlock.rca.analysing import (
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

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from interlock.rca.knowledge.suites import Suite
    from interlock.rca.sources.intake import SourceLaunch

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
    from interlock.rca.report.terminal import summary

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
