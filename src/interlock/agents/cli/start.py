"""What to start, and how: a session and process group of its own, three pipes, our tag.

Knows how a process is born and who its owner is. A command that cannot be started is told in one
sentence.
"""

import fcntl
import os
import subprocess
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import IO, Final

import msgspec

from interlock.system.errors import SourceError
from interlock.system.process_table import HAS_PROC, look
from interlock.system.process_tree import kill_group

WIDE: Final = 512 * 1024
"""Bytes an agent may be ahead of us. A hundred such pipes stay under what Linux grants a user."""


class ProcessSpec(msgspec.Struct, frozen=True):
    """What to start. `env` is the whole environment; only our tag is added to it."""

    argv: tuple[str, ...]
    stdin: bytes
    cwd: Path
    env: Mapping[str, str]
    tag: str


def owner() -> str:
    """This process, for those who come after it: its id, its start and the space of its id."""
    me = look(os.getpid())
    space = str(os.stat("/proc/self/ns/pid").st_ino) if HAS_PROC else "0"  # noqa: PTH116
    return f"{os.getpid()}:{me.process.started if me else 0}:{space}"


def spawn(start: ProcessSpec, marks: Mapping[str, str]) -> "subprocess.Popen[bytes]":
    if not start.argv:
        raise SourceError("nothing can be started: there is no command")
    try:
        child = subprocess.Popen(  # noqa: S603 - a list of words, never a shell's line
            start.argv,
            bufsize=0,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=start.cwd,
            env={**start.env, **marks},
            start_new_session=True,
        )
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else str(error)
        if not start.cwd.is_dir():
            why = f"its work folder {str(start.cwd)!r} is not there"
        raise SourceError(f"{start.argv[0]!r} cannot be started: {why}") from error
    _widen(child)
    return child


def _widen(child: "subprocess.Popen[bytes]") -> None:
    """Claude Code exits without waiting for its reader: what does not fit into the pipe is lost,
    and its result stands last. Where the system grants no more, the usual size must do."""
    with suppress(OSError, AttributeError):
        fcntl.fcntl(_fd(child.stdout), fcntl.F_SETPIPE_SZ, WIDE)


def _fd(pipe: IO[bytes] | None) -> int:
    return -1 if pipe is None else pipe.fileno()


def abandon(child: "subprocess.Popen[bytes]") -> None:
    """End one that was born but cannot be watched; what it started so far goes with it."""
    kill_group(child.pid)
    for pipe in (child.stdin, child.stdout, child.stderr):
        if pipe is not None:
            pipe.close()
    child.wait()
