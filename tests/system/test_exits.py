"""The exit of a child is told once, its code on demand; with handles and with a thread."""

import asyncio
import subprocess

import pytest

from interlock.system.process_tree import ProcessExit


def born(*argv: str, stdin: int = subprocess.DEVNULL) -> "subprocess.Popen[bytes]":
    return subprocess.Popen(argv, stdin=stdin)


@pytest.mark.parametrize("handles", [True, False], ids=["handle", "thread"])
@pytest.mark.parametrize(("command", "code"), [("exit 3", 3), ("kill -9 $$", -9), ("true", 0)])
async def test_exit(handles: bool, command: str, code: int) -> None:
    told = asyncio.Event()
    child = born("sh", "-c", f"read x; {command}", stdin=subprocess.PIPE)
    exits = ProcessExit(child, told.set, handles)
    assert not exits.has_come
    assert child.stdin is not None
    child.stdin.close()
    await asyncio.wait_for(told.wait(), 20)
    assert exits.has_come
    assert exits.bury() == code


async def test_the_dead_keep_their_number_until_they_are_buried() -> None:
    told = asyncio.Event()
    child = born("true")
    exits = ProcessExit(child, told.set, handles=True)
    await asyncio.wait_for(told.wait(), 20)
    assert child.returncode is None
    exits.bury()
    assert child.returncode == 0


async def test_one_that_lives_has_no_code_yet() -> None:
    child = born("sleep", "300")
    exits = ProcessExit(child, lambda: None)
    assert exits.bury() is None
    child.kill()
    assert exits.bury() == -9
