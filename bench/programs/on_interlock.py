"""The work on Interlock: one circuit of seven steps, a carrier that answers inside the process.

Everything a real run does is done: rules, shapes, filled prompts, one transaction for a batch of
decisions with their next dispatches, deadlines. Only the process of an agent is missing.
"""

import asyncio
import json
import time
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import msgspec
from session import Session, job_parser, read_pragmas
from workload import STEPS, opening, prompt

from interlock.carriers.contract import Ask, Carrier, Reply
from interlock.engine.circuit_file import read_circuit
from interlock.journal.database import open_writer
from interlock.journal.journal import Journal
from interlock.journal.runs import NewCase, NewRun, begin_run
from interlock.runtime.loop import RunLoop
from interlock.runtime.terms import RunTerms
from interlock.system.clock import SystemClock
from interlock.version import __version__

CIRCUIT: dict[str, Any] = {
    "circuit": "seven",
    "start": STEPS[0],
    "ends": ["DONE"],
    "thresholds": {"recall_hit": 0.8},
    "steps": {
        step: {
            "role": "agent",
            "prompt": prompt("{{ case_id }}", step).replace(
                "AssertionError: interface did not come up within 30 s", "{{ case.error }}"
            ),
            "timeout": "10m",
            "answer": {
                "type": "object",
                "properties": {
                    "match": {"type": "boolean"},
                    "confidence": {"type": "number", "minimum": 0, "maximum": 1},
                    "note": {"type": "string"},
                },
                "required": ["match", "confidence", "note"],
            },
        }
        for step in STEPS
    },
    "rules": [
        {"id": f"{step}-match", "at": step, "when": "match and confidence >= recall_hit", "to": to}
        for step, to in pairwise((*STEPS, "DONE"))
    ],
    "otherwise": "DONE",
}


class Inside(Carrier):
    """A carrier whose agent lives in this process."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._held: list[asyncio.Task[None]] = []

    def send(self, asks: Sequence[Ask]) -> None:
        if self._session.job == "half":
            self._held += [asyncio.create_task(self._answer_later(ask)) for ask in asks]
            return
        for ask in asks:
            self._give(ask, self._session.agent.answer(ask.case_id, ask.step))

    async def _answer_later(self, ask: Ask) -> None:
        self._give(ask, await self._session.agent.answer_async(ask.case_id, ask.step))

    def _give(self, ask: Ask, answer: dict[str, Any]) -> None:
        self._deliver(Reply(ask.dispatch_id, msgspec.json.encode(answer)))


async def work(session: Session) -> None:
    text = json.dumps(CIRCUIT)
    circuit = read_circuit(text, "seven.yaml").circuit
    carrier = Inside(session)
    with open_writer(session.database) as connection:
        run_id = 1
        if session.job != "resume":
            new = NewRun(
                circuit=circuit,
                text=text,
                source="bench",
                fingerprint="bench",
                options={},
                at=time.time(),
            )
            cases = (NewCase(case_id, opening(case_id)) for case_id in session.cases)
            run_id = begin_run(connection, new, cases)
        with session.measured():
            loop = RunLoop(
                Journal(connection, run_id),
                RunTerms(circuit=circuit, parallel=session.inflight),
                dict.fromkeys(circuit.roles, carrier),
                SystemClock(),
            )
            loop.restore(connection)
            await loop.run()
        session.report(
            style="asyncio, decisions of many cases share a commit",
            versions={"interlock": __version__},
            pragmas=[read_pragmas(connection.raw)],
        )


def main() -> None:
    arguments = job_parser().parse_args()
    session = Session(arguments, steps_sql="SELECT count(*) FROM journal")
    asyncio.run(work(session))


if __name__ == "__main__":
    main()
