"""Files are written whole or not at all, read without trust, and never lost by a move."""

import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from interlock.system.errors import SourceError
from interlock.system.files import (
    UnreadableFile,
    append_line,
    create_file,
    make_own_folder,
    make_private_folder,
    move_aside,
    move_into,
    open_log,
    read_file,
    read_stamp,
    remove_staged,
    remove_tree,
    rename_synced,
    save_file,
    write_file,
    write_files,
)


def names(folder: Path) -> list[str]:
    return sorted(each.name for each in folder.iterdir())


@pytest.fixture
def umask() -> Iterator[None]:
    before = os.umask(0o022)
    yield
    os.umask(before)


@pytest.mark.usefixtures("umask")
@pytest.mark.parametrize(("mode", "wanted"), [(0o600, 0o600), (0o666, 0o644), (0o755, 0o755)])
@pytest.mark.parametrize("sync", [True, False])
def test_a_file_is_replaced_whole(tmp_path: Path, mode: int, wanted: int, sync: bool) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"older and longer")
    stamp = write_file(path, b"new", mode=mode, sync=sync)
    assert path.read_bytes() == b"new"
    assert path.stat().st_mode & 0o777 == wanted
    assert stamp == read_stamp(path)
    assert list(tmp_path.iterdir()) == [path]


