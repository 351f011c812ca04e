"""Answers in a circuit's own words: several gates at once, families, late ones, and who may."""

import json

import pytest

from interlock.api.inbox import find_user
from interlock.journal.mailbox import Mailbox
from tests.world.command_line import CliResult, World, ended, until

CIRCUIT = """\
circuit: talk
start: ask
ends: {done: healthy, halted: healthy, silent: unhealthy}
loops: {talks: 3}
steps:
  ask:
    gate: true
    signals: [artifact, discuss, halt]
    timeout: 90d
    answer:
      type: object
      properties:
        verdict: {type: string, enum: [reassess, overturn]}
        override: {type: object, properties: {code: {type: string}}}
        comment: {type: string}
      required: [verdict]
rules:
  - {id: discuss, at: ask, on: discuss, loop: talks, to: AGAIN, adds: {said: =answer}}
  - {id: halt, at: ask, on: halt, to: halted}
  - {id: again, at: ask, when: verdict == "reassess", loop: talks, to: AGAIN}
  - {id: over, at: ask, to: done, adds: {override: =answer}}
  - {id: silence, at: ask, on: timeout, to: silent}
otherwise: silent
"""
RUN = ("run", "talk", "--cases", "cases.jsonl")
ME = find_user()


@pytest.fixture
def asked(world: World) -> World:
    """Three gates are open: questions 1, 2 and 3. Two of the cases are of one family."""
    world.write("circuits/talk.yaml", CIRCUIT)
    rows = [{"id": "A", "family": "kin"}, {"id": "B"}, {"id": "C", "family": "kin"}]
    world.write("cases.jsonl", "".join(f"{json.dumps(row)}\n" for row in rows))
    assert world.say(*RUN).code == 4
    return world


def open_ones(world: World) -> list[int]:
    return [each["question_id"] for each in world.say("inbox", "--json").json["questions"]]


def test_three_gates_three_ways(asked: World) -> None:
    assert open_ones(asked) == [1, 2, 3]
    assert asked.say("answer", "1", "overturn", "--set", "override.code=pb001").code == 0
    assert asked.say("answer", "2", "halt", "-m", "enough").code == 0
    assert asked.say("answer", "3", "discuss", "-m", "why?").code == 0
    assert (
        asked.say("resume").out.splitlines()[0]
        == "run 1: waiting; 1 done, 1 halted, 1 open; 0 dispatches"
    )
    assert open_ones(asked) == [4]
    assert '"override":{"code":"pb001"}' in asked.say("explain", "A").out
    assert "came back by " + ME + ': halt {"comment":"enough"}' in asked.say("explain", "B").out


def test_a_decision_the_circuit_does_not_know(asked: World) -> None:
    result = asked.say("answer", "1", "approve")
    assert result == CliResult(
        2,
        "",
        "interlock: answer lacks the field 'verdict' (or one of the signals discuss, halt); "
        "nothing was saved\n",
    )


def test_a_question_that_was_asked_anew(asked: World) -> None:
    asked.say("answer", "1", "reassess")
    asked.say("resume")
    late = (
        f"interlock: question 1 was answered by {ME} at TIME; A is asked anew: question 4; "
        "the answer changes nothing, and is kept as refused\n"
    )
    assert asked.say("answer", "1", "overturn") == CliResult(1, "", late)
    assert open_ones(asked) == [2, 3, 4]
    assert "  refused (Stale): Question 1 was answered by" in asked.say("explain", "A").out
    assert asked.say("doctor", "--deep").code == 0


def test_a_late_answer_while_a_process_works_is_refused_by_it(asked: World) -> None:
    asked.say("answer", "1", "reassess")
    process = asked.start("resume", "1", "--wait")
    try:
        until(lambda: 4 in open_ones(asked), "it takes the answer")
        assert asked.say("answer", "1", "overturn").code == 1
        until(lambda: asked.say("status", "--json").json["refused"], "it refuses the late one")
        for number in ("2", "3", "4"):
            assert asked.say("answer", number, "overturn", "--only").code == 0
        assert ended(process).code == 0
    finally:
        process.kill()
        process.wait()
    assert asked.say("status", "--json").json["refused_by_reason"] == {"Stale": 1}
    assert Mailbox(asked.db, "answers").list_names() == []


def test_a_family_is_answered_together_only_if_somebody_says_so(asked: World) -> None:
    result = asked.say("answer", "1", "overturn", "--family")
    assert result.out == (
        "saved the answer to question 1 and to 1 other of its family; "
        "'interlock resume 1' continues with it\n"
    )
    assert asked.say("answer", "2", "overturn", "--family", "--json").json["also"] == []
    assert asked.say("resume").code == 0


def test_an_answer_for_one_leaves_its_family_alone(asked: World) -> None:
    assert asked.say("answer", "1", "overturn", "--json").json["also"] == []
    assert asked.say("answer", "3", "overturn", "--family", "--json").json["also"] == []
    assert asked.say("answer", "2", "overturn").code == 0
    assert asked.say("resume").code == 0


def test_a_circuit_can_say_that_families_are_answered_together(world: World) -> None:
    world.write("circuits/talk.yaml", CIRCUIT.replace("gate: true", "gate: true\n    family: true"))
    world.cases("A", "B", "C", family="kin")
    world.say(*RUN)
    assert world.say("answer", "2", "overturn", "--json").json["also"] == [1, 3]


