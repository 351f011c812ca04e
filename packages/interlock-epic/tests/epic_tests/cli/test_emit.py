"""Test the verb emit, with and without a channel."""

import asyncio
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock.signals.lines import LineReader, LineSignal, format_line
from interlock_epic.sessions.channel import Channel
from tests.world.command_line import CliResult, World

FOUR = "epic:story:phase:task"
ISSUE = "issue:{issue_number}"


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (["STORY_STARTED", "3-1"], "SAGE_SIGNAL:STORY_STARTED:3-1"),
        (["CHECKPOINT:MISSING"], "SAGE_SIGNAL:CHECKPOINT:MISSING"),
        (["CHECKPOINT", "epic-3:3-1:phase-2:5"], "SAGE_SIGNAL:CHECKPOINT:epic-3:3-1:phase-2:5"),
        (["CHECKPOINT:WRITE", "e:s:p:t: x"], "SAGE_SIGNAL:CHECKPOINT:WRITE:e:s:p:t: x"),
        (["HITL_REQUIRED"], "SAGE_SIGNAL:HITL_REQUIRED"),
        (["FATAL_ERROR", "X:two\nlines"], "SAGE_SIGNAL:FATAL_ERROR:X:two lines"),
    ],
)
def test_prints_the_canonical_line(world: World, words: list[str], line: str) -> None:
    assert world.say("emit", *words) == CliResult(0, f"{line}\n", "")


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["CHECKPOINT"], f"CHECKPOINT takes WRITE, LOADED, MISSING, or exactly {FOUR}"),
        (["HITL_HALT"], f"HITL_HALT lacks issue: write SAGE_SIGNAL:HITL_HALT:{ISSUE}"),
        (["STORY_STARTD"], "'STORY_STARTD' is not a signal type; did you mean STORY_STARTED?"),
        (["epic-started", "e"], "'epic-started' is not a signal type; did you mean EPIC_STARTED?"),
        (["FATAL_ERROR", "x\x00y"], "a payload must not contain control characters"),
    ],
)
def test_says_why_not(world: World, words: list[str], sentence: str) -> None:
    assert world.say("emit", *words) == CliResult(2, "", f"interlock: {sentence}\n")


def test_an_unknown_type_is_told_which_there_are(world: World) -> None:
    result = world.say("emit", "NONSENSE")
    assert result.code == 2
    assert "use one of CHECKPOINT, HITL_REQUIRED," in result.err


def _in_session(world: World, folder: Path, token: str) -> tuple[CliResult, list[tuple[str, str]]]:
    """Run the command as an agent's tool would, beside a listening supervisor."""
    received: list[tuple[str, str]] = []

    async def supervise() -> CliResult:
        channel = Channel(folder, "right", lambda *result: received.append(result))
        await channel.start()
        env = {**channel.environment(), "INTERLOCK_TOKEN": token}
        try:
            words = ("emit", "CHECKPOINT:WRITE", "e:s:p:t")
            return await asyncio.to_thread(world.type, *words, env=env)
        finally:
            await channel.close()

    return asyncio.run(supervise()), received


def test_delivers_inside_a_session(world: World, tmp_path_factory: pytest.TempPathFactory) -> None:
    result, received = _in_session(world, tmp_path_factory.mktemp("c"), "right")
    assert result == CliResult(0, "SAGE_SIGNAL:CHECKPOINT:WRITE:e:s:p:t\n", "")
    assert received == [("CHECKPOINT", "WRITE:e:s:p:t")]


def test_says_when_it_was_not_delivered(
    world: World, tmp_path_factory: pytest.TempPathFactory
) -> None:
    result, received = _in_session(world, tmp_path_factory.mktemp("c"), "wrong")
    line = "SAGE_SIGNAL:CHECKPOINT:WRITE:e:s:p:t\n"
    output = "interlock: printed, but not delivered: the token is not this session's\n"
    assert result == CliResult(1, line, output)
    assert received == []


def test_half_a_session_is_told(world: World) -> None:
    result = world.type("emit", "EPIC_STARTED", "e", env={"INTERLOCK_CHANNEL": "/nowhere"})
    output = "interlock: printed, but not delivered: INTERLOCK_TOKEN is not set\n"
    assert result == CliResult(1, "SAGE_SIGNAL:EPIC_STARTED:e\n", output)


def test_as_one_object(world: World) -> None:
    line = "SAGE_SIGNAL:EPIC_STARTED:e"
    words = ("emit", "EPIC_STARTED", "e", "--json")
    assert world.say(*words).json == {"line": line, "delivered": None}
    result = world.type(*words, env={"INTERLOCK_CHANNEL": "/nowhere", "INTERLOCK_TOKEN": "x"})
    assert (result.code, result.json) == (1, {"line": line, "delivered": False})


words = st.text("abcXYZ019-_./# ", min_size=1, max_size=12).filter(lambda t: t.strip() == t)


@given(st.sampled_from(["EPIC_STARTED", "RECOVERY_FAILED", "STORY_COMPLETE"]), words, words)
def test_what_is_emitted_is_read_back(kind: str, first: str, last: str) -> None:
    payload = f"{first}:{last}"
    reader = LineReader("raw")
    (found,) = reader.feed(format_line(kind, payload) + "\n")
    assert isinstance(found, LineSignal)
    assert (found.type, found.payload) == (kind, " ".join(payload.split()))
