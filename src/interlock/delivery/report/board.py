"""The board of a delivery at work: what whoever watches it sees, as one record.

Pure: rows of cases, costs and the standing of agents in, a bounded record out. Times are moments,
not ages, so that it need not be made anew to be drawn again. Refuses to know screens.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

import msgspec

from interlock.delivery import steps
from interlock.delivery.report.places import Outcome, TaskState, Word, outcome, places
from interlock.engine.circuit import HUMAN
from interlock.engine.schedule import Spent
from interlock.journal.turns import CaseProgress

MOST: Final = 200
"""Rows that are kept; a screen shows fewer."""
_ORDER: Final[dict[Word, int]] = {
    "at work": 0,
    "asks": 1,
    "waits": 2,
    "blocked": 3,
    "failed": 4,
    "complete": 5,
}
NOTHING: Final = Spent()
_SHOWN: Final = ("at work", "asks", "waits")


class BoardRow(msgspec.Struct, frozen=True, kw_only=True):
    """One task that is at work or waits."""

    task_id: str
    title: str = ""
    word: Word
    step: str = ""
    role: str = ""
    agent: str = ""
    since: float = 0.0
    """When it came to its step; 0 if nobody works on it."""
    sign: float = 0.0
    """The last sign of life of its agent; 0 if none is known."""
    standing: str = ""
    why: str = ""
    tokens: int = 0
    money: float = 0.0


class BoardQuestion(msgspec.Struct, frozen=True):
    """A question that is open."""

    question_id: int
    task_id: str


class Board(msgspec.Struct, frozen=True, kw_only=True):
    """How a delivery stands at one moment."""

    run_id: int
    outcome: Outcome
    counts: Mapping[Word, int]
    rows: tuple[BoardRow, ...] = ()
    left_out: int = 0
    """Tasks at work or waiting that have no row."""
    repairing: str = ""
    questions: tuple[BoardQuestion, ...] = ()
    spent: Spent = NOTHING


class Sign(msgspec.Struct, frozen=True):
    """How the agent of a dispatch stands, and when it was last heard of."""

    at: float
    word: str = ""


def board(
    run_id: int,
    stands: Sequence[CaseProgress],
    *,
    titles: Mapping[str, str],
    agents: Mapping[str, str],
    costs: Mapping[str, tuple[int, float]],
    signs: Mapping[int, Sign],
    holder: str = "",
    spent: Spent = NOTHING,
    status: str = "running",
) -> Board:
    """`agents` are the words of those who play the roles, '' all others; `signs` are by dispatch;
    the `holder` is the task that repairs what stops all others."""
    stood = places(stands)
    ends = Counter(each.end or each.status for each in stands)
    live = [each for each in stands if stood[each.case_id].word in _SHOWN]
    live.sort(key=lambda each: _ORDER[stood[each.case_id].word])
    return Board(
        run_id=run_id,
        outcome=outcome(status, ends, is_held=bool(holder)),
        counts=_counts(stood.values()),
        rows=tuple(
            _row(each, stood[each.case_id], titles, agents, costs, signs) for each in live[:MOST]
        ),
        left_out=max(0, len(live) - MOST),
        repairing=holder,
        questions=tuple(
            BoardQuestion(each.dispatch_id, each.case_id) for each in live if each.role == HUMAN
        ),
        spent=spent,
    )


def _counts(stood: Iterable[TaskState]) -> dict[Word, int]:
    counts: Counter[Word] = Counter(each.word for each in stood)
    return {word: counts[word] for word in _ORDER}


def _row(
    stand: CaseProgress,
    place: TaskState,
    titles: Mapping[str, str],
    agents: Mapping[str, str],
    costs: Mapping[str, tuple[int, float]],
    signs: Mapping[int, Sign],
) -> BoardRow:
    tokens, money = costs.get(stand.case_id, (0, 0.0))
    sign = signs.get(stand.dispatch_id)
    return BoardRow(
        task_id=stand.case_id,
        title=titles.get(stand.case_id, ""),
        word=place.word,
        step=stand.step,
        role=stand.role,
        agent=agent_of(stand.role, agents) if stand.role else "",
        since=stand.since,
        sign=sign.at if sign else 0.0,
        standing=sign.word if sign else "",
        why=place.why,
        tokens=tokens,
        money=money,
    )


def agent_of(role: str, agents: Mapping[str, str]) -> str:
    """Who plays a role: the word of the user, or what we call ourselves and a human."""
    if role in steps.PROGRAMS:
        return "interlock"
    return agents.get(role) or ("human" if role == HUMAN else agents.get("") or role)
