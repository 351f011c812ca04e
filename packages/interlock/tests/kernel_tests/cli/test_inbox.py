"""inbox and answer: the human gate."""

import json

import pytest

from interlock.journal.mailbox import Mailbox
from tests.world.change import CHANGE
from tests.world.command_line import APPROVED, CliResult, World

RUN = ("run", CHANGE, "--cases", "cases.jsonl", "--agent", "script:crew.yaml")
INBOX = """\
ID  RUN  CASE  STEP     SINCE                QUESTION
5   1    one   approve  TIME  Publish this change on "the one"?
6   1    two   approve  TIME  Publish this change on "the two"?
'interlock inbox 5' shows a question in full
"""
WHOLE = """\
question 5 (gate): run 1, case one, approve, since TIME

Publish this change on "the one"?

fine

The critic gave it 0.9.

answers: approve, revise, reject
until: TIME
"""
TAKEN = "answered, and taken when 'interlock resume 1' runs: 5, 6\n"
KNOWN = "'approve', 'revise', 'reject'"
SAVED = "saved the answer to question 5; 'interlock resume 1' continues with it\n"


@pytest.fixture
def asked(world: World) -> World:
    """Two cases wait at the gate, with questions 5 and 6."""
    world.write("crew.yaml", APPROVED)
    world.cases("one", "two")
    assert world.say(*RUN).code == 4
    return world


def test_inbox_shows_what_waits(asked: World) -> None:
    assert asked.say("inbox") == CliResult(0, INBOX, "")
    questions = asked.say("inbox", "--json").json["questions"]
    asked_at = questions[0].pop("asked_at")
    assert asked_at > 1_700_000_000
    assert questions[0].pop("due_at") == asked_at + 7 * 86400
    assert questions[0] == {
        "question_id": 5,
        "kind": "gate",
        "options": ["approve", "revise", "reject"],
        "run_id": 1,
        "case_id": "one",
        "step": "approve",
        "answer_saved": False,
        "prompt": 'Publish this change on "the one"?\n\nfine\n\nThe critic gave it 0.9.\n',
    }


def test_inbox_shows_one_whole(asked: World) -> None:
    assert asked.say("inbox", "5") == CliResult(0, WHOLE, "")
    found = asked.say("inbox", "6", "--json").json
    assert [each["question_id"] for each in found["questions"]] == [6]
    none = "interlock: question 9 is not open; 'interlock inbox' lists them\n"
    assert asked.say("inbox", "9") == CliResult(1, "", none)
    asked.say("answer", "5", "approve")
    assert asked.say("inbox", "5").out == f"{WHOLE}an answer is saved\n"


def test_an_answer_is_taken_when_the_run_goes_on(asked: World) -> None:
    assert asked.say("answer", "5", "approve", "--by", "Ada", "-m", "nice") == CliResult(
        0, SAVED, ""
    )
    result = asked.say("answer", "6", "reject", "--json")
    output = {"question_id": 6, "run_id": 1, "taken_now": False, "also": []}
    output |= {"then": "'interlock resume 1' continues with it"}
    assert (result.code, result.json) == (0, output)

    assert asked.say("inbox") == CliResult(0, INBOX + TAKEN, "")
    assert all(each["answer_saved"] for each in asked.say("inbox", "--json").json["questions"])

    resumed = asked.say("resume")

    assert resumed == CliResult(0, "run 1: done; 1 published, 1 rejected; 5 dispatches\n", "")
    assert asked.say("inbox") == CliResult(0, "nothing waits for a human\n", "")
    story = asked.say("explain", "one").out
    assert '  came back by Ada: artifact {"decision":"approve","comment":"nice"}\n' in story


def test_only_the_answered_question_moves(asked: World) -> None:
    asked.say("answer", "6", "approve")
    resumed = asked.say("resume")
    assert (resumed.code, resumed.out.splitlines()[0]) == (
        4,
        "run 1: waiting; 1 open, 1 published; 5 dispatches",
    )
    assert [each["question_id"] for each in asked.say("inbox", "--json").json["questions"]] == [5]


@pytest.mark.parametrize(
    ("words", "code", "problem"),
    [
        (("9", "approve"), 1, "question 9 is not open; 'interlock inbox' lists them"),
        (
            ("5", "ok"),
            2,
            f"answer.decision must be one of {KNOWN}, not 'ok'; nothing was saved",
        ),
        (
            ("5", "approve", "--set", "comment=3"),
            2,
            "answer.comment must be a string, not an integer; nothing was saved",
        ),
        (("5", "approve", "--set", "comment"), 2, "--set 'comment': write --set name=value"),
    ],
)
def test_an_answer_that_cannot_be(
    asked: World, words: tuple[str, ...], code: int, problem: str
) -> None:
    result = asked.say("answer", *words, "--json")
    assert (result.code, result.out) == (code, "")
    assert result.err == f"interlock: {problem}\n"
    assert Mailbox(asked.db, "answers").list_names() == []


def test_an_answer_to_a_question_that_was_answered(asked: World) -> None:
    asked.say("answer", "5", "approve", "--by", "Ada")
    asked.say("resume")
    refused = (
        "interlock: question 5 was answered by Ada at TIME; the answer changes nothing, "
        "and is kept as refused\n"
    )
    assert asked.say("answer", "5", "reject", "--by", "Eve") == CliResult(1, "", refused)
    assert "  refused (Stale): Question 5 was answered by Ada at TIME.\n" in (
        asked.say("explain", "one").out
    )
    assert asked.say("status", "--json").json["refused_by_reason"] == {"Stale": 1}
    assert asked.say("doctor", "--deep").code == 0


def test_a_tampered_answer_leaves_the_question_open(asked: World) -> None:
    forged = {"question_id": 5, "by": "Eve", "data": {"decision": "sure"}}
    Mailbox(asked.db, "answers").put("5", json.dumps(forged).encode(), 1)
    assert asked.say("resume").code == 4
    assert [each["question_id"] for each in asked.say("inbox", "--json").json["questions"]] == [
        5,
        6,
    ]
    assert "refused (Malformed)" in asked.say("explain", "one").out
