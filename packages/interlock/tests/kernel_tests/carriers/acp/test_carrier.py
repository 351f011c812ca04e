"""Agents that speak the protocol as the SDK does: what is an answer, and what is not."""

import json
from pathlib import Path

import pytest

from interlock.carriers.contract import Reply
from interlock.engine.case import Usage
from tests.world.acp_agents import make_acp_agent, noted, place_of, reply_of
from tests.world.carrier_bench import ask


async def test_the_final_message_is_the_answer(tmp_path: Path) -> None:
    question = ask(7, "A prompt: ü 🚂\n")
    assert await reply_of(make_acp_agent(tmp_path, "answers"), question) == Reply(7, b'{"n":7}')
    assert noted(tmp_path, "prompt")[0] == "A prompt: ü 🚂"


async def test_words_before_a_tool_call_and_thoughts_are_no_answer(tmp_path: Path) -> None:
    assert await reply_of(make_acp_agent(tmp_path, "thinks-aloud")) == Reply(1, b'{"n":1}')


async def test_what_it_cost_as_far_as_it_says(tmp_path: Path) -> None:
    found = await reply_of(make_acp_agent(tmp_path, "bills"))
    assert found == Reply(1, b'{"n":1}', usage=Usage(tokens=120))


@pytest.mark.parametrize(
    ("scene", "failure", "reason"),
    [
        (
            "stops_max_tokens",
            "unreadable",
            "the answer was cut off at the agent's token limit; be brief",
        ),
        (
            "stops_max_turn_requests",
            "crash",
            "the agent used up the model requests of one turn",
        ),
        ("stops_refusal", "crash", "the agent refused to answer"),
        (
            "stops_cancelled",
            "crash",
            "the agent says the turn was cancelled, but nobody cancelled it",
        ),
        (
            "other-version",
            "crash",
            "it speaks version 7 of the Agent Client Protocol, Interlock speaks 1",
        ),
        (
            "login",
            "crash",
            (
                "the agent needs a login: start it once by hand and log in "
                "(Authentication required ({'details': 'no key'}))"
            ),
        ),
    ],
)
async def test_turns_without_an_answer(
    tmp_path: Path, scene: str, failure: str, reason: str
) -> None:
    found = await reply_of(make_acp_agent(tmp_path, scene))
    assert found == Reply(1, failure=failure, reason=reason)


async def test_it_works_in_a_folder_of_its_own_with_a_clean_environment(tmp_path: Path) -> None:
    agent = make_acp_agent(
        tmp_path, "answers", HOME="/none", AWS_SECRET_ACCESS_KEY="secret", LANG="C.UTF-8"
    )
    await reply_of(agent, ask(4))
    assert noted(tmp_path, "sessions") == [f"new {place_of(tmp_path)}"]
    (found,) = noted(tmp_path, "environment")
    environment = json.loads(found)
    assert environment["INTERLOCK_DISPATCH_ID"] == "4"
    assert (environment["HOME"], environment["LANG"]) == ("/none", "C.UTF-8")
    assert "AWS_SECRET_ACCESS_KEY" not in environment


async def test_it_is_offered_neither_files_nor_terminals(tmp_path: Path) -> None:
    await reply_of(make_acp_agent(tmp_path, "answers"))
    (found,) = noted(tmp_path, "capabilities")
    offered = json.loads(found)
    assert not any(offered.get("fs", {}).values())
    assert not offered.get("terminal")
