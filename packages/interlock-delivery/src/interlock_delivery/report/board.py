"""Build the board of a running delivery: the state of each task, and why, as one bounded record.

`BoardReader` reads only committed data over its own connection. It caches titles and follows holds
from the last line it read. Times are absolute, so a board can be redrawn without reading again.
"""

import re
import time
from collections import Counter, deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final, get_args

import msgspec

from interlock.api.work import load_circuit
from interlock.carriers.registry import agents_folder
from interlock.carriers.status import AgentStatus, read_agent_status
from interlock.engine.case import OPEN
from interlock.engine.circuit import HUMAN
from interlock.engine.schedule import Spent
from interlock.journal.address import DatabaseAddress
from interlock.journal.connection import Connection
from interlock.journal.database import open_reader
from interlock.journal.history import CaseSummary, list_cases, list_lines, sum_costs
from interlock.journal.runs import find_run, load_inputs
from interlock_delivery import steps
from interlock_delivery.queues import update_holders
from interlock_delivery.report.records import Outcome, TaskRecord, Word
from interlock_delivery.steps import COMPLETE, SKIPPED


class TaskState(msgspec.Struct, frozen=True):
    """The state of a task in one word, and the reason."""

    word: Word
    why: str = ""


def assess_tasks(progress: Iterable[CaseSummary]) -> dict[str, TaskState]:
    """Return the state of each task, in their order."""
    cases = {case.case_id: case for case in progress}
    blocked = _find_blocked(cases)
    return {name: _assess_task(case, cases, blocked) for name, case in cases.items()}


def delivery_outcome(status: str, ends: Mapping[str, int], *, is_held: bool = False) -> Outcome:
    """Return the outcome of a delivery whose run has this status, or was `interrupted`."""
    if ends.get("HALTED"):
        return "HALTED"
    if status == "done":
        return "COMPLETE"
    if status == "unhealthy":
        return "PARTIAL" if ends.get(COMPLETE) else "FAILED"
    if status == "running":
        return "REMEDIATING" if is_held else "RUNNING"
    return "PAUSED"


def count_ends(cases: Iterable[CaseSummary]) -> Counter[str]:
    """Return the number of cases by their end, or by their status while they are open."""
    return Counter(case.end or case.status for case in cases)


def _find_blocked(cases: Mapping[str, CaseSummary]) -> dict[str, str]:
    """Return the open tasks that can never start, each with the task in its way."""
    dependents: dict[str, list[str]] = {}
    for name, case in cases.items():
        for need in case.needs if case.status == OPEN else ():
            dependents.setdefault(need, []).append(name)
    found: dict[str, str] = {}
    queue = deque(
        name for name, case in cases.items() if case.status != OPEN and case.end != COMPLETE
    )
    while queue:
        blocker = queue.popleft()
        for name in dependents.get(blocker, ()):
            if name not in found:
                found[name] = blocker
                queue.append(name)
    return found


_WORDS_OF_ENDS: Final[dict[str, Word]] = {COMPLETE: "complete", SKIPPED: "skipped"}


def _assess_task(
    case: CaseSummary, cases: Mapping[str, CaseSummary], blocked: Mapping[str, str]
) -> TaskState:
    if case.status != OPEN:
        return TaskState(_WORDS_OF_ENDS.get(case.end, "failed"), case.end or case.status.upper())
    if case.dispatch_id:
        return TaskState("asks" if case.role == HUMAN else "at work", f"waits for the {case.role}")
    if case.case_id in blocked:
        blocker = cases[blocked[case.case_id]]
        how = blocker.end or ("blocked" if blocker.status == OPEN else blocker.status)
        return TaskState("blocked", f"comes after {blocker.case_id}, which is {how}")
    first = next((need for need in case.needs if need in cases and cases[need].status == OPEN), "")
    return TaskState("waits", f"comes after {first}" if first else "waits for its turn")


MOST_ROWS: Final = 200
"""The rows that a board keeps; a screen shows fewer."""
_WORDS: Final = get_args(Word)
_LIVE: Final[tuple[Word, ...]] = ("at work", "asks", "waits")
NOTHING_SPENT: Final = Spent()


class Board(msgspec.Struct, frozen=True, kw_only=True):
    """A delivery at one moment."""

    run_id: int
    outcome: Outcome
    counts: Mapping[Word, int]
    rows: tuple[TaskRecord, ...] = ()
    left_out: int = 0
    """The number of tasks at work or waiting that have no row."""
    repairing: str = ""
    questions: tuple[TaskRecord, ...] = ()
    spent: Spent = NOTHING_SPENT


class LastSign(msgspec.Struct, frozen=True):
    """The state of a dispatch's agent, and when it was last heard of."""

    at: float
    word: str = ""


