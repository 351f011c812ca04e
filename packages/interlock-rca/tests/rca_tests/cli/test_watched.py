"""Whole analyses answered by an agent on the other side of the files, by a table; every decision
of the journal is held against where the answers must lead."""

import json
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from rca_tests.worlds.rca_oracle import CAUSE, PLAIN, USUAL, Answers, Journey, walks
from rca_tests.worlds.red_repository import (
    APPROVE,
    DISK,
    F0,
    F1,
    F2,
    F3,
    F4,
    F5,
    F6,
    KEY,
    KEY_TOO,
    TRIAGE,
    TYPE,
    junit,
    red,
)
from tests.soak import again
from tests.world.command_line import CliResult, World, decisions, until

WATCHER = str(Path(__file__).with_name("table_watcher.py"))
SURE = {**CAUSE, "evidence_refs": ["log:1"]}
LOW = {**SURE, "convergence_score": 0.3}
SCRIPTS: dict[str, Answers] = {
    "C1": {},
    "C2": {F0: [{"match": True, "confidence": 0.8, "reasoning": "the same"}]},
    "C3": {F0: [{"match": True, "confidence": 0.79, "reasoning": "much alike"}]},
    "C4": {F1: [{**TRIAGE, "symptom_category": "flake", "defect_type_hypothesis": "nd001"}]},
    "C5": {F1: [{**TRIAGE, "candidate_repos": ["app"]}], F3: [LOW]},
    "C6": {F3: [{**LOW, "evidence_refs": []}]},
    "C7": {F4: [{"is_duplicate": True, "confidence": 0.8, "linked_rca_id": 1}]},
    "C8": {F5: [{"decision": "reassess", "loop_target": F1}, {"decision": "overturn"}]},
    "C9": {F5: [{"decision": "reassess"}]},
}
PROMPTS = {
    F0: "prompt-recall",
    F1: "prompt-triage",
    F2: "prompt-resolve",
    F3: "prompt-investigate",
    F4: "prompt-correlate",
    F5: "prompt-review",
    F6: "prompt-report",
}
ARTIFACTS = {
    F0: "recall-result.json",
    F1: "triage-result.json",
    F2: "resolve-result.json",
    F3: "artifact.json",
    F4: "correlate-result.json",
    F5: "review-decision.json",
    F6: "jira-draft.json",
}


@contextmanager
def watched(world: World, table: Mapping[str, Answers], *more: str) -> Iterator[None]:
    """An agent answers by the table, as long as the block lasts."""
    world.write("table.json", json.dumps({"*": {**PLAIN, F3: [SURE]}, **table}))
    words = [sys.executable, "-I", "-S", WATCHER, ".asterisk/calibrate", "table.json", "log"]
    with subprocess.Popen([*words, *more], cwd=world.folder) as process:
        try:
            yield
        finally:
            process.terminate()


def noted(world: World) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (world.folder / "log").read_text().splitlines()]


def rows(world: World, query: str) -> list[tuple[Any, ...]]:
    connection = sqlite3.connect(f"file:{world.db}?mode=ro", uri=True)
    try:
        return connection.execute(query).fetchall()
    finally:
        connection.close()


def test_file_a_whole_analysis_goes_where_the_table_says(world: World) -> None:
    reds = [red(f"t{number}", f"Error: part {number} broke") for number in range(1, 10)]
    world.write("red.xml", junit(*reds))
    with watched(world, SCRIPTS):
        result = world.say(
            *("analyze", "red.xml", "--dispatch", "file", "--review", "dispatch"),
            *("--recall-asked", "--json"),
        )
    assert (result.code, result.err) == (3, "")
    assert result.json["status"] == "unhealthy"
    full = {name: {**PLAIN, F3: [SURE], **own} for name, own in SCRIPTS.items()}
    wanted = {name: Journey(answers, USUAL).walk() for name, answers in full.items()}
    entries = world.say("logs", "--json").json["entries"]
    assert walks(entries) == wanted
    assert {each["decision"]["signal"] for each in entries} == {"artifact"}
    calibrate = world.folder / ".asterisk" / "calibrate" / "1"
    asked: dict[tuple[str, str], int] = {}
    for each in noted(world):
        turn = asked[each["case"], each["step"]] = asked.get((each["case"], each["step"]), 0) + 1
        loop = f"-loop-{turn - 1}" if turn > 1 else ""
        assert each["prompt"] == f"{PROMPTS[each['step']]}{loop}.md"
        assert each["artifact"] == ARTIFACTS[each["step"]]
        assert Path(each["folder"]) == calibrate / each["case"][1:]
        assert (calibrate / each["case"][1:] / each["prompt"]).is_file()
    assert len({each["id"] for each in noted(world)}) == len(noted(world)) == len(entries)
    assert world.say("doctor", "--deep").code == 0


