"""Commits as git tells them: files, renames, merges, and words that look like something else.

History is read once; whatever happens to the cache, answers stay the same.
"""

import sqlite3
import zlib
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock.system.errors import SourceError
from interlock.system.git import Git
from interlock_rca.records import Repo
from interlock_rca.sources.git.history import (
    MAX_FILES,
    ChangedFile,
    Commit,
    GitLog,
    HistoryCache,
    format_date,
    parse_log,
)
from interlock_rca.sources.git.repository import Repository
from tests.world.git_repo import GitRepo

LINES = "".join(f"line {number}\n" for number in range(40))


def log_of(world: GitRepo) -> GitLog:
    return GitLog(Git(world.folder), frozenset(), HistoryCache(None, ""))


def test_kinds_of_change(tmp_path: Path) -> None:
    world = GitRepo(tmp_path / "shop")
    world.commit("Begin", {"a.py": LINES, "b.py": "1\n", "c.py": "2\n"})
    world.move("a.py", "deep/moved.py")
    tip = world.commit(
        "Change", {"b.py": None, "c.py": "3\n", "d.py": "4\n", "deep/moved.py": LINES + "more\n"}
    )
    (commit,) = log_of(world).list_between("", tip, 1).commits
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
    found = log_of(world).list_between(first, plain, 10).commits
    assert [(one.subject, one.parents, len(one.files)) for one in found] == [
        ("Merge", 2, 0),
        ("Main", 1, 1),
        ("Side", 1, 1),
    ]
    world.write({"b.py": "evil\n", "new.py": "x\n"})
    world.git("add", "--all")
    world.git("commit", "--quiet", "--amend", "-m", "Evil merge")
    (evil,) = log_of(world).list_between("", world.git("rev-parse", "HEAD"), 1).commits
    assert evil.files == (ChangedFile("b.py", "M"), ChangedFile("new.py", "A"))


def test_hostile_names_and_subjects_do_not_confuse_the_reading(tmp_path: Path) -> None:
    world = GitRepo(tmp_path / "shop")
    names = ["M", "R100", "\x01begin.py", "two\nlines.py", "tab\t.py", "ünï.py", "-rf", " .py"]
    world.commit("\x01\x01 M\tx", dict.fromkeys(names, "1\n"), author="\x01 Mallory")
    tip = world.commit("", {"M": "2\n"})
    last, first = log_of(world).list_between("", tip, 5).commits
    assert sorted(change.path for change in first.files) == sorted(names)
    assert (last.subject, last.files) == ("", (ChangedFile("M", "M"),))


def test_very_many_files_are_counted_not_kept(tmp_path: Path) -> None:
    world = GitRepo(tmp_path / "shop")
    names = [f"f{number}.txt" for number in range(MAX_FILES + 7)]
    tip = world.commit("Begin", dict.fromkeys(names, "1\n"))
    (commit,) = log_of(world).list_between("", tip, 5).commits
    assert (len(commit.files), commit.more) == (MAX_FILES, 7)


def test_a_range_is_cut_and_says_so(tmp_path: Path) -> None:
    world = GitRepo(tmp_path / "shop")
    first, *_, tip = [world.commit(f"Number {number}") for number in range(5)]
    log = log_of(world)
    whole = log.list_between(first, tip, 4)
    assert ([one.subject for one in whole.commits], whole.cut) == (
        ["Number 4", "Number 3", "Number 2", "Number 1"],
        False,
    )
    part = log.list_between(first, tip, 3)
    assert (len(part.commits), part.cut, part.parted) == (3, True, False)
    assert log.list_between(tip, tip, 3).commits == []
    assert not log.list_between(tip, tip, 3).parted


def test_a_lower_end_on_another_branch_is_said(tmp_path: Path) -> None:
    world = GitRepo(tmp_path / "shop")
    world.commit("Begin")
    world.branch("side")
    green = world.commit("Green")
    world.checkout("main")
    tip = world.commit("Red")
    found = log_of(world).list_between(green, tip, 10)
    assert ([one.subject for one in found.commits], found.parted) == (["Red"], True)


def test_text_that_is_no_log_is_refused() -> None:
    with pytest.raises(SourceError, match="git log says what cannot be read"):
        list(parse_log([b"hello\0world\0"]))


