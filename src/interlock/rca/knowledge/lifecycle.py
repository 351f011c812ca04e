"""How knowledge ages: symptoms go to sleep or are resolved, root causes are fixed and archived.

Only legal moves are made; the dates of a root cause follow its status.
"""

import sqlite3

from sqlalchemy import Connection

from interlock.journal.database import is_number, transaction
from interlock.system.errors import StateError, StoreError

DAY = 86_400.0
DORMANT_AFTER = 90
"""Days without a sighting."""
_MOVES = {
    "open": ("resolved", "archived"),
    "resolved": ("verified", "archived", "open"),
    "verified": ("archived", "open"),
    "archived": ("open",),
}
_DATES = {
    "open": "resolved_at = null, verified_at = null, archived_at = null",
    "resolved": "resolved_at = max(:at, created_at)",
    "verified": "verified_at = max(:at, resolved_at)",
    "archived": (
        "archived_at = max(:at, created_at, coalesce(resolved_at, created_at),"
        " coalesce(verified_at, created_at))"
    ),
}


def sweep_dormant(connection: Connection, now: float, days: float = DORMANT_AFTER) -> int:
    """Active symptoms that were last seen before so many days sleep; how many those were."""
    with transaction(connection) as raw:
        return raw.execute(
            "update symptoms set status = 'dormant' where status = 'active' and last_seen_at < ?",
            (now - days * DAY,),
        ).rowcount


def set_symptom_status(connection: Connection, symptom_id: int, status: str) -> None:
    """Somebody says that a symptom is active, dormant or resolved."""
    if status not in ("active", "dormant", "resolved"):
        raise StateError(f"a symptom is active, dormant or resolved, never {status[:40]!r}")
    with transaction(connection) as raw:
        query = "update symptoms set status = ? where symptom_id = ?"
        found = is_number(symptom_id) and raw.execute(query, (status, symptom_id)).rowcount
        if not found:
            raise StoreError(f"there is no symptom {symptom_id}")


def set_rca_status(connection: Connection, rca_id: int, status: str, at: float) -> None:
    """Move a root cause on: open, resolved, verified, archived; or open it again."""
    with transaction(connection) as raw:
        before, case_no = _standing(raw, rca_id)
        if status == before:
            return
        if status not in _MOVES[before]:
            choice = " or ".join(_MOVES[before])
            raise StateError(f"root cause {rca_id} is {before}: next it can be {choice}")
        if status == "open":
            _may_reopen(raw, rca_id, case_no)
        raw.execute(
            f"update rcas set status = :status, {_DATES[status]} where rca_id = :rca_id",  # noqa: S608
            {"status": status, "at": at, "rca_id": rca_id},
        )


def _standing(raw: sqlite3.Connection, rca_id: int) -> tuple[str, int]:
    query = "select status, case_no from rcas where rca_id = ?"
    row = raw.execute(query, (rca_id,)).fetchone() if is_number(rca_id) else None
    if row is None:
        raise StoreError(f"there is no root cause {rca_id}")
    return row[0], row[1]


def _may_reopen(raw: sqlite3.Connection, rca_id: int, case_no: int) -> None:
    query = "select 1 from rca_cases where case_no = ? and rca_id = ?"
    if raw.execute(query, (case_no, rca_id)).fetchone() is None:
        raise StateError(
            f"root cause {rca_id} was replaced: its case has another one, open that instead"
        )


def set_ticket(connection: Connection, rca_id: int, ticket_id: str, link: str) -> None:
    """Note the tracker's ticket of a root cause."""
    with transaction(connection) as raw:
        query = "update rcas set jira_ticket_id = ?, jira_link = ? where rca_id = ?"
        if raw.execute(query, (ticket_id, link, rca_id)).rowcount == 0:
            raise StoreError(f"there is no root cause {rca_id}")