def test_file_the_store_is_looked_up_first_and_agents_are_asked_when_something_is_near(
    world: World,
) -> None:
    world.write("red.xml", junit(KEY))
    with watched(world, {}):
        words = ("analyze", "red.xml", "--dispatch", "file", "--review", "dispatch", "--json")
        assert world.say(*words).code == 0
        assert [each["step"] for each in noted(world)] == [F1, F2, F3, F4, F5, F6]
        assert world.say(*words, "--new").code == 0
    again = noted(world)[6:]
    assert [each["step"] for each in again] == [F0, F1, F2, F3, F4, F5, F6]
    prompt = (world.folder / ".asterisk/calibrate/2/2/prompt-recall.md").read_text()
    assert "Cart.total() in cart.py drops the last line" in prompt


def test_file_a_settled_answer_stays_as_its_watcher_wrote_it(world: World) -> None:
    world.write("red.xml", junit(KEY))
    with watched(world, {}):
        words = ("analyze", "red.xml", "--dispatch", "file", "--review", "dispatch", "--json")
        assert world.say(*words).code == 0
    folder = world.folder / ".asterisk" / "calibrate" / "1" / "1"
    for name in ("triage-result.json", "artifact.json", "jira-draft.json"):
        assert set(json.loads((folder / name).read_text())) == {"dispatch_id", "data"}


BATCH = ("analyze", "red.xml", "--dispatch", "batch-file", "--review", "dispatch", "--json")


def test_batch_triage_comes_first_and_only_representatives_are_investigated(world: World) -> None:
    more = [red(f"n{number}", "KeyError: no total") for number in range(3)]
    world.write("red.xml", junit(KEY, KEY_TOO, TYPE, *more, DISK))
    infra = {**TRIAGE, "symptom_category": "infra", "defect_type_hypothesis": "si001"}
    low_first = {"C1": {F3: [LOW, SURE]}, "C3": {F1: [infra]}}
    with watched(world, low_first, "batch"):
        result = world.say(*BATCH)
    assert (result.code, result.err, result.json["status"]) == (0, "", "done")

    output = noted(world)
    batches = [each for each in output if "batch" in each]
    asked = [(each["case"], each["step"]) for each in output if "case" in each]
    phases = [each["phase"] for each in batches]
    assert [each["batch"] for each in batches] == list(range(1, len(batches) + 1))
    assert phases == sorted(phases, reverse=True), "triage is over before an investigation begins"
    assert all(1 <= len(each["cases"]) <= 4 for each in batches)
    triaged = [case for case, step in asked if step == F1]
    assert sorted(triaged) == ["C1", "C2", "C3", "C4", "C5", "C6", "C7"]
    assert [step for _, step in asked[:7]] == [F1] * 7, "a review waits for the triage of all"
    assert {case for case, step in asked if step in (F2, F3, F4)} == {"C1", "C7"}
    for last in (F5, F6):
        assert sorted(case for case, step in asked if step == last) == ["C1", "C3", "C7"]
    assert [step for case, step in asked if case == "C1"] == [F1, F2, F3, F2, F3, F4, F5, F6]

    (rca,) = rows(world, "select rca_id from rca_cases where case_no = 1")[0]
    family = rows(world, "select case_no, rca_id, status, decision from rca_cases order by case_no")
    assert [row for row in family if row[0] in (1, 2, 4, 5, 6)] == [
        (number, rca, "closed", "approve") for number in (1, 2, 4, 5, 6)
    ]
    unlinked = rows(
        world,
        "select c.case_no from rca_cases c left join symptom_rca s"
        " on s.symptom_id = c.symptom_id and s.rca_id = c.rca_id where s.rca_id is null",
    )
    assert unlinked == []
    linked = {
        case: walked[-3:]
        for case, walked in walks(world.say("logs", "--json").json["entries"]).items()
        if case in ("C2", "C4", "C5", "C6")
    }
    assert len(linked) == 4
    for walked in linked.values():
        assert walked == [(F2, "linked", F5), (F5, "H12", F6), (F6, "H16", "DONE")]
    _briefings_grow([each["briefing"] for each in batches], phases)
    manifest = json.loads((world.folder / ".asterisk/calibrate/1/batch-manifest.json").read_text())
    assert manifest["status"] == "done"
    assert {each["status"] for each in manifest["signals"]} == {"done"}
    assert world.say("doctor", "--deep").code == 0


