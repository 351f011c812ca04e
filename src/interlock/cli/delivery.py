"""The verbs of deliver: carry out a plan; and look at it: status, report, clean."""

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
import typer

from interlock.api.work import RunResult, load_circuit, work_on_run
from interlock.cli.app import DefaultVerb, ExitCode, app
from interlock.cli.delivery_output import as_json, summary, watched
from interlock.cli.delivery_output import format_status as in_words
from interlock.cli.options import (
    Agents,
    Limited,
    Limits,
    New,
    Parallel,
    RateLimitPolicy,
    RunFlags,
    Slots,
    Wait,
    merge_config,
    read_thresholds,
)
from interlock.cli.output import (
    Db,
    Json,
    RunId,
    Sets,
    TerminalDisplay,
    document,
    open_project,
    say,
    tell,
)
from interlock.cli.run import exit_with, take_up
from interlock.delivery.delivering import (
    DeliveryOptions,
    agreed,
    begin,
    find_delivery,
    free_slug,
    go_on,
    refuse_vacancies,
    terms_of,
    told_of,
    with_roles,
    with_stand_ins,
)
from interlock.delivery.dry_run import format_dry_run, plan_dry_run
from interlock.delivery.report.render import write_report
from interlock.system.errors import SourceError, StateError

if TYPE_CHECKING:
    from collections.abc import Callable

    from sqlalchemy import Connection

    from interlock.api.project import Project
    from interlock.delivery.dry_run import DryRun
    from interlock.delivery.report.records import DeliveryReport
    from interlock.runtime.agent_pool import AgentPool


deliver = typer.Typer(
    name="deliver",
    cls=DefaultVerb,
    help="Carry out a plan: written, reviewed, audited, proven, merged.",
    no_args_is_help=True,
    rich_markup_mode=None,
)
app.add_typer(deliver)

PlanFile = Annotated[Path, typer.Argument(metavar="PLAN", help="The plan, as Markdown or YAML.")]
Repo = Annotated[
    Path, typer.Option("--repo", metavar="PATH", help="The repository; default: this folder.")
]
BaseRev = Annotated[
    str, typer.Option("--base", metavar="REV", help="Where the work begins; default HEAD.")
]
Strict = Annotated[
    bool, typer.Option("--strict-signals", help="Answers must repeat their dispatch's mark.")
]
Untestable = Annotated[
    bool, typer.Option("--allow-untestable", help="Take tasks without acceptance criteria.")
]
DryRunFlag = Annotated[
    bool, typer.Option("--dry-run", help="Only say what would run and cost; touch nothing.")
]
OnceOnly = Annotated[
    bool, typer.Option("--once", help="Give each task one agent's turn, then stop.")
]
_EXITS = {
    "COMPLETE": ExitCode.DONE,
    "PARTIAL": ExitCode.UNHEALTHY,
    "FAILED": ExitCode.UNHEALTHY,
    "HALTED": ExitCode.FAILED,
}
_ADVICE = {
    "rate-limited": "'interlock deliver {plan}' goes on when the limit is over",
    "budget": "the budget is spent: 'interlock deliver {plan} --budget …' goes on",
    "stopped": "'interlock deliver {plan}' goes on",
}
"""How a run goes on that waits for no human."""


@deliver.command()
def run(
    plan: PlanFile,
    repo: Repo = Path(),
    base: BaseRev = "HEAD",
    agent: Agents = None,
    slots: Slots = None,
    parallel: Parallel = None,
    budget: Limits = None,
    sets: Sets = None,
    strict_signals: Strict = False,
    allow_untestable: Untestable = False,
    new: New = False,
    dry_run: DryRunFlag = False,
    once: OnceOnly = False,
    wait: Wait = False,
    on_limit: Limited = RateLimitPolicy.WAIT,
    db: Db = None,
    json: Json = False,
) -> None:
    """Carry out a plan. Run again after a stop or crash, it goes on where it was."""
    from interlock.api.circuits import Circuit
    from interlock.cli.circuits import refuse_unsound
    from interlock.journal.runs import find_newest_run, find_run

    project = open_project(db)
    settings = project.settings
    wishes = DeliveryOptions(plan, repo, base, strict_signals, allow_untestable)
    own = Circuit.load("delivery", project.path)
    changed, changes = own.with_thresholds(settings.thresholds, read_thresholds(sets or ()))
    refuse_unsound(changed.source, own.source.circuit)
    before = with_roles(project.new_config("delivery", changes), settings)
    options = with_stand_ins(merge_config(before, RunFlags(agent, slots, budget, parallel)))
    if dry_run:
        _rehearse(plan_dry_run(wishes, project, changed.source, options), json=json)
        return
    refuse_vacancies(changed.source.circuit, options)
    pool = project.build_pool(changed.source.circuit, options)
    with project.write() as connection:
        run_id = None if new else find_newest_run(connection, wishes.mark)
        if run_id is None:
            terms = agreed(wishes, settings, project.db, free_slug(wishes, project.db))
            run_id = begin(connection, own.bundle, options, terms, wishes.mark)
        else:
            found = find_run(connection, run_id)
            config = go_on(connection, found, options, tell)
            pool = project.build_pool(load_circuit(found), config)
        _work_on(project, connection, run_id, pool, wait, on_limit, once=once, json=json)


def resume_run(
    project: "Project",
    run_id: int,
    flags: RunFlags,
    *,
    wait: bool,
    on_limit: RateLimitPolicy,
    json: bool,
) -> None:
    """Go on with a delivery, show its board, and write its report."""
    with project.write() as connection:
        _, pool = take_up(project, connection, run_id, flags)
        _work_on(project, connection, run_id, pool, wait, on_limit, json=json)


