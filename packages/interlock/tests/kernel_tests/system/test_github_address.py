"""Where GitHub is: settings, the token's places, and what cannot be an address."""

from pathlib import Path

import pytest

from interlock.system.errors import SourceError
from interlock.system.github import PUBLIC, github_address

ENV = {"GITHUB_TOKEN": "t0", "GITHUB_REPOSITORY": "harbour/boats"}


def test_from_the_environment() -> None:
    found = github_address(ENV)
    assert (found.url, found.repo, found.token) == (PUBLIC, "harbour/boats", "t0")
    assert "t0" not in repr(found)


def test_any_address_and_both_names_of_the_token() -> None:
    env = {"GH_TOKEN": "t1", "GITHUB_API_URL": "https://git.example.org/api/v3/"}
    found = github_address(env, repo="a/b.c")
    assert (found.url, found.repo, found.token) == ("https://git.example.org/api/v3", "a/b.c", "t1")


def test_a_key_file_that_only_its_owner_can_read(tmp_path: Path) -> None:
    key = tmp_path / "key"
    key.write_text("t2\n")
    key.chmod(0o600)
    assert github_address({}, repo="a/b", key_file=key).token == "t2"
    key.chmod(0o640)
    with pytest.raises(SourceError, match="can be read by others"):
        github_address({}, repo="a/b", key_file=key)
    with pytest.raises(SourceError, match="is not there"):
        github_address({}, repo="a/b", key_file=tmp_path / "none")


@pytest.mark.parametrize(
    ("news", "result"),
    [
        ({"GITHUB_API_URL": "ftp://x"}, "not a URL"),
        ({"GITHUB_API_URL": "https://me:pw@x"}, "name or password"),
        ({"GITHUB_REPOSITORY": ""}, "Which repository"),
        ({"GITHUB_REPOSITORY": "boats"}, "OWNER/NAME"),
        ({"GITHUB_REPOSITORY": "a/.."}, "OWNER/NAME"),
        ({"GITHUB_REPOSITORY": "a/b/c"}, "OWNER/NAME"),
        ({"GITHUB_REPOSITORY": "a/b?x"}, "OWNER/NAME"),
        ({"GITHUB_TOKEN": "a\nb"}, "unusual characters"),
        ({"GITHUB_TOKEN": "tökén"}, "unusual characters"),
    ],
)
def test_what_cannot_be(news: dict[str, str], result: str) -> None:
    with pytest.raises(SourceError, match=result):
        github_address({**ENV, **news})


def test_no_token_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SourceError, match="needs a token"):
        github_address({}, repo="a/b")
