"""The manual flow by hand: asterisk cursor, save and status. State survives between calls."""

import json
import random
import shutil
import signal
import sqlite3
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from interlock.journal.database import hold_writer_lock
from rca_tests.worlds.red_repository import (
    ALONE,
    APPROVE,
    CAUSE,
    DISK,
    DRAFT,
    F0,
    F1,
    F2,
    F3,
    F5,
    F6,
    KEY,
    KEY_TOO,
    MISS,
    PLACE,
    PLAIN,
    TRIAGE,
    TYPE,
    junit,
)
from tests.world.change import CHANGE
from tests.world.command_line import CliResult, World

ASTERISK = (sys.executable, "-c", "from interlock_rca.asterisk import main; main()")
LOW = {**CAUSE, "convergence_score": 0.3}
NO_TARGET = (
    "Answer.loop_target must be one of 'F1_TRIAGE', 'F2_RESOLVE', 'F3_INVESTIGATE', '', "
    "not 'F6_REPORT'."
)
LAYOUT = {
    *("state.json", "recall-result.json", "triage-result.json", "resolve-result.json"),
    *("artifact.json", "correlate-result.json", "review-decision.json", "jira-draft.json"),
    *("regression-report.md", *(f"prompt-f{number}.md" for number in range(7))),
}
"""What the seed's contract lists for a case, to the letter."""


@pytest.fixture
def started(world: World) -> World:
    """Three cases; the first waits for its recall."""
    return begin(world)


