"""Test the side channel over real sockets: access, refusals and limits."""

import asyncio
import json
import socket
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from interlock.system.errors import SourceError
from interlock_epic.sessions.channel import LONGEST, Channel, send_signal

TOKEN = "s3cret"


@pytest.fixture
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a short folder, since a socket's path is limited."""
    return tmp_path_factory.mktemp("c") / "s"


async def talk(folder: Path, speak: Callable[[Channel], Any]) -> tuple[Any, list[tuple[str, str]]]:
    """Return the reply that another thread got, and the signals that arrived."""
    received: list[tuple[str, str]] = []
    channel = Channel(folder, TOKEN, lambda kind, payload: received.append((kind, payload)))
    await channel.start()
    try:
        return await asyncio.to_thread(speak, channel), received
    finally:
        await channel.close()


def raw(channel: Channel, line: bytes) -> dict[str, Any]:
    with socket.socket(socket.AF_UNIX) as ours, ours.makefile("rb") as theirs:
        ours.settimeout(10)
        ours.connect(str(channel.path))
        ours.sendall(line)
        ours.shutdown(socket.SHUT_WR)
        answer: dict[str, Any] = json.loads(theirs.readline())
        return answer


async def test_a_signal_with_the_token_is_heard(folder: Path) -> None:
    answer, received = await talk(
        folder, lambda c: send_signal(str(c.path), TOKEN, "STORY_STARTED", "3-1")
    )
    assert answer == ""
    assert received == [("STORY_STARTED", "3-1")]


async def test_its_place_is_for_its_owner_alone(folder: Path) -> None:
    def look(channel: Channel) -> tuple[int, int, dict[str, str]]:
        modes = [stat.S_IMODE(p.stat().st_mode) for p in (channel.path.parent, channel.path)]
        return modes[0], modes[1], channel.environment()

    (place, door, variables), _ = await talk(folder, look)
    assert (place, door) == (0o700, 0o600)
    assert variables == {
        "INTERLOCK_CHANNEL": str(folder / "channel.sock"),
        "INTERLOCK_TOKEN": TOKEN,
    }


@pytest.mark.parametrize(
    ("line", "error"),
    [
        (b'{"token":"other","type":"STORY_STARTED","payload":"3-1"}\n', "the token is not"),
        ('{"token":"s3crét","type":"STORY_STARTED"}\n'.encode(), "the token is not"),
        (b'{"token":"","type":"STORY_STARTED"}\n', "the token is not"),
        (b'{"type":"STORY_STARTED","payload":"3-1"}\n', "one line of JSON"),
        (b'{"token":"s3cret","type":7}\n', "one line of JSON"),
        (b'{"token":"s3cret","type":"STORY_STARTED","role":"root"}\n', "one line of JSON"),
        (b"SAGE_SIGNAL:STORY_STARTED:3-1\n", "one line of JSON"),
        (b"\xff\xfe\n", "one line of JSON"),
        (b"[" * 100_000 + b"\n", "one line of JSON"),
        (b"", "one line of JSON"),
        (b"x" * (LONGEST + 10) + b"\n", "at most"),
        (b'{"token":"s3cret","type":"CHECKPOINT","payload":"WRITE:e"}\n', "lacks story_id"),
        (b'{"token":"s3cret","type":"story_started"}\n', "upper case"),
        (b'{"token":"s3cret","type":"FATAL_ERROR","payload":"a\\nb"}\n', "control characters"),
    ],
)
async def test_nothing_else_is_heard(folder: Path, line: bytes, error: str) -> None:
    answer, received = await talk(folder, lambda c: raw(c, line))
    assert answer["ok"] is False
    assert error in answer["error"]
    assert received == []


async def test_many_speak_one_after_the_other(folder: Path) -> None:
    def speak(channel: Channel) -> list[str]:
        return [send_signal(str(channel.path), TOKEN, "STORY_STARTED", str(n)) for n in range(50)]

    answers, received = await talk(folder, speak)
    assert set(answers) == {""}
    assert received == [("STORY_STARTED", str(n)) for n in range(50)]


def test_a_socket_left_by_a_dead_run_is_replaced(folder: Path) -> None:
    folder.mkdir()
    with socket.socket(socket.AF_UNIX) as dead:
        dead.bind(str(folder / "channel.sock"))
    speak = talk(folder, lambda c: send_signal(str(c.path), TOKEN, "EPIC_STARTED", "e"))
    assert asyncio.run(speak) == ("", [("EPIC_STARTED", "e")])


def test_a_folder_that_is_a_link_is_not_used(folder: Path, tmp_path: Path) -> None:
    folder.symlink_to(tmp_path)
    with pytest.raises(SourceError, match="not a folder of this user"):
        asyncio.run(Channel(folder, TOKEN, lambda kind, payload: None).start())


async def test_too_long_a_path_is_told(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="too long"):
        await Channel(tmp_path / ("x" * 120), TOKEN, lambda kind, payload: None).start()


def test_nobody_there(tmp_path: Path) -> None:
    assert "cannot be used" in send_signal(str(tmp_path / "none"), TOKEN, "EPIC_STARTED", "e")


def test_a_coordinator_that_hangs_up_or_keeps_silent(folder: Path) -> None:
    folder.mkdir()
    path = str(folder / "s")
    with socket.socket(socket.AF_UNIX) as mute:
        mute.bind(path)
        mute.listen()
        output = send_signal(path, TOKEN, "EPIC_STARTED", "e", patience=0.05)
    assert output == "the coordinator does not answer"


def test_a_channel_without_a_token_is_none(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="token"):
        Channel(tmp_path, "", lambda kind, payload: None)
