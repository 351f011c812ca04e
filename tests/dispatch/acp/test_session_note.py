"""A session that is taken up again after a restart, where the agent can."""

from pathlib import Path

import pytest
from tests.world.acp_crew import crew, noted, reply_of
from tests.world.bench import Bench, appears, ask

from interlock.dispatch.acp.session_note import SessionNote
from interlock.dispatch.carrier import Reply

GOOD = Reply(1, b'{"n":1}')


@pytest.mark.parametrize(
    ("scene", "sessions"),
    [("load", ["load s-0"]), ("load-fails", ["new"]), ("answers", ["new"])],
)
async def test_the_session_is_loaded_where_it_can_be(
    tmp_path: Path, scene: str, sessions: list[str]
) -> None:
    agent = crew(tmp_path, scene)
    folder = tmp_path / "work" / "1" / "1"
    folder.mkdir(parents=True)
    SessionNote(folder, agent._argv).keep("s-0")
    assert await reply_of(agent) == GOOD
    assert [each.split(" /")[0] for each in noted(tmp_path, "sessions")] == sessions


async def test_it_is_noted_while_it_works_and_forgotten_when_it_is_settled(tmp_path: Path) -> None:
    folder = tmp_path / "work" / "1" / "1"
    agent = crew(tmp_path, "hangs")
    note = SessionNote(folder, agent._argv)
    async with Bench(agent) as bench:
        bench.carrier.send([ask()])
        await appears(tmp_path / "notes" / "pid")
        assert note.session_id() == "s-1"
    assert note.session_id() == "s-1", "ended without being settled: it may go on"
    async with Bench(crew(tmp_path, "hangs")) as bench:
        bench.carrier.send([ask()])
        bench.carrier.settled(1)
    assert note.session_id() == ""
    assert bench.replies == []


async def test_a_turn_that_is_not_needed_any_more_is_cancelled(tmp_path: Path) -> None:
    async with Bench(crew(tmp_path, "hangs")) as bench:
        bench.carrier.send([ask()])
        await appears(tmp_path / "notes" / "pid")
        bench.carrier.settled(1)
    assert noted(tmp_path, "cancelled") == ["s-1"]


@pytest.mark.parametrize(
    "content", ["", "{", "[]", "\0", '{"argv":["x"],"session_id":"s"}', '{"session_id":"s"}']
)
def test_a_note_that_is_none(tmp_path: Path, content: str) -> None:
    (tmp_path / "1.session").write_text(content)
    assert SessionNote(tmp_path / "1", ["agent"]).session_id() == ""


def test_a_note_of_another_command_or_behind_a_link_is_none(tmp_path: Path) -> None:
    SessionNote(tmp_path / "1", ["agent", "a"]).keep("s")
    assert SessionNote(tmp_path / "1", ["agent", "a"]).session_id() == "s"
    assert SessionNote(tmp_path / "1", ["agent", "b"]).session_id() == ""
    (tmp_path / "2.session").symlink_to(tmp_path / "1.session")
    assert SessionNote(tmp_path / "2", ["agent", "a"]).session_id() == ""
