"""The verbs for many machines: coordinator, worker, workers, init-db, and db."""

import signal
import socket
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

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
    echo_table,
    open_project,
    start_observing,
)
from interlock.system.errors import UsageError

if TYPE_CHECKING:
    from interlock.api.workers import WorkerStatus


@app.command()
def coordinator(
    name: Annotated[
        str, typer.Option("--name", help="Name shown to others; default the host's name.")
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
    from interlock_cluster.coordinator import Coordinator

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


Lease = Annotated[
    float,
    typer.Option(
        "--lease",
        min=1,
        max=600,
        metavar="SECONDS",
        help="Silence after which this worker's dispatches are offered again.",
    ),
]
Grace = Annotated[
    float,
    typer.Option(
        "--grace", min=0, metavar="SECONDS", help="Time for agents to finish after SIGTERM."
    ),
]


@app.command()
def worker(
    role: Annotated[
        list[str],
        typer.Option("--role", metavar="ROLE=AGENT", help="Who answers a role; may be repeated."),
    ],
    slots: Annotated[
        int, typer.Option("--slots", min=1, max=10_000, help="Dispatches at the same time.")
    ] = 1,
    label: Annotated[
        list[str] | None,
        typer.Option("--label", help="Also take what is for this label; may be repeated."),
    ] = None,
    name: Annotated[
        str, typer.Option("--name", help="Name shown to others; default the host's name.")
    ] = "",
    lease: Lease = 15.0,
    grace: Grace = 600.0,
    metrics: Metrics = "",
    log: Log = LogFormat.TEXT,
    db: Db = None,
    json: Json = False,
) -> None:
    """Answer dispatches of some roles with agents of this host, until stopped.

    Needs a PostgreSQL database. Runs whose agent for a role is 'worker', or 'worker:LABEL', offer
    their dispatches to workers: 'interlock run … --agent developer=worker'. After SIGTERM the
    worker takes nothing new and lets agents finish; after a second one it gives everything back.
    """
    from interlock_cluster.worker_process import Worker, WorkerOptions

    start_observing(log, metrics)
    options = WorkerOptions(name, slots, label or (), lease, grace)
    made = Worker(open_project(db), _parse_roles(role), echo_note, options)
    who = made.identity
    done = made.run()
    echo_note(f"worker {who.name} has stopped")
    if json:
        echo_json({"name": who.name, "worker_id": who.worker_id, "done": done})


def _parse_roles(words: list[str]) -> dict[str, str]:
    found: dict[str, str] = {}
    for word in words:
        role, equals, agent = word.partition("=")
        if not equals or not role or not agent:
            raise UsageError(f"--role {word}: write ROLE=AGENT, as in developer=claude")
        if role in found:
            raise UsageError(f"--role {word}: {role} has the agent {found[role]} already")
        found[role] = agent
    return found


@app.command()
def workers(db: Db = None, json: Json = False) -> None:
    """List the workers of the database, and the dispatches of each.

    A worker that is silent for longer than its lease is dead, and still listed for a while.
    """
    from interlock.api.workers import list_workers
    from interlock_cluster.worker_process import describe_since, to_dict

    project = open_project(db)
    if isinstance(project.db, Path):
        raise UsageError(f"{project.db} is a file: only a PostgreSQL database has workers")
    found = list_workers(project.db)
    if json:
        echo_json({"workers": [to_dict(each) for each in found]})
        return
    if not found:
        echo("no workers; start one with 'interlock worker --role ROLE=AGENT'")
        return
    echo_table(
        ("WORKER", "HOST", "PID", "STATE", "HEARD", "BUSY", "AGENTS", "LABELS", "SINCE"),
        (
            (
                each.name,
                each.host,
                each.pid,
                each.state,
                f"{each.silent:.0f} s ago",
                f"{len(each.dispatches)}/{each.slots}",
                ", ".join(f"{role}={agent}" for role, agent in each.agents.items()),
                ", ".join(each.labels) or "-",
                describe_since(each),
            )
            for each in found
        ),
    )
    for each in found:
        for line in _list_work(each):
            echo(line)


def _list_work(status: "WorkerStatus") -> list[str]:
    return [
        f"  {status.name}: dispatch {each.dispatch_id}, {each.case_id} {each.step} ({each.role})"
        f" for {each.seconds:.0f} s{f', {each.liveness}' if each.liveness else ''}"
        for each in status.dispatches
    ]


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
    from interlock_cluster.machines import initialize_database

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
    """Copy a whole journal to another database, and seal the old one.

    Both are compared before the old one is sealed. Run it again if it was interrupted.
    """
    from interlock_cluster.machines import move_database

    project = open_project()
    moved = move_database(project, source, target, echo_note)
    if json:
        echo_json(moved)
    else:
        echo(f"moved {moved.runs} runs and {moved.rows:,} rows to {moved.target}")
        echo(f"{moved.source} is sealed; use --db or INTERLOCK_DB to name the new one")
