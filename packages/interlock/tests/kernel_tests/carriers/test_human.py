"""Answers of people: messages that are found, and who may give them."""

import os
import pwd
from pathlib import Path

import msgspec
import pytest

from interlock.carriers.contract import Reply
from interlock.carriers.human import (
    EVERYBODY,
    AnswerPolicy,
    HumanAnswer,
    HumanCarrier,
    find_saved_answer,
    write_answer,
    write_refused_answer,
)
from interlock.journal.address import DatabaseAddress
from interlock.journal.database import open_writer
from interlock.journal.mailbox import Mailbox
from tests.world.carrier_bench import Bench, ask
from tests.world.clock import FakeClock

YES = HumanAnswer(1, "ann", {"decision": "approve"})
REPLY = Reply(1, b'{"decision":"approve"}', answered_by="ann")


def make_bench(mail: Mailbox) -> Bench:
    clock = FakeClock()
    return Bench(HumanCarrier(mail, clock), clock)


@pytest.fixture
def mail(tmp_path: Path) -> Mailbox:
    return Mailbox(tmp_path / "i.db", "answers")


def test_the_first_answer_counts(db: DatabaseAddress) -> None:
    mail = Mailbox(db, "answers")
    assert mail.list_names() == []
    assert write_answer(mail, YES)
    assert not write_answer(mail, HumanAnswer(1, "bob", {"decision": "reject"}))
    found = mail.find("1", 1_000)
    assert found is not None
    assert found.body == b'{"question_id":1,"by":"ann","data":{"decision":"approve"}}'
    assert found.written_by
    assert find_saved_answer(mail, 1) == YES
    assert [each.name for each in mail.list_names()] == ["1"]
    assert Mailbox(db, "queries").list_names() == []
    for _ in range(2):
        mail.remove("1")
    assert (mail.find("1", 1_000), mail.list_names()) == (None, [])


def test_an_answer_is_by_who_runs_the_process_whatever_is_said(
    mail: Mailbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LOGNAME", "ann")
    write_answer(mail, YES)
    found = mail.find("1", 0)
    assert found is not None
    assert (found.written_by, found.is_cut) == (pwd.getpwuid(os.geteuid()).pw_name, True)


def test_a_message_is_seen_however_long_nothing_was_written(mail: Mailbox, tmp_path: Path) -> None:
    write_answer(mail, YES)
    for file in tmp_path.iterdir():
        os.utime(file, (1, 1))
    assert [each.name for each in mail.list_names()] == ["1"]
    write_answer(Mailbox(tmp_path / "i.db", "answers"), HumanAnswer(2, "ann", {}))
    assert [each.name for each in mail.list_names()] == ["1", "2"]


def test_an_answer_comes_while_a_run_holds_the_file(tmp_path: Path, mail: Mailbox) -> None:
    with open_writer(tmp_path / "i.db"):
        assert write_answer(mail, YES)
        assert find_saved_answer(mail, 1) == YES
        mail.remove("1")
        assert mail.list_names() == []


async def test_an_answer_that_does_not_count_is_handed_over_to_be_refused(mail: Mailbox) -> None:
    late = HumanAnswer(7, "bob", {"decision": "reject"}, 1, refused="Ann was first.")
    write_refused_answer(mail, late)
    write_refused_answer(mail, HumanAnswer(8, "bob", {}, 2, refused="Other run."))
    async with make_bench(mail) as bench:
        bench.carrier.send([ask(1)])
        content = b'{"decision":"reject","by":"bob"}'
        assert bench.replies == [Reply(7, content, refused="Stale", reason="Ann was first.")]
    left = [each.name.partition(".")[0] for each in mail.list_names()]
    assert left == ["8"]


async def test_an_answer_that_was_there_before_the_question(mail: Mailbox) -> None:
    write_answer(mail, YES)
    async with make_bench(mail) as bench:
        assert bench.replies == []
        bench.carrier.send([ask(1)])
        assert bench.replies == [REPLY]


async def test_an_answer_that_comes_later(mail: Mailbox) -> None:
    async with make_bench(mail) as bench:
        bench.carrier.send([ask(1)])
        for _ in range(10):
            assert bench.clock.advance()
        assert bench.replies == []
        write_answer(mail, YES)
        bench.clock.advance()
        assert bench.replies == [REPLY]


async def test_an_answer_is_kept_until_it_is_settled(mail: Mailbox) -> None:
    write_answer(mail, YES)
    async with make_bench(mail) as bench:
        bench.carrier.send([ask(1)])
        assert mail.list_names()
        bench.carrier.settle(1)
        assert not mail.list_names()


async def test_an_answer_for_a_closed_question_is_not_delivered(mail: Mailbox) -> None:
    async with make_bench(mail) as bench:
        bench.carrier.send([ask(1), ask(2)])
        bench.carrier.settle(1)
        write_answer(mail, YES)
        write_answer(mail, HumanAnswer(2, "", {}))
        bench.clock.advance()
        assert bench.replies == [Reply(2, b"{}", answered_by="somebody")]


async def test_it_looks_no_more_when_no_question_is_open(mail: Mailbox) -> None:
    async with make_bench(mail) as bench:
        bench.carrier.send([ask(1)])
        bench.carrier.settle(1)
        bench.clock.advance()
        assert not bench.clock.advance()


async def test_a_broken_answer_is_told_as_unreadable(mail: Mailbox) -> None:
    mail.put("1", b'{"question_id": 1, "by": "ann"')
    async with make_bench(mail) as bench:
        bench.carrier.send([ask(1)])
        assert bench.replies == [
            Reply(
                1,
                failure="unreadable",
                reason="message 1: Input data was truncated",
                answered_by="somebody",
            )
        ]


async def test_a_message_that_answers_another_question_answers_none(mail: Mailbox) -> None:
    mail.put("2", msgspec.json.encode(YES))
    async with make_bench(mail) as bench:
        bench.carrier.send([ask(1), ask(2)])
        assert [(each.dispatch_id, each.failure, each.reason) for each in bench.replies] == [
            (2, "unreadable", "message 2 answers question 1")
        ]


async def test_two_thousand_questions_are_looked_for_together(mail: Mailbox) -> None:
    async with make_bench(mail) as bench:
        bench.carrier.send([ask(number) for number in range(1, 2_001)])
        write_answer(mail, HumanAnswer(1_999, "ann", {}))
        bench.clock.advance()
        assert [each.dispatch_id for each in bench.replies] == [1_999]


POLICY = AnswerPolicy(("ann", "bob"), ("ann",), {"publish": ("bob", "cy"), "open": ()})


@pytest.mark.parametrize(
    ("step", "by", "user", "problem"),
    [
        ("review", "ann", "ann", ""),
        ("review", "bob", "ann", ""),
        ("review", "ann", "bob", "bob may not answer in the name of ann; [inbox] proxies says who"),
        ("review", "eve", "ann", "eve may not answer at review; these may: ann, bob"),
        ("review", "ann", "eve", "eve may not answer at review; these may: ann, bob"),
        ("review", "cy", "cy", "cy may not answer at review"),
        ("publish", "cy", "cy", ""),
        ("publish", "ann", "ann", "ann may not answer at publish; these may: bob, cy"),
        ("open", "eve", "eve", ""),
    ],
)
def test_who_may(step: str, by: str, user: str, problem: str) -> None:
    found = POLICY.find_problem(step, by, user)
    assert found.startswith(problem)
    assert bool(found) == bool(problem)


def test_without_names_everybody_may_in_any_name() -> None:
    assert EVERYBODY.find_problem("review", "ann", "eve") == ""
