"""The verbs for many machines: coordinator, init-db, and db with its parts."""

import signal
import socket
from typing import Annotated

import typer

from interlock.cli.app import app
from interlock.cli.output import (
    Db,
    Json,
    Log,
    LogFormat,
    Metrics,
    echo,
    echo_json,
    echo_note,
    open_project,
    start_observing,
)


@app.command()
def coordinator(
    name: Annotated[
        str, typer.Option("--name", help="What others see at work; default the host's name.")
    ] = "",
    runs: Annotated[
        int, typer.Option("--runs", min=1, max=64, help="Runs to work on at the same time.")
    ] = 4,
    metrics: Metrics = "",
    log: Log = LogFormat.TEXT,
    db: Db = None,
    json: Json = False,
) -> None:
    """Work on runs that nobody works on, until stopped. SIGTERM hands all of them over at once.

    Needs a PostgreSQL database. Runs come from 'interlock run --detach', from coordinators that
    died or were stopped, and from people who answer a question.
    """
    from interlock.api.coordinator import Coordinator

    start_observing(log, metrics)
    project = open_project(db)
    name = name or socket.gethostname()
    made = Coordinator(project, name, echo_note, most_runs=runs)
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda _number, _frame: made.stop())
    echo_note(f"coordinator {name} is ready for runs of {project.db}")
    taken = made.run()
    echo_note(f"coordinator {name} has stopped")
    if json:
        echo_json({"name": name, "db": str(project.db), "taken": taken})


@app.command("init-db")
def init_db(
    roles: Annotated[
        bool,
        typer.Option("--roles", help="Also make the roles of a PostgreSQL server, and grant them."),
    ] = False,
    db: Db = None,
    json: Json = False,
) -> None:
    """Make the database, or bring it up to date. Any verb that writes does so, too.

    With --roles: interlock_coordinator, interlock_worker, interlock_reader and
    interlock_answerer, without a login of their own: grant them to users.
    """
    from interlock.api.machines import initialize_database

    project = open_project(db)
    made = initialize_database(project, roles=roles)
    if json:
        echo_json({"db": str(project.db), "roles": made})
        return
    echo(f"{project.db} is ready")
    for role in made:
        echo(f"role {role}: grant {role} to USER;")


db_app = typer.Typer(help="The database: move it.", no_args_is_help=True)
app.add_typer(db_app, name="db")


@db_app.callback()
def _group() -> None:
    """The database: move it from a file to PostgreSQL, or back."""


@db_app.command("move")
def move(
    source: Annotated[str, typer.Argument(metavar="FROM", help="A file, or postgresql://…")],
    target: Annotated[str, typer.Argument(metavar="TO", help="A file, or postgresql://…")],
    json: Json = False,
) -> None:
    """Carry a whole journal over to another database, and seal the old one.

    Everything is compared before the old one is sealed. Run it again if it was interrupted.
    """
    from interlock.api.machines import move_database

    project = open_project()
    moved = move_database(project, source, target, echo_note)
    if json:
        echo_json(moved)
    else:
        echo(f"moved {moved.runs} runs and {moved.rows:,} rows to {moved.target}")
        echo(f"{moved.source} is sealed; use --db or INTERLOCK_DB to name the new one")
