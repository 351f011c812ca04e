"""Leave to do something: the policy's word, a human's word, and no word at all."""

import asyncio
import json
import time
from pathlib import Path
from typing import Any

import pytest

from interlock.carriers.acp.carrier import AcpAgent
from interlock.carriers.acp.settings import AcpSettings, Policy
from interlock.carriers.contract import Reply
from interlock.carriers.queries import (
    AgentQuery,
    PermissionBroker,
    QueryBroker,
    QueryReply,
    find_reply,
    list_open_queries,
    write_query,
    write_reply,
)
from interlock.journal.mailbox import Mailbox
from interlock.system.clock import Clock, SystemClock
from tests.world.acp_agents import ROGUE, make_acp_agent, reply_of
from tests.world.carrier_bench import Bench, appears, ask, gone
from tests.world.clock import FakeClock

RUN = {"kind": "execute", "title": "rm -rf\nbuild \x1b[2J"}


def asking(
    folder: Path,
    wish: dict[str, Any],
    clock: Clock | None = None,
    carrier_clock: Clock | None = None,
    **policy: Any,
) -> AcpAgent:
    """An agent that asks for this, with a desk in `folder/queries`."""
    clock = clock or SystemClock()
    broker = PermissionBroker(
        QueryBroker(Mailbox(folder / "i.db", "queries")), carrier_clock or clock, 600.0
    )
    terms = AcpSettings(Policy(**policy))
    words = json.dumps(wish)
    return make_acp_agent(folder, "asks", clock=clock, terms=terms, broker=broker, WISH=words)


def chose(option: str) -> Reply:
    return Reply(1, json.dumps({"chosen": option}).encode())


async def waiting(folder: Path) -> AgentQuery:
    """The one question that waits in the folder, as soon as it is there."""
    give_up = time.monotonic() + 120
    while not (found := list_open_queries(Mailbox(folder / "i.db", "queries"), {1})):
        assert time.monotonic() < give_up, "nobody asked"
        await asyncio.sleep(0)
    return found[0]


@pytest.mark.parametrize(
    ("wish", "policy", "option"),
    [
        ({"kind": "read"}, {}, "yes"),
        ({"kind": "read"}, {"read": "reject"}, "no"),
        ({"kind": "execute"}, {"execute": "allow"}, "yes"),
        ({"kind": "execute"}, {"execute": "reject"}, "no"),
        ({}, {"other": "reject"}, "no"),
        ({"kind": "read", "start": "execute"}, {"execute": "reject"}, "no"),
        ({"kind": "execute", "start": "read"}, {"execute": "reject"}, "no"),
        ({"start": "read"}, {}, "yes"),
        ({"kind": "read", "options": "forever no"}, {}, "cancelled"),
        ({"kind": "execute", "options": "yes"}, {"execute": "reject"}, "cancelled"),
    ],
)
async def test_the_policy_speaks_first(
    tmp_path: Path, wish: dict[str, Any], policy: dict[str, Any], option: str
) -> None:
    assert await reply_of(asking(tmp_path, wish, **policy)) == chose(option)
    assert list_open_queries(Mailbox(tmp_path / "i.db", "queries"), {1}) == []


@pytest.mark.parametrize(("decision", "option"), [("allow", "yes"), ("reject", "no"), ("ok", "no")])
async def test_a_human_is_asked_and_only_allow_allows(
    tmp_path: Path, decision: str, option: str
) -> None:
    wish = {**RUN, "rawInput": {"command": "rm -rf build"}, "locations": [{"path": "/x"}]}
    async with Bench(asking(tmp_path, wish)) as bench:
        bench.carrier.send([ask()])
        query = await waiting(tmp_path)
        assert query.question == (
            "May it execute: rm -rf build \x1b[2J\n"
            '{"paths":["/x"],"input":{"command":"rm -rf build"}}\n'
            "Not answered within 600 seconds, it is denied."
        )
        assert (query.query_id, query.dispatch_id, query.options) == ("1.1", 1, ("allow", "reject"))
        write_reply(
            Mailbox(tmp_path / "i.db", "queries"), QueryReply("1.1", decision, "", "ann", 5.0)
        )
        assert await bench.until(1) == [chose(option)]


