"""Every bad repository is a sentence, and the analysis goes on with what there is.

The written forms of repositories, and what is refused with a sentence.
"""

import contextlib
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock.system.errors import SourceError
from interlock.system.git import Git
from interlock_rca.records import Repo
from interlock_rca.sources.git.open import (
    inspect_repository,
    parse_repo,
    read_repo_tables,
    read_workspace,
    resolve_revision,
)
from interlock_rca.sources.git.repository import Repository
from tests.world.git_repo import GitRepo


@pytest.fixture
def world(tmp_path: Path) -> GitRepo:
    made = GitRepo(tmp_path / "shop")
    made.commit("Begin", {"cart.py": "total = 1\n"})
    made.commit("Go on", {"cart.py": "total = 2\n"})
    made.commit("End", {"cart.py": "total = 3\n"})
    return made


def kinds(repository: Repository) -> list[str]:
    return [problem.kind for problem in repository.problems]


def opened(path: Path, *tested: str, branch: str = "") -> Repository:
    return Repository(Repo(name="shop", path=str(path), branch=branch), tested=tested)


def test_a_sound_repository_has_no_problems(world: GitRepo) -> None:
    repository = opened(world.folder)
    assert repository.problems == []
    assert (repository.tip, repository.branch) == (world.git("rev-parse", "HEAD"), "main")


def unreadable(repository: Repository) -> str:
    """Nothing can be read and nothing fails; the one sentence that says why."""
    assert not repository.is_readable
    assert repository.list_commits_since(None) == []
    assert repository.has_file("cart.py") is None
    assert repository.read_entry("cart.py") is None
    assert repository.is_on_branch("a" * 40) is None
    assert repository.list_files().paths == ()
    assert repository.find_files("cart.py") == []
    assert repository.blame_line("cart.py", 1) is None
    (problem,) = repository.problems
    assert problem.fatal
    return problem.sentence


def test_a_missing_folder(tmp_path: Path) -> None:
    assert unreadable(opened(tmp_path / "gone")) == (
        f"repository shop: {tmp_path}/gone does not exist; correct the path, or clone it there"
    )


