"""Queries of agents: asked and answered once, whole, and only by somebody who may."""

import getpass
from pathlib import Path

import pytest
from tests.world.carrier_bench import ask

from interlock.agents.carrier import Reply, Session
from interlock.agents.human import AnswerPolicy
from interlock.agents.queries import (
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
from interlock.journal.events import Notification, build_json


def put(folder: Path, dispatch_id: int, at: float = 0) -> str:
    number = next_query_id(folder, dispatch_id)
    write_query(folder, AgentQuery(number, dispatch_id, 1, "A", "look", "scout", "Why?", (), at))
    return number


def test_asked_answered_and_kept(tmp_path: Path) -> None:
    folder = tmp_path / "queries"
    late, soon, other = put(folder, 12, 5), put(folder, 12, 1), put(folder, 3, 2)
    assert (late, soon, other) == ("12.1", "12.2", "3.1")
    assert [each.query_id for each in list_open_queries(folder, {12, 3})] == ["12.2", "3.1", "12.1"]
    assert [each.query_id for each in list_open_queries(folder, {3})] == ["3.1"]
    write_reply(folder, QueryReply("12.2", "yes", "", "Ann", 9))
    assert [each.query_id for each in list_open_queries(folder, {12})] == ["12.1"]
    assert not write_reply(folder, QueryReply("12.2", "no", "", "Bob", 9))
    found = find_reply(folder, "12.2")
    assert found is not None
    assert (found.decision, found.by) == ("yes", "Ann")
    assert folder.stat().st_mode & 0o777 == 0o700
    assert {path.stat().st_mode & 0o777 for path in folder.iterdir()} == {0o600}


def test_nobody_asks_for_ever(tmp_path: Path) -> None:
    asked = [put(tmp_path, 1) for _ in range(MAX_QUERIES)]
    assert len(set(asked)) == MAX_QUERIES
    assert next_query_id(tmp_path, 1) == ""


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"\xff", b'{"query_id": "1.1"}'])
def test_what_is_no_query_is_none(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "1.1.json").write_bytes(content)
    (tmp_path / "x.json").write_bytes(content)
    (tmp_path / "2.1.json").mkdir()
    assert find_query(tmp_path, "1.1") is None
    assert list_open_queries(tmp_path, {1, 2}) == []


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
def test_words_that_name_no_query(tmp_path: Path, word: str) -> None:
    assert not is_query_id(word)
    assert find_query(tmp_path, word) is None
    assert find_reply(tmp_path, word) is None


def test_what_can_be_asked() -> None:
    assert check_question("Why?", ()) == ""
    assert check_question("Why?", ["a"] * 12) == ""
    assert check_question(" \n", ())
    assert check_question("x" * 8001, ())
    assert check_question("Why?", ["a"] * 13)
    assert check_question("Why?", [""])
    assert check_question("Why?", ["x" * 81])


ME = getpass.getuser()


def ignore_reply(_reply: Reply) -> None:
    pass


def test_people_are_told_at_once(tmp_path: Path) -> None:
    output: list[Notification] = []
    bench = QueryBroker(tmp_path).open_for(Session(ignore_reply, notify=output.append))
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
def test_who_may_answer(tmp_path: Path, policy: AnswerPolicy, by: str, reason: str) -> None:
    refused: list[Reply] = []
    bench = QueryBroker(tmp_path, policy).open_for(Session(refused.append))
    bench.ask(ask(7), "May it?", ("allow", "reject"), 5.0, PERMISSION)
    write_reply(tmp_path, QueryReply("7.1", "allow", "", by, 6.0))
    assert bench.poll("7.1").answered is (not reason)
    assert [(each.dispatch_id, each.refused) for each in refused] == (
        [(7, "WrongRole")] if reason else []
    )
    assert all(reason[1:] in each.reason for each in refused)
    assert (find_reply(tmp_path, "7.1") is None) is bool(reason), "it is open again"


def test_a_reply_under_another_id_is_none(tmp_path: Path) -> None:
    bench = QueryBroker(tmp_path)
    bench.ask(ask(7), "May it?", (), 5.0)
    write_reply(tmp_path, QueryReply("8.1", "allow", "", ME, 6.0))
    (tmp_path / "8.1.reply.json").rename(tmp_path / "7.1.reply.json")
    assert bench.find_reply("7.1") is None
    assert bench.find_reply("../7.1") is None
