"""The board of a running delivery: where each task stands, and why, as one bounded record.

`BoardReader` reads only what is committed, over a connection of its own and little each time:
titles are cached and holds are followed from the last line read. Times are absolute, so a board can
be redrawn without being read again.
"""

import re
from collections import Counter, deque
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Final, Literal

import msgspec
from sqlalchemy import Connection

from interlock.agents.status import AgentStatus, read_agent_status
from interlock.delivery import steps
from interlock.delivery.steps import COMPLETE
from interlock.engine.case import OPEN
from interlock.engine.circuit import HUMAN
from interlock.engine.schedule import Spent
from interlock.journal.history import CaseSummary, list_cases, list_lines, sum_costs
from interlock.journal.runs import load_inputs

Word = Literal["complete", "at work", "asks", "waits", "blocked", "failed"]
Outcome = Literal["RUNNING", "REMEDIATING", "PAUSED", "COMPLETE", "PARTIAL", "FAILED", "HALTED"]


class TaskState(msgspec.Struct, frozen=True):
    """One task."""

    word: Word
    why: str = ""


def assess_tasks(stands: Iterable[CaseSummary]) -> dict[str, TaskState]:
    """A place for each task, in their order."""
    rows = {each.case_id: each for each in stands}
    dead = _find_blocked(rows)
    return {name: _assess_task(each, rows, dead) for name, each in rows.items()}


def delivery_outcome(status: str, ends: Mapping[str, int], *, is_held: bool = False) -> Outcome:
    """The word for how a delivery stands; `status` is its run's, or `interrupted`."""
    if ends.get("HALTED"):
        return "HALTED"
    if status == "done":
        return "COMPLETE"
    if status == "unhealthy":
        return "PARTIAL" if ends.get(COMPLETE) else "FAILED"
    if status == "running":
        return "REMEDIATING" if is_held else "RUNNING"
    return "PAUSED"


def _find_blocked(rows: Mapping[str, CaseSummary]) -> dict[str, str]:
    """The open tasks that can never start, each with the one that is in its way."""
    after: dict[str, list[str]] = {}
    for name, each in rows.items():
        for need in each.needs if each.status == OPEN else ():
            after.setdefault(need, []).append(name)
    found: dict[str, str] = {}
    queue = deque(name for name, each in rows.items() if _has_failed(each))
    while queue:
        before = queue.popleft()
        for name in after.get(before, ()):
            if name not in found:
                found[name] = before
                queue.append(name)
    return found


def _has_failed(stand: CaseSummary) -> bool:
    return stand.status != OPEN and stand.end != COMPLETE


def _assess_task(
    stand: CaseSummary, rows: Mapping[str, CaseSummary], dead: Mapping[str, str]
) -> TaskState:
    if stand.status != OPEN:
        good = stand.end == COMPLETE
        return TaskState("complete" if good else "failed", stand.end or stand.status.upper())
    if stand.dispatch_id:
        return TaskState(
            "asks" if stand.role == HUMAN else "at work", f"waits for the {stand.role}"
        )
    if stand.case_id in dead:
        need = dead[stand.case_id]
        before = rows[need]
        how = before.end or ("blocked" if before.status == OPEN else before.status)
        return TaskState("blocked", f"comes after {need}, which is {how}")
    first = next((need for need in stand.needs if _is_open(rows.get(need))), "")
    return TaskState("waits", f"comes after {first}" if first else "waits for its turn")


def _is_open(stand: CaseSummary | None) -> bool:
    return stand is not None and stand.status == OPEN


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


class LastSign(msgspec.Struct, frozen=True):
    """How the agent of a dispatch stands, and when it was last heard of."""

    at: float
    word: str = ""