@pytest.fixture(scope="module")
def at_review(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same, gone on until the first waits for its review. Copied, never worked in."""
    world = begin(World(tmp_path_factory.mktemp("review")))
    go(world, MISS, TRIAGE, PLACE, CAUSE, ALONE)
    return world.folder


@pytest.fixture
def reviewable(world: World, at_review: Path) -> World:
    shutil.copytree(at_review, world.folder, dirs_exist_ok=True)
    return world


def begin(world: World) -> World:
    world.write("red.xml", junit(KEY, TYPE, DISK))
    result = world.hand("cursor", "--launch", "red.xml", "--recall-asked")
    assert (result.code, result.err) == (0, "suite 1 (red): 3 new cases\n")
    return world


def save(world: World, answer: Any, case: str = "C1", *more: str) -> CliResult:
    world.write("answer.json", json.dumps(answer))
    return world.hand("save", "-f", "answer.json", "--case-id", case, *more)


def go(world: World, *answers: Any, case: str = "C1") -> dict[str, Any]:
    """Save these, one after the other; how the case stands then."""
    for answer in answers:
        result = save(world, answer, case)
        assert (result.code, result.err) == (0, "")
    return state(world, case)


def state(world: World, case: str = "C1") -> dict[str, Any]:
    """state.json, which says what status says."""
    output = world.hand("status", "--case-id", case, "--suite-id", "1", "--json").json
    written = json.loads((home(world, output["case_id"]) / "state.json").read_text())
    assert written == output
    return dict(written)


def home(world: World, number: int = 1) -> Path:
    return world.folder / ".asterisk" / "investigations" / "1" / str(number)


def files(world: World, number: int = 1) -> set[str]:
    return {path.name for path in home(world, number).iterdir()} - {"signal.json"}


def rules(found: dict[str, Any]) -> list[str]:
    return [entry["heuristic_id"] for entry in found["history"]]


def rows(world: World, query: str) -> list[tuple[Any, ...]]:
    connection = sqlite3.connect(f"file:{world.db}?mode=ro", uri=True)
    try:
        return connection.execute(query).fetchall()
    finally:
        connection.close()


def test_a_case_from_its_recall_to_its_end_leaves_the_layout_of_the_contract(
    started: World,
) -> None:
    assert files(started) == {"state.json", "prompt-f0.md"}
    statuses: list[str] = []
    for answer in PLAIN.values():
        go(started, answer)
        statuses += rows(started, "select status from rca_cases where case_no = 1")[0]
    found = state(started)
    assert statuses == [
        *("open", "triaged", "triaged", "investigated", "investigated", "reviewed", "closed")
    ]
    assert files(started) == LAYOUT
    assert {name: found[name] for name in ("case_id", "suite_id", "current_step", "status")} == {
        "case_id": 1,
        "suite_id": 1,
        "current_step": "DONE",
        "status": "done",
    }
    assert found["loop_counts"] == {}
    assert rules(found) == ["INIT", "H2", "H6", "H8", "H9", "H15b", "H12", "H16"]
    assert [entry["step"] for entry in found["history"]] == ["INIT", *PLAIN]
    assert all(entry["timestamp"].endswith("Z") for entry in found["history"])
    assert all(entry["outcome"] for entry in found["history"])
    artifact = json.loads((home(started) / "artifact.json").read_text())
    assert artifact == CAUSE
    assert not home(started, 2).exists()


def test_state_survives_between_calls_and_a_second_cursor_asks_nothing_new(started: World) -> None:
    first = started.hand("cursor", "--json").json["cases"]
    assert (
        started.hand("cursor", "--suite-id", "1", "--case-id", "1", "--json").json["cases"] == first
    )
    assert (first[0]["step"], first[0]["dispatch_id"]) == (F0, 1)
    assert state(started)["status"] == "paused"
    go(started, MISS)
    again = started.hand("cursor", "--launch", "red.xml")
    assert again.err == "suite 1 (red): 0 new cases\n"
    where = home(started) / "prompt-f1.md"
    assert again.out == (
        f"case C1 (number 1) is at F1_TRIAGE: answer {where}\n"
        "  then: asterisk save -f ARTIFACT.json --case-id 1 --suite-id 1\n"
    )
    assert where.read_text().startswith("# F1")
    assert rows(started, "select count(*) from dispatches") == [(2,)]


def test_a_second_look_has_a_prompt_and_an_artifact_of_its_own(started: World) -> None:
    more = {**LOW, "convergence_score": 0.35}
    found = go(started, MISS, TRIAGE, PLACE, LOW, PLACE)
    assert (found["current_step"], found["loop_counts"]) == (F3, {"investigate": 1})
    assert {"prompt-f3.md", "prompt-f3-loop-2.md", "prompt-f2-loop-2.md"} <= files(started)
    assert "artifact.json" not in files(started)
    kept = json.loads((home(started) / "artifact.attempt-1.json").read_text())
    assert kept == LOW

    found = go(started, more, PLACE, LOW)
    assert (found["current_step"], found["loop_counts"]) == (F5, {"investigate": 2})
    assert rules(found) == ["INIT", "H2", "H6", "H8", "H10", "H8", "H10", "H8", "H11"]
    kept = json.loads((home(started) / "artifact.attempt-2.json").read_text())
    assert kept == more
    assert "prompt-f3-loop-3.md" in files(started)
    assert rows(started, "select count(*) from rcas where status != 'archived'") == [(1,)]
    assert rows(started, "select defect_type from rcas where status != 'archived'") == [("ti001",)]


@pytest.mark.parametrize(
    ("target", "status", "way"),
    [
        (F1, "open", [TRIAGE, PLACE, CAUSE, ALONE]),
        (F2, "triaged", [PLACE, CAUSE, ALONE]),
        (F3, "triaged", [CAUSE, ALONE]),
        ("", "triaged", [PLACE, CAUSE, ALONE]),
    ],
)
def test_reassess_goes_back_to_each_target_and_asks_anew(
    reviewable: World, target: str, status: str, way: list[Any]
) -> None:
    back = {"decision": "reassess", **({"loop_target": target} if target else {})}
    found = go(reviewable, back)
    step = target or F2
    assert (found["current_step"], found["loop_counts"]) == (step, {"reassess": 1})
    assert rows(reviewable, "select status from rca_cases where case_no = 1") == [(status,)]
    assert f"prompt-{step[:2].lower()}-loop-2.md" in files(reviewable)

    found = go(reviewable, *way, APPROVE, DRAFT)

    assert (found["status"], found["current_step"]) == ("done", "DONE")
    assert rules(found)[-2:] == ["H12", "H16"]
    assert {"review-decision.attempt-1.json", "prompt-f5-loop-2.md"} <= files(reviewable)
    kept = json.loads((home(reviewable) / "review-decision.json").read_text())
    assert kept.pop("reviewed_by")
    assert kept == APPROVE
    assert rows(reviewable, "select status, decision from rca_cases where case_no = 1") == [
        ("closed", "approve")
    ]


def test_a_case_sent_back_too_often_ends_in_error(started: World) -> None:
    back = {"decision": "reassess", "loop_target": F3}
    found = go(started, MISS, TRIAGE, PLACE, *([CAUSE, ALONE, back] * 4))
    assert (found["status"], found["current_step"]) == ("error", "UNRESOLVED")
    assert rules(found)[-1] == "H13-spent"
    result = save(started, CAUSE)
    output = "asterisk: case C1 of run 1 waits for no answer: it is UNRESOLVED\n"
    assert result == CliResult(1, "", output)


def test_overturn_writes_the_humans_words(reviewable: World) -> None:
    override = {"defect_type": "au001", "rca_message": "the test reads the old name of the field"}
    found = go(
        reviewable,
        {"decision": "overturn", "human_override": override},
    )
    assert (found["current_step"], rules(found)[-1]) == (F6, "H14")
    output = rows(
        reviewable, "select defect_type, description from rcas where status != 'archived'"
    )
    assert output == [("ab001", "the test reads the old name of the field")]
    assert rows(reviewable, "select status, decision from rca_cases where case_no = 1") == [
        ("reviewed", "overturn")
    ]


@pytest.mark.parametrize(
    ("answer", "problem"),
    [
        (
            {"decision": "looks good"},
            "Answer.decision must be one of 'approve', 'reassess', 'overturn', not 'looks good'.",
        ),
        ({}, "Answer lacks the field 'decision'."),
        ({"decision": "reassess", "loop_target": "F6_REPORT"}, NO_TARGET),
        (
            {"decision": "overturn", "human_override": {"defect_type": "zz9"}},
            "'zz9' is not a defect code; use one of pb001, ab001, si001, nd001, fw001, ti001.",
        ),
        (
            {"signal": "linked", "data": {"representative": "C2"}},
            "Signal 'linked' is not one of this step's signals: artifact.",
        ),
    ],
)
def test_an_answer_that_cannot_be_is_refused_and_nothing_is_lost(
    reviewable: World, answer: Any, problem: str
) -> None:
    before = state(reviewable)
    papers = files(reviewable)
    result = save(reviewable, answer)
    assert result == CliResult(2, "", f"asterisk: answer.json: {problem} Nothing was saved\n")
    assert (state(reviewable), files(reviewable)) == (before, papers)
    assert reviewable.hand("cursor").code == 0
    assert go(reviewable, APPROVE)["current_step"] == F6


def test_an_answer_the_guards_refuse_is_asked_for_again_with_the_reason(started: World) -> None:
    go(started, MISS)
    result = save(started, {**TRIAGE, "defect_type_hypothesis": "zz999"})
    assert result.code == 0
    assert (
        "the last answer could not be used. 'zz999' is not a defect code; use one of" in result.out
    )
    assert state(started)["current_step"] == F1
    again = (home(started) / "prompt-f1-loop-2.md").read_text()
    assert "'zz999' is not a defect code" in again


@pytest.mark.parametrize(
    ("words", "code", "problem"),
    [
        (("cursor", "--case-id", "C9"), 1, "suite 1 has no case 'C9'; it has C1, C2, C3"),
        (("cursor", "--suite-id", "7"), 1, "there is no suite 7; 'interlock analyze SOURCE'"),
        (("status", "--case-id", "0"), 1, "suite 1 has no case '0'"),
        (("save", "-f", "no.json"), 2, "no.json is not there; nothing was saved"),
        (("save", "-f", "half.json"), 2, "half.json: "),
        (("save", "-f", "list.json"), 2, "list.json: "),
        (("save", "-f", "other.json"), 2, "it answers dispatch 99, and 1 is open"),
        (("save", "-f", "miss.json", "--case-id", "C2"), 1, "'asterisk cursor --case-id 2' asks"),
        (("save", "-f", "miss.json", "--suite-id", "3"), 1, "there is no suite 3"),
        (("cursor", "--launch", "green.xml"), 1, "nothing failed, so there is nothing"),
        (("cursor", "--launch", "gone.xml"), 2, "gone.xml does not exist"),
    ],
)
def test_wrong_words_change_nothing(
    started: World, words: tuple[str, ...], code: int, problem: str
) -> None:
    started.write("half.json", '{"match": fal')
    started.write("list.json", "[1]")
    started.write("miss.json", json.dumps(MISS))
    started.write("other.json", json.dumps({"dispatch_id": 99, "data": MISS}))
    started.write("green.xml", junit())
    before = (state(started), files(started), rows(started, "select count(*) from suites"))
    result = started.hand(*words, "--json")
    assert (result.code, result.out) == (code, "")
    assert problem in result.err
    assert result.err.count("\n") <= 2
    assert (state(started), files(started), rows(started, "select count(*) from suites")) == before


def test_a_wrapper_with_the_right_number_is_taken(started: World) -> None:
    assert save(started, {"dispatch_id": 1, "data": MISS}).code == 0
    assert state(started)["current_step"] == F1


def test_a_batch_writes_out_every_open_case(started: World) -> None:
    go(started, *PLAIN.values())
    result = started.hand("cursor", "--batch", "--json")
    output = result.json["cases"]
    assert [(each["case_id"], each["step"]) for each in output] == [("C2", F0), ("C3", F0)]
    assert all(Path(each["prompt_path"]).is_file() for each in output)
    for case in ("C2", "C3"):
        go(started, {"match": True, "confidence": 0.2, "reasoning": "weak"}, case=case)
    infra = {**TRIAGE, "symptom_category": "infra", "defect_type_hypothesis": "si001"}
    go(started, infra, APPROVE, DRAFT, case="C3")
    go(started, *list(PLAIN.values())[1:], case="C2")
    assert started.hand("cursor", "--batch") == CliResult(
        1, "", "asterisk: suite 1 has no open case\n"
    )
    assert rows(started, "select status from suites") == [("closed",)]


def test_saving_while_another_process_works_leaves_the_answer_for_it(started: World) -> None:
    with hold_writer_lock(started.db):
        result = save(started, MISS)
        output = "saved the answer of C1 to step F0_RECALL; the running process takes it\n"
        assert result == CliResult(0, output, "")
        kept = save(started, MISS, "C1", "--json").json
        assert kept == {
            "run_id": 1,
            "case_id": "C1",
            "step": F0,
            "dispatch_id": 1,
            "artifact_path": str(home(started) / "recall-result.json"),
        }
        assert started.hand("cursor").code == 1
    assert started.hand("cursor").code == 0
    assert state(started)["current_step"] == F1


def test_a_saved_review_says_who_gave_it(reviewable: World) -> None:
    go(reviewable, {"decision": "approve"})
    ((saved,),) = rows(reviewable, "select reviewed_by from rca_cases where case_no = 1")
    assert saved not in ("", "whoever was asked")
    assert (
        json.loads((home(reviewable) / "review-decision.json").read_text())["reviewed_by"] == saved
    )


def test_a_saved_review_may_name_another_reviewer(reviewable: World) -> None:
    go(reviewable, {"decision": "approve", "reviewed_by": "ines"})
    assert rows(reviewable, "select reviewed_by from rca_cases where case_no = 1") == [("ines",)]


def test_what_was_saved_before_a_crash_is_taken_by_the_next_call(started: World) -> None:
    """`interlock save` only leaves the answer, as `asterisk save` had done when it was killed."""
    started.write("answer.json", json.dumps(MISS))
    assert started.say("save", "C1", "-f", "answer.json").code == 0
    assert state(started)["current_step"] == F0
    started.hand("cursor")
    assert state(started)["current_step"] == F1


def test_killed_in_the_middle_of_saving_a_case_goes_the_same_way(started: World) -> None:
    chance = random.Random(4)
    for answer in PLAIN.values():
        started.write("answer.json", json.dumps(answer))
        step = state(started)["current_step"]
        words = ("save", "-f", "answer.json", "--case-id", "C1")
        process = subprocess.Popen(
            [*ASTERISK, *words], cwd=started.folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        try:
            process.wait(chance.uniform(0.1, 0.7))
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGKILL)
        process.communicate()
        started.hand("cursor", "--case-id", "C1")
        if state(started)["current_step"] == step:
            go(started, answer)
    found = state(started)
    assert rules(found) == ["INIT", "H2", "H6", "H8", "H9", "H15b", "H12", "H16"]
    assert files(started) >= LAYOUT
    assert started.say("doctor", "--deep").code == 0


def test_cursor_on_a_suite_that_an_agent_answers_says_who_is_asked(world: World) -> None:
    world.write("red.xml", junit(KEY))
    assert world.say("analyze", "red.xml").code == 4
    result = world.hand("cursor", "--case-id", "C1")
    waits = world.say("inbox", "--json").json["questions"][0]["question_id"]
    output = f"open at F5_REVIEW: 'interlock answer {waits} approve', see 'interlock inbox'\n"
    assert result == CliResult(0, f"case C1 (number 1) is {output}", "")


def test_a_review_by_hand_is_not_answered_at_the_inbox(reviewable: World) -> None:
    asked = reviewable.say("inbox", "--json").json["questions"][0]["question_id"]
    result = reviewable.say("answer", str(asked), "approve")
    hint = "'interlock save C1 --run 1 -f FILE'"
    assert result == CliResult(1, "", f"interlock: question {asked} is answered by hand: {hint}\n")


def test_status_reads_well(started: World) -> None:
    go(started, MISS, {**TRIAGE, "candidate_repos": ["app"]}, LOW)
    lines = started.hand("status", "--case-id", "C1").out.splitlines()
    assert lines[:3] == [
        "case C1 (number 1) of suite 1: paused",
        "  step  F2_RESOLVE",
        "  loops investigate 1",
    ]
    assert [line.split()[1:3] for line in lines[3:]] == [
        ["INIT", "INIT"],
        [F0, "H2"],
        [F1, "H7"],
        [F3, "H10"],
    ]


def test_the_files_are_a_projection_and_losing_them_loses_nothing(reviewable: World) -> None:
    before = state(reviewable)
    shutil.rmtree(reviewable.folder / ".asterisk")
    assert reviewable.hand("cursor", "--case-id", "C1").code == 0
    assert state(reviewable) == before
    answered = {"recall-result.json", "triage-result.json", "resolve-result.json"}
    answered |= {"artifact.json", "correlate-result.json"}
    prompts = {f"prompt-f{number}.md" for number in range(6)}
    assert files(reviewable) == {"state.json", *prompts, *answered}
    assert go(reviewable, APPROVE, DRAFT)["status"] == "done"


def test_by_analyze_the_steps_are_written_out_too_and_the_review_with_them(world: World) -> None:
    world.write("red.xml", junit(DISK))
    result = world.say("analyze", "red.xml", "--dispatch", "manual")
    place = ".asterisk/investigations/1/1"
    verbs = "'interlock save C1 -f FILE' and 'interlock resume 1'"
    output = f"case C1 waits for an answer to {place}/prompt-f1.md: {verbs}"
    assert (result.code, result.out.splitlines()[-1]) == (4, output)
    infra = {**TRIAGE, "symptom_category": "infra", "defect_type_hypothesis": "si001"}
    world.write("answer.json", json.dumps(infra))
    assert world.say("save", "C1", "-f", "answer.json").code == 0
    resumed = world.say("resume")
    output = f"case C1 waits for an answer to {place}/prompt-f5.md: {verbs}"
    assert (resumed.code, resumed.out.splitlines()[-1]) == (4, output)


def test_numbers_of_other_runs_do_not_confuse(world: World) -> None:
    """A run of another circuit came first: suite, run and case have different numbers."""
    world.cases("one", "two")
    world.write("crew.yaml", '"*": {draft: {crash: no}}')
    world.say("run", CHANGE, "--cases", "cases.jsonl", "--agent", "script:crew.yaml")
    world.write("red.xml", junit(KEY, KEY_TOO))
    began = world.hand("cursor", "--launch", "red.xml", "--recall-asked", "--json").json["cases"][0]
    suite, number = str(began["suite_id"]), str(began["case_no"])
    assert number == "3"
    folder = Path(began["folder"])
    assert folder.parts[-3:] == ("investigations", suite, number)
    world.write("answer.json", json.dumps(MISS))
    words = ("--case-id", number, "--suite-id", suite)
    assert world.hand("save", "-f", "answer.json", *words).code == 0
    output = world.hand("status", *words, "--json").json
    assert (output["current_step"], output["case_id"], str(output["suite_id"])) == (F1, 3, suite)


def test_status_lists_all_open_cases(world: World) -> None:
    begin(world)
    found = world.hand("status").out
    assert "3 cases are open:" in found
    assert [line.split() for line in found.splitlines()[-3:]] == [
        ["1", "C1", "F0_RECALL"],
        ["2", "C2", "F0_RECALL"],
        ["3", "C3", "F0_RECALL"],
    ]
    listed = world.hand("status", "--json").json["open_cases"]
    assert [each["case_id"] for each in listed] == ["C1", "C2", "C3"]
    assert "open_cases" not in world.hand("status", "--case-id", "C2", "--json").json


def test_the_folder_of_an_investigation_ignores_itself_in_git(world: World) -> None:
    subprocess.run(["git", "init", "-q"], cwd=world.folder, check=True)
    begin(world)
    assert (world.folder / ".asterisk").is_dir()
    command = ["git", "status", "--porcelain"]
    seen = subprocess.check_output(command, cwd=world.folder, text=True)
    assert ".asterisk" not in seen
    assert ".interlock" not in seen
