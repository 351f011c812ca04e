"""The case's folder: a projection of the database, in the words of the manual flow."""

import json
from pathlib import Path
from typing import Any

import pytest

from interlock.engine.schedule import Budget
from interlock.journal.history import list_cases, list_dispatches
from interlock_rca.case_folder import REGRESSIONS_FILE, STATE_FILE, build_state, write_case_folders
from interlock_rca.steps import F0, F1, F2, F3, F4, F5, STEPS, name_prompt_by_family
from rca_tests.worlds.analysis_world import (
    CAUSE,
    NEW,
    OWN,
    PRODUCT,
    AnalysisWorld,
    launch,
    make_failure,
    write_script,
)


@pytest.fixture
def room(tmp_path: Path) -> AnalysisWorld:
    found = AnalysisWorld(tmp_path)
    found.take_in(launch(make_failure("alpha"), make_failure("beta")))
    return found


def projected(room: AnalysisWorld, tmp_path: Path, **more: Any) -> Path:
    root = tmp_path / "papers"
    with room.reading() as connection:
        write_case_folders(connection, root, 1, 1, room.circuit, "# no regressions\n", **more)
    return root / "1"


def state(folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((folder / STATE_FILE).read_text())
    return found


def test_a_case_that_nobody_asked_about_has_no_folder(room: AnalysisWorld, tmp_path: Path) -> None:
    assert not projected(room, tmp_path).exists()


def test_a_case_that_is_done_has_all_its_papers(room: AnalysisWorld, tmp_path: Path) -> None:
    room.work_on(write_script({F3: [CAUSE | {"convergence_score": 0.5}, CAUSE]}))
    folder = projected(room, tmp_path) / "1"
    prompts = {path.name for path in folder.glob("prompt-*.md")}
    assert {name_prompt_by_family(step, 1) for step in STEPS} <= prompts
    assert {path.name for path in folder.iterdir()} - prompts == {
        STATE_FILE,
        REGRESSIONS_FILE,
        "recall-result.json",
        "triage-result.json",
        "resolve-result.json",
        "artifact.json",
        "correlate-result.json",
        "review-decision.json",
        "jira-draft.json",
    }
    told_state = state(folder)
    assert (told_state["case_id"], told_state["suite_id"]) == (1, 1)
    assert (told_state["current_step"], told_state["status"]) == ("DONE", "done")
    assert told_state["loop_counts"]["investigate"] == 1
    assert [each["heuristic_id"] for each in told_state["history"]] == [
        "INIT",
        "H2",
        "H7",
        "H10",
        "H8",
        "H9",
        "H15b",
        "H12",
        "H16",
    ]
    artifact = json.loads((folder / "artifact.json").read_text())
    assert artifact["convergence_score"] == 0.9, "the last attempt's"


def test_each_decision_is_told_with_what_it_went_by(room: AnalysisWorld) -> None:
    room.work_on(
        write_script(
            {
                F1: [{"a": 1}, PRODUCT | {"clock_skew_suspected": True}],
                F3: [CAUSE | {"convergence_score": 0.5}, CAUSE],
            }
        )
    )
    with room.reading() as connection:
        case, life = list_cases(connection, 1)[0], list_dispatches(connection, case_no=1)
    told_of = {
        (entry.heuristic_id, entry.step): entry.outcome
        for entry in build_state(case, life, 1, room.circuit).history
    }
    assert told_of["retry", F1].startswith("unreadable: Answer lacks the field 'symptom_category'.")
    assert told_of["H7", F1] == (
        "There is one place to look; nobody needs to choose. (clock_skew_suspected = true,"
        ' symptom_category = "product", skip_investigation = false, len(candidate_repos) = 1,'
        ' candidate_repos = ["boat"]) H17: Whoever reads times later is warned.'
    )
    assert told_of["H10", F3].startswith(
        "Not sure enough; look elsewhere or wider."
        " (convergence_score = 0.5, convergence_sufficient = 0.7, len(evidence_refs) ="
    )
    assert "answer" not in told_of["H2", F0]


def test_what_was_changed_in_an_answer_is_told(room: AnalysisWorld) -> None:
    sure = CAUSE | {"evidence_refs": [], "notes": "mine"}
    odd = {"findings": 7, "notes": 8, "claimed_category": 9}
    answers = {F0: NEW | odd, F1: PRODUCT | {"symptom_category": "Crash"}, F3: sure, F4: OWN | odd}
    room.work_on(write_script(answers))
    with room.reading() as connection:
        case, life = list_cases(connection, 1)[0], list_dispatches(connection, case_no=1)
    told_of = {
        entry.step: entry.outcome for entry in build_state(case, life, 1, room.circuit).history
    }
    assert told_of[F1].endswith(" Note: category 'Crash' was read as unknown.")
    assert told_of[F3].endswith(" Note: score 0.9 lowered to 0.5: it cites no evidence.")
    assert "Note" not in told_of[F0] + told_of[F4]


def test_of_several_findings_the_last_ones_change_is_told(room: AnalysisWorld) -> None:
    places = {"selected_repos": [{"name": "boat", "reason": "r"}, {"name": "pier", "reason": "r"}]}
    several = PRODUCT | {"candidate_repos": ["boat", "pier"]}
    unsure = CAUSE | {"convergence_score": 0.8, "evidence_refs": []}
    room.work_on(write_script({F1: several, F2: places, F3: [CAUSE, unsure]}))
    with room.reading() as connection:
        case, life = list_cases(connection, 1)[0], list_dispatches(connection, case_no=1)
    first, second = (
        entry.outcome
        for entry in build_state(case, life, 1, room.circuit).history
        if entry.step == F3
    )
    assert "Note" not in first
    assert second.endswith(" Note: score 0.8 lowered to 0.5: it cites no evidence.")


def test_an_answer_that_was_taken_loses_its_wrapper(room: AnalysisWorld, tmp_path: Path) -> None:
    room.work_on(write_script({F5: {"silent": True}}))
    folder = projected(room, tmp_path) / "1"
    with room.reading() as connection:
        life = list_dispatches(connection, case_no=1)
    for name, each in (("artifact.attempt-1.json", life[2]), ("review-decision.json", life[-1])):
        (folder / name).write_text(json.dumps({"dispatch_id": each.dispatch_id, "data": {"a": 1}}))
    projected(room, tmp_path)
    assert json.loads((folder / "artifact.attempt-1.json").read_text()) == {"a": 1}
    kept = json.loads((folder / "review-decision.json").read_text())
    assert kept["data"] == {"a": 1}, "its dispatch is open"


@pytest.mark.parametrize(
    ("answers", "status", "step"),
    [
        ({F5: {"silent": True}}, "paused", "F5_REVIEW"),
        ({F3: {"crash": "gone"}}, "error", "FAILED"),
        ({F5: {"decision": "reassess"}}, "error", "UNRESOLVED"),
    ],
)
def test_a_case_elsewhere_says_where(
    room: AnalysisWorld, answers: dict[str, Any], status: str, step: str
) -> None:
    room.work_on(write_script(answers))
    with room.reading() as connection:
        case = list_cases(connection, 1)[0]
        found = build_state(case, list_dispatches(connection, case_no=1), 1, room.circuit)
    assert (found.status, found.current_step) == (status, step)
    assert all(entry.outcome and entry.timestamp for entry in found.history)


def test_between_two_sittings_a_case_is_running(room: AnalysisWorld) -> None:
    room.work_on(write_script(), budget=Budget(dispatches=2))
    with room.reading() as connection:
        case = list_cases(connection, 1)[0]
        life = list_dispatches(connection, case_no=1)
        assert build_state(case, life, 1, room.circuit).status == "running"


def test_the_artifact_of_an_open_step_is_left_to_whoever_answers(
    room: AnalysisWorld, tmp_path: Path
) -> None:
    room.work_on(
        write_script({F5: [{"decision": "reassess", "loop_target": F3}, {"silent": True}]})
    )
    folder = projected(room, tmp_path) / "1"
    assert not (folder / "review-decision.json").exists()
    assert (folder / "artifact.json").exists()


def test_what_somebody_wrote_is_not_overwritten(room: AnalysisWorld, tmp_path: Path) -> None:
    room.work_on(write_script())
    folder = projected(room, tmp_path) / "1"
    (folder / "artifact.json").write_text("mine")
    assert state(folder)["status"] == "done"
    projected(room, tmp_path)
    assert (folder / "artifact.json").read_text() == "mine"


def test_only_the_named_cases_are_written(room: AnalysisWorld, tmp_path: Path) -> None:
    room.work_on(write_script())
    run = projected(room, tmp_path, only=[2])
    assert [path.name for path in run.iterdir()] == ["2"]
