"""Checks of `interlock doctor`: a server's durability, and the work queue."""

from collections.abc import Iterator

from interlock.api.checks import DoctorCheck
from interlock.api.project import Project
from interlock.journal.address import PostgresAddress
from interlock.journal.database import explain_errors
from interlock.system.errors import InterlockError
from interlock_cluster import postgres, queue


def check_cluster(project: Project) -> Iterator[DoctorCheck]:
    """Yield the checks of the project's server, if its database is on one."""
    if not isinstance(project.db, PostgresAddress):
        return
    try:
        yield from _check_server(project.db)
        yield from _check_queue(project.db)
    except InterlockError as error:
        yield DoctorCheck("store.server", False, str(error))


def _check_server(address: PostgresAddress) -> Iterator[DoctorCheck]:
    with explain_errors(address), postgres.connect(address, "ro") as connection:
        server = postgres.server_connection(connection)
        facts, size = server.facts, postgres.read_size(connection)
        fsync, encrypted = postgres.read_safety(connection)
    major = facts.version // 10_000
    about = f"{address}, PostgreSQL {major}, {size:,} bytes"
    yield DoctorCheck("store.server", not facts.read_only, about)
    safe = "what is committed is on disk" if fsync else "fsync is off: a power cut loses work"
    yield DoctorCheck("store.durable", fsync, safe)
    if not encrypted:
        plain = "the connection is not encrypted: use sslmode=verify-full beyond this machine"
        yield DoctorCheck("store.tls", True, plain, note=True)
    if server.is_pooled:
        pooled = "a pooler is between: nothing is prepared, and coordinators hear by polling only"
        yield DoctorCheck("store.pooler", True, pooled, note=True)


def _check_queue(address: PostgresAddress) -> Iterator[DoctorCheck]:
    """Yield whether the database's queue fits the installed versions."""
    try:
        installed = queue.find_procrastinate()
    except InterlockError as error:
        yield DoctorCheck("queue.procrastinate", True, str(error), note=True)
        return
    server = postgres.open_driver(address, "ro")
    try:
        found = queue.describe_queue(server)
    finally:
        server.close()
    if found is None:
        yield DoctorCheck("queue.schema", True, "no work queue yet: 'interlock init-db' makes it")
    elif found == (queue.VERSION, installed):
        yield DoctorCheck("queue.schema", True, f"version {found[0]}, procrastinate {found[1]}")
    else:
        message = (
            f"the work queue is of version {found[0]} with procrastinate {found[1]}, this host has "
            f"{queue.VERSION} with {installed}: install the same everywhere, then 'interlock "
            "init-db'"
        )
        yield DoctorCheck("queue.schema", found[0] == queue.VERSION, message, note=True)