def test_a_file_and_no_path_and_a_nul(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    assert "is not a folder" in unreadable(opened(tmp_path / "file"))
    assert "it has no path" in unreadable(Repository(Repo(name="shop", url="https://x.org/a/b")))
    assert "does not exist" in unreadable(Repository(Repo(name="shop", path="a\0b")))


def test_a_folder_that_is_no_repository(tmp_path: Path) -> None:
    assert "is not a git repository; give a clone" in unreadable(opened(tmp_path))


def test_a_repository_without_any_commit(tmp_path: Path) -> None:
    GitRepo(tmp_path / "new")
    result = unreadable(opened(tmp_path / "new"))
    assert result == "repository shop: main has no commit yet; nothing to read"


def test_a_head_without_commits_beside_a_branch_that_has(world: GitRepo) -> None:
    world.git("symbolic-ref", "HEAD", "refs/heads/unborn")
    assert "unborn has no commit yet; name a branch that has, such as main" in unreadable(
        opened(world.folder)
    )
    assert opened(world.folder, branch="main").is_readable


def test_a_bare_repository_is_read_and_said(world: GitRepo, tmp_path: Path) -> None:
    bare = world.clone(tmp_path / "bare.git", "--bare")
    repository = opened(bare.folder)
    assert kinds(repository) == ["bare"]
    assert repository.top == ""
    assert repository.has_file("cart.py")
    assert len(repository.list_commits_since("HEAD~2")) == 2


def test_a_shallow_clone_says_where_history_ends(world: GitRepo, tmp_path: Path) -> None:
    shallow = world.clone(tmp_path / "shallow", "--depth=2")
    repository = opened(shallow.folder)
    assert kinds(repository) == ["shallow"]
    boundary = world.git("rev-parse", "HEAD~1")
    assert boundary[:12] in repository.problems[0].sentence
    newest, oldest = repository.list_commits_since(None)
    assert [change.path for change in newest.files] == ["cart.py"]
    assert (oldest.hash, oldest.files, oldest.parents) == (boundary, (), 0)
    assert repository.read_change(oldest).nature.kind == "unknown"


def test_a_deeper_clone_is_not_answered_from_the_time_it_was_shallow(
    world: GitRepo, tmp_path: Path
) -> None:
    shallow = world.clone(tmp_path / "shallow", "--depth=2")
    repo, cache = Repo(name="shop", path=str(shallow.folder)), tmp_path / "cache"
    assert len(Repository(repo, cache=cache).list_commits_since(None)) == 2
    shallow.git("fetch", "--quiet", "--unshallow")
    commits = Repository(repo, cache=cache).list_commits_since(None)
    assert [len(commit.files) for commit in commits] == [1, 1, 1]


def test_submodules_are_said(world: GitRepo, tmp_path: Path) -> None:
    outer = GitRepo(tmp_path / "outer")
    outer.git("submodule", "--quiet", "add", f"file://{world.folder}", "parts/shop")
    outer.commit("Take the shop")
    repository = opened(outer.folder)
    assert kinds(repository) == ["submodules"]
    assert repository.list_files().submodules == ("parts/shop",)


def test_a_detached_head_is_looked_at_and_said(world: GitRepo) -> None:
    world.checkout("HEAD~1")
    repository = opened(world.folder)
    assert kinds(repository) == ["detached"]
    assert (repository.tip, repository.branch) == (world.git("rev-parse", "HEAD"), "HEAD")


def test_an_unknown_branch_is_said_and_head_is_looked_at(world: GitRepo) -> None:
    repository = opened(world.folder, branch="release")
    assert kinds(repository) == ["unknown-revision"]
    assert "it has no branch or commit 'release'; main (" in repository.problems[0].sentence
    assert repository.tip == world.git("rev-parse", "HEAD")


def test_the_own_branch_goes_before_the_tested_commit_and_that_before_the_branch(
    world: GitRepo,
) -> None:
    first, second = world.git("rev-parse", "HEAD~2"), world.git("rev-parse", "HEAD~1")
    world.git("branch", "old", first)
    assert opened(world.folder, second, "old", branch="main").tip == world.git("rev-parse", "HEAD")
    assert opened(world.folder, second, "old").tip == second
    assert opened(world.folder, "f" * 40, "old").tip == first
    assert opened(world.folder, "", "old").tip == first


def test_a_branch_of_the_remote_is_known_by_its_plain_name(world: GitRepo, tmp_path: Path) -> None:
    world.git("branch", "release")
    clone = world.clone(tmp_path / "clone")
    repository = opened(clone.folder, branch="release")
    assert repository.problems == []
    assert repository.tip == world.git("rev-parse", "release")


def test_a_corrupted_tip(world: GitRepo) -> None:
    tip = world.git("rev-parse", "HEAD")
    file = world.folder / ".git" / "objects" / tip[:2] / tip[2:]
    file.chmod(0o644)
    file.write_bytes(b"rubbish")
    assert "cannot be read; try: git fsck, or clone again" in unreadable(opened(world.folder))


def test_corrupted_objects_below_the_tip_cost_their_answers_only(world: GitRepo) -> None:
    blob = world.git("rev-parse", "HEAD:cart.py")
    first = world.git("rev-parse", "HEAD~2")
    for name in (blob, first):
        file = world.folder / ".git" / "objects" / name[:2] / name[2:]
        file.chmod(0o644)
        file.write_bytes(b"rubbish")
    repository = opened(world.folder)
    assert repository.is_readable
    assert repository.has_file("cart.py") is None
    assert repository.list_commits_since(None) == []
    assert kinds(repository) == ["corrupted", "corrupted"]
    assert repository.list_files().paths == ("cart.py",)


def test_a_broken_git_folder(world: GitRepo) -> None:
    (world.folder / ".git" / "HEAD").write_text("nonsense")
    assert "is not a git repository" in unreadable(opened(world.folder))


def test_settings_that_git_cannot_read(world: GitRepo) -> None:
    (world.folder / ".git" / "config").write_text("[core\nnonsense")
    assert "cannot be read: bad config line 1" in unreadable(opened(world.folder))


def test_a_folder_inside_a_repository_means_the_whole(world: GitRepo) -> None:
    world.commit("Deepen", {"a/b/c.py": "x = 1\n"})
    repository = opened(world.folder / "a" / "b")
    assert kinds(repository) == ["inside"]
    assert repository.has_file("cart.py")
    assert repository.top == str(world.folder)


def test_a_linked_worktree(world: GitRepo, tmp_path: Path) -> None:
    world.git("worktree", "add", "--quiet", "-b", "side", str(tmp_path / "side"))
    repository = opened(tmp_path / "side")
    assert (repository.branch, repository.problems) == ("side", [])


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a folder away")
def test_a_folder_of_somebody_else(world: GitRepo) -> None:
    for path in (world.folder, world.folder / ".git"):
        shutil.chown(path, 12345)
    result = unreadable(opened(world.folder))
    assert "belongs to another user" in result
    assert f"git config --global --add safe.directory {world.folder}" in result


READ_IT = """
import sys
from interlock_rca.records import Repo
from interlock_rca.sources.git.repository import Repository
print([one.kind for one in Repository(Repo(name="shop", path=sys.argv[1])).problems])
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a folder away")
@pytest.mark.parametrize(("declared", "kinds"), [("{0}", "[]"), ("*", "[]"), ("/x", "['dubious']")])
def test_a_folder_of_somebody_else_that_the_user_declared_safe(
    world: GitRepo, tmp_path: Path, declared: str, kinds: str
) -> None:
    for path in (world.folder, world.folder / ".git"):
        shutil.chown(path, 12345)
    (tmp_path / ".gitconfig").write_text(f"[safe]\n directory = {declared.format(world.folder)}\n")
    ran = subprocess.run(
        [sys.executable, "-c", READ_IT, str(world.folder)],
        env={**os.environ, "HOME": str(tmp_path)},
        capture_output=True,
        check=True,
        timeout=60,
    )
    assert ran.stdout.decode().strip() == kinds


def test_a_partial_clone_fetches_nothing(world: GitRepo, tmp_path: Path) -> None:
    world.git("config", "uploadpack.allowFilter", "true")
    words = ("--no-checkout", "--filter=blob:none")
    clone = world.clone(tmp_path / "partial", *words)
    clone.git("config", "protocol.file.allow", "always")
    before = sorted(clone.folder.rglob("*.pack"))
    repository = opened(clone.folder)
    assert len(repository.list_commits_since("HEAD~2")) == 2
    assert repository.has_file("cart.py") is None
    assert kinds(repository) == ["partial", "corrupted"]
    assert sorted(clone.folder.rglob("*.pack")) == before


def test_a_repository_with_longer_hashes(tmp_path: Path) -> None:
    (tmp_path / "long").mkdir()
    world = GitRepo(tmp_path / "plain")
    world.git("init", "--quiet", "--object-format=sha256", "--initial-branch=main", "../long")
    world.folder = tmp_path / "long"
    first = world.commit("Begin", {"cart.py": "total = 1\n"})
    second = world.commit("Go on", {"cart.py": "total = 2\n"})
    assert len(second) == 64
    repository = opened(world.folder)
    assert [commit.hash for commit in repository.list_commits_since(first)] == [second]
    assert repository.has_file("cart.py")
    assert repository.find_commit(first[:10]) == first
    blame = repository.blame_line("cart.py", 1)
    assert blame is not None
    assert blame.commit == second


@pytest.mark.parametrize(
    "word",
    [
        *("", "--output=x", "-rf", "main..main", "main:cart.py", "main^{tree}", "a\nb", "a\0b"),
        *("@{-1}", "main@{1}", ":/Begin", "HEAD:cart.py", "x" * 300, "../main", " main", "main~x"),
    ],
)
def test_a_hostile_revision_means_nothing(world: GitRepo, word: str) -> None:
    assert resolve_revision(Git(world.folder), word) == ""


def test_what_a_revision_means(world: GitRepo) -> None:
    git = Git(world.folder)
    head, first = world.git("rev-parse", "HEAD"), world.git("rev-parse", "HEAD~2")
    world.git("tag", "-a", "-m", "one", "v1.0", first)
    world.git("branch", "team/topic-1", first)
    for word in ("HEAD", "main", "refs/heads/main", head, head[:8], head.upper()):
        assert resolve_revision(git, word) == head
    for word in ("HEAD~2", "main^^", "v1.0", "team/topic-1", f"{head}~2", "v1.0^0"):
        assert resolve_revision(git, word) == first
    assert resolve_revision(git, world.git("rev-parse", "HEAD:cart.py")) == ""


def test_standing_is_the_same_each_time(world: GitRepo) -> None:
    repo = Repo(name="shop", path=str(world.folder), branch="nowhere")
    assert inspect_repository(repo).problems == inspect_repository(repo).problems


@pytest.mark.parametrize(
    ("word", "expected"),
    [
        ("shop=../shop", Repo(name="shop", path="../shop")),
        ("shop=/srv/shop:the cart", Repo(name="shop", path="/srv/shop", purpose="the cart")),
        (
            "shop=a b:CI: jobs, see http://x",
            Repo(name="shop", path="a b", purpose="CI: jobs, see http://x"),
        ),
        (" shop = x : y ", Repo(name="shop", path="x", purpose="y")),
        ("shop=a=b", Repo(name="shop", path="a=b")),
        ("shop=~nobody-here/x", Repo(name="shop", path="~nobody-here/x")),
        ("shop=.", Repo(name="shop", path=".")),
    ],
)
def test_the_flag(word: str, expected: Repo) -> None:
    assert parse_repo(word) == expected


@pytest.mark.parametrize(
    ("folder", "name"), [("shop", "shop"), ("my shop", "my-shop"), ("-x-", "x"), ("\u00e9", "repo")]
)
def test_a_folder_alone_is_called_as_it_is(tmp_path: Path, folder: str, name: str) -> None:
    path = tmp_path / folder
    path.mkdir()
    assert parse_repo(str(path)) == Repo(name=name, path=str(path))
    assert parse_repo(f"{path}:the tests") == Repo(name=name, path=str(path), purpose="the tests")


def test_a_file_alone_is_refused(tmp_path: Path) -> None:
    (tmp_path / "shop").write_text("")
    with pytest.raises(SourceError, match="or the path of a folder that is there"):
        parse_repo(str(tmp_path / "shop"))


def test_a_home_is_found() -> None:
    assert parse_repo("shop=~/shop").path == str(Path.home() / "shop")


@pytest.mark.parametrize(
    ("word", "sentence"),
    [
        ("", "write NAME=PATH or NAME=PATH:PURPOSE"),
        ("shop", "write NAME=PATH or NAME=PATH:PURPOSE"),
        ("shop=", "write NAME=PATH or NAME=PATH:PURPOSE"),
        ("shop= ", "write NAME=PATH or NAME=PATH:PURPOSE"),
        ("=path", "it has no name"),
        ("shop=:purpose", "shop has no path"),
        ("my shop=x", "must be letters, digits"),
        ("a/b=x", "must be letters, digits"),
        ("-x=y", "must be letters, digits"),
        ("a:b=x", "must be letters, digits"),
        ("shop=https://github.com/a/b", "is an address; clone it"),
        ("shop=git@github.com:a/b", "is an address; clone it"),
        ("shop=a\0b", "path must be one short line"),
        ("shop=a:b\nc", "purpose must be one short line"),
        ("shop=" + "x" * 5_000, "path must be one short line"),
    ],
)
def test_a_flag_that_is_refused(word: str, sentence: str) -> None:
    with pytest.raises(SourceError) as refused:
        parse_repo(word)
    assert sentence in str(refused.value)
    assert len(str(refused.value)) < 500


@given(st.text(max_size=60))
def test_any_flag_is_a_repository_or_a_sentence(word: str) -> None:
    with contextlib.suppress(SourceError):
        assert parse_repo(word).name


def test_tables(tmp_path: Path) -> None:
    tables = [
        {"name": "shop", "path": "shop", "purpose": "the cart", "branch": "main", "url": "u"},
        {"name": "till", "path": "/srv/till"},
        {"name": "far", "url": "https://github.com/acme/far"},
    ]
    assert read_repo_tables(tables, folder=tmp_path) == (
        Repo(name="shop", path=f"{tmp_path}/shop", purpose="the cart", branch="main", url="u"),
        Repo(name="till", path="/srv/till"),
        Repo(name="far", url="https://github.com/acme/far"),
    )
    assert read_repo_tables([]) == ()


@pytest.mark.parametrize(
    ("tables", "sentence"),
    [
        ([{"path": "x"}], "interlock.toml, repository 1: it has no name"),
        ([{"name": "", "path": "x"}], "it has no name"),
        ([{"name": "a", "path": "x"}, {"name": "b"}], "repository 2: b has no path"),
        ([{"name": "a", "path": "x"}, {"name": "A", "path": "y"}], "two repositories are named A"),
        ([{"name": "a", "path": "x", "brnch": "y"}], "'brnch' is not known; known are: name"),
        ([{"name": 1, "path": "x"}], "name must be text, not '1'"),
        ([{"name": "a", "path": ["x"]}], "path must be text"),
        ([{"name": "a", "path": "x", 7: "y"}], "'7' is not known"),
        (["a"], "it is not a table"),
        ({"name": "a"}, "repositories are a list"),
        ("a", "repositories are a list"),
        (None, "repositories are a list"),
        ([{"name": f"r{number}", "path": "x"} for number in range(201)], "201 repositories are"),
    ],
)
def test_tables_that_are_refused(tables: Any, sentence: str) -> None:
    with pytest.raises(SourceError) as refused:
        read_repo_tables(tables)
    assert sentence in str(refused.value)


YAML = """\
# what the tests are about
repos:
  - name: shop
    path: ../shop
    purpose: "Product: the cart"
    branch: release-1
  - {name: far, url: "https://github.com/acme/far", path: null}
"""
JSON = """\
{
\t"repos": [
\t\t{"name": "shop", "path": "../shop", "purpose": "Product: the cart", "branch": "release-1"},
\t\t{"name": "far", "url": "https://github.com/acme/far"}
\t],
\t"other": 1
}
"""


@pytest.mark.parametrize("text", [YAML, JSON, "\ufeff" + YAML, YAML.replace("\n", "\r\n")])
def test_a_workspace(tmp_path: Path, text: str) -> None:
    file = tmp_path / "workspace"
    file.write_bytes(text.encode())
    assert read_workspace(file) == (
        Repo(
            name="shop",
            path=f"{tmp_path}/../shop",
            purpose="Product: the cart",
            branch="release-1",
        ),
        Repo(name="far", url="https://github.com/acme/far"),
    )


def test_a_workspace_without_repositories(tmp_path: Path) -> None:
    file = tmp_path / "workspace.yaml"
    file.write_text("repos:\n")
    assert read_workspace(file) == ()


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (b"", "the file is empty"),
        (b"[]", "a workspace has a list `repos`"),
        (b"a: 1", "a workspace has a list `repos`"),
        (b"repos: 3", "repositories are a list"),
        (b"repos: [3]", "repository 1: it is not a table"),
        (b'{"repos": [', "is not readable as JSON"),
        (b"{" * 100_000, "is not readable as JSON"),
        (b'{"repos": ' + b"[" * 100_000, "is not readable as JSON"),
        (b"repos: [&a {name: x}, *a]", "anchors and aliases"),
        (b"repos:\n\t- name: x", "there is a tab"),
        (b"repos: \xff", "is not UTF-8 text"),
        (b"x" * 1_000_001, "more than the 1,000,000 bytes"),
    ],
)
def test_a_workspace_that_is_refused(tmp_path: Path, content: bytes, sentence: str) -> None:
    file = tmp_path / "workspace.yaml"
    file.write_bytes(content)
    with pytest.raises(SourceError) as refused:
        read_workspace(file)
    assert sentence in str(refused.value)
    assert "workspace.yaml" in str(refused.value)


def test_a_workspace_that_is_no_file(tmp_path: Path) -> None:
    for path in (tmp_path / "gone", tmp_path, Path("a\0b")):
        with pytest.raises(SourceError):
            read_workspace(path)
