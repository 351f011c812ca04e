"""The written forms of repositories, and what is refused with a sentence."""

import contextlib
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock.rca.records import Repo
from interlock.rca.sources.git.open import parse_repo, read_workspace, repos_of
from interlock.system.errors import SourceError


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
    assert repos_of(tables, folder=tmp_path) == (
        Repo(name="shop", path=f"{tmp_path}/shop", purpose="the cart", branch="main", url="u"),
        Repo(name="till", path="/srv/till"),
        Repo(name="far", url="https://github.com/acme/far"),
    )
    assert repos_of([]) == ()


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
        (["a"], "it is no table"),
        ({"name": "a"}, "repositories are a list"),
        ("a", "repositories are a list"),
        (None, "repositories are a list"),
        ([{"name": f"r{number}", "path": "x"} for number in range(201)], "201 repositories are"),
    ],
)
def test_tables_that_are_refused(tables: Any, sentence: str) -> None:
    with pytest.raises(SourceError) as refused:
        repos_of(tables)
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
        (b"repos: [3]", "repository 1: it is no table"),
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