def _work_on(
    project: "Project",
    connection: "Connection",
    run_id: int,
    pool: "AgentPool",
    wait: bool,
    on_limit: RateLimitPolicy,
    *,
    once: bool = False,
    json: bool,
) -> None:
    from interlock.journal.runs import find_run
    from interlock.runtime.settings import RunConfig

    found = find_run(connection, run_id)
    agents = msgspec.convert(found.options, RunConfig).agents
    result = work_on_run(
        connection,
        found,
        pool,
        display=_BoardDisplay(project, partial(watched, connection, run_id, project.db, agents)),
        wait_for_humans=wait,
        wait_for_limits=on_limit == RateLimitPolicy.WAIT,
        once=once,
    )
    _report(connection, run_id, result, project.db, json=json, once=once)


class _BoardDisplay(TerminalDisplay):
    """The live board in the place of the progress bar."""

    def __init__(self, project: "Project", board: "Callable[[], Any]") -> None:
        super().__init__(project)
        self.show_progress = board  # type: ignore[method-assign]


def _rehearse(told: "DryRun", *, json: bool) -> None:
    """Say what would be done; leave with exit 6 if it could not even begin."""
    if json:
        document({**msgspec.to_builtins(told), "can_go": told.can_start})
    else:
        for line in format_dry_run(told):
            say(line)
    if not told.can_start:
        raise typer.Exit(ExitCode.FINDINGS)


def _report(
    connection: "Connection", run_id: int, result: RunResult, path: Path, *, json: bool, once: bool
) -> None:
    """Say how a run came out, write its report, and leave with its exit code."""
    from interlock.journal.runs import find_run

    for note in result.notes:
        tell(f"note: {note}")
    found = find_run(connection, run_id)
    told = told_of(connection, found, path, result.notes, sat=True)
    files = _written(told)
    more = once and result.status == "stopped" and result.stopped_by is None
    if json:
        document({**as_json(told), "report": files})
    else:
        for line in summary(told, *files[:1]):
            say(line)
        for line in _advice(result, told, more):
            say(line)
    if told.outcome in _EXITS:
        raise typer.Exit(_EXITS[told.outcome])
    if more:
        raise typer.Exit(ExitCode.WAITING if told.count_tasks("asks") else ExitCode.DONE)
    exit_with(result)


def _written(told: "DeliveryReport") -> list[str]:
    """The files of the report. A run that is over is told, whatever becomes of its report."""
    try:
        return write_report(told)
    except SourceError as error:
        tell(f"note: there is no report: {error}")
        return []


def _advice(result: RunResult, told: "DeliveryReport", more: bool) -> list[str]:
    if more:
        return [f"one round is done; 'interlock deliver {told.plan} --once' sends the next"]
    return [_ADVICE[result.status].format(plan=told.plan)] if result.status in _ADVICE else []


Html = Annotated[
    Path | None, typer.Option("--html", metavar="FILE", help="Write the page to this file.")
]
Markdown = Annotated[
    Path | None, typer.Option("--markdown", metavar="FILE", help="Write Markdown to this file.")
]

KEPT_BESIDE = ("baselines", "checked", "experts", "plan.json")
"""What a delivery keeps in its folder beside the workshop's own things."""


@deliver.command()
def status(run_id: RunId = None, db: Db = None, json: Json = False) -> None:
    """How each task of a delivery stands. Disturbs nobody, also while it is at work."""

    project = open_project(db)
    with project.read() as connection:
        told = told_of(connection, find_delivery(connection, run_id), project.db)
    if json:
        document(as_json(told))
        return
    for line in in_words(told):
        say(line)


@deliver.command()
def report(
    run_id: RunId = None,
    html: Html = None,
    markdown: Markdown = None,
    db: Db = None,
    json: Json = False,
) -> None:
    """Tell a delivery: per task what was done, by whom, the evidence and every decision."""
    from interlock.delivery.report.render import write_report

    project = open_project(db)
    with project.read() as connection:
        told = told_of(connection, find_delivery(connection, run_id), project.db)
    written = write_report(told, html, markdown)
    if json:
        document({"run_id": told.run_id, "outcome": told.outcome, "files": written})
        return
    for file in written:
        say(file)


@deliver.command()
def clean(
    run_id: RunId = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only say what would be removed.")
    ] = False,
    force: Annotated[
        bool, typer.Option("--force", help="Also remove work that is nowhere else.")
    ] = False,
    db: Db = None,
    json: Json = False,
) -> None:
    """Remove a delivery's clone and trees. Work that is nowhere else stays; so do the reports."""
    from interlock.delivery.worktrees.workspace import clean_workspace as cleaned
    from interlock.journal.runs import FINISHED

    project = open_project(db)
    with project.read() as connection:
        found = find_delivery(connection, run_id)
    if found.status not in FINISHED and not (dry_run or force):
        raise StateError(
            f"run {found.run_id} is not over and needs its trees; finish it, or use --force"
        )
    home = Path(terms_of(found).home)
    rows = cleaned(home, dry_run=dry_run, force=force, also=KEPT_BESIDE)
    kept = [each for each in rows if each.is_kept]
    if json:
        fields = [{"path": each.path, "kept_because": each.reason} for each in rows]
        document({"run_id": found.run_id, "home": str(home), "dry_run": dry_run, "rows": fields})
    else:
        verb = "would remove" if dry_run else "removed"
        for each in rows:
            say(f"kept {each.path}: {each.reason}" if each.is_kept else f"{verb} {each.path}")
        if not rows:
            say("there is nothing to remove")
    if kept:
        raise typer.Exit(ExitCode.UNHEALTHY)
