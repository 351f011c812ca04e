"""The verb that tells ReportPortal what was found. Only reviewed cases, and dry unless told."""

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import msgspec
import typer

from interlock.api.answering import user
from interlock.cli.analyze import SuiteId
from interlock.cli.door import ExitCode, app
from interlock.cli.show import Db, Json, counted, document, say
from interlock.rca import suites
from interlock.system.errors import StateError

if TYPE_CHECKING:
    from interlock.rca.launch import Launch
    from interlock.rca.sources.reportportal.push import Pushed


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
    from interlock.rca.knowledge.suites import launches_of, suite_cases
    from interlock.rca.outward import updates
    from interlock.rca.sources.reportportal.project import ReportPortal
    from interlock.rca.sources.reportportal.push import push as send
    from interlock.rca.sources.reportportal.rp_address import URL, address
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
