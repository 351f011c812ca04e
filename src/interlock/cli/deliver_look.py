"""Verbs that look at a delivery, tell it, and take its workshop away: status, report, clean."""

from pathlib import Path
from typing import Annotated

import typer

from interlock.cli.deliver import deliver
from interlock.cli.delivered import as_json
from interlock.cli.delivered import status as in_words
from interlock.cli.door import ExitCode
from interlock.cli.show import Db, Json, RunId, document, say
from interlock.delivery.delivering import find_delivery, terms_of, told_of
from interlock.system.errors import StateError

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
    from interlock.journal.database import reading
    from interlock.runtime.settings import database

    path = database(Path(), db)
    with reading(path) as connection:
        told = told_of(connection, find_delivery(connection, run_id), path)
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
    from interlock.delivery.report.delivery_report import write_report
    from interlock.journal.database import reading
    from interlock.runtime.settings import database

    path = database(Path(), db)
    with reading(path) as connection:
        told = told_of(connection, find_delivery(connection, run_id), path)
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
    from interlock.delivery.worktrees.cleanup import clean as cleaned
    from interlock.journal.database import reading
    from interlock.journal.runs import FINISHED
    from interlock.runtime.settings import database

    path = database(Path(), db)
    with reading(path) as connection:
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
