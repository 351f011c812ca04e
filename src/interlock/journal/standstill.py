"""Standstills: which accounts met a rate limit, until when, and what is asked about a run itself.

Reads only. An account is whatever shares one limit; its name is the carrier's word.
"""

from typing import Any

import msgspec
from sqlalchemy import Connection

from interlock.engine.case import Usage
from interlock.journal.database import driver, is_number
from interlock.journal.journal import Pause

_PAUSES = "select dispatch_id, account, until, guesses, reason, tokens, money, at from pauses"
_INQUIRIES = (
    "select question_id, run_id, kind, about, asked_at, answered_at, answered_by, answer"
    " from inquiries"
)


class OpenInquiry(msgspec.Struct, frozen=True):
    """A question about a run, and the answer if there is one."""

    question_id: int
    run_id: int
    kind: str
    about: str
    asked_at: float
    answered_at: float | None
    answered_by: str | None
    answer: dict[str, Any] | None


def newest_pauses(connection: Connection) -> list[Pause]:
    """The last pause of each account, in all runs."""
    newest = " where pause_id in (select max(pause_id) from pauses group by account)"
    return _pauses(connection, f"{_PAUSES}{newest} order by account")


def pauses_of(connection: Connection, run_id: int) -> list[Pause]:
    """Every pause in a run, in order."""
    return _pauses(connection, f"{_PAUSES} where run_id = ? order by pause_id", run_id)


def pauses_in(connection: Connection, dispatch_id: int) -> list[Pause]:
    """Every pause of a dispatch, in order."""
    return _pauses(connection, f"{_PAUSES} where dispatch_id = ? order by pause_id", dispatch_id)


def open_inquiries(connection: Connection, run_id: int | None = None) -> list[OpenInquiry]:
    """What is asked about a run, or about all of them, and not answered yet."""
    query = f"{_INQUIRIES} where answered_at is null and (? is null or run_id = ?)"
    return _asked(connection, f"{query} order by question_id", run_id, run_id)


def last_inquiry(connection: Connection, run_id: int, kind: str) -> OpenInquiry | None:
    """The newest question of that kind about a run."""
    query = f"{_INQUIRIES} where run_id = ? and kind = ? order by question_id desc limit 1"
    found = _asked(connection, query, run_id, kind)
    return found[0] if found else None


def find_inquiry(connection: Connection, question_id: int) -> OpenInquiry | None:
    if not is_number(question_id):
        return None
    found = _asked(connection, f"{_INQUIRIES} where question_id = ?", question_id)
    return found[0] if found else None


def _pauses(connection: Connection, query: str, *given: object) -> list[Pause]:
    rows = driver(connection).execute(query, given)
    return [
        Pause(dispatch_id, account, until, guesses, reason, Usage(tokens, money), at)
        for dispatch_id, account, until, guesses, reason, tokens, money, at in rows
    ]


def _asked(connection: Connection, query: str, *given: object) -> list[OpenInquiry]:
    rows = driver(connection).execute(query, given)
    return [
        OpenInquiry(
            *(number, run_id, kind, about, asked_at, answered_at, answered_by),
            msgspec.json.decode(answer) if answer else None,
        )
        for number, run_id, kind, about, asked_at, answered_at, answered_by, answer in rows
    ]
