"""Verbs of root-cause analysis: analyze, report, push, causes, cause."""

import gc
import os
import shutil
import time
from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import msgspec
import typer

from interlock.api.inbox import find_user
from interlock.api.start import go_on
from interlock.cli.app import ExitCode, app, exit_for, exit_with
from interlock.cli.options import (
    DispatchFlags,
    PromptDir,
    RunFlags,
    WaitFlags,
    expand_options,
    read_thresholds,
)
from interlock.cli.output import (
    Db,
    Json,
    Sets,
    echo,
    echo_json,
    echo_json_text,
    echo_note,
    echo_table,
    open_project,
)
from interlock.system.errors import SourceError, StateError
from interlock.system.text import plural
from interlock_rca import analyze as analysis
from interlock_rca.analyze import AnalysisRequest

if TYPE_CHECKING:
    from interlock.api.project import Project
    from interlock.api.work import RunResult
    from interlock_rca.analyze import Analysis
    from interlock_rca.knowledge.suites import Suite
    from interlock_rca.records import Findings, Launch
    from interlock_rca.sources.reportportal.push import PushResult


class ReviewMode(StrEnum):
    """Who answers F5."""

    HUMAN = "human"
    AUTO = "auto"
    DISPATCH = "dispatch"


Sources = Annotated[
    list[str],
    typer.Argument(
        metavar="SOURCE...",
        help="JUnit XML, logs, folders, globs, zips, envelope .json, rp:LAUNCH or its address.",
    ),
]
SuiteName = Annotated[
    str, typer.Option("--suite", metavar="NAME", help="The suite's name; default from the sources.")
]
RepoWords = Annotated[
    list[str] | None,
    typer.Option(
        "--repo", metavar="[NAME=]PATH[:PURPOSE]", help="A git repository to look in; repeatable."
    ),
]
WorkspaceFile = Annotated[
    Path | None, typer.Option("--workspace", metavar="FILE", help="Repositories in YAML or JSON.")
]
LastGreen = Annotated[
    list[str] | None,
    typer.Option(
        "--last-green",
        metavar="[REPO=]REV",
        help="The revision that last passed, or auto: of each test, as remembered; repeatable.",
    ),
]
JobExit = Annotated[
    int | None,
    typer.Option(
        "--job-exit",
        metavar="CODE",
        help="The exit code of the job, where its log does not say how it ended.",
    ),
]
Reproduce = Annotated[
    str | None,
    typer.Option(
        "--reproduce",
        metavar="COMMAND",
        help="Confirm suspects by running this in work trees of ours: 'pytest {test}'. Also "
        "{file}, {name}, {class}.",
    ),
]
ReproduceSetup = Annotated[
    str | None,
    typer.Option(
        "--reproduce-setup",
        metavar="COMMAND",
        help="What to run at each commit before it, a build for instance.",
    ),
]
ReproduceMinutes = Annotated[
    float | None,
    typer.Option(
        "--reproduce-minutes", metavar="N", help="For all runs together; default 30.", min=0.001
    ),
]


class ReproduceOptions(msgspec.Struct, frozen=True, kw_only=True):
    """How suspects are confirmed by running the failing tests."""

    reproduce: Reproduce = None
    reproduce_setup: ReproduceSetup = None
    reproduce_minutes: ReproduceMinutes = None

    def to_settings(self) -> dict[str, Any]:
        """Return the flags as `change_config` takes them."""
        return {
            "command": self.reproduce,
            "setup": self.reproduce_setup,
            "minutes": self.reproduce_minutes,
        }


Reviewing = Annotated[
    ReviewMode | None,
    typer.Option(
        "--review", help="Who reviews: human, auto (above a score), or dispatch (as other roles)."
    ),
]
ReviewAbove = Annotated[
    float | None,
    typer.Option(
        "--review-above",
        metavar="SCORE",
        min=0,
        max=1,
        help="What --review auto needs to approve; default 0.85.",
    ),
]
FamiliesFlag = Annotated[
    bool | None,
    typer.Option(
        "--families/--each", help="Investigate one case of a family for all, or each by itself."
    ),
]
RecallFlag = Annotated[
    bool | None,
    typer.Option(
        "--recall-first/--recall-asked", help="Look failures up before asking, or always ask."
    ),
]
CaseFiles = Annotated[
    Path | None,
    typer.Option(
        "--root",
        metavar="DIR",
        help="Where --dispatch writes; default .asterisk/calibrate, by hand …/investigations.",
    ),
]


