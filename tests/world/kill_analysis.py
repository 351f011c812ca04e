"""An investigation that dies before each statement and each message, and is taken up again.

`python -m tests.world.kill_analysis FOLDER EVERY` kills a run at every EVERY-th moment, each time
on a copy of the begun suite, looks at what is left, and finishes it. Prints one line of JSON.
"""

import shutil
import sys
from collections.abc import Sequence
from pathlib import Path

import msgspec
from tests.world.analysis_world import CAUSE, OWN, Caseroom, crew, launch, told
from tests.world.kill_run import Death, copied, in_a_process_of_its_own

from interlock.agents.carrier import Ask, Deliver, Reply
from interlock.agents.script import ScriptAgent, read_script
from interlock.engine.circuit import HUMAN
from interlock.rca.config import RcaConfig
from interlock.rca.steps import F3, F4, F5

ANCHOR = "Keel.weigh() gave 12 tons for an anchor of 3"
SAME = {"is_duplicate": True, "confidence": 0.9, "linked_rca_id": 1, "reasoning": "-"}
AGAIN = {"decision": "reassess", "loop_target": F3}
CREW = crew(
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

    def __init__(self, room: Caseroom, death: Death) -> None:
        super().__init__(read_script(CREW, "crew"), room.clock)
        self._death = death

    def start(self, deliver: Deliver) -> None:
        def mortally(reply: Reply) -> None:
            self._death.moment()
            deliver(reply)

        super().start(mortally)

    def send(self, asks: Sequence[Ask]) -> None:
        self._death.moment()
        super().send(asks)

    def settle(self, dispatch_id: int, error: str = "") -> None:
        self._death.moment()
        super().settle(dispatch_id, error)


def work(folder: Path, death: Death) -> None:
    room = Caseroom(folder)
    mortal = Mortal(room, death)
    roles = dict.fromkeys((*room.circuit.roles, HUMAN), mortal)
    room.sit(CREW, TERMS, carriers=roles, statement=death.moment)


def verdict(folder: Path) -> object:
    room = Caseroom(folder)
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
    room = Caseroom(folder)
    said = [fault.id for fault in room.faults()]
    if room.rows(DECISIONS) != room.rows(EFFECTS):
        said.append(f"{room.rows(DECISIONS)} decisions, {room.rows(EFFECTS)} effects")
    return said


def main(home: Path, every: int) -> None:
    begun = home / "begun"
    begun.mkdir()
    failures = [told("alpha", ANCHOR, class_name="Keel"), told("beta", ANCHOR, class_name="Keel")]
    Caseroom(begun).take_in(launch(*failures, told("omega")))
    whole = copied(begun, "whole")
    life = Death()
    work(whole, life)
    expected = verdict(whole)
    wrong: list[str] = []
    for moment in range(1, life.moments + 1, every):
        folder = copied(begun, str(moment))
        if in_a_process_of_its_own(lambda: work(folder, Death(moment))):  # noqa: B023
            wrong.append(f"{moment}: it did not die")
        wrong += [f"{moment}: {said}" for said in torn(folder)]
        in_a_process_of_its_own(lambda: work(folder, Death()))  # noqa: B023
        if verdict(folder) != expected:
            wrong.append(f"{moment}: {verdict(folder)}")
        shutil.rmtree(folder)
    report = {"moments": life.moments, "expected": expected, "wrong": wrong}
    sys.stdout.write(msgspec.json.encode(report).decode())


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))
