"""The verb doctor: is this machine fit, and with --deep, is the database sound to the last row?"""

from collections.abc import Iterator
from importlib.util import find_spec
from typing import TYPE_CHECKING, Annotated

import msgspec
import typer

from interlock.cli.app import ExitCode, app
from interlock.cli.output import Db, Json, echo, echo_json, open_project

if TYPE_CHECKING:
    from interlock.api.checks import DoctorCheck
    from interlock.api.project import Project


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
    checks = [*check_project(project, deep=deep), *_check_pages(project)]
    if json:
        echo_json({"checks": msgspec.to_builtins(checks), "ok": all(each.ok for each in checks)})
    for each in [] if json else checks:
        level = "note" if each.note else "ok  " if each.ok else "BAD "
        echo(f"{level}  {each.id}: {each.message}")
    if not all(each.ok for each in checks):
        raise typer.Exit(ExitCode.FINDINGS)


def _check_pages(project: "Project") -> "Iterator[DoctorCheck]":
    """Whether 'interlock serve' can show the pages that installed packages bring."""
    if find_spec("litestar") is None or find_spec("mcp") is None:
        return
    from interlock.api.checks import DoctorCheck
    from interlock.web.build import explain_left_out

    for name, why in explain_left_out(project).items():
        yield DoctorCheck(f"pages.{name}", False, why)
