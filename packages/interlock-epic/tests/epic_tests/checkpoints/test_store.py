"""Test checkpoints on disk: resets, damage, and writing under hard conditions."""

import json
import os
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from epic_tests.sayings import AT, EPIC, checkpoints, loaded, write
from interlock.system.errors import SourceError, StateError
from interlock_epic.checkpoints.record import (
    Checkpoint,
    Epic,
    UnreadableCheckpoint,
    encode_checkpoint,
)
from interlock_epic.checkpoints.store import Checkpoints
from tests.world.git_repo import GitRepo
from tests.world.places import ROOT


def files(kept: Checkpoints, name: str = f"{EPIC}.json") -> list[Path]:
    return [folder / name for folder in kept.place.folders]


def unread(kept: Checkpoints, epic_id: str = EPIC) -> UnreadableCheckpoint:
    found = kept.read(epic_id)
    assert isinstance(found, UnreadableCheckpoint), found
    return found


def test_what_is_written_is_found_with_the_generation_before(kept: Checkpoints) -> None:
    write(kept, "1")
    before = [path.read_bytes() for path in files(kept)]
    write(kept, "2")
    found = loaded(kept)
    assert (found.checkpoint.generation, found.checkpoint.position.task) == (2, "2")
    assert (found.path, found.notices) == (files(kept)[0], ())
    assert [path.read_bytes() for path in files(kept, f"{EPIC}.json.1")] == before
    modes = {stat.S_IMODE(path.stat().st_mode) for path in files(kept)}
    assert modes == {0o600}
    left = [path.name for folder in kept.place.folders for path in folder.glob("*.new")]
    assert left == []


def test_the_work_commit_is_recorded_and_the_tree_stays_clean(
    repo: GitRepo, kept: Checkpoints
) -> None:
    write(kept)
    git = loaded(kept).checkpoint.git
    assert (git.commit, git.branch) == (repo.git("rev-parse", "HEAD"), "main")
    assert (git.dirt, git.unborn) == ("", False)
    assert repo.git("status", "--porcelain", "--ignored") == "!! .sage/"


@pytest.mark.parametrize(
    "deed",
    [
        ("reset", "--hard", "HEAD~1"),
        ("clean", "-fd"),
        ("clean", "-fdx"),
        ("stash", "push", "--all"),
        ("checkout", "--quiet", "--orphan", "other"),
    ],
    ids=" ".join,
)
def test_survives(repo: GitRepo, kept: Checkpoints, deed: tuple[str, ...]) -> None:
    write(kept, "1")
    write(kept, "2")
    (repo.folder / "a.txt").write_text("changed\n")
    repo.git(*deed)
    assert loaded(kept).checkpoint.position.task == "2"
    assert write(kept, "3").checkpoint.generation == 3
    assert files(kept)[0].exists()


def test_a_tracked_state_folder_that_a_reset_brings_back_is_not_believed(
    repo: GitRepo, kept: Checkpoints
) -> None:
    write(kept, "old")
    repo.git("add", "--force", ".sage/state")
    repo.commit("track the state")
    write(kept, "new")
    repo.git("reset", "--hard")
    found = loaded(kept)
    assert found.checkpoint.position.task == "new"
    assert found.notices[0] == f"{files(kept)[0]} is older than {files(kept)[1]}"


def test_without_a_repository(tmp_path: Path) -> None:
    kept = checkpoints(tmp_path)
    assert kept.place.shadow is None
    write(kept, "1")
    write(kept, "2")
    files(kept)[0].write_bytes(b"")
    found = loaded(kept)
    assert (found.checkpoint.position.task, found.fell_back) == ("1", True)


