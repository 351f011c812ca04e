"""Verbs of what is known: the root causes that were found, and what became of them."""

import time
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import msgspec
import typer

from interlock.cli.door import app
from interlock.cli.show import Db, Json, document, say, table


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
    from interlock.rca.knowledge.knowledge import causes as known
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
    from interlock.rca.knowledge.knowledge import rca
    from interlock.rca.knowledge.lifecycle import set_rca_status, set_ticket
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