def _briefings_grow(output: list[str], phases: list[str]) -> None:
    """Symptoms from the first batch on, clusters with the investigation, then root causes; error
    patterns with their counts in all of them."""
    pattern = "- `KeyError: no total` — seen in 5/7 cases"
    assert all(pattern in briefing for briefing in output)
    symptoms = [briefing.count("| product |") + briefing.count("| infra |") for briefing in output]
    assert symptoms == sorted(symptoms)
    assert (symptoms[0], symptoms[1], symptoms[-1]) == (0, 4, 7)
    first = phases.index("investigation")
    cluster = "| C1 | C1, C2, C4, C5, C6 | product\\|"
    assert [cluster in briefing for briefing in output] == [
        at >= first for at in range(len(output))
    ]
    cause = "Cart.total() in cart.py drops the last line"
    known = [cause in briefing for briefing in output]
    assert known == sorted(known)
    assert (known[first], known[-1]) == (False, True)


def test_batch_one_human_answer_reviews_the_family(world: World) -> None:
    world.write("red.xml", junit(KEY, TYPE, KEY_TOO))
    words = ("analyze", "red.xml", "--dispatch", "batch-file", "--json")
    with watched(world, {}, "batch"):
        waiting = world.say(*words)
        assert (waiting.code, waiting.json["status"]) == (4, "waiting")
        reviews = world.say("inbox", "--json").json["reviews"]
        assert sorted(each["case_ids"] for each in reviews) == [["C1", "C3"], ["C2"]]
        for each in reviews:
            number = str(each["question_ids"][0])
            assert world.say("answer", number, "approve", "--by", "Ada").code == 0
        assert world.say(*words).code == 0
    asked = [(each["case"], each["step"]) for each in noted(world) if "case" in each]
    assert {case for case, step in asked if step in (F2, F3, F4)} == {"C1", "C2"}
    assert not any(step == F5 for _, step in asked)
    assert rows(world, "select distinct status, reviewed_by from rca_cases") == [("closed", "Ada")]


def test_batch_a_family_waits_while_an_agent_sends_its_representative_back(world: World) -> None:
    world.write("red.xml", junit(KEY, KEY_TOO))
    with watched(world, {"C1": {F5: [{"decision": "reassess"}, APPROVE]}}, "batch"):
        assert world.say(*BATCH).code == 0
    asked = [(each["case"], each["step"]) for each in noted(world) if "case" in each]
    assert [step for case, step in asked if case == "C2"] == [F1]
    assert [step for case, step in asked if case == "C1"].count(F5) == 2
    ((first, *_), (second, *_)) = rows(world, "select rca_id from rca_cases order by case_no")
    assert first == second
    closed = rows(world, "select status, decision from rca_cases")
    assert closed == [("closed", "approve")] * 2


@pytest.mark.parametrize("mode", [again("file"), "batch-file"])
def test_killed_in_the_middle_the_same_command_comes_to_the_same_decisions(
    tmp_path: Path, mode: str
) -> None:
    calm, killed = World(tmp_path / "calm"), World(tmp_path / "killed")
    reds = [KEY, KEY_TOO, TYPE, *(red(f"n{at}", f"Error: part {at} broke") for at in range(4))]
    words = ("analyze", "red.xml", "--dispatch", mode, "--review", "dispatch", "--json")
    table = {"C3": {F3: [LOW, SURE]}, "C4": SCRIPTS["C8"], "C5": SCRIPTS["C4"]}
    kind = ["batch"] if mode == "batch-file" else []
    for each in (calm, killed):
        each.folder.mkdir()
        each.write("red.xml", junit(*reds))
    with watched(calm, table, *kind):
        wanted = calm.say(*words)
    with watched(killed, table, *kind):
        for number in range(3):
            process = killed.start(*words)
            goal = 0.8 * decisions(calm) * number / 3
            until(lambda: process.poll() is not None or decisions(killed) > goal, "it works")  # noqa: B023
            process.send_signal(signal.SIGKILL)
            process.communicate()
        found = killed.say(*words)
    assert (found.code, wanted.code) == (0, 0)
    assert walks(_entries(killed)) == walks(_entries(calm))
    assert found.json["summary"]["by_state"] == wanted.json["summary"]["by_state"] == {"closed": 7}
    assert killed.say("doctor", "--deep").code == 0


