"""Verbs that look at a delivery, tell it, and take its workshop away: status, report, clean."""

from pathlib import Path
from typing import Annotated

import typer

from interlock.cli.deliver import deliver
from interlock.cli.delivered import as_json
from interlock.cli.delivered import status as in_words
from interlock.cli.delivering import find_delivery, told_of
from interlock.cli.show import Db, Json, RunId, document, say

Html = Annotated[
    Path | None, typer.Option("--html", metavar="FILE", help="Write the page to this file.")
]
Markdown = Annotated[
    Path | None, typer.Option("--markdown", metavar="FILE", help="Write Markdown to this file.")
]


@deliver.command()
def status(run_id: RunId = None, db: Db = None, json: Json = False) -> None:
    """How each task of a delivery stands. Disturbs nobody, also while it is at work."""
    from interlock import wiring
    from interlock.store.database import reading

    path = wiring.database(Path(), db)
    with reading(path) as connection:
        told = told_of(connection, find_delivery(connection, run_id), path)
    if json:
        document(as_json(told))
        return
    for line in in_words(told):
        say(line)


@deliver.command()
def report(
    run_id: RunId = None, html: Html = None, markdown: Markdown = None,
    db: Db = None, json: Json = False,
) -> None:  # fmt: skip
    """Tell a delivery: per task what was done, by whom, the evidence and every decision."""
    from interlock import wiring
    from interlock.cli.delivery_report import write_report
    from interlock.store.database import reading

    path = wiring.database(Path(), db)
    with reading(path) as connection:
        told = told_of(connection, find_delivery(connection, run_id), path)
    written = write_report(told, html, markdown)
    if json:
        document({"run_id": told.run_id, "outcome": told.outcome, "files": written})
        return
    for file in written:
        say(file)