def build_records(
    cases: Iterable[CaseSummary],
    titles: Mapping[str, str],
    agents: Mapping[str, str],
    costs: Mapping[str, tuple[int, float]],
    signs: Mapping[int, LastSign] = {},
) -> list[TaskRecord]:
    """Return a record for each task.

    `agents` are the configured agents by role, with "" for all others; `signs` are by dispatch.
    """
    cases = list(cases)
    states = assess_tasks(cases)
    found = []
    for case in cases:
        state, sign = states[case.case_id], signs.get(case.dispatch_id or 0, LastSign(0.0))
        tokens, money = costs.get(case.case_id, (0, 0.0))
        record = TaskRecord(
            task_id=case.case_id,
            title=titles.get(case.case_id, ""),
            word=state.word,
            why=state.why,
            step=case.step,
            role=case.role,
            agent=name_agent(case.role, agents) if case.role else "",
            since=case.since,
            sign=sign.at,
            standing=sign.word,
            question_id=case.dispatch_id or 0 if case.role == HUMAN else 0,
            tokens=tokens,
            money=money,
        )
        found.append(record)
    return found


def build_board(
    run_id: int,
    records: Sequence[TaskRecord],
    outcome: Outcome,
    holder: str = "",
    spent: Spent = NOTHING_SPENT,
) -> Board:
    """Return the board; `holder` is the task that repairs the infrastructure."""
    counts = Counter(record.word for record in records)
    live = [record for record in records if record.word in _LIVE]
    live.sort(key=lambda record: _LIVE.index(record.word))
    return Board(
        run_id=run_id,
        outcome=outcome,
        counts={word: counts[word] for word in _WORDS},
        rows=tuple(live[:MOST_ROWS]),
        left_out=max(0, len(live) - MOST_ROWS),
        repairing=holder,
        questions=tuple(record for record in live if record.question_id),
        spent=spent,
    )


def name_agent(role: str, agents: Mapping[str, str]) -> str:
    """Return who plays a role: the configured agent, `interlock` or `human`."""
    if role in steps.PROGRAMS:
        return "interlock"
    return agents.get(role) or ("human" if role == HUMAN else agents.get("") or role)


class DecisionLines:
    """Reads the decisions that a run makes from now on, as lines of text."""

    def __init__(self, connection: Connection, run_id: int) -> None:
        circuit = load_circuit(find_run(connection, run_id))
        self._events = {rule.id: rule.tags.get(steps.EVENT, "") for rule in circuit.rules}
        self._connection = connection
        self._run_id = run_id
        self._seq = max((line.seq for line in list_lines(connection, run_id, 0)), default=0)

    def read_new(self) -> Iterator[str]:
        for line in list_lines(self._connection, self._run_id, self._seq):
            self._seq, decision = line.seq, line.decision
            clock = time.strftime("%H:%M:%S", time.localtime(line.at))
            target = decision.to or decision.status
            event = self._events.get(decision.rule, "")
            yield f"{clock} {line.case_id}: {decision.step} {decision.signal} -> {target}" + (
                f" ({event}, attempt {decision.attempt})" if event else ""
            )


class BoardReader:
    """Reads the board of one run repeatedly."""

    def __init__(
        self, connection: Connection, run_id: int, agents: Mapping[str, str], status_folder: Path
    ) -> None:
        """Read the state of agents from the folder that carriers write it to."""
        self._connection = connection
        self._run_id = run_id
        self._agents = agents
        self._status_folder = status_folder
        self._titles: dict[str, str] = {}
        self._holds: dict[str, str] = {}
        self._seq = 0

    def read(self, spent: Spent = NOTHING_SPENT, status: str = "running") -> Board:
        progress = list_cases(self._connection, self._run_id)
        if len(progress) != len(self._titles):
            cases = load_inputs(self._connection, self._run_id)
            self._titles = {case.case_id: str(case.input.get("title", "")) for case in cases}
        self._follow_holds()
        signs = {
            each.dispatch_id: read_last_sign(each)
            for each in read_agent_status(self._status_folder)
        }
        costs = sum_costs(self._connection, self._run_id)
        holder = next(iter(self._holds.values()), "")
        outcome = delivery_outcome(status, count_ends(progress), is_held=bool(holder))
        records = build_records(progress, self._titles, self._agents, costs, signs)
        return build_board(self._run_id, records, outcome, holder, spent)

    def _follow_holds(self) -> None:
        for line in list_lines(self._connection, self._run_id, self._seq):
            self._seq = line.seq
            update_holders(self._holds, line.case_id, line.decision)


@contextmanager
def open_board(
    db: DatabaseAddress, run_id: int, agents: Mapping[str, str]
) -> Iterator[BoardReader]:
    with open_reader(db) as connection:
        yield BoardReader(connection, run_id, agents, agents_folder(db))


_LAST_BYTE: Final = re.compile(r"its last byte came (\d+) s ago")


def read_last_sign(status: AgentStatus) -> LastSign:
    """Return when an agent was last heard of, according to its supervisor."""
    for reason in status.reasons:
        if found := _LAST_BYTE.fullmatch(reason):
            return LastSign(status.at - float(found[1]), status.word)
    return LastSign(0.0, status.word)
