"""An investigation that dies before each statement and each message, and is taken up again.

`python -m rca_tests.worlds.kill_analysis FOLDER EVERY` kills a run at every EVERY-th moment.
"""

import shutil
import sys
from collections.abc import Sequence
from pathlib import Path

import msgspec

from interlock.carriers.contract import Ask, Reply, Session
from interlock.carriers.script import ScriptAgent, read_script
from interlock.engine.circuit import HUMAN
from interlock_rca.config import RcaConfig
from interlock_rca.steps import F3, F4, F5
from rca_tests.worlds.analysis_world import (
    CAUSE,
    OWN,
    AnalysisWorld,
    launch,
    make_failure,
    write_script,
)
from tests.world.kill_run import Death, copied, in_a_process_of_its_own

ANCHOR = "Keel.weigh() gave 12 tons for an anchor of 3"
SAME = {"is_duplicate": True, "confidence": 0.9, "linked_rca_id": 1, "reasoning": "-"}
AGAIN = {"decision": "reassess", "loop_target": F3}
SCRIPT = write_script(
    {},
    C1={F3: [CAUSE | {"convergence_score": 0.6}, CAUSE], F4: OWN},
    C3={F4: [OWN, SAME], F5: [AGAIN, {"decision": "overturn"}]},
)
TERMS = RcaConfig(families=True, recall_first=True)
DECISIONS = """
select count(*) filter (where json_extract(decision, '$.step') = 'F1_TRIAGE'),
  count(distinct case_no) filter (where json_extract(decision, '$.rule') in ('H12', 'H14')),
  count(distinct case_no) filter (where json_extract(decision, '$.rule') = 'H16')
from journal
"""
EFFECTS = """
select (select count(*) from triages),
  (select count(*) from rca_cases where decision != ''),
  (select count(*) from rca_cases where status = 'closed')
"""


class Mortal(ScriptAgent):
    """A scripted agent: each thing it does is a moment to die at."""

    def __init__(self, room: AnalysisWorld, death: Death) -> None:
        super().__init__(read_script(SCRIPT, "crew"), room.clock)
        self._death = death

    def start(self, session: Session) -> None:
        def mortally(reply: Reply) -> None:
            self._death.moment()
            session.deliver(reply)

        super().start(msgspec.structs.replace(session, deliver=mortally))

    def send(self, asks: Sequence[Ask]) -> None:
        self._death.moment()
        super().send(asks)

    def settle(self, dispatch_id: int, error: str = "") -> None:
        self._death.moment()
        super().settle(dispatch_id, error)


def work(folder: Path, death: Death) -> None:
    room = AnalysisWorld(folder)
    mortal = Mortal(room, death)
    roles = dict.fromkeys((*room.circuit.roles, HUMAN), mortal)
    room.work_on(SCRIPT, TERMS, carriers=roles, statement=death.moment)


def verdict(folder: Path) -> object:
    room = AnalysisWorld(folder)
    rows = "select case_no, status, symptom_id, rca_id, decision from rca_cases order by 1"
    causes = "select case_no, attempt, title, defect_type, status from rcas order by 1, 2"
    return [
        room.digest(),
        [[*row] for row in room.rows(rows)],
        [[*row] for row in room.rows(causes)],
        [fault.id for fault in room.faults()],
    ]


def torn(folder: Path) -> list[str]:
    """What a death left that should not be: a decision without its effects, or effects alone."""
    room = AnalysisWorld(folder)
    result = [fault.id for fault in room.faults()]
    if room.rows(DECISIONS) != room.rows(EFFECTS):
        result.append(f"{room.rows(DECISIONS)} decisions, {room.rows(EFFECTS)} effects")
    return result


def main(home: Path, every: int) -> None:
    started = home / "begun"
    started.mkdir()
    failures = [
        make_failure("alpha", ANCHOR, class_name="Keel"),
        make_failure("beta", ANCHOR, class_name="Keel"),
    ]
    AnalysisWorld(started).take_in(launch(*failures, make_failure("omega")))
    whole = copied(started, "whole")
    life = Death()
    work(whole, life)
    expected = verdict(whole)
    wrong: list[str] = []
    for moment in range(1, life.moments + 1, every):
        folder = copied(started, str(moment))
        if in_a_process_of_its_own(lambda: work(folder, Death(moment))):  # noqa: B023
            wrong.append(f"{moment}: it did not die")
        wrong += [f"{moment}: {result}" for result in torn(folder)]
        in_a_process_of_its_own(lambda: work(folder, Death()))  # noqa: B023
        if verdict(folder) != expected:
            wrong.append(f"{moment}: {verdict(folder)}")
        shutil.rmtree(folder)
    report = {"moments": life.moments, "expected": expected, "wrong": wrong}
    sys.stdout.write(msgspec.json.encode(report).decode())


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))
