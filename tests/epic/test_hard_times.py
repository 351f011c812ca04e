"""Writing under hard conditions, in real processes: killed, two at once, no room, no rights."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.epic.sayings import EPIC, loaded, write
from tests.world.git_repo import GitRepo

from interlock.epic.checkpoints.store import Checkpoints

ROOT = Path(__file__).parents[2]


def start(how: str, folder: Path, *words: str) -> "subprocess.Popen[str]":
    command = [sys.executable, "-m", "tests.world.checkpoint_writer", how, str(folder), *words]
    return subprocess.Popen(
        command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def told(process: "subprocess.Popen[str]") -> Any:
    out, err = process.communicate(timeout=120)
    assert err == ""
    return json.loads(out)


def snapshot(kept: Checkpoints) -> dict[Path, bytes]:
    found = [path for folder in kept.place.folders for path in folder.iterdir()]
    return {path: path.read_bytes() for path in found if not path.name.endswith(".lock")}


def test_killed_before_every_line_of_the_writing_code(repo: GitRepo) -> None:
    found = told(start("deaths", repo.folder))
    assert (found["odd"], found["lost"]) == ([], False)
    assert found["died"] > 70


def test_killed_before_every_line_without_a_repository(tmp_path: Path) -> None:
    found = told(start("deaths", tmp_path))
    assert (found["odd"], found["lost"]) == ([], False)
    assert found["died"] > 30


def test_writers_at_once_lose_nothing(repo: GitRepo, kept: Checkpoints) -> None:
    writers = [start("count", repo.folder, "25") for _ in range(3)]
    counts = sorted(count for writer in writers for count in told(writer))
    assert counts == list(range(1, 76))
    checkpoint = loaded(kept).checkpoint
    assert (checkpoint.attempts, checkpoint.generation) == ({"n": 75}, 75)


def test_writers_of_several_epics_share_one_pointer(repo: GitRepo, kept: Checkpoints) -> None:
    epics = ["epic-3", "epic-4", "epic-5"]
    writers = [start("count", repo.folder, "15", epic_id) for epic_id in epics]
    assert [told(writer) for writer in writers] == [list(range(1, 16))] * 3
    assert (kept.epics(), kept.active() in epics) == (epics, True)


def test_a_full_disk(repo: GitRepo, kept: Checkpoints) -> None:
    write(kept, "1")
    write(kept, "2")
    before = snapshot(kept)
    assert told(start("full", repo.folder, "100")) == (
        f"the checkpoint of {EPIC} cannot be written: File too large; the one before is as it was: "
        "make room or give rights, and try again"
    )
    assert snapshot(kept) == before
    assert write(kept, "3").checkpoint.generation == 3


def test_folders_that_may_not_be_written(repo: GitRepo, kept: Checkpoints) -> None:
    write(kept, "1")
    before = snapshot(kept)
    kept.place.state.chmod(0o500)
    assert told(start("powerless", repo.folder)) == (
        f"the checkpoint of {EPIC} cannot be written: Permission denied; the one before is as it "
        "was: make room or give rights, and try again"
    )
    kept.place.state.chmod(0o700)
    assert snapshot(kept) == before
    kept.place.safest.chmod(0o500)
    (kept.place.safest / ".lock").unlink()
    sentence = f"{kept.place.safest}/.lock cannot be opened: Permission denied"
    assert told(start("powerless", repo.folder)) == sentence
    kept.place.safest.chmod(0o700)
    assert loaded(kept).checkpoint.position.task == "1"


def test_a_project_that_may_not_be_written(repo: GitRepo) -> None:
    repo.folder.chmod(0o500)
    told_now = told(start("powerless", repo.folder))
    repo.folder.chmod(0o700)
    assert told_now == f"{repo.folder}/.sage cannot be made: Permission denied"
