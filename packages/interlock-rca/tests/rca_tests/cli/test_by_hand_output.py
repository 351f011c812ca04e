"""What asterisk says: each decision with its reason, cases by the numbers people have for them."""

import json
from typing import Any

import pytest

from rca_tests.worlds.red_repository import APPROVE, CAUSE, DRAFT, F3, MISS, TRIAGE
from tests.world.command_line import CliResult, World

ITEM = 1697136
FAILURES = [
    {"id": ITEM, "name": "recovery after restart", "description": "got FREERUN within 60s"},
    {"id": 1, "name": "events subscription", "description": "HTTP 404 from the proxy"},
]


@pytest.fixture
def started(world: World) -> World:
    """Two cases of a launch; item 1 is not case 1."""
    envelope = {"run_id": "33195", "name": "ptp", "failure_list": FAILURES}
    world.write("launch.json", json.dumps(envelope))
    assert world.hand("cursor", "--launch", "launch.json", "--recall-asked").code == 0
    return world


def save(world: World, answer: dict[str, Any], case: str = "1") -> CliResult:
    world.write("answer.json", json.dumps(answer))
    return world.hand("save", "-f", "answer.json", "--case-id", case)


def test_each_call_tells_what_was_decided_and_by_which_values(started: World) -> None:
    result = save(started, {**MISS, "confidence": 0.25})
    where = started.folder / ".asterisk" / "investigations" / "1" / "1"
    assert result.out == (
        "C1 F0_RECALL H2: It has not been seen before. (match = false)\n"
        f"case C1 (number 1) is at F1_TRIAGE: answer {where / 'prompt-f1.md'}\n"
        "  then: asterisk save -f ARTIFACT.json --case-id 1 --suite-id 1\n"
    )
    assert started.hand("cursor", "--json").json["cases"][0]["decided"] == []


def test_a_case_that_is_over_says_where_its_papers_are(started: World) -> None:
    for answer in (MISS, {**TRIAGE, "symptom_category": "infra"}, APPROVE):
        assert save(started, answer).code == 0
    result = save(started, DRAFT)
    where = started.folder / ".asterisk" / "investigations" / "1" / "1"
    assert result.out.splitlines() == [
        "C1 F6_REPORT H16: Reported.",
        f"case C1 (number 1) is ended at DONE; its files are in {where}",
    ]


@pytest.mark.parametrize(
    ("word", "number"), [(str(ITEM), 1), ("C1", 1), ("C2", 2), ("2", 2), ("1", 1)]
)
def test_a_case_is_named_by_number_by_name_or_by_its_item(
    started: World, word: str, number: int
) -> None:
    assert started.hand("status", "--case-id", word, "--json").json["case_id"] == number


@pytest.mark.parametrize("word", ["3", "C3", "1697137", "9" * 5000, "-1", "0", "²", "", "x"])
def test_a_case_that_is_not_there_is_named(started: World, word: str) -> None:
    result = started.hand("status", "--case-id", word)
    if word:
        assert (result.code, result.out) == (1, "")
        assert result.err == f"asterisk: suite 1 has no case {word[:80]!r}; it has C1, C2\n"
    else:
        assert result.out.startswith("case C1 "), "the first open one"


def test_other_thresholds_begin_another_suite(started: World) -> None:
    result = started.hand("cursor", "--launch", "launch.json", "--set", "recall_hit=0.9")
    assert "a suite keeps the thresholds it began with; --new begins another" in result.err
    again = ("cursor", "--launch", "launch.json", "--set", "recall_hit=0.9", "--new")
    result = started.hand(*again, "--recall-asked", "--json")
    assert result.json["cases"][0]["suite_id"] == 2
    hit = {"match": True, "confidence": 0.85, "reasoning": "alike"}
    out = save(started, hit, "3").out
    assert out.startswith("C1 F0_RECALL H3: ")
    assert "confidence = 0.85, recall_hit = 0.9" in out


@pytest.mark.parametrize("words", [("--set", "recall_hit=0.3"), ("--new",), ("--recall-asked",)])
def test_what_would_change_nothing_is_refused(started: World, words: tuple[str, ...]) -> None:
    result = started.hand("cursor", *words)
    assert (result.code, result.out) == (2, "")
    assert "add --launch SOURCE" in result.err


def test_an_artifact_that_names_its_item_is_for_that_case(started: World) -> None:
    assert started.hand("cursor", "--case-id", "2").code == 0
    for answer in (MISS, {**TRIAGE, "candidate_repos": ["a"]}):
        assert save(started, answer, "1").code == save(started, answer, "2").code == 0
    started.write("own.json", json.dumps({**CAUSE, "case_ids": [1]}))
    result = started.hand("save", "-f", "own.json")
    assert "case C2 (number 2) is at F4_CORRELATE" in result.out
    assert started.hand("status", "--case-id", "1", "--json").json["current_step"] == F3


@pytest.mark.parametrize(
    ("items", "output"),
    [
        ([ITEM, 1], f"own.json names the items {ITEM}, 1; say which case it is for: --case-id"),
        ([7], "lacks the field 'match'"),
        (["x", None, True, 2**70], "lacks the field 'match'"),
        ({}, "lacks the field 'match'"),
    ],
)
def test_an_artifact_that_names_no_case_of_ours_is_for_the_first_open_one(
    started: World, items: Any, output: str
) -> None:
    started.write("own.json", json.dumps({**CAUSE, "case_ids": items}))
    result = started.hand("save", "-f", "own.json")
    assert result.code == 2
    assert output in result.err


def test_cursor_takes_an_answer_that_lies_in_its_place(started: World) -> None:
    folder = started.folder / ".asterisk" / "investigations" / "1" / "1"
    (folder / "recall-result.json").write_text(json.dumps(MISS))
    result = started.hand("cursor")
    assert result.out.startswith("C1 F0_RECALL H2: ")
    assert json.loads((folder / "recall-result.json").read_text()) == MISS
    assert not [*folder.glob("*replaced*")]


@pytest.mark.parametrize(
    ("content", "output"),
    [
        ("{", "it is not valid JSON"),
        ('{"dispatch_id": 7, "data": {}}', "it answers dispatch 7, and 1 is open; nothing was"),
        (json.dumps(TRIAGE), "Answer lacks the field 'match'. Nothing was saved"),
    ],
)
def test_cursor_says_why_what_lies_there_is_not_taken(
    started: World, content: str, output: str
) -> None:
    place = started.folder / ".asterisk" / "investigations" / "1" / "1" / "recall-result.json"
    place.write_text(content)
    result = started.hand("cursor")
    assert result.code == 0
    assert result.err.startswith(f"note: {place}: ")
    assert output in result.err
    assert "is at F0_RECALL" in result.out
    assert place.read_text() == content


def test_an_earlier_answer_is_none_to_an_asking_that_was_not_written_out(started: World) -> None:
    """As a process leaves it that was killed between the decision and the next prompt."""
    folder = started.folder / ".asterisk" / "investigations" / "1" / "1"
    signal = json.loads((folder / "signal.json").read_text())
    (folder / "signal.json").write_text(json.dumps({**signal, "dispatch_id": 99}))
    (folder / "recall-result.json").write_text(json.dumps(MISS))
    result = started.hand("cursor")
    assert (result.code, result.err) == (0, "")
    assert "is at F0_RECALL" in result.out
    assert not (folder / "recall-result.json").exists()