class AnalysisFlags(DispatchFlags, frozen=True, kw_only=True):
    """Who answers, at what cost, and how dispatches travel that no agent takes."""

    root: CaseFiles = None


Out = Annotated[
    Path | None,
    typer.Option(
        "--out", metavar="DIR", help="The report's folder; default interlock-report/SUITE."
    ),
]
SuiteId = Annotated[
    int | None, typer.Argument(metavar="SUITE", help="The suite's number; default the newest.")
]
PortalKey = Annotated[
    Path | None,
    typer.Option("--rp-key", metavar="FILE", help="ReportPortal's token, in a 0600 file."),
]
MemoryPlace = Annotated[
    str | None,
    typer.Option("--store", metavar="DIR|URL", help="The memory that --last-green auto asks."),
]
New = Annotated[bool, typer.Option("--new", help="Start a new suite of that name.")]
Server = Annotated[
    str,
    typer.Option(
        "--server",
        metavar="URL",
        help="Send the results to an 'interlock serve' and let it analyse them; the token comes "
        "from INTERLOCK_TOKEN or --token-file.",
    ),
]
ServerToken = Annotated[
    Path | None,
    typer.Option("--token-file", metavar="FILE", help="A file, 0600, with the server's token."),
]
_BY_HAND = 5


@app.command()
@expand_options("runs", ReproduceOptions)
@expand_options("flags", AnalysisFlags)
@expand_options("waits", WaitFlags)
def analyze(
    sources: Sources,
    flags: AnalysisFlags,
    runs: ReproduceOptions,
    waits: WaitFlags,
    suite: SuiteName = "",
    repo: RepoWords = None,
    workspace: WorkspaceFile = None,
    last_green: LastGreen = None,
    job_exit: JobExit = None,
    review: Reviewing = None,
    review_above: ReviewAbove = None,
    families: FamiliesFlag = None,
    recall_first: RecallFlag = None,
    sets: Sets = None,
    prompt_dir: PromptDir = None,
    out: Out = None,
    rp_key: PortalKey = None,
    new: New = False,
    store: MemoryPlace = None,
    server: Server = "",
    token_file: ServerToken = None,
    db: Db = None,
    json: Json = False,
) -> None:
    """Find the causes of failing tests. Run it again to continue with new failures and answers."""
    if server:
        _analyze_on_server(server, sources, suite, token_file, json=json)
    gc.set_threshold(_COLLECT_AFTER)
    project = open_project(db)
    changes: dict[str, Any] = {
        "repo": repo,
        "workspace": workspace,
        "last_green": last_green,
        "review": review and str(review),
        "review_above": review_above,
        "families": families,
        "recall_first": recall_first,
        "reproduce": runs.to_settings(),
    }
    request = AnalysisRequest(
        sources=sources,
        name=suite,
        is_new=new,
        job_exit=job_exit,
        rp_key=rp_key,
        thresholds=read_thresholds(sets or ()),
        prompt_dir=prompt_dir,
        files=flags.list_files(),
        changes=changes,
        change_options=lambda options, _suite: flags.change_config(options),
        store=store,
        note=echo_note,
        named=lambda name: analysis.choose_report_folder(name, out),
        begun=_announce_new_failures,
        **waits.choices,
    )
    found = analysis.analyze(project, request)
    if found.suite is None or found.result is None or found.findings is None:
        _report_no_failures(found, json=json)
        return
    folder = analysis.choose_report_folder(found.name, out)
    _show_findings(found.suite, found.findings, folder, found.result, json=json)
    exit_with(found.result)


_COLLECT_AFTER = 50_000
"""New objects between two garbage collections: an analysis makes very many, and few cycles."""


def _analyze_on_server(
    server: str, sources: Sequence[str], suite: str, token_file: Path | None, *, json: bool
) -> NoReturn:
    """Send the results, wait for the report, and exit as if it had been made here."""
    from interlock_rca.remote import send_results

    found = send_results(server, sources, suite, token_file, lambda at: echo_note(f"report: {at}"))
    if found.state == "failed":
        raise SourceError(found.sentence)
    if json:
        echo_json(found)
    else:
        for line in found.summary or (found.verdict,):
            echo(line)
        echo(found.address)
    exit_for(found.status)


