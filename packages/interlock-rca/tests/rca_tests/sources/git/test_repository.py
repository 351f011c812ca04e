"""The questions an analysis asks of a sound repository.

Clone URLs become links to look at, and never carry credentials or anything but http.
"""

from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock_rca.records import Repo
from interlock_rca.sources.git.content import MAX_FILE_SIZE, normalize_path
from interlock_rca.sources.git.repository import (
    MAX_COMMITS_WITHOUT_GREEN,
    Repository,
    parse_browse_url,
)
from tests.world.git_repo import GitRepo


class Shop:
    """A repository with a little history, and its commits by name."""

    def __init__(self, folder: Path) -> None:
        self.world = world = GitRepo(folder)
        self.begin = world.commit("Begin", {"shop/cart.py": "def add(a, b):\n    return a + b\n"})
        self.change = world.commit(
            "Subtract", {"shop/cart.py": "def add(a, b):\n    return a - b\n"}, author="Bob Late"
        )
        world.branch("release", self.begin)
        self.backport = world.commit("On release", {"notes.md": "x\n"})
        world.checkout("main")
        world.move("shop/cart.py", "shop/basket.py")
        self.move = world.commit("Move", {"tests/test_basket.py": "add(1, 2)\n", "empty": ""})
        self.repository = Repository(Repo(name="shop", path=str(folder)))


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Shop:
    return Shop(tmp_path_factory.mktemp("git") / "shop")


def test_commits_since_the_last_green_one(shop: Shop) -> None:
    found = shop.repository.list_commits_since(shop.begin)
    assert [commit.hash for commit in found] == [shop.move, shop.change]
    assert found[1].author == "Bob Late"
    assert [
        commit.hash for commit in shop.repository.list_commits_since(shop.begin, shop.change)
    ] == [shop.change]
    assert shop.repository.list_commits_since(shop.move) == []
    assert shop.repository.problems == []


def test_without_a_last_green_one_the_newest_are_taken_and_it_is_said(tmp_path: Path) -> None:
    shop = Shop(tmp_path / "shop")
    assert len(shop.repository.list_commits_since(None)) == 3
    (problem,) = shop.repository.problems
    assert problem.sentence == (
        "repository shop: no last green commit is known, so its newest 3 commits are looked at, "
        "back to 2023-11-14"
    )
    assert len(shop.repository.list_commits_since("", most=2)) == 2


def test_the_bound_without_a_last_green_one(tmp_path: Path) -> None:
    world = GitRepo(tmp_path / "long")
    feed = b"".join(
        b"commit refs/heads/main\ncommitter A <a@b> %d +0000\ndata 1\nx\n" % (1_000 + number)
        for number in range(MAX_COMMITS_WITHOUT_GREEN + 10)
    )
    world.git("fast-import", "--quiet", feed=feed)
    assert (
        len(Repository(Repo(name="a", path=str(world.folder))).list_commits_since(None))
        == MAX_COMMITS_WITHOUT_GREEN
    )


def test_an_unknown_or_hostile_last_green_one_is_said(tmp_path: Path) -> None:
    shop = Shop(tmp_path / "shop")
    for word in ("nowhere", "--output=x", "f" * 40):
        assert len(shop.repository.list_commits_since(word)) == 3
    kinds = [problem.kind for problem in shop.repository.problems]
    assert kinds.count("unknown-revision") == 3
    assert kinds.count("no-last-green") == 1


def test_a_last_green_one_elsewhere_and_too_many_commits_are_said(tmp_path: Path) -> None:
    shop = Shop(tmp_path / "shop")
    found = shop.repository.list_commits_since("release")
    assert [commit.hash for commit in found] == [shop.move, shop.change]
    assert len(shop.repository.list_commits_since(shop.begin, most=1)) == 1
    assert [problem.kind for problem in shop.repository.problems] == ["parted", "cut"]


def test_commits(shop: Shop) -> None:
    repository = shop.repository
    assert repository.find_commit(shop.change[:7]) == shop.change
    assert repository.find_commit(shop.change.upper()) == shop.change
    assert repository.find_commit("0" * 40) == ""
    assert repository.find_commit("main") == ""
    assert repository.is_on_branch(shop.change) is True
    assert repository.is_on_branch(shop.backport) is False
    assert repository.is_on_branch(shop.backport, "release") is True
    assert repository.is_on_branch(shop.change, "release") is False
    assert repository.is_on_branch(shop.change, "nowhere") is None
    assert repository.is_on_branch("0" * 40) is None


def test_a_branch_named_like_a_hash_is_not_that_commit(tmp_path: Path) -> None:
    shop = Shop(tmp_path / "shop")
    shop.world.git("branch", "deadbeef")
    assert shop.repository.find_commit("deadbeef") == ""