def test_a_subfolder_and_a_linked_worktree(repo: GitRepo, kept: Checkpoints) -> None:
    (repo.folder / "deep" / "er").mkdir(parents=True)
    assert checkpoints(repo.folder / "deep" / "er").place == kept.place
    other = repo.folder.parent / "linked"
    repo.git("worktree", "add", "--quiet", "-b", "side", str(other))
    linked = checkpoints(other)
    write(linked, "side")
    assert (linked.place.root, kept.read(EPIC)) == (other, unread(kept))
    status = subprocess.run(["git", "status", "-s"], cwd=other, capture_output=True, check=True)
    assert status.stdout == b""
    subprocess.run(["git", "clean", "-fdxq"], cwd=other, check=True)
    assert loaded(linked).checkpoint.position.task == "side"


def test_missing(kept: Checkpoints) -> None:
    found = unread(kept)
    assert (found.kind, found.code) == ("MISSING", "NO_CHECKPOINT")
    assert (kept.find_active(), kept.list_epics()) == ("", [])
    assert not kept.place.state.exists()


DAMAGE = [b"", b"{", b"\x00" * 500, b'{"version": 2}', b"[]", b"x" * (1 << 21)]


@pytest.mark.parametrize("damage", DAMAGE, ids=range(len(DAMAGE)))
def test_a_damaged_file_falls_back_and_says_so(kept: Checkpoints, damage: bytes) -> None:
    write(kept, "1")
    write(kept, "2")
    files(kept)[0].write_bytes(damage)
    found = loaded(kept)
    assert (found.checkpoint.position.task, found.path) == ("2", files(kept)[1])
    assert not found.fell_back
    files(kept)[1].write_bytes(damage)
    found = loaded(kept)
    assert (found.checkpoint.position.task, found.fell_back) == ("1", True)
    assert f"{files(kept)[0]} is damaged: " in found.notices[0]
    assert found.notices[-1] == f"{files(kept, f'{EPIC}.json.1')[0]} is used"
    written = write(kept, "3")
    assert (written.checkpoint.generation, written.checkpoint.position.task) == (2, "3")
    assert [path.read_bytes() for path in kept.place.state.glob("archive/*")] == [damage]
    assert loaded(kept).notices == ()


def test_when_all_are_damaged_it_is_corrupt_and_nothing_is_thrown_away(kept: Checkpoints) -> None:
    write(kept, "1")
    write(kept, "2")
    for path in (*files(kept), *files(kept, f"{EPIC}.json.1")):
        path.write_bytes(b"{")
    found = unread(kept)
    assert (found.kind, found.code) == ("CORRUPT", "CHECKPOINT_CORRUPT")
    assert "archive it with 'interlock epic checkpoint clear'" in found.sentence
    assert write(kept, "3").checkpoint.generation == 1
    assert len(list(kept.place.state.glob("archive/*"))) == 2


def test_another_epics_file_and_an_unknown_form_are_invalid(kept: Checkpoints) -> None:
    kept.place.state.mkdir(parents=True)
    files(kept)[0].write_bytes(encode_checkpoint(Checkpoint(epic=Epic(id="epic-4"))))
    found = unread(kept)
    assert (found.kind, "belongs to epic 'epic-4'" in found.sentence) == ("INVALID", True)
    foreign = json.dumps({"version": "1.0", "epic": {"id": EPIC}}).encode()
    files(kept)[0].write_bytes(foreign)
    found = unread(kept)
    assert (found.kind, f"{files(kept)[0]}: " in found.sentence) == (
        "INVALID",
        True,
    )
    write(kept, "1")
    assert [path.read_bytes() for path in kept.place.state.glob("archive/*")] == [foreign]


def test_one_from_the_future_is_not_gone_behind(kept: Checkpoints) -> None:
    write(kept, "1")
    write(kept, "2")
    future = json.dumps({"version": 3, "epic": {"id": EPIC}}).encode()
    files(kept)[0].write_bytes(future)
    found = unread(kept)
    assert (found.kind, found.code) == ("VERSION", "CHECKPOINT_CORRUPT")
    with pytest.raises(StateError, match="it has version 3"):
        write(kept, "3")
    assert files(kept)[0].read_bytes() == future