def resume_run(
    project: "Project",
    run_id: int,
    flags: RunFlags,
    waits: WaitFlags,
    *,
    json: bool,
) -> None:
    """Continue the suite of a run, and write its report."""
    from interlock_rca.knowledge.suites import find_suite

    with project.write() as connection:
        _, pool, _ = go_on(project, connection, run_id, flags.change_config)
        suite = find_suite(connection, run_id=run_id)
        if suite is None:
            raise StateError(f"run {run_id} has no suite; 'interlock doctor --deep' says why")
        folder = analysis.choose_report_folder(suite.name, None)
        result = analysis.work_on_suite(project, connection, suite, pool, **waits.choices)
        findings = analysis.collect_findings(connection, suite)
    _show_findings(suite, findings, folder, result, json=json)
    exit_with(result)


@app.command()
def report(
    suite_id: SuiteId = None,
    out: Out = None,
    db: Db = None,
    json: Json = False,
) -> None:
    """Write the report of a suite again."""
    with open_project(db).read() as connection:
        suite = analysis.get_suite(connection, suite_id)
        folder = analysis.choose_report_folder(suite.name, out)
        findings = analysis.collect_findings(connection, suite)
        status = analysis.read_status(connection, suite)
    _show_findings(suite, findings, folder, status, json=json)


def _announce_new_failures(suite: "Suite", count: int, is_new: bool) -> None:
    if not is_new:
        more = plural(count, "new failure", "new failures")
        echo_note(f"suite {suite.suite_id} ({suite.name}) goes on with {more}")


def _report_no_failures(found: "Analysis", *, json: bool) -> None:
    tests = sum(launch.tally.tests for launch in found.launches)
    if json:
        fields = {"suite_id": None, "tests": tests, "failures": 0}
        _echo_report(fields, analysis.build_empty_findings(found.name, found.launches))
    elif tests:
        ran = plural(tests, "test", "tests")
        echo(f"nothing failed: {ran} and no failure, so nothing to analyse")
    else:
        echo("the sources name no test and no failure: nothing to analyse")


def _echo_report(
    fields: dict[str, Any], findings: "Findings", more: dict[str, Any] | None = None
) -> None:
    """Print the content of report.json (see report.schema.json) between other fields."""
    from interlock_rca.report.document import encode_document, insert_cases
    from interlock_rca.report.outline import build_outline

    outline = build_outline(findings)
    whole = {"schema_version": 1, **fields, **encode_document(outline), **(more or {})}
    echo_json_text(insert_cases(whole, outline))


def _show_findings(
    suite: "Suite",
    findings: "Findings",
    folder: Path,
    outcome: "RunResult | str",
    *,
    json: bool,
) -> None:
    """Write the report and show what was found. `outcome` is the result of the run, or its status
    if nothing was worked on."""
    from interlock_rca.report.summary import format_summary

    result = None if isinstance(outcome, str) else outcome
    files = analysis.write_report(findings, folder)
    if json:
        status = result.status if result else outcome
        fields = {"suite_id": suite.suite_id, "run_id": suite.run_id, "status": status}
        names = {"files": [str(path) for path in files]}
        _echo_report(fields, findings, names)
        return
    width = shutil.get_terminal_size().columns
    for line in format_summary(findings, [str(path) for path in files], width):
        echo(line.text)
    for waiting in shorten_waiting_lines(result.written_out if result else [], suite.run_id):
        echo(waiting)
    if result and result.counts.questions > len(result.written_out):
        echo()
        echo("a human is asked: 'interlock inbox', 'interlock answer ID approve', and run it again")


def shorten_waiting_lines(waiting: Sequence[str], run_id: int) -> list[str]:
    """Return the lines about pending manual answers, cut so that the summary stays visible."""
    if len(waiting) <= _BY_HAND:
        return list(waiting)
    more = plural(len(waiting) - _BY_HAND, "more case waits", "more cases wait")
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
            "--by", metavar="NAME", help="Who signs; default ASTERISK_USER, or the token's owner."
        ),
    ] = "",
    db: Db = None,
    json: Json = False,
) -> None:
    """Send reviewed results to ReportPortal. Each item gets its defect type and a comment."""
    from interlock_rca.findings import collect_updates
    from interlock_rca.knowledge.suites import list_launches, list_suite_cases
    from interlock_rca.sources.reportportal.client import URL_VARIABLE, find_address
    from interlock_rca.sources.reportportal.project import ReportPortal
    from interlock_rca.sources.reportportal.push import push_updates as send

    with open_project(db).read() as connection:
        suite = analysis.get_suite(connection, suite_id)
        findings = analysis.collect_findings(connection, suite)
        cases = list_suite_cases(connection, suite.suite_id)
        launches = [each.launch for each in list_launches(connection, suite.suite_id)]
    origin = min((each for each in launches if each.project), key=_sort_key, default=None)
    if origin and not url and not os.environ.get(URL_VARIABLE):
        url = origin.url
    name = project or (origin.project if origin else "")
    signed_by = by or os.environ.get("ASTERISK_USER", "")
    wanted, left = collect_updates(findings, cases, signed_by)
    if not wanted:
        raise StateError(f"suite {suite.suite_id} has nothing to push: {_explain_left_out(left)}")
    where = find_address(os.environ, url=url, project=name, key_file=rp_key)
    with ReportPortal(where) as portal:
        if not signed_by:
            wanted, left = collect_updates(findings, cases, portal.get_user() or find_user())
        pushed = send(portal, wanted, dry_run=dry_run)
    if json:
        echo_json({"suite_id": suite.suite_id, "left_out": left, **msgspec.to_builtins(pushed)})
    else:
        _show_push(pushed, left)
    if pushed.unwritten:
        raise typer.Exit(ExitCode.FAILED)