def _entries(world: World) -> list[dict[str, Any]]:
    return list(world.say("logs", "--json").json["entries"])


def test_batch_an_agent_that_forges_a_link_is_refused(world: World) -> None:
    """At its first look nobody may claim a family; sent back, nobody may claim it again."""
    world.write("red.xml", junit(KEY, KEY_TOO, TYPE))
    data = {"representative": "C1", "linked_rca_id": 1, "confidence": 1.0, "reasoning": "trust me"}
    forged = {"signal": "linked", "data": data}
    place = PLAIN[F2][0]
    back = {"decision": "reassess", "loop_target": F2}
    table = {
        "C1": {F5: [{"decision": "overturn"}]},
        "C2": {F2: [forged, place], F5: [back, APPROVE]},
        "C3": {F2: [forged, place]},
    }
    with watched(world, table, "batch"):
        result = world.say(*BATCH)
    assert (result.code, result.json["status"]) == (0, "done")
    refused = rows(world, "select case_no, reason from refusals order by case_no")
    assert refused == [(2, "WrongRole"), (3, "WrongRole")]
    found = walks(world.say("logs", "--json").json["entries"])
    assert [turn[1] for turn in found["C3"]][2:5] == ["retry", "H8", "H9"]
    assert [turn[1] for turn in found["C2"]] == [
        *("H2", "H6", "linked", "H13", "retry", "H8", "H9", "H15b", "H12", "H16")
    ]


def test_file_mode_knows_no_families_and_refuses_links(world: World) -> None:
    world.write("red.xml", junit(KEY, KEY_TOO))
    forged = {"signal": "linked", "data": {"representative": "C1", "linked_rca_id": 1}}
    with watched(world, {"C2": {F2: [forged, PLAIN[F2][0]]}}):
        result = world.say("analyze", "red.xml", "--dispatch", "file", "--review", "dispatch")
    assert result.code == 0
    assert rows(world, "select case_no, reason from refusals") == [(2, "WrongRole")]


def test_file_a_review_that_nobody_else_gives_waits_for_a_human(world: World) -> None:
    world.write("red.xml", junit(KEY))
    with watched(world, {}):
        result = world.say("analyze", "red.xml", "--dispatch", "file", "--json")
        assert (result.code, result.json["status"]) == (4, "waiting")
        assert [each["step"] for each in noted(world)] == [F1, F2, F3, F4]
        question = world.say("inbox", "--json").json["questions"][0]["question_id"]
        assert world.say("answer", str(question), "approve", "--by", "Ada").code == 0
        done = world.say("analyze", "red.xml", "--json")
    assert (done.code, done.json["status"]) == (0, "done")
    assert rows(world, "select status, reviewed_by from rca_cases") == [("closed", "Ada")]


def test_a_question_that_a_watcher_answers_is_not_answered_at_the_inbox(world: World) -> None:
    """The process waits for the watcher's review, however long that takes."""
    world.write("red.xml", junit(KEY))
    unreviewed = {step: answers for step, answers in PLAIN.items() if step != F5}
    words = ("analyze", "red.xml", "--dispatch", "file", "--review", "dispatch")
    with watched(world, {"*": {**unreviewed, F3: [SURE]}}), world.start(*words) as process:
        until(lambda: world.db.exists() and questions(world), "it comes to its review")
        (asked,) = questions(world)
        output = world.say("answer", str(asked), "approve")
        result = f"interlock: question {asked} goes to file, not to the inbox\n"
        assert output == CliResult(1, "", result)
        assert process.poll() is None
        process.kill()
        process.communicate()
    assert rows(world, "select status, decision from rca_cases") == [("investigated", "")]


def questions(world: World) -> list[int]:
    found = world.say("inbox", "--json")
    return [each["question_id"] for each in found.json["questions"]] if not found.code else []
