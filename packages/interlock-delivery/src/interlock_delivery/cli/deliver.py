"""The verbs of deliver: carry out a plan, show its status, write its report, clean up."""

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
import typer

from interlock.api.start import go_on
from interlock.api.work import RunResult, SessionTerms, load_circuit, work_on_run
from interlock.cli.app import DefaultVerb, ExitCode, app, exit_with
from interlock.cli.options import (
    New,
    RunFlags,
    WaitFlags,
    expand_options,
    read_thresholds,
)
from interlock.cli.output import (
    Db,
    Json,
    Sets,
    TerminalDisplay,
    echo,
    echo_json,
    echo_note,
    open_project,
)
from interlock.runtime.settings import RunConfig
from interlock.system.errors import SourceError
from interlock_delivery.cli.board import show_board
from interlock_delivery.dry_run import format_dry_run, plan_dry_run
from interlock_delivery.report.collect import load_report
from interlock_delivery.report.render import write_report
from interlock_delivery.report.text import build_json, format_status, format_summary
from interlock_delivery.start import (
    DeliveryOptions,
    add_role_settings,
    add_stand_ins,
    begin_delivery,
    build_config,
    choose_slug,
    clean_delivery,
    continue_delivery,
    find_delivery,
    find_earlier_run,
    find_earlier_run_id,
    read_config,
    require_agents,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from interlock.api.project import Project
    from interlock.api.records import Connection
    from interlock.runtime.agent_pool import AgentPool
    from interlock_delivery.dry_run import DryRun
    from interlock_delivery.report.records import DeliveryReport


deliver = typer.Typer(
    name="deliver",
    cls=DefaultVerb,
    help="Carry out a plan: written, reviewed, audited, proven, merged.",
    no_args_is_help=True,
    rich_markup_mode=None,
)
app.add_typer(deliver)

PlanFile = Annotated[Path, typer.Argument(metavar="PLAN", help="The plan, as Markdown.")]
Repo = Annotated[
    Path, typer.Option("--repo", metavar="PATH", help="The repository; default: this folder.")
]
BaseRev = Annotated[
    str, typer.Option("--base", metavar="REV", help="Where the work begins; default HEAD.")
]
Strict = Annotated[
    bool, typer.Option("--strict-signals", help="Answers must repeat their dispatch's nonce.")
]
Untestable = Annotated[
    bool, typer.Option("--allow-untestable", help="Accept tasks without acceptance criteria.")
]
DryRunFlag = Annotated[
    bool,
    typer.Option("--dry-run", help="Only show what would run and its worst case; change nothing."),
]
OnceOnly = Annotated[
    bool, typer.Option("--once", help="Give each task one agent's turn, then stop.")
]
Which = Annotated[
    str | None,
    typer.Argument(metavar="RUN|PLAN", help="A run's number or a plan; default the newest."),
]
Html = Annotated[
    Path | None, typer.Option("--html", metavar="FILE", help="Write the page to this file.")
]
Markdown = Annotated[
    Path | None, typer.Option("--markdown", metavar="FILE", help="Write Markdown to this file.")
]
_EXITS = {
    "COMPLETE": ExitCode.DONE,
    "PARTIAL": ExitCode.UNHEALTHY,
    "FAILED": ExitCode.UNHEALTHY,
    "HALTED": ExitCode.FAILED,
}
_ADVICE = {
    "rate-limited": "'interlock deliver {plan}' continues when the limit is over",
    "budget": "the budget is spent: 'interlock deliver {plan} --budget …' continues",
    "stopped": "'interlock deliver {plan}' continues",
}
"""Advice on continuing a run that does not wait for a human."""


@deliver.command()
@expand_options("flags", RunFlags)
@expand_options("waits", WaitFlags)
def run(
    plan: PlanFile,
    flags: RunFlags,
    waits: WaitFlags,
    repo: Repo = Path(),
    base: BaseRev = "HEAD",
    sets: Sets = None,
    strict_signals: Strict = False,
    allow_untestable: Untestable = False,
    new: New = False,
    dry_run: DryRunFlag = False,
    once: OnceOnly = False,
    db: Db = None,
    json: Json = False,
) -> None:
    """Carry out a plan. Run it again after a stop or crash to continue where it left off."""
    project = open_project(db)
    settings = project.settings
    options = DeliveryOptions(plan, repo, base, strict_signals, allow_untestable)
    circuit, changes = project.prepare_circuit("delivery", read_thresholds(sets or ()))
    config = project.new_config("delivery", changes)
    config = add_stand_ins(flags.change_config(add_role_settings(config, settings)))
    if dry_run:
        _report_dry_run(plan_dry_run(options, project, circuit.source, config), json=json)
        return
    if new or find_earlier_run_id(project, options) is None:
        # Refuse before anything is created, so that a missing agent leaves no trace.
        require_agents(circuit.source.circuit, config)
        project.build_pool(circuit.source.circuit, config)
    with project.write() as connection:
        found = None if new else find_earlier_run(connection, options)
        if found is None:
            own = build_config(options, settings, project.db, choose_slug(options, project.db))
            found = begin_delivery(connection, circuit.bundle, config, own, options.fingerprint)
        else:
            found = continue_delivery(connection, found, flags.change_config)
            echo_note(f"continuing run {found.run_id} of this plan (--new starts another)")
        table, config = load_circuit(found), msgspec.convert(found.options, RunConfig)
        require_agents(table, config)
        pool = project.build_pool(table, config)
        _work_on(project, connection, found.run_id, pool, waits, once=once, json=json)


def resume_run(
    project: "Project",
    run_id: int,
    flags: RunFlags,
    waits: WaitFlags,
    *,
    json: bool,
) -> None:
    """Continue a delivery, show its board, and write its report."""
    with project.write() as connection:
        found, pool, _ = go_on(project, connection, run_id, flags.change_config)
        _work_on(project, connection, found.run_id, pool, waits, json=json)


def _work_on(
    project: "Project",
    connection: "Connection",
    run_id: int,
    pool: "AgentPool",
    waits: WaitFlags,
    *,
    once: bool = False,
    json: bool,
) -> None:
    """Work until the run ends or waits, report the outcome, and exit with its code."""
    run = project.find_run(connection, run_id)
    agents = msgspec.convert(run.options, RunConfig).agents
    board = partial(show_board, connection, run_id, project.db, agents)
    result = work_on_run(
        connection,
        run,
        pool,
        SessionTerms(once=once, **waits.choices),
        display=_BoardDisplay(project, board),
    )
    for note in result.notes:
        echo_note(f"note: {note}")
    report = load_report(connection, run_id, notes=result.notes)
    files = _write_files(report)
    stopped_by_once = once and result.status == "stopped" and result.stopped_by is None
    if json:
        echo_json({**build_json(report), "report": files})
    else:
        for line in (
            *format_summary(report, *files[:1]),
            *_advise(result, report, stopped_by_once),
        ):
            echo(line)
    if report.outcome in _EXITS:
        raise typer.Exit(_EXITS[report.outcome])
    if stopped_by_once:
        raise typer.Exit(ExitCode.WAITING if report.count_tasks("asks") else ExitCode.DONE)
    exit_with(result)


class _BoardDisplay(TerminalDisplay):
    """Shows the live board instead of the progress bar."""

    def __init__(self, project: "Project", board: "Callable[[], Any]") -> None:
        super().__init__(project)
        self.show_progress = board  # type: ignore[method-assign]


def _report_dry_run(dry_run: "DryRun", *, json: bool) -> None:
    """Print the dry run; exit with 6 if the delivery could not start."""
    if json:
        echo_json({**msgspec.to_builtins(dry_run), "can_go": dry_run.can_start})
    else:
        for line in format_dry_run(dry_run):
            echo(line)
    if not dry_run.can_start:
        raise typer.Exit(ExitCode.FINDINGS)


def _write_files(report: "DeliveryReport") -> list[str]:
    """Write the report's files; failing to write them only prints a note."""
    try:
        return write_report(report)
    except SourceError as error:
        echo_note(f"note: no report was written: {error}")
        return []


def _advise(result: RunResult, report: "DeliveryReport", stopped_by_once: bool) -> list[str]:
    if stopped_by_once:
        return [f"one round is done; 'interlock deliver {report.plan} --once' starts the next"]
    return [_ADVICE[result.status].format(plan=report.plan)] if result.status in _ADVICE else []


@deliver.command()
def status(which: Which = None, db: Db = None, json: Json = False) -> None:
    """Show the state of each task of a delivery. Safe to use during a run."""
    report = _read_report(which, db)
    if json:
        echo_json(build_json(report))
        return
    for line in format_status(report):
        echo(line)


@deliver.command()
def report(
    which: Which = None,
    html: Html = None,
    markdown: Markdown = None,
    db: Db = None,
    json: Json = False,
) -> None:
    """Write the report: what was done for each task, by whom, the evidence, every decision."""
    found = _read_report(which, db)
    written = write_report(found, html, markdown)
    if json:
        echo_json({"run_id": found.run_id, "outcome": found.outcome, "files": written})
        return
    for file in written:
        echo(file)


def _read_report(which: str | None, db: str | None) -> "DeliveryReport":
    project = open_project(db)
    with project.read() as connection:
        run_id = find_delivery(connection, which).run_id
        return load_report(connection, run_id, is_active=project.writer() is not None)


@deliver.command()
def clean(
    which: Which = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only say what would be removed.")
    ] = False,
    force: Annotated[
        bool, typer.Option("--force", help="Also remove work that is nowhere else.")
    ] = False,
    db: Db = None,
    json: Json = False,
) -> None:
    """Remove a delivery's clone and worktrees. Keep reports and work that exists nowhere else."""
    project = open_project(db)
    with project.read() as connection:
        found = find_delivery(connection, which)
    rows = clean_delivery(found, dry_run=dry_run, force=force)
    if json:
        home = read_config(found).home
        fields = [{"path": row.path, "kept_because": row.reason} for row in rows]
        echo_json({"run_id": found.run_id, "home": home, "dry_run": dry_run, "rows": fields})
    else:
        verb = "would remove" if dry_run else "removed"
        for row in rows:
            echo(f"kept {row.path}: {row.reason}" if row.is_kept else f"{verb} {row.path}")
        if not rows:
            echo("there is nothing to remove")
    if any(row.is_kept for row in rows):
        raise typer.Exit(ExitCode.UNHEALTHY)
