"""How an agent is born: what it prints must have room, and what cannot start is told."""

import os
import sys
from pathlib import Path

import pytest

from interlock.agents.cli.process import WIDE, ProcessSpec, spawn
from interlock.system.errors import SourceError

HASTY = """\
import os
os.set_blocking(1, False)
os.write(1, b"y" * 400_000)
os._exit(0)
"""
"""Prints what the pipe takes at once and exits, whoever reads it or not."""


def test_an_agent_that_does_not_wait_for_its_reader_loses_nothing(tmp_path: Path) -> None:
    child = spawn(
        ProcessSpec((sys.executable, "-c", HASTY), b"", tmp_path, dict(os.environ), "t"), {}
    )
    assert child.wait(60) == 0
    out, _ = child.communicate()
    assert WIDE > 400_000
    assert len(out) == 400_000


@pytest.mark.parametrize(
    ("argv", "folder", "sentence"),
    [
        ((), ".", "there is no command"),
        (("/nowhere/agent",), ".", "'/nowhere/agent' cannot be started: No such file"),
        ((sys.executable,), "gone", "its work folder"),
        (("a\0b",), ".", "embedded null byte"),
    ],
)
def test_what_cannot_start_says_why(
    tmp_path: Path, argv: tuple[str, ...], folder: str, sentence: str
) -> None:
    with pytest.raises(SourceError, match=sentence):
        spawn(ProcessSpec(argv, b"", tmp_path / folder, {}, "t"), {})
