"""Looks at a delivery while it is at work, as often as somebody wants to see its board.

Reads only what is committed, with a connection of its own, and little each time: titles are kept,
holds are followed from where the last look ended.
"""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from sqlalchemy import Connection

from interlock.agents.status import AgentStanding, read_standings
from interlock.delivery.report.board import NOTHING, Board, Sign, board
from interlock.engine.case import OPEN
from interlock.engine.schedule import Spent
from interlock.journal.history import lines_since
from interlock.journal.runs import given_cases
from interlock.journal.turns import costs_of, stands_of

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
        self._papers = papers
        self._titles: dict[str, str] = {}
        self._holds: dict[str, str] = {}
        self._seq = 0

    def look(self, spent: Spent = NOTHING, status: str = "running") -> Board:
        stands = stands_of(self._connection, self._run_id)
        if len(stands) != len(self._titles):
            given = given_cases(self._connection, self._run_id)
            self._titles = {each.case_id: str(each.input.get("title", "")) for each in given}
        self._follow_holds()
        found = read_standings(self._papers)
        return board(
            self._run_id,
            stands,
            titles=self._titles,
            agents=self._agents,
            costs=costs_of(self._connection, self._run_id),
            signs={each.dispatch_id: sign_of(each) for each in found},
            holder=next(iter(self._holds.values()), ""),
            spent=spent,
            status=status,
        )

    def _follow_holds(self) -> None:
        for line in lines_since(self._connection, self._run_id, self._seq):
            self._seq, decision = line.seq, line.decision
            if decision.hold:
                self._holds.setdefault(decision.hold, line.case_id)
            self._holds.pop(decision.release, None)
            if decision.status != OPEN:
                self._holds = {
                    name: who for name, who in self._holds.items() if who != line.case_id
                }


def sign_of(standing: AgentStanding) -> Sign:
    """When an agent was last heard of, as those who look after it say."""
    for reason in standing.reasons:
        if found := _HEARD.fullmatch(reason):
            return Sign(standing.at - float(found[1]), standing.word)
    return Sign(0.0, standing.word)
