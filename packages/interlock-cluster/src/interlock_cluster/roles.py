"""Least privilege on a PostgreSQL server: the rights of each role.

Roles without a login, to be granted to the users of a server. A reader sees everything; an answerer
may also leave answers, under the name that the server knows them by; a coordinator works on runs; a
worker may take dispatches from the work queue and answer them, and sees nothing of the journal.
Making tables takes the owner of the database.
"""

from interlock.journal.connection import Connection
from interlock_cluster.postgres import PostgresConnection, server_connection

COORDINATOR = "interlock_coordinator"
WORKER = "interlock_worker"
READER = "interlock_reader"
ANSWERER = "interlock_answerer"
ROLES = (COORDINATOR, WORKER, READER, ANSWERER)
GRANTS = (
    f"grant usage on schema {{schema}} to {', '.join(ROLES)}",
    f"grant select on schema_versions to {', '.join(ROLES)}",
    f"grant select on all tables in schema {{schema}} to {COORDINATOR}, {READER}, {ANSWERER}",
    f"grant insert, update, delete on all tables in schema {{schema}} to {COORDINATOR}",
    f"revoke insert, update, delete on schema_versions from {COORDINATOR}",
    # What is journaled is never changed, not even by those who write it.
    f"revoke update, delete on journal, dispatches, blobs, refusals, calls from {COORDINATOR}",
    f"grant usage, select, update on all sequences in schema {{schema}} to {COORDINATOR}",
    # Not `written_by`: who left it is the server's word.
    f"grant insert (box, name, body, run_id, at) on mail to {ANSWERER}",
)
_JOBS = "procrastinate_jobs, procrastinate_workers, procrastinate_events"
_JOBS += ", procrastinate_periodic_defers"
QUEUE_GRANTS = (
    f"grant usage on schema {{queue}} to {', '.join(ROLES)}",
    f"grant select, insert, update, delete on all tables in schema {{queue}} to {COORDINATOR}",
    f"grant usage, select, update on all sequences in schema {{queue}} to {COORDINATOR}, {WORKER}",
    f"grant execute on all functions in schema {{queue}} to {COORDINATOR}, {WORKER}",
    # Jobs hold numbers only. A worker learns what they are about by taking one.
    f"grant select, insert, update, delete on {_JOBS} to {WORKER}",
    f"grant select on workers, procrastinate_workers to {READER}, {ANSWERER}",
    f"grant execute on function interlock_now() to {READER}, {ANSWERER}",
)
"""The same for the work queue, with its schema as the search path. Workers see none of its own
tables: the functions that they may call act for them."""


def grant_roles(connection: Connection) -> list[str]:
    """Make the roles that are missing, and grant what each may do; belongs inside a transaction."""
    raw = server_connection(connection)
    found = {name for (name,) in raw.execute("select rolname::text from pg_roles")}
    for role in ROLES:
        if role not in found:
            raw.execute(f"create role {role} nologin")
    (schema,) = raw.execute("select quote_ident(current_schema())").fetchone()
    for grant in GRANTS:
        raw.execute(grant.format(schema=schema))
    return list(ROLES)


def grant_queue(server: PostgresConnection, queue: str) -> None:
    """Grant what each role may do in the work queue, if the roles were made; belongs inside a
    transaction that searches the queue's schema first."""
    query = "select count(*) from pg_roles where rolname = any(?)"
    if server.execute(query, (list(ROLES),)).fetchone()[0] == len(ROLES):
        for grant in QUEUE_GRANTS:
            server.execute(grant.format(queue=queue))
