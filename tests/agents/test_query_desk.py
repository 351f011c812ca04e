"""The desk of queries: people are told, and only a reply of somebody who may give it counts."""

import getpass
from pathlib import Path

import pytest
from tests.world.bench import ask

from interlock.agents.carrier import Reply
from interlock.agents.human import AnswerPolicy
from interlock.agents.queries import PERMISSION, QueryBroker, QueryReply, put_reply, reply_to
from interlock.journal.events import Notification, as_json

ME = getpass.getuser()


def test_people_are_told_at_once(tmp_path: Path) -> None:
    told: list[Notification] = []
    desk = QueryBroker(tmp_path)
    desk.tell = told.append
    desk.ask(ask(7), "Which\n door?", ("left", "right"), 5.0)
    desk.ask(ask(7), "x" * 200, (), 6.0)
    assert not desk.ask(ask(7), " ", (), 7.0)["asked"]
    assert [each.questions for each in told] == [("7.1",), ("7.2",)]
    assert told[0].event == "query"
    assert told[0].text.endswith(": Which door? 'interlock answer 7.1 left|right'")
    assert f"{'x' * 79}… 'interlock answer 7.2 ANSWER'" in told[1].text
    assert as_json(told[0])["questions"] == ["7.1"]


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
    desk = QueryBroker(tmp_path, policy)
    desk.refuse = refused.append
    desk.ask(ask(7), "May it?", ("allow", "reject"), 5.0, PERMISSION)
    put_reply(tmp_path, QueryReply("7.1", "allow", "", by, 6.0))
    assert desk.poll("7.1")["answered"] is (not reason)
    assert [(each.dispatch_id, each.refused) for each in refused] == (
        [(7, "WrongRole")] if reason else []
    )
    assert all(reason[1:] in each.reason for each in refused)
    assert (reply_to(tmp_path, "7.1") is None) is bool(reason), "it is open again"


def test_a_reply_under_another_id_is_none(tmp_path: Path) -> None:
    desk = QueryBroker(tmp_path)
    desk.ask(ask(7), "May it?", (), 5.0)
    put_reply(tmp_path, QueryReply("8.1", "allow", "", ME, 6.0))
    (tmp_path / "8.1.reply.json").rename(tmp_path / "7.1.reply.json")
    assert desk.reply("7.1") is None
    assert desk.reply("../7.1") is None
