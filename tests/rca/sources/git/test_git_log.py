"""Commits as git tells them: files, renames, merges, and words that look like something else."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.world.git_repo import GitRepo

from interlock.rca.sources.git.history import (
    MOST_FILES,
    ChangedFile,
    Commit,
    GitLog,
    HistoryCache,
    parse_log,
    rfc3339,
)
from interlock.system.errors import SourceError
from interlock.system.git import Git

LINES = "".join(f"line {number}\n" for number in range(40))


def log_of(world: GitRepo) -> GitLog:
    return GitLog(Git(world.folder), frozenset(), HistoryCache(None, "", Commit))


def test_kinds_of_change(tmp_path: Path) -> None:
    world = GitRepo(tmp_path / "shop")
    world.commit("Begin", {"a.py": LINES, "b.py": "1\n", "c.py": "2\n"})
    world.move("a.py", "deep/moved.py")
    tip = world.commit(
        "Change", {"b.py": None, "c.py": "3\n", "d.py": "4\n", "deep/moved.py": LINES + "more\n"}
    )
    (commit,) = log_of(world).between("", tip, 1).commits
    kinds = {change.path: (change.kind, change.old) for change in commit.files}
    assert kinds == {
        "b.py": ("D", ""),
        "c.py": ("M", ""),
        "d.py": ("A", ""),
        "deep/moved.py": ("R", "a.py"),
    }
    moved = next(change for change in commit.files if change.kind == "R")
    assert 80 < moved.same < 100
    assert (commit.author, commit.subject, commit.parents) == ("Ada Fixed", "Change", 1)
    assert commit.at == "2023-11-14T22:15:20Z"


def test_a_merge_lists_only_what_it_changed_itself(tmp_path: Path) -> None:
    world = GitRepo(tmp_path / "shop")
    first = world.commit("Begin", {"a.py": "1\n", "b.py": "1\n"})
    world.branch("side")
    world.commit("Side", {"b.py": "2\n"})
    world.checkout("main")
    world.commit("Main", {"a.py": "2\n"})
    plain = world.merge("side", "Merge")
    found = log_of(world).between(first, plain, 10).commits
    assert [(one.subject, one.parents, len(one.files)) for one in found] == [
        ("Merge", 2, 0),
        ("Main", 1, 1),
        ("Side", 1, 1),
    ]
    world.write({"b.py": "evil\n", "new.py": "x\n"})
    world.git("add", "--all")
    world.git("commit", "--quiet", "--amend", "-m", "Evil merge")
    (evil,) = log_of(world).between("", world.git("rev-parse", "HEAD"), 1).commits
    assert evil.files == (ChangedFile("b.py", "M"), ChangedFile("new.py", "A"))


def test_hostile_names_and_subjects_do_not_confuse_the_reading(tmp_path: Path) -> None:
    world = GitRepo(tmp_path / "shop")
    names = ["M", "R100", "\x01begin.py", "two\nlines.py", "tab\t.py", "ünï.py", "-rf", " .py"]
    world.commit("\x01\x01 M\tx", dict.fromkeys(names, "1\n"), author="\x01 Mallory")
    tip = world.commit("", {"M": "2\n"})
    last, first = log_of(world).between("", tip, 5).commits
    assert sorted(change.path for change in first.files) == sorted(names)
    assert (last.subject, last.files) == ("", (ChangedFile("M", "M"),))


def test_very_many_files_are_counted_not_kept(tmp_path: Path) -> None:
    world = GitRepo(tmp_path / "shop")
    names = [f"f{number}.txt" for number in range(MOST_FILES + 7)]
    tip = world.commit("Begin", dict.fromkeys(names, "1\n"))
    (commit,) = log_of(world).between("", tip, 5).commits
    assert (len(commit.files), commit.more) == (MOST_FILES, 7)


def test_a_range_is_cut_and_says_so(tmp_path: Path) -> None:
    world = GitRepo(tmp_path / "shop")
    first, *_, tip = [world.commit(f"Number {number}") for number in range(5)]
    log = log_of(world)
    whole = log.between(first, tip, 4)
    assert ([one.subject for one in whole.commits], whole.cut) == (
        ["Number 4", "Number 3", "Number 2", "Number 1"],
        False,
    )
    part = log.between(first, tip, 3)
    assert (len(part.commits), part.cut, part.parted) == (3, True, False)
    assert log.between(tip, tip, 3).commits == []
    assert not log.between(tip, tip, 3).parted


def test_a_lower_end_on_another_branch_is_said(tmp_path: Path) -> None:
    world = GitRepo(tmp_path / "shop")
    world.commit("Begin")
    world.branch("side")
    green = world.commit("Green")
    world.checkout("main")
    tip = world.commit("Red")
    found = log_of(world).between(green, tip, 10)
    assert ([one.subject for one in found.commits], found.parted) == (["Red"], True)


def test_text_that_is_no_log_is_refused() -> None:
    with pytest.raises(SourceError, match="git log says what cannot be read"):
        list(parse_log([b"hello\0world\0"]))


@given(st.lists(st.binary(max_size=30), max_size=6), st.data())
def test_the_parser_never_fails_in_another_way(parts: list[bytes], data: st.DataObject) -> None:
    try:
        for commit in parse_log([b"\x01" + b"\0".join(parts)]):
            assert len(commit.files) <= MOST_FILES
    except SourceError:
        pass


@given(st.integers(min_value=1, max_value=50))
def test_where_the_stream_is_cut_does_not_matter(size: int) -> None:
    text = b"\x01abc\0p\x00100\0A\0subject\0\nM\0a.py\0R090\0b.py\0c.py\0\x01def\0\0x\0B\0\0"
    pieces = [text[start : start + size] for start in range(0, len(text), size)]
    first, second = parse_log(pieces)
    assert first == Commit(
        "abc",
        "A",
        "1970-01-01T00:01:40Z",
        "subject",
        (ChangedFile("a.py", "M"), ChangedFile("c.py", "R", "b.py", 90)),
        1,
    )
    assert second == Commit("def", "B", "", "", (), 0)


@pytest.mark.parametrize("stamp", [b"", b"x", b"9" * 30, b"-" + b"9" * 30])
def test_a_date_that_is_none_is_empty(stamp: bytes) -> None:
    assert rfc3339(stamp) == ""
