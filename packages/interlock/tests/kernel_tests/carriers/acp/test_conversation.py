"""Sessions: taken up again where the agent can, forgotten where they failed, cancelled in time."""

from pathlib import Path

import pytest

from interlock.carriers.acp.carrier import AcpAgent
from interlock.carriers.acp.settings import AcpSettings
from interlock.carriers.cli.work_folder import Session, WorkFolder
from interlock.carriers.contract import Reply
from tests.world.acp_agents import ROGUE, make_acp_agent, noted, place_of, reply_of
from tests.world.carrier_bench import Bench, appears, ask

GOOD = Reply(1, b'{"n":1}')


def place(folder: Path, agent: AcpAgent) -> WorkFolder:
    """The place of the agent's first dispatch, made."""
    work = place_of(folder)
    work.mkdir(parents=True, exist_ok=True)
    return WorkFolder(work.parent, work, agent._name)


@pytest.mark.parametrize(
    ("scene", "resume", "sessions"),
    [
        ("load", True, ["load s-0"]),
        ("load", False, ["new"]),
        ("load-fails", True, ["new"]),
        ("answers", True, ["new"]),
    ],
)
async def test_the_session_is_loaded_where_it_can_be(
    tmp_path: Path, scene: str, resume: bool, sessions: list[str]
) -> None:
    agent = make_acp_agent(tmp_path, scene, terms=AcpSettings(resume=resume))
    place(tmp_path, agent).keep_session(Session("s-0", str(place_of(tmp_path))))
    assert await reply_of(agent) == GOOD
    assert [each.split(" /")[0] for each in noted(tmp_path, "sessions")] == sessions


async def test_a_session_of_another_folder_is_not_loaded(tmp_path: Path) -> None:
    agent = make_acp_agent(tmp_path, "load")
    place(tmp_path, agent).keep_session(Session("s-0", "/elsewhere"))
    assert await reply_of(agent) == GOOD
    assert noted(tmp_path, "sessions") == [f"new {place_of(tmp_path)}"]


async def test_it_may_work_in_the_project(tmp_path: Path) -> None:
    await reply_of(make_acp_agent(tmp_path, "answers", terms=AcpSettings(folder="project")))
    assert noted(tmp_path, "sessions") == [f"new {tmp_path}"]


async def test_a_session_is_kept_for_the_next_attempt_and_after_an_end_from_outside(
    tmp_path: Path,
) -> None:
    agent = make_acp_agent(tmp_path, "hangs")
    kept = place(tmp_path, agent)
    async with Bench(agent) as bench:
        bench.carrier.send([ask()])
        await appears(tmp_path / "notes" / "pid")
    assert kept.read_session() == Session("s-1", str(place_of(tmp_path)))
    assert bench.replies == []


@pytest.mark.parametrize("scene", ["bad_stop", "exits_in_the_middle", "huge_answer"])
async def test_a_session_that_failed_is_forgotten(tmp_path: Path, scene: str) -> None:
    agent = make_acp_agent(tmp_path, scene, ROGUE)
    assert (await reply_of(agent)).failure
    assert place(tmp_path, agent).read_session() is None


async def test_a_turn_that_is_not_needed_any_more_is_cancelled(tmp_path: Path) -> None:
    async with Bench(make_acp_agent(tmp_path, "hangs")) as bench:
        bench.carrier.send([ask()])
        await appears(tmp_path / "notes" / "pid")
        bench.carrier.settle(1)
    assert noted(tmp_path, "cancelled") == ["s-1"]
