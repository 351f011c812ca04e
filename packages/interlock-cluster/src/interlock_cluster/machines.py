"""Make a project's database with its roles, and move it to another place."""

from collections.abc import Callable

from interlock.api.project import Project
from interlock.api.work import load_circuit
from interlock.journal.address import PostgresAddress, parse_address
from interlock.journal.audit import audit
from interlock.journal.database import has_database, open_writer
from interlock.journal.history import compute_digest
from interlock.journal.runs import list_runs
from interlock.runtime.application import find_application, list_applications
from interlock.system.errors import StateError, UsageError
from interlock_cluster import move
from interlock_cluster.move import Moved


def initialize_database(project: Project, *, roles: bool) -> list[str]:
    """Make the database, or bring it up to date, with a server's roles if `roles` is set; return
    the roles."""
    with open_writer(project.db) as connection:
        if not isinstance(project.db, PostgresAddress):
            if roles:
                raise UsageError(
                    f"{project.db} is a file: it has no roles, only the rights of files"
                )
            return []
        from interlock_cluster import queue
        from interlock_cluster.postgres import schema_transaction, server_connection
        from interlock_cluster.roles import grant_roles

        queue.ensure_queue(server_connection(connection))
        if not roles:
            return []
        with schema_transaction(connection):
            made = grant_roles(connection)
            queue.grant_roles(server_connection(connection))
            return made


def move_database(
    project: Project, source: str, target: str, report: Callable[[str], None]
) -> Moved:
    """Copy a whole journal, compare both databases, and seal the source. Safe to run again."""
    here, there = (parse_address(each, project.path) for each in (source, target))
    if not has_database(here):
        raise StateError(f"there is no journal in {here} to move")
    with move.open_both(here, there) as (old, new):
        move.check_source(old, here, new)
        move.mark_target(new, there)
        rows = move.copy_rows(old, new, report)
        different = move.find_differences(old, new)
        if different:
            raise StateError(
                f"{', '.join(different)} did not arrive as they were; nothing is sealed: go on "
                f"with {here}, and move to an empty database"
            )
        runs = list_runs(new)
        for run in runs:
            if compute_digest(old, run.run_id) != compute_digest(new, run.run_id):
                raise StateError(f"run {run.run_id} did not arrive as it was; nothing is sealed")
        more = {name: find_application(name).audits for name in list_applications()}
        if faults := audit(new, load_circuit, more):
            first = faults[0]
            raise StateError(
                f"{here} has faults ({first.subject}: {first.message}); 'interlock doctor --deep' "
                "lists them. Nothing is sealed"
            )
        move.finish(old, new)
    return Moved(str(here), str(there), len(runs), rows)
