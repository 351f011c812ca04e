"""Queries of agents: asked and answered once, whole, and only by somebody who may."""

import os
import pwd
from pathlib import Path

import msgspec
import pytest

from interlock.carriers.contract import Reply, Session
from interlock.carriers.human import AnswerPolicy
from interlock.carriers.queries import (
    MAX_QUERIES,
    PERMISSION,
    AgentQuery,
    QueryBroker,
    QueryReply,
    check_question,
    find_query,
    find_reply,
    is_query_id,
    list_open_queries,
    next_query_id,
    write_query,
    write_reply,
)
from interlock.journal.address import DatabaseAddress
from interlock.journal.events import Notification, build_json
from interlock.journal.mailbox import Mailbox
from tests.world.carrier_bench import ask


def put(mail: Mailbox, dispatch_id: int, at: float = 0) -> str:
    number = next_query_id(mail, dispatch_id)
    write_query(mail, AgentQuery(number, dispatch_id, 1, "A", "look", "scout", "Why?", (), at))
    return number


@pytest.fixture
def mail(tmp_path: Path) -> Mailbox:
    return Mailbox(tmp_path / "i.db", "queries")


def test_asked_answered_and_kept(db: DatabaseAddress) -> None:
    mail = Mailbox(db, "queries")
    late, soon, other = put(mail, 12, 5), put(mail, 12, 1), put(mail, 3, 2)
    assert (late, soon, other) == ("12.1", "12.2", "3.1")
    assert [each.query_id for each in list_open_queries(mail, {12, 3})] == ["12.2", "3.1", "12.1"]
    assert [each.query_id for each in list_open_queries(mail, {3})] == ["3.1"]
    write_reply(mail, QueryReply("12.2", "yes", "", "Ann", 9))
    assert [each.query_id for each in list_open_queries(mail, {12})] == ["12.1"]
    assert not write_reply(mail, QueryReply("12.2", "no", "", "Bob", 9))
    found = find_reply(mail, "12.2")
    assert found is not None
    assert (found.decision, found.by) == ("yes", "Ann")


def test_nobody_asks_for_ever(mail: Mailbox) -> None:
    asked = [put(mail, 1) for _ in range(MAX_QUERIES)]
    assert len(set(asked)) == MAX_QUERIES
    assert next_query_id(mail, 1) == ""


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"\xff", b'{"query_id": "1.1"}'])
def test_what_is_no_query_is_none(mail: Mailbox, content: bytes) -> None:
    for name in ("1.1", "x", "2.1"):
        mail.put(name, content)
    assert find_query(mail, "1.1") is None
    assert list_open_queries(mail, {1, 2}) == []


@pytest.mark.parametrize(
    "word",
    [
        "",
        "1",
        "1.",
        ".1",
        "0.1",
        "1.0",
        "01.1",
        "1.1.1",
        "../1.1",
        "1.1\n",
        "\u0661.\u0661",
        "-1.1",
    ],
)
def test_words_that_name_no_query(mail: Mailbox, word: str) -> None:
    assert not is_query_id(word)
    assert find_query(mail, word) is None
    assert find_reply(mail, word) is None


def test_what_can_be_asked() -> None:
    assert check_question("Why?", ()) == ""
    assert check_question("Why?", ["a"] * 12) == ""
    assert check_question(" \n", ())
    assert check_question("x" * 8001, ())
    assert check_question("Why?", ["a"] * 13)
    assert check_question("Why?", [""])
    assert check_question("Why?", ["x" * 81])


ME = pwd.getpwuid(os.geteuid()).pw_name


def ignore_reply(_reply: Reply) -> None:
    pass


def test_people_are_told_at_once(mail: Mailbox) -> None:
    output: list[Notification] = []
    bench = QueryBroker(mail).open_for(Session(ignore_reply, notify=output.append))
    bench.ask(ask(7), "Which\n door?", ("left", "right"), 5.0)
    bench.ask(ask(7), "x" * 200, (), 6.0)
    assert not bench.ask(ask(7), " ", (), 7.0).asked
    assert [each.questions for each in output] == [("7.1",), ("7.2",)]
    assert output[0].event == "query"
    assert output[0].text.endswith(": Which door? 'interlock answer 7.1 left|right'")
    assert f"{'x' * 79}… 'interlock answer 7.2 ANSWER'" in output[1].text
    assert build_json(output[0])["questions"] == ["7.1"]


@pytest.mark.parametrize(
    ("policy", "by", "reason"),
    [
        (AnswerPolicy(), "Eve", ""),
        (AnswerPolicy((ME,)), ME, ""),
        (AnswerPolicy((ME, "Eve"), (ME,)), "Eve", ""),
        (AnswerPolicy((ME, "Eve")), "Eve", f"{ME} may not answer in the name of Eve"),
        (AnswerPolicy(("ann",)), ME, f"{ME} may not answer at permission; these may: ann"),
        (AnswerPolicy((ME,), (), {PERMISSION: ("ann",)}), ME, f"{ME} may not answer at permission"),
        (AnswerPolicy(("ann",), (), {PERMISSION: (ME,)}), ME, ""),
        (AnswerPolicy((ME,), (), {"query": ("ann",)}), ME, ""),
    ],
)
def test_who_may_answer(mail: Mailbox, policy: AnswerPolicy, by: str, reason: str) -> None:
    refused: list[Reply] = []
    bench = QueryBroker(mail, policy).open_for(Session(refused.append))
    bench.ask(ask(7), "May it?", ("allow", "reject"), 5.0, PERMISSION)
    write_reply(mail, QueryReply("7.1", "allow", "", by, 6.0))
    assert bench.poll("7.1").answered is (not reason)
    assert [(each.dispatch_id, each.refused) for each in refused] == (
        [(7, "WrongRole")] if reason else []
    )
    assert all(reason[1:] in each.reason for each in refused)
    assert (find_reply(mail, "7.1") is None) is bool(reason), "it is open again"


def test_a_reply_under_another_id_is_none(mail: Mailbox) -> None:
    bench = QueryBroker(mail)
    bench.ask(ask(7), "May it?", (), 5.0)
    reply = QueryReply("8.1", "allow", "", ME, 6.0)
    mail.put("7.1.reply", msgspec.json.encode(reply))
    assert bench.find_reply("7.1") is None
    assert bench.find_reply("../7.1") is None
