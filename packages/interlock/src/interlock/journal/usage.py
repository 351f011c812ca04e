"""Read the cost of runs, accounts that met a rate limit, and questions about runs.

A dispatch counts when it is opened, tokens and money when its answer, or the rate limit it met, is
known; questions to humans cost nothing. An account is anything that shares one rate limit; the
carrier names it.
"""

from collections.abc import Sequence
from typing import Any

import msgspec

from interlock.engine.case import ModelCall, Usage
from interlock.engine.circuit import HUMAN
from interlock.engine.schedule import Spent
from interlock.journal.connection import Connection, RawConnection, is_row_id, mark_all
from interlock.journal.journal import Pause

_ASKED = "select d.role, count(*) from dispatches d join cases c on c.case_no = d.case_no"
_USED = (
    "select d.role, sum(u.tokens), sum(u.money) from"
    " (select dispatch_id, tokens, money, at from journal union all"
    " select dispatch_id, tokens, money, at from pauses) u"
    " join dispatches d on d.dispatch_id = u.dispatch_id join cases c on c.case_no = d.case_no"
)
_PAUSES = "select dispatch_id, account, until, guesses, reason, tokens, money, at from pauses"
_CALLS = (
    "select dispatch_id, model, request_id, input, cached, cache_write, output, money, is_estimate"
    " from calls where run_id = ? order by call_id"
)
_INQUIRIES = (
    "select question_id, run_id, kind, about, asked_at, answered_at, answered_by, answer"
    " from inquiries"
)


def sum_run_usage(connection: Connection, run_id: int, seconds: float) -> Spent:
    """Return the cost of a run; `seconds` is the time it was worked on."""
    raw = connection.raw
    (dispatches,) = raw.execute(
        "select count(*) from dispatches d join cases c on c.case_no = d.case_no"
        " where c.run_id = ? and d.role != ?",
        (run_id, HUMAN),
    ).fetchone()
    cost = sum_costs_of_runs(connection, [run_id]).get(run_id, Usage())
    return Spent(dispatches, cost.tokens, cost.money, seconds)


def sum_costs_of_runs(connection: Connection, run_ids: Sequence[int]) -> dict[int, Usage]:
    """Return tokens and money of each of these runs that has cost something."""
    if not run_ids:
        return {}
    marks = mark_all(run_ids)
    rows = connection.raw.execute(
        "select run_id, sum(tokens), sum(money) from"  # noqa: S608 - marks of ours alone
        " (select c.run_id, j.tokens, j.money from cases c"
        f" join journal j on j.case_no = c.case_no where c.run_id in ({marks})"
        " union all"
        f" select run_id, tokens, money from pauses where run_id in ({marks})) as used"
        " group by 1",
        [*run_ids, *run_ids],
    )
    return {run_id: Usage(int(tokens), float(money)) for run_id, tokens, money in rows}


def sum_role_usage(connection: Connection, run_id: int) -> dict[str, Spent]:
    """Return the cost of each role of a run; its seconds are those when its agents were out."""
    raw = connection.raw
    asked = dict(raw.execute(f"{_ASKED} where c.run_id = ? group by 1", (run_id,)).fetchall())
    used = _read_usage(raw, f"{_USED} where c.run_id = ? group by 1", run_id)
    timed = dict(
        raw.execute(
            "select role, sum(seconds) from worked where run_id = ? and role != '' group by 1",
            (run_id,),
        ).fetchall()
    )
    return {
        role: Spent(asked.get(role, 0), *used.get(role, (0, 0.0)), timed.get(role, 0.0))
        for role in sorted({*asked, *used, *timed} - {HUMAN})
    }


def sum_day_usage(connection: Connection, day: str, begins: float, ends: float) -> Spent:
    """Return the cost of all runs together on a day, given by its name, begin and end."""
    raw = connection.raw
    times = (begins, ends)
    asked = raw.execute(f"{_ASKED} where d.at >= ? and d.at < ? group by 1", times).fetchall()
    used = _read_usage(raw, f"{_USED} where u.at >= ? and u.at < ? group by 1", *times)
    (seconds,) = raw.execute(
        "select coalesce(sum(seconds), 0.0) from worked where day = ? and role = ''", (day,)
    ).fetchone()
    return Spent(
        sum(count for role, count in asked if role != HUMAN),
        sum(tokens for tokens, _ in used.values()),
        sum((money for _, money in used.values()), 0.0),
        seconds,
    )


def _read_usage(raw: RawConnection, query: str, *given: float) -> dict[str, tuple[int, float]]:
    return {role: (tokens, money) for role, tokens, money in raw.execute(query, given)}


class OpenInquiry(msgspec.Struct, frozen=True):
    """A question about a run, and its answer if there is one."""

    question_id: int
    run_id: int
    kind: str
    about: str
    asked_at: float
    answered_at: float | None
    answered_by: str | None
    answer: dict[str, Any] | None


def list_newest_pauses(connection: Connection) -> list[Pause]:
    """Return the last pause of each account, in all runs."""
    newest = " where pause_id in (select max(pause_id) from pauses group by account)"
    return _read_pauses(connection, f"{_PAUSES}{newest} order by account")


def list_pauses(connection: Connection, run_id: int) -> list[Pause]:
    """Return every pause in a run, in order."""
    return _read_pauses(connection, f"{_PAUSES} where run_id = ? order by pause_id", run_id)


def list_calls(connection: Connection, run_id: int) -> dict[int, list[ModelCall]]:
    """Return every answered request to a model's endpoint in a run, by its dispatch."""
    found: dict[int, list[ModelCall]] = {}
    for dispatch_id, *fields, is_estimate in connection.raw.execute(_CALLS, (run_id,)):
        call = ModelCall(*fields)
        call = msgspec.structs.replace(call, is_estimate=bool(is_estimate))
        found.setdefault(dispatch_id, []).append(call)
    return found


def list_open_inquiries(connection: Connection, run_id: int | None = None) -> list[OpenInquiry]:
    """Return the unanswered questions about a run, or about all runs."""
    query = f"{_INQUIRIES} where answered_at is null"
    if run_id is None:
        return _read_inquiries(connection, f"{query} order by question_id")
    return _read_inquiries(connection, f"{query} and run_id = ? order by question_id", run_id)


def find_last_inquiry(connection: Connection, run_id: int, kind: str) -> OpenInquiry | None:
    """Return the newest question of that kind about a run."""
    query = f"{_INQUIRIES} where run_id = ? and kind = ? order by question_id desc limit 1"
    found = _read_inquiries(connection, query, run_id, kind)
    return found[0] if found else None


def find_inquiry(connection: Connection, question_id: int) -> OpenInquiry | None:
    if not is_row_id(question_id):
        return None
    found = _read_inquiries(connection, f"{_INQUIRIES} where question_id = ?", question_id)
    return found[0] if found else None


def _read_pauses(connection: Connection, query: str, *given: object) -> list[Pause]:
    rows = connection.raw.execute(query, given)
    return [
        Pause(dispatch_id, account, until, guesses, reason, Usage(tokens, money), at)
        for dispatch_id, account, until, guesses, reason, tokens, money, at in rows
    ]


def _read_inquiries(connection: Connection, query: str, *given: object) -> list[OpenInquiry]:
    rows = connection.raw.execute(query, given)
    return [
        OpenInquiry(
            question_id=number,
            run_id=run_id,
            kind=kind,
            about=about,
            asked_at=asked_at,
            answered_at=answered_at,
            answered_by=answered_by,
            answer=msgspec.json.decode(answer) if answer else None,
        )
        for number, run_id, kind, about, asked_at, answered_at, answered_by, answer in rows
    ]