def lines(repository: Repository, path: str) -> int:
    found = repository.read_entry(path)
    assert found is not None
    return found.line_count


def test_files_and_lines(shop: Shop) -> None:
    repository = shop.repository
    assert repository.has_file("shop/basket.py") is True
    assert repository.has_file("./shop//basket.py") is True
    assert repository.has_file("shop") is True
    assert repository.has_file("shop/cart.py") is False
    assert repository.has_file("shop/cart.py", shop.begin) is True
    assert repository.has_file("shop/cart.py", "release") is True
    assert repository.has_file("shop/basket.py", "nowhere") is False
    assert lines(repository, "shop/basket.py") == 2
    assert lines(repository, "empty") == 0
    assert [match.path for match in repository.find_files("shop.basket.add")] == ["shop/basket.py"]
    assert repository.find_files("cart.py") == []
    assert [match.path for match in repository.find_files("cart.py", "release")] == ["shop/cart.py"]


@pytest.mark.parametrize(
    "path",
    [
        *("", "/etc/passwd", "../x", "a/../../x", "a\0b", "a\nb", "--output=x", ".git/config"),
        *("x" * 5_000, "\\etc", "shop/basket.py:1", ":(top)shop", "\udcff", "HEAD", "*"),
    ],
)
def test_a_hostile_path_is_no_file(shop: Shop, path: str) -> None:
    assert shop.repository.has_file(path) is False
    assert lines(shop.repository, path) == 0
    assert shop.repository.blame_line(path, 1) is None
    assert "passwd" not in normalize_path(path)


def test_a_link_is_not_followed(tmp_path: Path) -> None:
    world = GitRepo(tmp_path / "shop")
    (tmp_path / "secret").write_text("one\ntwo\nthree\n")
    (world.folder / "link").symlink_to(tmp_path / "secret")
    world.commit("Link")
    repository = Repository(Repo(name="shop", path=str(world.folder)))
    assert lines(repository, "link") == 1