@given(st.lists(st.binary(max_size=30), max_size=6), st.data())
def test_the_parser_never_fails_in_another_way(parts: list[bytes], data: st.DataObject) -> None:
    try:
        for commit in parse_log([b"\x01" + b"\0".join(parts)]):
            assert len(commit.files) <= MAX_FILES
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
    assert format_date(stamp) == ""


def commit(number: int) -> Commit:
    return Commit(f"{number:040x}", "Ada", "", f"Number {number}", (ChangedFile("a.py", "M"),))


COMMITS = [commit(number) for number in range(10)]
HASHES = [one.hash for one in COMMITS]


def cache_at(folder: Path) -> HistoryCache:
    return HistoryCache(folder, "/a/.git")


@pytest.fixture
def cache(tmp_path: Path) -> HistoryCache:
    made = cache_at(tmp_path)
    made.add_commits(COMMITS[5:])
    made.add_commits(COMMITS[:5])
    made.add_range("all", HASHES, "remark")
    return made


def file_of(cache: HistoryCache) -> Path:
    assert cache.file is not None
    return cache.file


def test_what_was_kept_is_found_by_another_process_s_cache(
    cache: HistoryCache, tmp_path: Path
) -> None:
    again = cache_at(tmp_path)
    assert again.find_range("all") == (COMMITS, "remark")
    assert again.find_range("other") is None
    assert again.find_commits([HASHES[7], "f" * 40, HASHES[1]]) == {
        HASHES[7]: COMMITS[7],
        HASHES[1]: COMMITS[1],
    }


def test_repositories_do_not_share(cache: HistoryCache, tmp_path: Path) -> None:
    assert HistoryCache(tmp_path, "/b/.git").find_range("all") is None


def test_without_a_folder_nothing_is_kept() -> None:
    cache = HistoryCache(None, "x")
    cache.add_commits(COMMITS)
    cache.add_range("all", HASHES, "")
    assert cache.find_range("all") is None
    assert cache.find_commits(HASHES) == {}


def test_a_range_with_a_commit_that_is_not_here_is_not_kept(cache: HistoryCache) -> None:
    cache.add_range("more", [*HASHES, "f" * 40], "")
    assert cache.find_range("more") is None


def test_old_ranges_go(cache: HistoryCache) -> None:
    for number in range(250):
        cache.add_range(f"range {number}", HASHES[:2], "")
    assert cache.find_range("all") is None
    assert cache.find_range("range 49") is None
    assert cache.find_range("range 50") == (COMMITS[:2], "")


def test_two_analyses_may_keep_the_same_commits(cache: HistoryCache, tmp_path: Path) -> None:
    other = cache_at(tmp_path)
    other.add_commits(COMMITS[3:8])
    other.add_range("some", HASHES[2:9], "")
    assert cache.find_range("some") == (COMMITS[2:9], "")
    assert cache.find_range("all") == (COMMITS, "remark")
    assert len(cache.find_commits(HASHES)) == 10


def rubbish(file: Path) -> None:
    file.write_bytes(b"rubbish" * 1_000)


