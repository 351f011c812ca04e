"""The papers of an investigation: two folders, two customs, two phases."""

from pathlib import Path

from interlock.agents.files.case_folder import Papers
from interlock.rca.briefing import CALIBRATE, INVESTIGATIONS, names, phase_of
from interlock.rca.steps import F0, F1, F3, STEPS


def test_prompts_are_numbered_in_the_manual_flow_only() -> None:
    assert names(Path(INVESTIGATIONS))(F3, 2) == Papers("prompt-f3-loop-2.md", "artifact.json")
    for root in (Path(CALIBRATE), Path("elsewhere"), Path("/x/investigations/more")):
        assert names(root)(F3, 2) == Papers("prompt-investigate-loop-1.md", "artifact.json")
    assert names(Path("/abs") / INVESTIGATIONS)(F0, 1).prompt == "prompt-f0.md"


def test_no_two_papers_of_a_case_have_one_name() -> None:
    for root in (Path(CALIBRATE), Path(INVESTIGATIONS)):
        papers = [names(root)(step, attempt) for step in STEPS for attempt in (1, 2, 3)]
        assert len({each.prompt for each in papers}) == 3 * len(STEPS)
        assert len({each.artifact for each in papers}) == len(STEPS)


def test_recall_and_triage_are_one_phase() -> None:
    assert {step for step in STEPS if phase_of(step) == "triage"} == {F0, F1}
    assert {phase_of(step) for step in STEPS} == {"triage", "investigation"}