def test_a_file_too_large_to_look_into(tmp_path: Path) -> None:
    world = GitRepo(tmp_path / "shop")
    world.commit("Much", {"big.txt": b"x\n" * (MAX_FILE_SIZE // 2 + 1)})
    repository = Repository(Repo(name="shop", path=str(world.folder)))
    assert repository.has_file("big.txt") is True
    assert lines(repository, "big.txt") == 0


def test_blame(shop: Shop) -> None:
    found = shop.repository.blame_line("shop/basket.py", 2)
    assert found is not None
    assert (found.commit, found.author, found.subject) == (shop.change, "Bob Late", "Subtract")
    assert (found.path, found.line, found.at) == ("shop/cart.py", 2, "2023-11-14T22:15:20Z")
    assert shop.repository.blame_line("shop/basket.py", 3) is None
    assert shop.repository.blame_line("nowhere.py", 1) is None


def test_who_only_moves_a_line_did_not_write_it(tmp_path: Path) -> None:
    world = GitRepo(tmp_path / "shop")
    wrote = world.commit("Write", {"cart.py": "x = 1\nput(x)\n"})
    world.commit("Indent", {"cart.py": "x = 1\nwith door:\n    put(x)\n"})
    found = Repository(Repo(name="shop", path=str(world.folder))).blame_line("cart.py", 3)
    assert found is not None
    assert (found.commit, found.subject) == (wrote, "Write")


def test_how_many_lines_a_commit_changed(shop: Shop) -> None:
    repository = shop.repository
    commits = {commit.hash: commit for commit in repository.list_commits_since(None)}
    assert repository.count_changed_lines(commits[shop.begin]) == (2, 0)
    assert repository.count_changed_lines(commits[shop.change]) == (1, 1)
    merge = msgspec.structs.replace(commits[shop.change], parents=2, hash="f" * 40)
    assert repository.count_changed_lines(merge) is None
    gone = msgspec.structs.replace(merge, parents=1)
    assert repository.count_changed_lines(gone) is None


def test_links_come_from_the_settings_or_else_from_origin(tmp_path: Path) -> None:
    shop = Shop(tmp_path / "shop")
    assert shop.repository.build_commit_url(shop.begin) == ""
    shop.world.git("remote", "add", "origin", "https://ada:secret@github.com/acme/shop.git")
    path = str(shop.world.folder)
    assert Repository(Repo(name="shop", path=path)).build_commit_url(shop.begin) == (
        f"https://github.com/acme/shop/commit/{shop.begin}"
    )
    own = Repository(Repo(name="shop", path=path, url="https://gitlab.com/acme/shop"))
    assert own.build_file_url("a.py", "release", 3) == (
        f"https://gitlab.com/acme/shop/-/blob/{shop.backport}/a.py#L3"
    )


REV = "0123456789abcdef0123456789abcdef01234567"


@pytest.mark.parametrize(
    ("url", "home", "kind"),
    [
        ("https://github.com/acme/shop", "https://github.com/acme/shop", "github"),
        ("https://github.com/acme/shop.git", "https://github.com/acme/shop", "github"),
        ("https://ada:secret@github.com/acme/shop/", "https://github.com/acme/shop", "github"),
        ("https://token@GitHub.com/acme/shop?x=1#y", "https://github.com/acme/shop", "github"),
        ("git@github.com:acme/shop.git", "https://github.com/acme/shop", "github"),
        (
            "ssh://git@gitlab.acme.org:2222/a/b/shop.git",
            "https://gitlab.acme.org/a/b/shop",
            "gitlab",
        ),
        ("http://git.acme.org:8080/acme/shop", "http://git.acme.org:8080/acme/shop", "github"),
        ("git@bitbucket.org:acme/shop.git", "https://bitbucket.org/acme/shop", "bitbucket"),
        (
            "https://bitbucket.acme.org/scm/proj/shop.git",
            "https://bitbucket.acme.org/projects/proj/repos/shop",
            "bitbucket-server",
        ),
        (
            "ssh://git@bitbucket.acme.org:7999/~ada/shop.git",
            "https://bitbucket.acme.org/users/ada/repos/shop",
            "bitbucket-server",
        ),
        ("https://codeberg.org/acme/shop", "https://codeberg.org/acme/shop", "gitea"),
        ("git://gitea.acme.org/acme/my shop", "https://gitea.acme.org/acme/my%20shop", "gitea"),
    ],
)
def test_where_a_repository_is_looked_at(url: str, home: str, kind: str) -> None:
    found = parse_browse_url(url)
    assert found is not None
    assert (found.home, found.kind) == (home, kind)


@pytest.mark.parametrize(
    "url",
    [
        *("", " ", "/srv/git/shop.git", "../shop", "file:///srv/shop", "C:\\shop", "c:shop"),
        *("javascript:alert(1)", "javascript://x.org/%0aalert(1)", "data:text/html,x", "https://"),
        *("https://github.com", "https://github.com/", "https://x.org/a/../b", "https://[::1/a"),
        *("https://x.org:99999999/a", "https://a\nb/c", "https://x.org/" + "a" * 3_000, "a\0b:c"),
        *("https://x<y.org/a", "ext::sh -c touch"),
    ],
)
def test_what_cannot_be_looked_at(url: str) -> None:
    assert parse_browse_url(url) is None


@pytest.mark.parametrize(
    ("url", "commit", "file", "lines"),
    [
        (
            "https://github.com/acme/shop",
            f"https://github.com/acme/shop/commit/{REV}",
            f"https://github.com/acme/shop/blob/{REV}/a/b%20%23c.py#L3",
            "#L3-L9",
        ),
        (
            "https://gitlab.com/acme/shop",
            f"https://gitlab.com/acme/shop/-/commit/{REV}",
            f"https://gitlab.com/acme/shop/-/blob/{REV}/a/b%20%23c.py#L3",
            "#L3-9",
        ),
        (
            "https://bitbucket.org/acme/shop",
            f"https://bitbucket.org/acme/shop/commits/{REV}",
            f"https://bitbucket.org/acme/shop/src/{REV}/a/b%20%23c.py#lines-3",
            "#lines-3:9",
        ),
        (
            "https://bitbucket.acme.org/projects/P/repos/shop",
            f"https://bitbucket.acme.org/projects/P/repos/shop/commits/{REV}",
            f"https://bitbucket.acme.org/projects/P/repos/shop/browse/a/b%20%23c.py?at={REV}#3",
            "#3-9",
        ),
        (
            "https://gitea.com/acme/shop",
            f"https://gitea.com/acme/shop/commit/{REV}",
            f"https://gitea.com/acme/shop/src/commit/{REV}/a/b%20%23c.py#L3",
            "#L3-L9",
        ),
    ],
)
def test_links(url: str, commit: str, file: str, lines: str) -> None:
    found = parse_browse_url(url)
    assert found is not None
    assert found.build_commit_url(REV) == commit
    assert found.build_file_url("a/b #c.py", REV, 3) == file
    assert found.build_file_url("a/b #c.py", REV, 3, 9).endswith(lines)
    assert found.build_file_url("a/b #c.py", REV) == file.rpartition("#")[0]


@given(st.text(max_size=60), st.text(max_size=30))
def test_links_never_hold_a_password_nor_break_out(path: str, word: str) -> None:
    found = parse_browse_url(f"https://ada:secret@x.org/acme/{path}")
    if found is not None:
        for url in (found.build_commit_url(word), found.build_file_url(word, REV, 1)):
            assert url.startswith("https://x.org/")
            assert "secret" not in url.replace(path, "")
            assert not set(url) & set("<>\"' \n\r\t")
