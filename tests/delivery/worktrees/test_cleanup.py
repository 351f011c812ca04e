"""Cleaning takes what we made, and nothing that would be lost by it."""

from pathlib import Path

import pytest
from tests.world.workbench import Workbench, change, fine, write

from interlock.delivery.worktrees.workspace import clean
from interlock.system.errors import SourceError, StateError


@pytest.fixture
def bench(tmp_path: Path) -> Workbench:
    return Workbench(tmp_path)


def listed(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))


def test_a_dry_run_says_it_and_does_nothing(bench: Workbench) -> None:
    with bench.shop() as shop:
        shop.tree("one")
    before = [name for name in listed(bench.home) if "index" not in name]
    found = clean(bench.home)
    assert str(bench.home / "repo.git") in [row.path for row in found]
    assert not any(row.is_kept for row in found)
    assert [name for name in listed(bench.home) if "index" not in name] == before


def test_all_goes_if_nothing_is_lost(bench: Workbench) -> None:
    with bench.shop() as shop:
        tree = shop.tree("one")
        write(tree, {"a.txt": "one\n"})
        shop.line.merge(change(tree), fine)
        shop.line.publish()
        sha = shop.line.tip
    users = bench.facts()
    found = clean(bench.home, dry_run=False)
    assert not any(row.is_kept for row in found)
    assert not bench.home.exists()
    assert bench.facts() == users
    assert bench.source.git("rev-parse", "interlock/plan") == sha
    bench.shop().close()


def test_what_would_be_lost_stays_with_its_reason(bench: Workbench) -> None:
    with bench.shop() as shop:
        for task_id in ("dirty", "recorded", "merged", "idle"):
            write(shop.tree(task_id), {f"{task_id}.txt": "x\n"} if task_id != "idle" else {})
        shop.tree("recorded").snapshot("Work")
        shop.line.merge(change(shop.tree("merged")), fine)
    for _ in range(2):
        found = clean(bench.home, dry_run=False)
        assert [(Path(row.path).name, row.reason) for row in found if row.is_kept] == [
            (
                "repo.git",
                "the merge branch has work that is not published; publish it, or use force",
            ),
            ("dirty", "it has work that is not recorded; snapshot it, or use force"),
            ("recorded", "its work is recorded but not merged; merge it, or use force"),
        ]
    names = sorted(path.name for path in (bench.home / "trees").iterdir())
    assert names == ["_line", "dirty", "recorded"]
    with bench.shop() as shop:
        assert (shop.tree("dirty").root / "dirty.txt").read_text() == "x\n"


def test_force_takes_all(bench: Workbench) -> None:
    with bench.shop() as shop:
        write(shop.tree("one"), {"a.txt": "lost\n"})
    (bench.home / "ledger.json").write_text("damaged")
    with pytest.raises(SourceError, match="clean this workspace with force"):
        clean(bench.home, dry_run=False)
    clean(bench.home, dry_run=False, force=True)
    assert not bench.home.exists()


def test_files_of_others_stay(bench: Workbench) -> None:
    bench.shop().close()
    (bench.home / "precious").write_text("x")
    clean(bench.home, dry_run=False)
    assert listed(bench.home) == ["precious"]


def test_a_half_made_workshop_can_be_cleaned(bench: Workbench) -> None:
    bench.shop().close()
    (bench.home / "repo.git").rename(bench.home / "repo.git.making")
    clean(bench.home, dry_run=False)
    assert not bench.home.exists()


@pytest.mark.parametrize("kind", ["missing", "empty", "repository", "file", "link"])
def test_a_folder_that_is_not_ours_is_refused(bench: Workbench, kind: str) -> None:
    folder = bench.folder / "other"
    if kind == "repository":
        folder = bench.source.folder
    elif kind == "empty":
        folder.mkdir()
    elif kind == "file":
        folder.write_text("x")
    elif kind == "link":
        bench.shop().close()
        folder.symlink_to(bench.home)
    before = listed(bench.folder)
    with pytest.raises(SourceError, match="nothing is removed"):
        clean(folder, dry_run=False, force=True)
    assert listed(bench.folder) == before


def test_a_workshop_in_use_is_refused(bench: Workbench) -> None:
    with bench.shop(), pytest.raises(StateError, match="in use"):
        clean(bench.home, dry_run=False, force=True)
    assert (bench.home / "repo.git").exists()


def test_links_in_a_tree_are_not_followed(bench: Workbench) -> None:
    outside = bench.folder / "outside"
    outside.mkdir()
    (outside / "precious").write_text("x")
    with bench.shop() as shop:
        (shop.tree("one").root / "out").symlink_to(outside)
        (shop.tree("one").root / "locked").mkdir(mode=0o500)
    clean(bench.home, dry_run=False, force=True)
    assert (outside / "precious").read_text() == "x"
    assert not bench.home.exists()
