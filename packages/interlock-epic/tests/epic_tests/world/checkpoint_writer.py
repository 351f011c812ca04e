"""Writes checkpoints under hard conditions: `checkpoint_writer HOW FOLDER [N [EPIC]]`.

count: N writes that each add 1. deaths: a write that is killed before each line, again and again.
full: a write on a disk where no file grows past N bytes. powerless: one without root's powers.
Prints one line of JSON, or what went wrong.
"""

import json
import os
import resource
import signal
import sys
from pathlib import Path
from types import FrameType
from typing import Any

import msgspec

from interlock.system.errors import InterlockError
from interlock_epic.checkpoints.place import find_state_folder
from interlock_epic.checkpoints.record import Checkpoint, Epic
from interlock_epic.checkpoints.store import Checkpoints, LoadedCheckpoint
from tests.world.unprivileged import give_up_powers

EPIC = sys.argv[4] if len(sys.argv) > 4 else "epic-3"
AT = "2026-01-02T03:04:05Z"
_WATCHED = "files.py"


def add_one(kept: Checkpoints) -> int:
    def change(before: Checkpoint | None) -> Checkpoint:
        known = before or Checkpoint(epic=Epic(id=EPIC))
        return msgspec.structs.replace(known, attempts={"n": known.attempts.get("n", 0) + 1})

    return kept.update(EPIC, change, AT).checkpoint.attempts["n"]


def die_at(line: int) -> Any:
    """A tracer that kills this process before the n-th line of the code that writes."""
    seen = 0

    def trace(frame: FrameType, event: str, _: object) -> Any:
        nonlocal seen
        if Path(frame.f_code.co_filename).name != _WATCHED:
            return None
        seen += event == "line"
        if seen == line:
            os.kill(os.getpid(), signal.SIGKILL)
        return trace

    return trace


def one_death(kept: Checkpoints, line: int) -> bool:
    """Whether the child died at that line, and not after its work."""
    child = os.fork()
    if child == 0:
        sys.settrace(die_at(line))
        add_one(kept)
        os._exit(0)
    return os.WIFSIGNALED(os.waitpid(child, 0)[1])


def deaths(kept: Checkpoints) -> dict[str, Any]:
    """Each write finds what the one before left when it died."""
    odd: list[list[int]] = []
    known, line = add_one(kept), 1
    while one_death(kept, line):
        found = kept.read(EPIC)
        count = found.checkpoint.attempts["n"] if isinstance(found, LoadedCheckpoint) else -1
        if count not in (known, known + 1) or getattr(found, "fell_back", True):
            odd.append([line, count, known])
        known, line = count, line + 1
    return {"died": line - 1, "odd": odd, "lost": add_one(kept) != known + 2}


def main(how: str, folder: Path, number: int) -> None:
    kept = Checkpoints(find_state_folder(folder))
    if how == "powerless":
        give_up_powers()
    if how == "full":
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (number, number))
    try:
        output: Any = (
            deaths(kept) if how == "deaths" else [add_one(kept) for _ in range(number or 1)]
        )
    except InterlockError as error:
        output = str(error)
    sys.stdout.write(json.dumps(output) + "\n")


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), int(sys.argv[3]) if len(sys.argv) > 3 else 0)