def test_the_pointer_and_several_epics(kept: Checkpoints) -> None:
    write(kept, "1", "epic-3")
    write(kept, "1", "epic-4")
    assert (kept.find_active(), kept.list_epics()) == ("epic-4", ["epic-3", "epic-4"])
    for folder in kept.place.folders:
        (folder / "active").write_text("../../etc/passwd\n")
    with pytest.raises(SourceError, match="name one of epic-3, epic-4"):
        kept.find_active()


def test_clearing_archives_and_nothing_comes_back(kept: Checkpoints) -> None:
    write(kept, "1")
    write(kept, "2")
    moved = kept.clear(EPIC, "20260102")
    assert [path.name for path in moved] == [
        *[f"{EPIC}.20260102.json", f"{EPIC}.20260102.json.1"],
        *[f"{EPIC}.20260102.json", f"{EPIC}.20260102.json.1"],
    ]
    assert all(path.exists() for path in moved)
    assert (unread(kept).kind, kept.find_active(), kept.list_epics()) == ("MISSING", "", [])
    assert kept.clear(EPIC, "20260102") == []
    write(kept, "9")
    assert [path.name for path in kept.clear(EPIC, "20260102")] == [f"{EPIC}.20260102-2.json"] * 2


def test_deleting_only_on_demand(kept: Checkpoints) -> None:
    write(kept, "1")
    gone = kept.clear(EPIC, "x", delete=True)
    assert [path.exists() for path in gone] == [False, False]
    assert list(kept.place.state.glob("**/*.json")) == []


@pytest.mark.parametrize("name", [".sage", ".sage/state", ".git/interlock", ".git/interlock/epics"])
def test_folders_that_are_links_are_refused(kept: Checkpoints, name: str) -> None:
    elsewhere = kept.place.root.parent / "elsewhere"
    elsewhere.mkdir()
    path = kept.place.root / name
    path.parent.mkdir(exist_ok=True)
    path.symlink_to(elsewhere)
    with pytest.raises(SourceError, match=f"{name} is a symbolic link: remove it"):
        write(kept)
    with pytest.raises(SourceError, match="is a symbolic link"):
        kept.read(EPIC)
    assert list(elsewhere.iterdir()) == []


@pytest.mark.parametrize("name", [f"{EPIC}.json", f"{EPIC}.json.1", "active", "archive"])
def test_files_that_are_links_are_refused(kept: Checkpoints, name: str) -> None:
    write(kept, "1")
    precious = kept.place.root.parent / "precious"
    precious.write_text("mine")
    path = kept.place.state / name
    path.unlink(missing_ok=True)
    path.symlink_to(precious)
    with pytest.raises(SourceError, match="is a link or not a plain file: remove it"):
        write(kept, "2")
    assert precious.read_text() == "mine"
    assert loaded(kept).checkpoint.position.task == "1"


def test_a_link_to_a_checkpoint_is_not_read(kept: Checkpoints) -> None:
    write(kept, "1")
    real = files(kept)[0].rename(kept.place.root.parent / "real.json")
    files(kept)[0].symlink_to(real)
    found = loaded(kept)
    assert found.path == files(kept)[1]
    assert "is a symbolic link, not a file" in found.notices[0]


def test_a_pipe_does_not_stop_the_reader(kept: Checkpoints) -> None:
    write(kept, "1")
    files(kept)[0].unlink()
    os.mkfifo(files(kept)[0])
    assert loaded(kept).path == files(kept)[1]


@pytest.mark.parametrize("epic_id", ["../x", "", "a/b", "active", "x" * 200])
def test_ids_are_checked_at_every_door(kept: Checkpoints, epic_id: str) -> None:
    for door in (kept.read, lambda each: write(kept, epic_id=each), lambda e: kept.clear(e, "w")):
        with pytest.raises(SourceError, match="is not an epic's id"):
            door(epic_id)
    assert not kept.place.state.exists()