def test_a_link_is_replaced_and_not_followed(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("secret")
    link = tmp_path / "link"
    link.symlink_to(tmp_path / "secret")
    write_file(link, b"new")
    assert not link.is_symlink()
    assert (tmp_path / "secret").read_text() == "secret"


def test_the_longest_name_can_be_written(tmp_path: Path) -> None:
    path = tmp_path / ("ü" * 127)
    write_file(path, b"new")
    assert path.read_bytes() == b"new"


def test_a_file_in_an_open_folder(tmp_path: Path) -> None:
    folder = os.open(tmp_path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        stamp = write_file(Path("file"), b"new", dir_fd=folder)
        assert read_file(Path("file"), 10, dir_fd=folder) == b"new"
    finally:
        os.close(folder)
    assert stamp == read_stamp(tmp_path / "file")
    assert names(tmp_path) == ["file"]


def test_another_writer_is_not_taken_for_us(tmp_path: Path) -> None:
    """The stamp is that of our own file, also if somebody replaces it in the next moment."""
    path, over = tmp_path / "signal.json", threading.Event()

    def replace_all_the_time() -> None:
        theirs = tmp_path / "theirs"
        while not over.is_set():
            theirs.write_bytes(b"theirs")
            theirs.replace(path)

    rival = threading.Thread(target=replace_all_the_time)
    rival.start()
    try:
        sizes = {write_file(path, b"ours").size for _ in range(100)}
    finally:
        over.set()
        rival.join()
    assert sizes == {len(b"ours")}


def test_a_failed_write_leaves_nothing_behind(tmp_path: Path) -> None:
    (tmp_path / "folder" / "full").mkdir(parents=True)
    with pytest.raises(OSError, match="directory"):
        write_file(tmp_path / "folder", b"new")
    with pytest.raises(SourceError, match=r"cannot be written: .*; make room or grant access"):
        save_file(tmp_path / "none" / "file", b"new")
    assert names(tmp_path) == ["folder"]


def test_several_files_are_written_or_none(tmp_path: Path) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    write_files([(first, b"1"), (second, b"2")])
    with pytest.raises(OSError, match="No such file"):
        write_files([(first, b"changed"), (tmp_path / "none" / "file", b"3")])
    assert (first.read_bytes(), second.read_bytes()) == (b"1", b"2")
    assert names(tmp_path) == ["first", "second"]


def test_what_a_crash_left_is_overwritten(tmp_path: Path) -> None:
    (tmp_path / ".first.new").write_bytes(b"half")
    write_files([(tmp_path / "first", b"1")])
    assert names(tmp_path) == ["first"]


def test_a_file_made_by_others_takes_its_place(tmp_path: Path) -> None:
    (tmp_path / "made").write_bytes(b"database")
    rename_synced(tmp_path / "made", tmp_path / "file")
    assert (tmp_path / "file").read_bytes() == b"database"
    assert names(tmp_path) == ["file"]


def test_only_regular_files_are_read(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"12345")
    (tmp_path / "link").symlink_to(tmp_path / "file")
    (tmp_path / "folder").mkdir()
    os.mkfifo(tmp_path / "pipe")
    assert read_file(tmp_path / "file", 5) == b"12345"
    found = {
        name: read_file(tmp_path / name, 4)
        for name in ("file", "link", "folder", "pipe", "none", "file/none")
    }
    assert found == {
        "file": UnreadableFile("file has more than 4 bytes", "large"),
        "link": UnreadableFile("link is a symbolic link, not a file"),
        "folder": UnreadableFile("folder is a folder, not a file"),
        "pipe": UnreadableFile("pipe is a pipe, not a file"),
        "none": UnreadableFile("none is not there", "gone"),
        "file/none": UnreadableFile("none is not there", "gone"),
    }


def test_moving_aside_never_overwrites(tmp_path: Path) -> None:
    path = tmp_path / "signal.json"
    assert move_aside(path, "refused") is None
    names = []
    for content in ("1", "2", "3"):
        path.write_text(content)
        aside = move_aside(path, "refused")
        assert aside is not None
        names.append((aside.name, aside.read_text()))
    assert names == [
        ("signal.refused.json", "1"),
        ("signal.refused-2.json", "2"),
        ("signal.refused-3.json", "3"),
    ]


def test_moving_aside_into_another_folder(tmp_path: Path) -> None:
    (tmp_path / "archive").mkdir()
    for name in ("epic.json", "epic.json.1", "epic.attempts", "other.json"):
        (tmp_path / name).write_text(name)
        move_aside(tmp_path / name, "old", tmp_path / "archive", "epic")
    assert names(tmp_path / "archive") == [
        "epic.old.attempts",
        "epic.old.json",
        "epic.old.json.1",
        "epic.old.other.json",
    ]


def test_putting_aside_numbers_what_it_moves(tmp_path: Path) -> None:
    for _ in range(2):
        (tmp_path / "tree").mkdir()
        (tmp_path / "tree" / "file").write_text("kept")
        move_into(tmp_path / "tree", tmp_path / "aside")
    assert names(tmp_path / "aside") == ["tree.1", "tree.2"]


def test_lines_are_appended_and_a_torn_one_stays_alone(tmp_path: Path) -> None:
    path = tmp_path / "log"
    append_line(path, b"one", sync=True)
    with path.open("ab") as file:
        file.write(b"tor")
    opened = open_log(path)
    append_line(opened, b"two")
    append_line(opened, b"three", sync=True)
    os.close(opened)
    assert path.read_bytes() == b"one\ntor\ntwo\nthree\n"
    assert path.stat().st_mode & 0o777 == 0o600


def test_nothing_is_appended_through_a_link(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "secret")
    with pytest.raises(OSError, match="symbolic links"):
        append_line(tmp_path / "link", b"one")
    assert not (tmp_path / "secret").exists()


def test_removing_follows_no_link_and_opens_closed_folders(tmp_path: Path) -> None:
    kept = tmp_path / "kept"
    kept.mkdir()
    (kept / "file").write_text("kept")
    gone = tmp_path / "gone"
    (gone / "closed").mkdir(parents=True)
    (gone / "closed" / "file").write_text("gone")
    (gone / "link").symlink_to(kept)
    (gone / "closed").chmod(0o500)
    remove_tree(gone)
    remove_tree(tmp_path / "never")
    assert names(tmp_path) == ["kept"]
    assert (kept / "file").read_text() == "kept"


DIES = """\
import os, sys
from pathlib import Path
from interlock.system.files import stage_file
print(stage_file(Path(sys.argv[1]), b"half of it").name, flush=True)
os.kill(os.getpid(), 9)
"""


def test_what_a_killed_process_staged_is_removed_and_nothing_else(tmp_path: Path) -> None:
    target = tmp_path / "signal.json"
    killed = subprocess.run(
        [sys.executable, "-c", DIES, str(target)], stdout=subprocess.PIPE, text=True, check=False
    )
    assert names(tmp_path) == [killed.stdout.strip()]
    alive = f".signal.json.{os.getppid()}-0.new"
    kept = [alive, ".mine.new", "notes.12-1.new", "signal.json"]
    for name in kept:
        (tmp_path / name).write_text("")
    remove_staged(tmp_path)
    assert names(tmp_path) == sorted(kept)
    remove_staged(tmp_path / "nowhere")


def test_of_many_who_create_a_file_at_once_one_does(tmp_path: Path) -> None:
    path, made = tmp_path / "file", dict[bytes, bool]()
    start = threading.Barrier(8)

    def create(data: bytes) -> None:
        start.wait()
        made[data] = create_file(path, data)

    threads = [threading.Thread(target=create, args=(b"%d" % each,)) for each in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [data for data, done in made.items() if done] == [path.read_bytes()]
    assert path.stat().st_mode & 0o777 == 0o600
    assert names(tmp_path) == ["file"]


def test_what_has_a_name_is_left_alone_also_if_it_is_a_link(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "nowhere")
    assert not create_file(tmp_path / "link", b"new")
    assert names(tmp_path) == ["link"]


@pytest.mark.usefixtures("umask")
def test_private_files_follow_a_folder_that_is_shared_with_a_group(tmp_path: Path) -> None:
    for mode, file, folder in ((0o2770, 0o660, 0o2770), (0o770, 0o600, 0o700)):
        place = tmp_path / oct(mode)
        place.mkdir()
        place.chmod(mode)
        write_file(place / "file", b"x")
        make_private_folder(place / "more")
        assert (place / "file").stat().st_mode & 0o7777 == file
        assert (place / "more").stat().st_mode & 0o7777 == folder


def test_a_hidden_folder_of_ours_ignores_itself_in_git(tmp_path: Path) -> None:
    make_own_folder(tmp_path / ".own" / "runs")
    make_own_folder(tmp_path / "plain" / ".deep")
    (tmp_path / ".users").mkdir()
    make_own_folder(tmp_path / ".users" / "runs")
    ignored = [str(path.relative_to(tmp_path)) for path in tmp_path.rglob(".gitignore")]
    assert ignored == [".own/.gitignore"]
    assert (tmp_path / ".own" / ".gitignore").read_text() == "*\n"
