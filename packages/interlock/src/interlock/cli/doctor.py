"""The verb doctor: check the machine and, with --deep, every row of the database."""

from collections.abc import Iterator
from importlib import metadata
from typing import TYPE_CHECKING, Annotated

import msgspec
import typer

from interlock.cli.app import ExitCode, app
from interlock.cli.output import Db, Json, echo, echo_json, open_project

if TYPE_CHECKING:
    from interlock.api.checks import DoctorCheck
    from interlock.api.project import Project

GROUP = "interlock.checks"
"""The entry-point group of packages' own checks: functions that take a project and yield checks."""


@app.command()
def doctor(
    deep: Annotated[
        bool, typer.Option("--deep", help="Also check that every case is the fold of its journal.")
    ] = False,
    db: Db = None,
    json: Json = False,
) -> None:
    """Check the machine and the database. Exit 6 on findings."""
    from interlock.api.checks import check_project

    project = open_project(db)
    checks = [*check_project(project, deep=deep), *_check_packages(project)]
    if json:
        echo_json({"checks": msgspec.to_builtins(checks), "ok": all(each.ok for each in checks)})
    for each in [] if json else checks:
        level = "note" if each.note else "ok  " if each.ok else "BAD "
        echo(f"{level}  {each.id}: {each.message}")
    if not all(each.ok for each in checks):
        raise typer.Exit(ExitCode.FINDINGS)


def _check_packages(project: "Project") -> "Iterator[DoctorCheck]":
    """Yield the checks of installed packages."""
    for entry in sorted(metadata.entry_points(group=GROUP)):
        yield from entry.load()(project)