def test_a_change_that_refuses_changes_nothing(kept: Checkpoints) -> None:
    write(kept, "1")
    before = [path.read_bytes() for path in files(kept)]

    def refuse(_: Checkpoint | None) -> Checkpoint:
        raise StateError("no")

    with pytest.raises(StateError, match="no"):
        kept.update(EPIC, refuse, AT)
    assert [path.read_bytes() for path in files(kept)] == before
    assert not files(kept, f"{EPIC}.json.1")[0].exists()


def start(how: str, folder: Path, *words: str) -> "subprocess.Popen[str]":
    command = [sys.executable, "-m", "epic_tests.world.checkpoint_writer", how, str(folder), *words]
    return subprocess.Popen(
        command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def read_printed(process: "subprocess.Popen[str]") -> Any:
    out, err = process.communicate(timeout=120)
    assert err == ""
    return json.loads(out)


def snapshot(kept: Checkpoints) -> dict[Path, bytes]:
    found = [path for folder in kept.place.folders for path in folder.iterdir()]
    return {path: path.read_bytes() for path in found if not path.name.endswith(".lock")}


def test_killed_before_every_line_of_the_writing_code(repo: GitRepo) -> None:
    found = read_printed(start("deaths", repo.folder))
    assert (found["odd"], found["lost"]) == ([], False)
    assert found["died"] > 70


def test_killed_before_every_line_without_a_repository(tmp_path: Path) -> None:
    found = read_printed(start("deaths", tmp_path))
    assert (found["odd"], found["lost"]) == ([], False)
    assert found["died"] > 30


def test_writers_at_once_lose_nothing(repo: GitRepo, kept: Checkpoints) -> None:
    writers = [start("count", repo.folder, "25") for _ in range(3)]
    counts = sorted(count for writer in writers for count in read_printed(writer))
    assert counts == list(range(1, 76))
    checkpoint = loaded(kept).checkpoint
    assert (checkpoint.attempts, checkpoint.generation) == ({"n": 75}, 75)


def test_writers_of_several_epics_share_one_pointer(repo: GitRepo, kept: Checkpoints) -> None:
    epics = ["epic-3", "epic-4", "epic-5"]
    writers = [start("count", repo.folder, "15", epic_id) for epic_id in epics]
    assert [read_printed(writer) for writer in writers] == [list(range(1, 16))] * 3
    assert (kept.list_epics(), kept.find_active() in epics) == (epics, True)


def test_a_full_disk(repo: GitRepo, kept: Checkpoints) -> None:
    write(kept, "1")
    write(kept, "2")
    before = snapshot(kept)
    assert read_printed(start("full", repo.folder, "100")) == (
        f"the checkpoint of {EPIC} cannot be written: File too large; the one before is unchanged: "
        "make room or grant access, and try again"
    )
    assert snapshot(kept) == before
    assert write(kept, "3").checkpoint.generation == 3


def test_folders_that_may_not_be_written(repo: GitRepo, kept: Checkpoints) -> None:
    write(kept, "1")
    before = snapshot(kept)
    kept.place.state.chmod(0o500)
    assert read_printed(start("powerless", repo.folder)) == (
        f"the checkpoint of {EPIC} cannot be written: Permission denied; the one before is "
        "unchanged: make room or grant access, and try again"
    )
    kept.place.state.chmod(0o700)
    assert snapshot(kept) == before
    kept.place.safest.chmod(0o500)
    (kept.place.safest / ".lock").unlink()
    sentence = f"{kept.place.safest}/.lock cannot be opened: Permission denied"
    assert read_printed(start("powerless", repo.folder)) == sentence
    kept.place.safest.chmod(0o700)
    assert loaded(kept).checkpoint.position.task == "1"


def test_a_project_that_may_not_be_written(repo: GitRepo) -> None:
    repo.folder.chmod(0o500)
    told_now = read_printed(start("powerless", repo.folder))
    repo.folder.chmod(0o700)
    assert told_now == f"{repo.folder}/.sage cannot be made: Permission denied"
