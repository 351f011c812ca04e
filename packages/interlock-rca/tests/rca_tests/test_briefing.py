"""What workers of a batch are told: it grows from batch to batch.

The papers of an investigation: two folders, two customs, two phases.
"""

from pathlib import Path

import pytest

from interlock.carriers.files import DispatchFiles
from interlock.engine.schedule import Budget
from interlock.runtime.application import RunSetup
from interlock.signals.batch import Briefing, Phase
from interlock_rca.briefing import add_findings
from interlock_rca.config import RcaConfig
from interlock_rca.families import FamilyQueue
from interlock_rca.knowledge.suites import list_suite_cases
from interlock_rca.steps import (
    CALIBRATE_FOLDER,
    F0,
    F1,
    F3,
    INVESTIGATIONS_FOLDER,
    STEPS,
    choose_names,
    find_phase,
)
from rca_tests.worlds.analysis_world import AnalysisWorld, launch, make_failure, write_script

ANCHOR = "Keel.weigh() gave 12 tons for an anchor of 3"
TERMS = RcaConfig(families=True)


@pytest.fixture
def room(tmp_path: Path) -> AnalysisWorld:
    found = AnalysisWorld(tmp_path)
    kin = [make_failure(name, ANCHOR, class_name="yard.Keel") for name in ("alpha", "beta")]
    found.take_in(launch(*kin, make_failure("omega")))
    return found


def blank(phase: Phase = "investigation") -> Briefing:
    return Briefing(
        batch_id=1, scenario="rca", suite_id="1", phase=phase, in_batch=1, total=3, completed=0
    )


def briefing(room: AnalysisWorld, phase: Phase = "investigation") -> Briefing:
    """As a worker of the next sitting would get it."""
    found: list[Briefing] = []

    def meet(ours: RunSetup) -> None:
        assert ours.enrich is not None
        found.append(ours.enrich(blank(phase)))

    room.work_on(write_script(), TERMS, meet=meet, only=set())
    return found[0]


def test_at_the_beginning_only_common_errors_are_known(room: AnalysisWorld) -> None:
    found = briefing(room, "triage")
    assert (found.symptoms, found.clusters, found.rcas) == ((), (), ())
    assert found.scenario not in ("", "rca"), "a run of the circuit is known by its suite's name"
    (pattern,) = found.patterns
    assert (pattern.seen, pattern.total) == (2, 3)
    assert pattern.pattern == "Keel.weigh() gave * tons for an anchor of *"


def test_it_grows_with_triage_and_then_with_causes(room: AnalysisWorld) -> None:
    room.work_on(write_script(), TERMS, budget=Budget(dispatches=6))
    triaged = briefing(room)
    assert [each.case_id for each in triaged.symptoms] == ["C1", "C2", "C3"]
    assert triaged.rcas == ()
    room.work_on(write_script(), TERMS)
    done = briefing(room)
    assert [each.rca_id for each in done.rcas] == ["R1", "R2"]
    assert done.rcas[0].component == "boat/keel"
    assert done.patterns[0].component == "boat/keel"


def test_hypotheses_are_told_in_words(room: AnalysisWorld) -> None:
    room.work_on(write_script(), TERMS, budget=Budget(dispatches=6))
    assert briefing(room).symptoms[0].hypothesis == (
        "Product Bug: Keel.weigh() gave * tons for an anchor of *"
    )


def test_keys_tell_clusters_apart(tmp_path: Path) -> None:
    room = AnalysisWorld(tmp_path)
    errors = (ANCHOR, "the mast is 4 m long, not 5", "no such harbour: Ystad")
    room.take_in(
        launch(
            *[make_failure(f"t{n}{name}", text) for n, text in enumerate(errors) for name in "ab"]
        )
    )
    room.work_on(write_script(), TERMS, budget=Budget(dispatches=12))
    with room.reading() as connection:
        cases = list_suite_cases(connection, 1)
        families = FamilyQueue({case.case_id: case.name[:2] for case in cases})
        for case in cases:
            families.restore(case.case_id, "F3_INVESTIGATE", "open", worked=True)
        keys = [each.key for each in add_findings(blank(), connection, 1, families).clusters]
    assert keys[0] == "product|boat|keel_weigh_gave_tons_for_an"
    assert len(set(keys)) == 3


def test_clusters_are_told_when_they_are_investigated(room: AnalysisWorld) -> None:
    with room.reading() as connection:
        families = FamilyQueue({"C1": "k", "C2": "k", "C3": "o"})
        families.restore("C1", "F3_INVESTIGATE", "open", worked=True)
        families.restore("C2", "F3_INVESTIGATE", "open", worked=True)
        (cluster,) = add_findings(blank(), connection, 1, families).clusters
        assert (cluster.representative, cluster.members) == ("C1", ("C1", "C2"))
        assert add_findings(blank("triage"), connection, 1, families).clusters == ()
        assert add_findings(blank(), connection, 1, None).clusters == ()


def test_prompts_are_numbered_in_the_manual_flow_only() -> None:
    assert choose_names(Path(INVESTIGATIONS_FOLDER))(F3, 2) == DispatchFiles(
        "prompt-f3-loop-2.md", "artifact.json"
    )
    for root in (Path(CALIBRATE_FOLDER), Path("elsewhere"), Path("/x/investigations/more")):
        assert choose_names(root)(F3, 2) == DispatchFiles(
            "prompt-investigate-loop-1.md", "artifact.json"
        )
    assert choose_names(Path("/abs") / INVESTIGATIONS_FOLDER)(F0, 1).prompt == "prompt-f0.md"


def test_no_two_papers_of_a_case_have_one_name() -> None:
    for root in (Path(CALIBRATE_FOLDER), Path(INVESTIGATIONS_FOLDER)):
        papers = [choose_names(root)(step, attempt) for step in STEPS for attempt in (1, 2, 3)]
        assert len({each.prompt for each in papers}) == 3 * len(STEPS)
        assert len({each.artifact for each in papers}) == len(STEPS)


def test_recall_and_triage_are_one_phase() -> None:
    assert {step for step in STEPS if find_phase(step) == "triage"} == {F0, F1}
    assert {find_phase(step) for step in STEPS} == {"triage", "investigation"}
