"""Build checkpoints as a session would write them, in one call."""

from pathlib import Path

from interlock_epic.checkpoints.place import find_state_folder
from interlock_epic.checkpoints.record import Checkpoint, StatedPosition, apply_position
from interlock_epic.checkpoints.store import Checkpoints, LoadedCheckpoint
from interlock_epic.recovery.git_state import read_git_work

AT = "2026-01-02T03:04:05Z"
EPIC = "epic-3"


def checkpoints(folder: Path) -> Checkpoints:
    return Checkpoints(find_state_folder(folder))


def write(kept: Checkpoints, task: str = "5", epic_id: str = EPIC) -> LoadedCheckpoint:
    work = read_git_work(kept.place.root)
    result = StatedPosition(epic_id=epic_id, story_id="3-1", phase="phase-2", task=task)
    return kept.update(epic_id, lambda before: apply_position(before, result, work, AT), AT)


def loaded(kept: Checkpoints, epic_id: str = EPIC) -> LoadedCheckpoint:
    found = kept.read(epic_id)
    assert isinstance(found, LoadedCheckpoint), found
    return found


def task_of(checkpoint: Checkpoint | None) -> str:
    return checkpoint.position.task if checkpoint else ""