async def test_a_question_that_nobody_answers_is_a_no(tmp_path: Path) -> None:
    clock = FakeClock()
    async with Bench(asking(tmp_path, RUN, carrier_clock=clock)) as bench:
        bench.carrier.send([ask()])
        query = await waiting(tmp_path)
        began = clock.time
        while (closed := find_reply(Mailbox(tmp_path / "i.db", "queries"), query.query_id)) is None:
            assert clock.advance()
            await asyncio.sleep(0)
        assert clock.time - began == pytest.approx(600, abs=1)
        assert (closed.decision, closed.by) == ("reject", "nobody in time")
        assert await bench.until(1) == [chose("no")]


@pytest.mark.soak
async def test_an_agent_that_waits_for_a_human_is_not_silent(tmp_path: Path) -> None:
    clock = FakeClock()
    began = clock.time
    agent = asking(tmp_path, RUN, clock, carrier_clock=SystemClock())
    async with Bench(agent, clock) as bench:
        bench.carrier.send([ask()])
        await waiting(tmp_path)
        while not bench.replies:
            clock.advance()
            await asyncio.sleep(0)
        found = Reply(1, failure="timeout", reason="it took too long (7200 s)")
        assert bench.replies == [found]
        assert clock.time >= began + 7_200
    assert list_open_queries(Mailbox(tmp_path / "i.db", "queries"), {1}) == []


async def test_without_a_desk_nobody_can_say_yes(tmp_path: Path) -> None:
    agent = make_acp_agent(tmp_path, "asks", WISH=json.dumps(RUN))
    assert await reply_of(agent) == chose("no")


async def test_a_question_ends_with_its_dispatch(tmp_path: Path) -> None:
    async with Bench(asking(tmp_path, RUN)) as bench:
        bench.carrier.send([ask()])
        await waiting(tmp_path)
        bench.carrier.settle(1)
    assert list_open_queries(Mailbox(tmp_path / "i.db", "queries"), {1}) == []
    closed = find_reply(Mailbox(tmp_path / "i.db", "queries"), "1.1")
    assert closed is not None
    assert (closed.decision, closed.by) == ("reject", "the end of its dispatch")
    assert gone(int(await appears(tmp_path / "notes" / "pid")))


async def test_an_answer_to_an_earlier_agent_is_none_to_this_one(tmp_path: Path) -> None:
    """Interlock was killed while a question waited; then somebody said yes to it."""
    folder = Mailbox(tmp_path / "i.db", "queries")
    write_query(folder, AgentQuery("1.1", 1, 1, "A", "work", "worker", "May it?", ("allow",), 1.0))
    write_query(folder, AgentQuery("1.2", 1, 1, "A", "work", "worker", "May it?", ("allow",), 1.0))
    write_reply(folder, QueryReply("1.1", "allow", "", "ann", 2.0))
    async with Bench(asking(tmp_path, RUN)) as bench:
        bench.carrier.send([ask()])
        query = await waiting(tmp_path)
        assert query.query_id == "1.3"
        assert getattr(find_reply(folder, "1.2"), "decision", "") == "reject"
        write_reply(folder, QueryReply("1.3", "reject", "", "ann", 3.0))
        assert await bench.until(1) == [chose("no")]


async def test_a_flood_of_wishes_asks_a_human_a_few_times_only(tmp_path: Path) -> None:
    clock = SystemClock()
    broker = PermissionBroker(QueryBroker(Mailbox(tmp_path / "i.db", "queries")), clock, 600.0)
    agent = make_acp_agent(tmp_path, "permission_flood", ROGUE, clock, broker=broker)
    found = await reply_of(agent)
    assert found.reason == "it asked for permission more than 200 times"
    asked = [
        each.name
        for each in Mailbox(tmp_path / "i.db", "queries").list_names()
        if "reply" not in each.name
    ]
    assert len(asked) == 20
    assert list_open_queries(Mailbox(tmp_path / "i.db", "queries"), {1}) == []


def test_the_strictest_word_counts() -> None:
    policy = Policy(execute="reject", edit="allow")
    assert policy.find_verdict("read") == "allow"
    assert policy.find_verdict("read", "edit") == "allow"
    assert policy.find_verdict("read", "delete") == "ask"
    assert policy.find_verdict("delete", "execute") == "reject"
    assert (
        policy.find_verdict()
        == policy.find_verdict(None)
        == policy.find_verdict("verdict")
        == "ask"
    )