def _sort_key(launch: "Launch") -> tuple[str, str]:
    return launch.project, launch.url


def _explain_left_out(left: dict[str, int]) -> str:
    why = ", ".join(f"{count} {reason}" for reason, count in left.items()) or "no cases"
    waits = "; 'interlock inbox' shows what waits for review" if "not reviewed" in left else ""
    return why + waits


def _show_push(pushed: "PushResult", left: dict[str, int]) -> None:
    from interlock_rca.sources.reportportal.push import format_change

    for change in pushed.changes:
        for line in format_change(change):
            echo(line)
        echo()
    for item_id, why in pushed.refused:
        echo(f"item {item_id} was left alone: {why}")
    for note in pushed.notes:
        echo(f"note: {note}")
    for reason, count in left.items():
        echo(f"{plural(count, 'case', 'cases')} left out: {reason}")
    same = plural(len(pushed.unchanged), "item is", "items are")
    many = plural(len(pushed.changes), "item", "items")
    if pushed.dry_run:
        echo(f"{many} would change, {same} as they should be; --send writes it")
    else:
        lost = len(pushed.unwritten)
        not_written = f", {plural(lost, 'item was', 'items were')} not written" if lost else ""
        echo(f"{many} changed, {same} as they should be{not_written}")


class CauseStatus(StrEnum):
    """The states of a root cause."""

    OPEN = "open"
    RESOLVED = "resolved"
    VERIFIED = "verified"
    ARCHIVED = "archived"


@app.command()
def causes(
    everything: Annotated[bool, typer.Option("--all", help="Include archived ones.")] = False,
    db: Db = None,
    json: Json = False,
) -> None:
    """List the known root causes of all suites."""
    from interlock_rca.knowledge.causes import list_causes as known

    with open_project(db).read() as connection:
        found = known(connection, archived=everything)
    if json:
        echo_json({"causes": msgspec.to_builtins(found)})
        return
    if not found:
        echo("no root cause is known yet; 'interlock analyze' finds some")
    echo_table(
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
        CauseStatus | None, typer.Argument(metavar="[STATUS]", help="The new status.")
    ] = None,
    ticket: Annotated[str, typer.Option("--ticket", metavar="KEY", help="Its ticket.")] = "",
    link: Annotated[str, typer.Option("--link", metavar="URL", help="The ticket's page.")] = "",
    db: Db = None,
    json: Json = False,
) -> None:
    """Show or set the status of a root cause. If a resolved one comes back, it is a regression."""
    from interlock.system.errors import SourceError
    from interlock_rca.knowledge.causes import find_rca, set_rca_status, set_ticket

    if link and not link.startswith(("http://", "https://")):
        raise SourceError(f"--link {link[:200]!r} should begin with https://")
    project = open_project(db)
    if status is not None or ticket:
        with project.write() as connection:
            if ticket:
                set_ticket(connection, rca_id, ticket, link)
            if status is not None:
                set_rca_status(connection, rca_id, str(status), time.time())
    with project.read() as connection:
        found = find_rca(connection, rca_id)
    if found is None:
        raise SourceError(f"there is no root cause {rca_id}; 'interlock causes' lists them")
    if json:
        echo_json(msgspec.to_builtins(found))
        return
    echo(f"root cause {rca_id} is {found.status}: {found.title}")
    echo(f"  {found.defect_type}, {found.category}, ticket {found.jira_ticket_id or '-'}")
    echo(f"  {found.description}")
