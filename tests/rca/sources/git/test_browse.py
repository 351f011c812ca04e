"""Clone URLs become links to look at, and never carry credentials or anything but http."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock.rca.sources.git.repository import browse

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
    found = browse(url)
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
    assert browse(url) is None


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
    found = browse(url)
    assert found is not None
    assert found.commit_url(REV) == commit
    assert found.file_url("a/b #c.py", REV, 3) == file
    assert found.file_url("a/b #c.py", REV, 3, 9).endswith(lines)
    assert found.file_url("a/b #c.py", REV) == file.rpartition("#")[0]


@given(st.text(max_size=60), st.text(max_size=30))
def test_links_never_hold_a_password_nor_break_out(path: str, word: str) -> None:
    found = browse(f"https://ada:secret@x.org/acme/{path}")
    if found is not None:
        for url in (found.commit_url(word), found.file_url(word, REV, 1)):
            assert url.startswith("https://x.org/")
            assert "secret" not in url.replace(path, "")
            assert not set(url) & set("<>\"' \n\r\t")