def test_one_can_be_answered_alone_where_a_circuit_answers_families(world: World) -> None:
    world.write("circuits/talk.yaml", CIRCUIT.replace("gate: true", "gate: true\n    family: true"))
    world.cases("A", "B", "C", family="kin")
    world.say(*RUN)
    assert world.say("answer", "2", "overturn", "--only", "--json").json["also"] == []
    assert world.say("answer", "1", "overturn", "--json").json["also"] == [3]


def test_family_is_a_word_of_gates(world: World) -> None:
    text = CIRCUIT.replace("gate: true", "role: author\n    family: true")
    world.write("circuits/talk.yaml", text)
    result = world.say("circuit", "verify", "talk")
    assert "step 'ask' is not a gate: family is for answers from people" in result.out


@pytest.mark.parametrize(
    ("policy", "words", "problem"),
    [
        ("answerers = ['ann']", (), f"{ME} may not answer at ask; these may: ann"),
        (f"answerers = ['{ME}', 'ann']", (), ""),
        (
            f"answerers = ['{ME}', 'ann']",
            ("--by", "ann"),
            f"{ME} may not answer in the name of ann; [inbox] proxies says who may",
        ),
        (f"answerers = ['{ME}', 'ann']\nproxies = ['{ME}']", ("--by", "ann"), ""),
        (
            f"answerers = ['{ME}']\nproxies = ['{ME}']",
            ("--by", "ann"),
            f"ann may not answer at ask; these may: {ME}",
        ),
        (
            f"answerers = ['{ME}']\n[inbox.step]\nask = ['ann']",
            (),
            f"{ME} may not answer at ask; these may: ann",
        ),
    ],
)
def test_who_may_answer(asked: World, policy: str, words: tuple[str, ...], problem: str) -> None:
    asked.write("interlock.toml", f"[inbox]\n{policy}\n")
    result = asked.say("answer", "1", "overturn", *words)
    assert result.err == (f"interlock: {problem}; nothing was saved\n" if problem else "")
    assert result.code == bool(problem)


def test_an_answer_put_there_by_hand_does_not_go_round_the_policy(asked: World) -> None:
    mail = Mailbox(asked.db, "answers")
    forged = {"question_id": 1, "by": "ann", "data": {"verdict": "overturn"}, "run_id": 1}
    assert mail.put("1", json.dumps(forged).encode(), 1)
    asked.write("interlock.toml", "[inbox]\nanswerers = ['ann']\n")
    assert asked.say("resume").code == 4
    assert open_ones(asked) == [1, 2, 3]
    assert f"refused (WrongRole): {ME[:1].upper()}{ME[1:]} may not answer at ask" in (
        asked.say("explain", "A").out
    )
    assert mail.list_names() == []


def test_the_first_answer_counts_and_the_second_is_refused_and_journaled(asked: World) -> None:
    assert asked.say("answer", "1", "overturn", "--by", "ann").code == 0
    result = asked.say("answer", "1", "reassess", "--by", "bob")
    why = "question 1 is answered already by ann"
    kept = "the answer changes nothing, and is kept as refused"
    assert result == CliResult(1, "", f"interlock: {why}; {kept}\n")
    refused = f"refused (Stale): {why[:1].upper()}{why[1:]}."
    assert f"  {refused}" in asked.say("explain", "A").out.splitlines()
    assert asked.say("logs").out == f"TIME  A  {refused}  dispatch 1\n"
    assert asked.say("logs", "--case", "B").out == ""
    record = asked.say("logs", "--json").json["refused"][0]
    assert json.loads(record["content"])["by"] == "bob"
    assert asked.say("resume").code == 4
    assert "came back by ann" in asked.say("explain", "A").out
    assert asked.say("doctor", "--deep").code == 0


def test_of_four_who_answer_at_once_one_is_first(asked: World) -> None:
    processes = [asked.start("answer", "1", "overturn", "--by", name) for name in "klmn"]
    found = [ended(process) for process in processes]
    assert sorted(each.code for each in found) == [0, 1, 1, 1]
    assert sum("saved the answer" in each.out for each in found) == 1
    assert sum("is kept as refused" in each.err for each in found) == 3
    assert asked.say("status", "--json").json["refused_by_reason"] == {"Stale": 3}
    assert asked.say("logs").out.count("Question 1 is answered already by") == 3
    assert asked.say("doctor", "--deep").code == 0


def test_a_second_answer_while_a_process_works_is_journaled_by_it(asked: World) -> None:
    asked.write("cases2.jsonl", '{"id": "Z"}\n')
    process = asked.start("run", "talk", "--cases", "cases2.jsonl", "--wait")
    try:
        until(lambda: 4 in open_ones(asked), "another run asks, too")
        assert asked.say("answer", "1", "overturn").code == 0
        assert asked.say("answer", "1", "reassess").code == 1
        assert asked.say("answer", "4", "overturn").code == 0
        assert ended(process).code == 0
    finally:
        process.kill()
        process.wait()
    assert asked.say("resume", "1").code == 4
    assert asked.say("logs", "1").out.count("refused (Stale): Question 1 is answered already") == 1
