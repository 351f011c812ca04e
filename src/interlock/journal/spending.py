"""What runs have cost: added up from their dispatches, answers, pauses and the time noted for them.

Reads only. A dispatch costs when it is opened, tokens and money when its answer, or the rate limit
it met, is known. Questions to humans cost nothing.
"""

import sqlite3

from sqlalchemy import Connection

from interlock.engine.circuit import HUMAN
from interlock.engine.schedule import Spent
from interlock.journal.database import driver

_ASKED = "select d.role, count(*) from dispatches d join cases c on c.case_no = d.case_no"
_USED = (
    "select d.role, sum(u.tokens), sum(u.money) from"
    " (select dispatch_id, tokens, money, at from journal union all"
    " select dispatch_id, tokens, money, at from pauses) u"
    " join dispatches d on d.dispatch_id = u.dispatch_id join cases c on c.case_no = d.case_no"
)


def spent_by(connection: Connection, run_id: int, seconds: float) -> Spent:
    """What a run has cost, given for how long it was worked on."""
    raw = driver(connection)
    (dispatches,) = raw.execute(
        "select count(*) from dispatches d join cases c on c.case_no = d.case_no"
        " where c.run_id = ? and d.role != ?",
        (run_id, HUMAN),
    ).fetchone()
    tokens, money = raw.execute(
        "select coalesce(sum(j.tokens), 0), coalesce(sum(j.money), 0.0) from journal j"
        " join cases c on c.case_no = j.case_no where c.run_id = ?",
        (run_id,),
    ).fetchone()
    lost, dear = raw.execute(
        "select coalesce(sum(tokens), 0), coalesce(sum(money), 0.0) from pauses where run_id = ?",
        (run_id,),
    ).fetchone()
    return Spent(dispatches, tokens + lost, money + dear, seconds)


def spent_by_role(connection: Connection, run_id: int) -> dict[str, Spent]:
    """What each role of a run has cost; its seconds are those for which its agents were out."""
    raw = driver(connection)
    asked = dict(raw.execute(f"{_ASKED} where c.run_id = ? group by 1", (run_id,)).fetchall())
    used = _used(raw, f"{_USED} where c.run_id = ? group by 1", run_id)
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


def spent_on(connection: Connection, day: str, begins: float, ends: float) -> Spent:
    """What all runs together have cost on a day, which has a name and goes from then to then."""
    raw = driver(connection)
    times = (begins, ends)
    asked = raw.execute(f"{_ASKED} where d.at >= ? and d.at < ? group by 1", times).fetchall()
    used = _used(raw, f"{_USED} where u.at >= ? and u.at < ? group by 1", *times)
    (seconds,) = raw.execute(
        "select coalesce(sum(seconds), 0.0) from worked where day = ? and role = ''", (day,)
    ).fetchone()
    return Spent(
        sum(count for role, count in asked if role != HUMAN),
        sum(tokens for tokens, _ in used.values()),
        sum(money for _, money in used.values()),
        seconds,
    )


def _used(raw: sqlite3.Connection, query: str, *given: float) -> dict[str, tuple[int, float]]:
    return {role: (tokens, money) for role, tokens, money in raw.execute(query, given)}
