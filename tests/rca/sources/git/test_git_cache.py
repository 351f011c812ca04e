"""History is read once; whatever happens to the cache, answers stay the same."""

import sqlite3
import zlib
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.world.git_repo import GitRepo

from interlock.rca.records import Repo
from interlock.rca.sources.git.history import ChangedFile, Commit, HistoryCache
from interlock.rca.sources.git.repository import Repository


def commit(number: int) -> Commit:
    return Commit(f"{number:040x}", "Ada", "", f"Number {number}", (ChangedFile("a.py", "M"),))


COMMITS = [commit(number) for number in range(10)]
HASHES = [one.hash for one in COMMITS]


def cache_at(folder: Path) -> HistoryCache[Commit]:
    return HistoryCache(folder, "/a/.git", Commit)


@pytest.fixture
def cache(tmp_path: Path) -> HistoryCache[Commit]:
    made = cache_at(tmp_path)
    made.add(COMMITS[5:])
    made.add(COMMITS[:5])
    made.remember("all", HASHES, "remark")
    return made


def file_of(cache: HistoryCache[Commit]) -> Path:
    assert cache.file is not None
    return cache.file


def test_what_was_kept_is_found_by_another_process_s_cache(
    cache: HistoryCache[Commit], tmp_path: Path
) -> None:
    again = cache_at(tmp_path)
    assert again.recall("all") == (COMMITS, "remark")
    assert again.recall("other") is None
    assert again.find([HASHES[7], "f" * 40, HASHES[1]]) == {
        HASHES[7]: COMMITS[7],
        HASHES[1]: COMMITS[1],
    }


def test_repositories_do_not_share(cache: HistoryCache[Commit], tmp_path: Path) -> None:
    assert HistoryCache(tmp_path, "/b/.git", Commit).recall("all") is None


def test_without_a_folder_nothing_is_kept() -> None:
    cache = HistoryCache(None, "x", Commit)
    cache.add(COMMITS)
    cache.remember("all", HASHES, "")
    assert cache.recall("all") is None
    assert cache.find(HASHES) == {}


def test_a_range_with_a_commit_that_is_not_here_is_not_kept(cache: HistoryCache[Commit]) -> None:
    cache.remember("more", [*HASHES, "f" * 40], "")
    assert cache.recall("more") is None


def test_old_ranges_go(cache: HistoryCache[Commit]) -> None:
    for number in range(250):
        cache.remember(f"range {number}", HASHES[:2], "")
    assert cache.recall("all") is None
    assert cache.recall("range 49") is None
    assert cache.recall("range 50") == (COMMITS[:2], "")


def test_two_analyses_may_keep_the_same_commits(
    cache: HistoryCache[Commit], tmp_path: Path
) -> None:
    other = cache_at(tmp_path)
    other.add(COMMITS[3:8])
    other.remember("some", HASHES[2:9], "")
    assert cache.recall("some") == (COMMITS[2:9], "")
    assert cache.recall("all") == (COMMITS, "remark")
    assert len(cache.find(HASHES)) == 10


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
    "a flipped body": in_sql("UPDATE blocks SET body = replace(body, 'Number 3', 'Number 4')"),
    "other hashes": in_sql("UPDATE blocks SET hashes = replace(hashes, '3', '4')"),
    "no blocks": in_sql("DELETE FROM blocks"),
    "another remark": in_sql("UPDATE ranges SET remark = 'parted'"),
    "empty runs": in_sql("UPDATE ranges SET runs = x''"),
    "tables of another form": in_sql("DROP TABLE blocks", "CREATE TABLE blocks (x)"),
    "numbers for text": in_sql("UPDATE blocks SET hashes = 1, body = 2"),
}


@pytest.mark.parametrize("damage", DAMAGE.values(), ids=DAMAGE)
def test_a_damaged_file_is_thrown_away_and_used_again(
    cache: HistoryCache[Commit], tmp_path: Path, damage: Callable[[Path], None]
) -> None:
    damage(file_of(cache))
    again = cache_at(tmp_path)
    assert again.recall("all") is None
    again.add(COMMITS)
    again.remember("all", HASHES, "")
    assert cache_at(tmp_path).recall("all") == (COMMITS, "")
    assert again.trouble == ""


def test_a_file_that_another_holds_is_left_alone(
    cache: HistoryCache[Commit], tmp_path: Path
) -> None:
    db = sqlite3.connect(file_of(cache), isolation_level=None)
    db.execute("BEGIN EXCLUSIVE")
    hasty = HistoryCache(tmp_path, "/a/.git", Commit, patience=0.0)
    assert hasty.recall("all") is None
    assert "database is locked" in hasty.trouble
    db.execute("ROLLBACK")
    db.close()
    assert cache_at(tmp_path).recall("all") == (COMMITS, "remark")


def test_a_folder_that_cannot_be_made_is_trouble_and_no_more(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    cache = cache_at(tmp_path / "file")
    cache.add(COMMITS)
    assert cache.recall("all") is None
    assert "cannot be used" in cache.trouble


@pytest.fixture
def world(tmp_path: Path) -> GitRepo:
    made = GitRepo(tmp_path / "shop")
    for number in range(6):
        made.commit(f"Number {number}", {"a.py": f"{number}\n"})
    return made


def subjects(world: GitRepo, cache: Path, green: str) -> list[str]:
    repository = Repository(Repo(name="shop", path=str(world.folder)), cache=cache)
    return [one.subject for one in repository.commits_since(green)]


def blocks(cache: Path) -> list[int]:
    (file,) = cache.iterdir()
    db = sqlite3.connect(file)
    found = [len(row[0].split()) for row in db.execute("SELECT hashes FROM blocks ORDER BY 1")]
    db.close()
    return sorted(found)


def test_only_new_commits_are_read(world: GitRepo, tmp_path: Path) -> None:
    cache, green = tmp_path / "cache", world.git("rev-parse", "HEAD~5")
    assert len(subjects(world, cache, green)) == 5
    assert blocks(cache) == [5]
    world.commit("Number 6")
    world.commit("Number 7")
    assert subjects(world, cache, green)[:2] == ["Number 7", "Number 6"]
    assert len(subjects(world, cache, world.git("rev-parse", "HEAD~1"))) == 1
    assert blocks(cache) == [2, 5]


def test_a_range_once_read_is_answered_without_the_commits(world: GitRepo, tmp_path: Path) -> None:
    """Seen from outside: what the cache says is believed, so git was not asked."""
    cache, green = tmp_path / "cache", world.git("rev-parse", "HEAD~2")
    subjects(world, cache, green)
    (file,) = cache.iterdir()
    db = sqlite3.connect(file)
    hashes, body, _ = db.execute("SELECT hashes, body, sum FROM blocks").fetchone()
    forged = body.replace(b"Number 5", b"Forged 5")
    total = zlib.crc32(forged, zlib.crc32(hashes.encode()))
    db.execute("UPDATE blocks SET body = ?, sum = ?", (forged, total))
    db.commit()
    db.close()
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
    assert len(repository.commits_since("HEAD~2")) == 2
    assert [problem.kind for problem in repository.problems] == ["cache"]
