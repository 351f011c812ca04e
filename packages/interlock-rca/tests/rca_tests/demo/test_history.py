"""Histories as data: edits find exactly one place, and the files are as changes left them.

The truth is complete: every culprit is a commit since last green, and changes what fails.
"""

from pathlib import Path

import pytest

from interlock.system.git import SEED, Git
from interlock_rca.demo.history import PEOPLE, DemoCommit, apply_commit, read_history, replay_trees
from interlock_rca.demo.world import PURPOSES, DemoWorld

TREE = {"a.txt": "one\ntwo\n\n  two\n", "b.txt": "b\n"}


def change(**fields: dict[str, str]) -> DemoCommit:
    return DemoCommit(at="2026-09-07T08:12:41Z", by="mara", say="Try", **fields)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("edit", "text"),
    [
        ("-one\n+1\n", "1\ntwo\n\n  two\n"),
        ("=one\n+half\n=two\n", "one\nhalf\ntwo\n\n  two\n"),
        ("-two\n-\n", "one\n  two\n"),
        ("-  two\n+last\n~\n-one\n+first\n", "first\ntwo\n\nlast\n"),
        ("-one\n+two\n~\n=two\n=two\n+three\n", "two\ntwo\nthree\n\n  two\n"),
    ],
)
def test_an_edit(edit: str, text: str) -> None:
    assert apply_commit(TREE, change(edit={"a.txt": edit})) == {**TREE, "a.txt": text}


@pytest.mark.parametrize("edit", ["-three\n+3\n", "-wo\n+x\n", "=one\n=\n+x\n"])
def test_an_edit_without_its_place_is_refused(edit: str) -> None:
    with pytest.raises(ValueError, match=r"Try \(a\.txt\): the place is not there exactly once"):
        apply_commit(TREE, change(edit={"a.txt": edit}))


def test_an_edit_with_two_places_is_refused() -> None:
    with pytest.raises(ValueError, match="exactly once"):
        apply_commit({"a.txt": "x\ny\nx\n"}, change(edit={"a.txt": "-x\n"}))


def test_a_file_is_moved_and_then_edited() -> None:
    moved = change(move={"b.txt": "c.txt"}, edit={"c.txt": "-b\n+c\n"})
    assert apply_commit(TREE, moved) == {"a.txt": TREE["a.txt"], "c.txt": "c\n"}


@pytest.mark.parametrize("name", PURPOSES)
def test_every_commit_changes_something_later_than_the_last(name: str) -> None:
    history = read_history(name)
    assert {each.by for each in history} <= PEOPLE.keys()
    assert [each.at for each in history] == sorted({each.at for each in history})
    assert all(before != after for _, before, after in replay_trees(history))
    last = list(replay_trees(history))[-1][2]
    for path, text in last.items():
        if path.endswith(".py"):
            compile(text, path, "exec")
        assert text.endswith("\n")


CODES = {"product": "pb001", "automation": "ab001", "infra": "si001", "flake": "nd001"}


def test_kinds_and_codes_go_together(world: DemoWorld) -> None:
    assert {each.category for each in world.truth} == set(CODES)
    assert all(each.defect_type == CODES[each.category] for each in world.truth)
    assert len({each.family_id for each in world.truth}) == len(world.truth) == 6
    assert [each.family_id for each in world.truth if each.cascade] == ["channel"]


def test_every_culprit_came_since_last_green(world: DemoWorld) -> None:
    for each in world.truth:
        if each.category == "flake":
            assert (each.repo, each.commit) == ("", "")
            continue
        folder = world.folder / "repos" / each.repo
        since = Git(folder, SEED).read_line("rev-list", "last-green..main").split()
        assert each.commit in since[1:], "the newest commit would be too easy a guess"


def test_the_truth_is_not_told_where_an_analysis_looks(world: DemoWorld) -> None:
    looked_at = [world.today, world.earlier, *(Path(repo.path) for repo in world.repos)]
    for title in (each.title for each in world.truth):
        for folder in looked_at:
            files = (path for path in folder.rglob("*") if path.is_file())
            assert all(title.encode() not in path.read_bytes() for path in files)
