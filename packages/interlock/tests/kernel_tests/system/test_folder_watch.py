"""Watching: what is heard, when polling takes over, and how the folder decides."""

import asyncio
from pathlib import Path

import pytest

from interlock.system.folder_watch import FAST, SAFETY, FolderWatch, Inotify, Mode, find_file_system
from tests.world.file_carrier_bench import turn

QUEUE = int(Path("/proc/sys/fs/inotify/max_queued_events").read_text())
MOUNTS = """\
22 1 254:0 / / rw,relatime - ext4 /dev/vda rw
30 22 0:41 / /net/share rw - nfs4 host:/share rw
31 22 0:42 / /with\\040space rw shared:1 - tmpfs tmpfs rw
"""


@pytest.mark.parametrize(
    ("folder", "kind"),
    [("/somewhere", "ext4"), ("/net/share/runs", "nfs4"), ("/with space", "tmpfs"), ("/", "ext4")],
)
def test_the_file_system_of_a_folder(tmp_path: Path, folder: str, kind: str) -> None:
    mounts = tmp_path / "mountinfo"
    mounts.write_text(MOUNTS)
    assert find_file_system(Path(folder), mounts) == kind
    assert find_file_system(Path(folder), tmp_path / "none") == ""


@pytest.mark.parametrize(("mode", "interval"), [("inotify", SAFETY), ("poll", FAST)])
async def test_the_mode_sets_how_often_to_look(tmp_path: Path, mode: Mode, interval: float) -> None:
    watch = FolderWatch(mode)
    watch.start(tmp_path)
    assert watch.interval == interval
    watch.close()


def test_the_probe_leaves_nothing_behind_and_rings_nobody(tmp_path: Path) -> None:
    rung: list[str] = []

    async def probe() -> None:
        watch = FolderWatch("auto")
        watch.start(tmp_path)
        watch.add(tmp_path, lambda: rung.append("!"))
        await turn()
        watch.close()

    asyncio.run(probe())
    assert ([*tmp_path.iterdir()], rung) == ([], [])


async def test_it_rings_for_the_folder_that_was_written_to(tmp_path: Path) -> None:
    watch = FolderWatch("inotify")
    watch.start(tmp_path)
    rung: list[str] = []
    for name in "ab":
        (tmp_path / name).mkdir()
        watch.add(tmp_path / name, lambda name=name: rung.append(name))  # type: ignore[misc]
    (tmp_path / "a" / "new").write_text("x")
    await turn()
    assert rung == ["a"]
    (tmp_path / "a" / "new").rename(tmp_path / "b" / "new")
    await turn()
    assert rung == ["a", "b"]
    watch.drop(tmp_path / "b")
    watch.drop(tmp_path / "b")
    (tmp_path / "b" / "more").write_text("x")
    await turn()
    assert rung == ["a", "b"]
    watch.close()


async def test_a_folder_that_cannot_be_watched_is_polled(tmp_path: Path) -> None:
    watch = FolderWatch("inotify")
    watch.start(tmp_path)
    watch.add(tmp_path / "missing", lambda: None)
    assert watch.interval == FAST
    watch.close()


async def test_when_news_were_lost_everybody_looks(tmp_path: Path) -> None:
    watch = FolderWatch("inotify")
    watch.start(tmp_path)
    rung: list[str] = []
    for name in "ab":
        (tmp_path / name).mkdir()
        watch.add(tmp_path / name, lambda name=name: rung.append(name))  # type: ignore[misc]
    one, two = tmp_path / "a" / "one", tmp_path / "a" / "two"
    one.touch()
    for _ in range(QUEUE // 2 + 2):
        one.rename(two)
        two.rename(one)
    await turn()
    assert set(rung) == {"a", "b"}
    watch.close()


def test_links_and_files_are_not_watched(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    (tmp_path / "link").symlink_to(tmp_path)
    inotify = Inotify()
    for name in ("file", "link", "missing"):
        with pytest.raises(OSError, match=r"directory"):
            inotify.add(tmp_path / name)
    inotify.close()