def half(file: Path) -> None:
    file.write_bytes(file.read_bytes()[: file.stat().st_size // 2])


def nothing(file: Path) -> None:
    file.write_bytes(b"")


def in_sql(*statements: str) -> Callable[[Path], None]:
    def damage(file: Path) -> None:
        db = sqlite3.connect(file)
        for statement in statements:
            db.execute(statement)
        db.commit()
        db.close()

    return damage


DAMAGE = {
    "rubbish": rubbish,
    "half": half,
    "nothing": nothing,
    "a flipped body": in_sql("UPDATE commits SET body = replace(body, 'Number 3', 'Number 4')"),
    "no commits": in_sql("DELETE FROM commits"),
    "another remark": in_sql("UPDATE ranges SET remark = 'parted'"),
    "an empty range": in_sql("UPDATE ranges SET hashes = ''"),
    "tables of another form": in_sql("DROP TABLE commits", "CREATE TABLE commits (x)"),
    "numbers for text": in_sql("UPDATE commits SET body = 2"),
}


@pytest.mark.parametrize("damage", DAMAGE.values(), ids=DAMAGE)
def test_a_damaged_file_is_thrown_away_and_used_again(
    cache: HistoryCache, tmp_path: Path, damage: Callable[[Path], None]
) -> None:
    damage(file_of(cache))
    again = cache_at(tmp_path)
    assert again.find_range("all") is None
    again.add_commits(COMMITS)
    again.add_range("all", HASHES, "")
    assert cache_at(tmp_path).find_range("all") == (COMMITS, "")
    assert again.trouble == ""


def test_a_file_that_another_holds_is_left_alone(cache: HistoryCache, tmp_path: Path) -> None:
    db = sqlite3.connect(file_of(cache), isolation_level=None)
    db.execute("BEGIN EXCLUSIVE")
    hasty = HistoryCache(tmp_path, "/a/.git", timeout=0.0)
    assert hasty.find_range("all") is None
    assert "database is locked" in hasty.trouble
    db.execute("ROLLBACK")
    db.close()
    assert cache_at(tmp_path).find_range("all") == (COMMITS, "remark")


def test_a_folder_that_cannot_be_made_is_trouble_and_no_more(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    cache = cache_at(tmp_path / "file")
    cache.add_commits(COMMITS)
    assert cache.find_range("all") is None
    assert "cannot be used" in cache.trouble


@pytest.fixture
def world(tmp_path: Path) -> GitRepo:
    made = GitRepo(tmp_path / "shop")
    for number in range(6):
        made.commit(f"Number {number}", {"a.py": f"{number}\n"})
    return made


def subjects(world: GitRepo, cache: Path, green: str) -> list[str]:
    repository = Repository(Repo(name="shop", path=str(world.folder)), cache=cache)
    return [one.subject for one in repository.list_commits_since(green)]


def forge(cache: Path, subject: str, forged: str) -> None:
    """Change what is kept: where it shows, git was not asked again."""
    (file,) = cache.iterdir()
    db = sqlite3.connect(file)
    for name, body in db.execute("SELECT hash, body FROM commits").fetchall():
        new = body.replace(subject.encode(), forged.encode())
        total = zlib.crc32(new, zlib.crc32(name.encode()))
        db.execute("UPDATE commits SET body = ?, sum = ? WHERE hash = ?", (new, total, name))
    db.commit()
    db.close()


def test_only_new_commits_are_read(world: GitRepo, tmp_path: Path) -> None:
    cache, green = tmp_path / "cache", world.git("rev-parse", "HEAD~5")
    assert len(subjects(world, cache, green)) == 5
    forge(cache, "Number 5", "Forged 5")
    world.commit("Number 6")
    assert subjects(world, cache, green)[:3] == ["Number 6", "Forged 5", "Number 4"]


def test_a_range_once_read_is_answered_without_git(world: GitRepo, tmp_path: Path) -> None:
    cache, green = tmp_path / "cache", world.git("rev-parse", "HEAD~2")
    subjects(world, cache, green)
    forge(cache, "Number 5", "Forged 5")
    assert subjects(world, cache, green) == ["Forged 5", "Number 4"]


def test_a_rewritten_history_is_read_anew(world: GitRepo, tmp_path: Path) -> None:
    cache, green = tmp_path / "cache", world.git("rev-parse", "HEAD~2")
    subjects(world, cache, green)
    world.git("commit", "--quiet", "--amend", "-m", "Other words")
    assert subjects(world, cache, green) == ["Other words", "Number 4"]


def test_a_damaged_cache_changes_no_answer(world: GitRepo, tmp_path: Path) -> None:
    cache, green = tmp_path / "cache", world.git("rev-parse", "HEAD~4")
    wanted = subjects(world, cache, green)
    (file,) = cache.iterdir()
    for damage in DAMAGE.values():
        damage(file)
        assert subjects(world, cache, green) == wanted


def test_a_cache_that_cannot_be_used_is_noted(world: GitRepo, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    repo = Repo(name="shop", path=str(world.folder))
    repository = Repository(repo, cache=tmp_path / "file")
    assert len(repository.list_commits_since("HEAD~2")) == 2
    assert [problem.kind for problem in repository.problems] == ["cache"]
