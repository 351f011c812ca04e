"""Permissions that agents at work ask for: written down, decided once, read by the inbox.

Knows rows only. Refuses to know what a permission is worth and who may give it. Only the process
that holds the writer's lock writes; undecided ones of an earlier process are nobody's any more.
"""

from pathlib import Path
from typing import Literal

import msgspec
from sqlalchemy import Connection

from interlock.store.database import driver, transaction, writing_beside

Leave = Literal["allow", "reject"]

_ASKED = (
    "insert into permissions (dispatch_id, number, asked_at, until, kind, title, detail)"
    " select ?, coalesce(max(number), 0) + 1, ?, ?, ?, ?, ? from permissions"
    " where dispatch_id = ? returning number"
)
_DECIDED = (
    "update permissions set decision = ?, decided_by = ?, decided_at = ?"
    " where dispatch_id = ? and number = ? and decision is null"
)
_ABANDONED = (
    "update permissions set decision = 'reject', decided_by = 'nobody', decided_at = ?"
    " where decision is null"
)
_OPEN = (
    "select p.dispatch_id, p.number, c.run_id, c.case_id, d.step, p.asked_at, p.until, p.kind,"
    " p.title, p.detail, p.decision, p.decided_by from permissions p"
    " join dispatches d on d.dispatch_id = p.dispatch_id"
    " join cases c on c.case_no = d.case_no"
)
_ORDER = " order by p.dispatch_id, p.number"


class Wish(msgspec.Struct, frozen=True):
    """What an agent wants to do: the kind of tool, its own words for it, and the particulars."""

    kind: str
    title: str
    detail: str = ""


class Permission(msgspec.Struct, frozen=True):
    """A wish that was written down, with the dispatch it belongs to."""

    dispatch_id: int
    number: int
    run_id: int
    case_id: str
    step: str
    asked_at: float
    until: float
    kind: str
    title: str
    detail: str
    decision: Leave | None
    decided_by: str | None


class PermissionBook:
    """The writer's side, for a process that works on the database at this path."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def ask(self, dispatch_id: int, wish: Wish, at: float, until: float) -> int:
        """Write it down; its number within the dispatch, never given before."""
        values = (dispatch_id, at, until, wish.kind, wish.title, wish.detail, dispatch_id)
        with writing_beside(self._path) as connection, transaction(connection) as raw:
            (number,) = raw.execute(_ASKED, values).fetchone()
        return int(number)

    def decide(self, dispatch_id: int, number: int, leave: Leave, by: str, at: float) -> None:
        """The first decision counts; later ones change nothing."""
        with writing_beside(self._path) as connection, transaction(connection) as raw:
            raw.execute(_DECIDED, (leave, by, at, dispatch_id, number))

    def abandon(self, at: float) -> None:
        """Whatever is undecided was asked by a process that is gone."""
        with writing_beside(self._path) as connection, transaction(connection) as raw:
            raw.execute(_ABANDONED, (at,))


def open_permissions(connection: Connection, now: float) -> list[Permission]:
    """What waits for a human: undecided, in time, and its dispatch still open."""
    query = (
        f"{_OPEN} where p.decision is null and p.until > ? and c.dispatch_id = p.dispatch_id{_ORDER}"
    )
    rows = driver(connection).execute(query, (now,)).fetchall()
    return [Permission(*row) for row in rows]


def permissions_of(connection: Connection, dispatch_id: int) -> list[Permission]:
    """All that was asked within a dispatch, in order."""
    query = f"{_OPEN} where p.dispatch_id = ?{_ORDER}"
    return [Permission(*row) for row in driver(connection).execute(query, (dispatch_id,))]