def build_board(
    run_id: int,
    stands: Sequence[CaseSummary],
    *,
    titles: Mapping[str, str],
    agents: Mapping[str, str],
    costs: Mapping[str, tuple[int, float]],
    signs: Mapping[int, LastSign],
    holder: str = "",
    spent: Spent = NOTHING,
    status: str = "running",
) -> Board:
    """`agents` are the words of those who play the roles, '' all others; `signs` are by dispatch;
    the `holder` is the task that repairs what stops all others."""
    stood = assess_tasks(stands)
    ends = Counter(each.end or each.status for each in stands)
    live = [each for each in stands if stood[each.case_id].word in _SHOWN]
    live.sort(key=lambda each: _ORDER[stood[each.case_id].word])
    return Board(
        run_id=run_id,
        outcome=delivery_outcome(status, ends, is_held=bool(holder)),
        counts=_count_words(stood.values()),
        rows=tuple(
            _build_row(each, stood[each.case_id], titles, agents, costs, signs)
            for each in live[:MOST]
        ),
        left_out=max(0, len(live) - MOST),
        repairing=holder,
        questions=tuple(
            BoardQuestion(each.dispatch_id or 0, each.case_id)
            for each in live
            if each.role == HUMAN
        ),
        spent=spent,
    )


def _count_words(stood: Iterable[TaskState]) -> dict[Word, int]:
    counts: Counter[Word] = Counter(each.word for each in stood)
    return {word: counts[word] for word in _ORDER}


def _build_row(
    stand: CaseSummary,
    place: TaskState,
    titles: Mapping[str, str],
    agents: Mapping[str, str],
    costs: Mapping[str, tuple[int, float]],
    signs: Mapping[int, LastSign],
) -> BoardRow:
    tokens, money = costs.get(stand.case_id, (0, 0.0))
    sign = signs.get(stand.dispatch_id or 0)
    return BoardRow(
        task_id=stand.case_id,
        title=titles.get(stand.case_id, ""),
        word=place.word,
        step=stand.step,
        role=stand.role,
        agent=name_agent(stand.role, agents) if stand.role else "",
        since=stand.since,
        sign=sign.at if sign else 0.0,
        standing=sign.word if sign else "",
        why=place.why,
        tokens=tokens,
        money=money,
    )


def name_agent(role: str, agents: Mapping[str, str]) -> str:
    """Who plays a role: the word of the user, or what we call ourselves and a human."""
    if role in steps.PROGRAMS:
        return "interlock"
    return agents.get(role) or ("human" if role == HUMAN else agents.get("") or role)


_HEARD: Final = re.compile(r"its last byte came (\d+) s ago")


class BoardReader:
    """One who watches one run."""

    def __init__(
        self, connection: Connection, run_id: int, agents: Mapping[str, str], papers: Path
    ) -> None:
        """`papers` is the folder where carriers leave how their agents stand."""
        self._connection = connection
        self._run_id = run_id
        self._agents = agents
        self._status_folder = papers
        self._titles: dict[str, str] = {}
        self._holds: dict[str, str] = {}
        self._seq = 0

    def read(self, spent: Spent = NOTHING, status: str = "running") -> Board:
        stands = list_cases(self._connection, self._run_id)
        if len(stands) != len(self._titles):
            given = load_inputs(self._connection, self._run_id)
            self._titles = {each.case_id: str(each.input.get("title", "")) for each in given}
        self._follow_holds()
        found = read_agent_status(self._status_folder)
        return build_board(
            self._run_id,
            stands,
            titles=self._titles,
            agents=self._agents,
            costs=sum_costs(self._connection, self._run_id),
            signs={each.dispatch_id: read_last_sign(each) for each in found},
            holder=next(iter(self._holds.values()), ""),
            spent=spent,
            status=status,
        )

    def _follow_holds(self) -> None:
        for line in list_lines(self._connection, self._run_id, self._seq):
            self._seq, decision = line.seq, line.decision
            if decision.hold:
                self._holds.setdefault(decision.hold, line.case_id)
            self._holds.pop(decision.release, None)
            if decision.status != OPEN:
                self._holds = {
                    name: who for name, who in self._holds.items() if who != line.case_id
                }


def read_last_sign(standing: AgentStatus) -> LastSign:
    """When an agent was last heard of, as those who look after it say."""
    for reason in standing.reasons:
        if found := _HEARD.fullmatch(reason):
            return LastSign(standing.at - float(found[1]), standing.word)
    return LastSign(0.0, standing.word)
