"""The verb quarantine: add, rm, list, check."""

from pathlib import Path
from typing import Annotated

import msgspec
import typer

from interlock.cli.app import ExitCode, app
from interlock.cli.output import Json, echo, echo_json, echo_table
from interlock.system.errors import UsageError
from interlock.system.text import fit_columns, plural
from interlock_history import quarantine
from interlock_history.cli.ingest import (
    ProjectName,
    Store,
    Today,
    choose_project,
    open_history,
    parse_day,
)
from interlock_history.settings import read_history_settings

quarantine_app = typer.Typer(
    help="Tests whose failures do not count for a while.", no_args_is_help=True
)
app.add_typer(quarantine_app, name="quarantine")

Pattern = Annotated[str, typer.Argument(metavar="TEST", help="Its id; * stands for anything.")]


@quarantine_app.command("add")
def add(
    test: Pattern,
    owner: Annotated[str, typer.Option("--owner", metavar="WHO", help="Who looks after it.")],
    reason: Annotated[str, typer.Option("--reason", metavar="WHY", help="Why, or an issue.")],
    days: Annotated[int, typer.Option("--days", metavar="N", help="For how long.")] = 14,
    job: Annotated[
        str, typer.Option("--job", metavar="JOB", help="Only in this job and variant.")
    ] = "",
    on: Today = "",
    json: Json = False,
) -> None:
    """Quarantine a test. It keeps running; its failures do not fail the build."""
    settings = read_history_settings()
    path, today = Path(settings.quarantine), parse_day(on)
    entry = quarantine.make_entry(test, owner, reason, today, days, settings, job)
    quarantine.add_entry(path, entry)
    if json:
        echo_json({"file": str(path), "entry": msgspec.to_builtins(entry)})
        return
    echo(f"{entry.test} is quarantined until {entry.expires} by {entry.owner}; commit {path}")


@quarantine_app.command("rm")
def remove(test: Pattern, json: Json = False) -> None:
    """End the quarantine of a test."""
    path = Path(read_history_settings().quarantine)
    if not quarantine.remove_entries(path, test):
        raise UsageError(f"{test} is not in {path}; 'interlock quarantine list' shows what is")
    if json:
        echo_json({"file": str(path), "removed": test})
        return
    echo(f"{test} is no longer quarantined; commit {path}")


@quarantine_app.command("list")
def show_all(on: Today = "", json: Json = False) -> None:
    """List all entries, and how long they last."""
    settings = read_history_settings()
    entries = quarantine.read_quarantine(Path(settings.quarantine)).entries
    today = parse_day(on)
    if json:
        rows = [{**msgspec.to_builtins(each), "active": each.expires >= today} for each in entries]
        echo_json({"tests": rows})
        return
    echo_table(
        ("UNTIL", "OWNER", "TEST", "REASON"),
        [
            (
                f"{each.expires}{'' if each.expires >= today else ' (expired)'}",
                each.owner,
                f"{each.test}  [{each.job}]" if each.job else each.test,
                fit_columns(each.reason, 60),
            )
            for each in entries
        ],
    )
    if not entries:
        echo("nothing is quarantined")


@quarantine_app.command("check")
def check(
    on: Today = "", project: ProjectName = "", store: Store = None, json: Json = False
) -> None:
    """List entries that have expired, whose tests have healed, or that match no test. Exits with 6
    if there are any."""
    memory = open_history(store)
    path = Path(memory.settings.quarantine)
    entries = quarantine.read_quarantine(path)
    checked = quarantine.check_quarantine(
        entries, memory, choose_project(memory, project), parse_day(on)
    )
    found = [each for each in checked if each.findings]
    if json:
        echo_json({"file": str(path), "tests": [msgspec.to_builtins(each) for each in checked]})
    else:
        for each in checked:
            mark = "!" if each.findings else " "
            echo(f"{mark} {each.entry.test} ({each.entry.owner}): {each.text}")
        echo(f"{plural(len(checked), 'entry', 'entries')}, {len(found)} to decide on")
    if found:
        raise typer.Exit(ExitCode.FINDINGS)
