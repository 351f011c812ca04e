"""Where ReportPortal is and what opens it."""

from pathlib import Path

import pytest

from interlock.rca.sources.reportportal.client import (
    LaunchWord,
    PortalAddress,
    address,
    launch_word,
)
from interlock.system.errors import SourceError

FULL = {
    "ASTERISK_RP_URL": "https://rp.example.org/",
    "ASTERISK_RP_PROJECT": "harbour",
    "ASTERISK_RP_TOKEN": "s3cret-token",
}


@pytest.mark.parametrize(
    ("word", "found"),
    [
        ("rp:33", LaunchWord("33")),
        ("rp:3e0b6a0e-58c5", LaunchWord("3e0b6a0e-58c5")),
        ("rp:harbour/33", LaunchWord("33", "harbour")),
        (
            "https://rp.example.org/ui/#harbour/launches/all/33",
            LaunchWord("33", "harbour", "https://rp.example.org"),
        ),
        (
            "http://h:8080/tools/ui/#my%20one/launches/latest/33/44/log?page=1",
            LaunchWord("33", "my one", "http://h:8080/tools"),
        ),
        ("report.xml", None),
        ("rp.xml", None),
    ],
)
def test_the_words_for_a_launch(word: str, found: LaunchWord | None) -> None:
    assert launch_word(word) == found


@pytest.mark.parametrize(
    "word",
    ["rp:", "rp:a/b/3", "rp:../../x", "rp:3?x=1", "https://x/y", "https://x/#a/launches/all"],
)
def test_words_that_name_no_launch_are_refused_with_the_forms(word: str) -> None:
    with pytest.raises(SourceError, match=r"rp:ID"):
        launch_word(word)


def test_the_environment_tells_everything() -> None:
    assert address(FULL) == PortalAddress("https://rp.example.org", "harbour", "s3cret-token")


@pytest.mark.parametrize(
    "url",
    [
        "https://h/ui",
        "https://h/api/v1/",
        "https://h/",
        " https://h",
        "https://h/ui/#harbour/launches/all",
        "https://h/ui/?a=b",
    ],
)
def test_pages_of_the_server_are_not_its_address(url: str) -> None:
    assert address(FULL | {"ASTERISK_RP_URL": url}).url == "https://h"


@pytest.mark.parametrize("missing", sorted(FULL))
def test_what_is_missing_is_named(missing: str, tmp_path: Path) -> None:
    told = {name: value for name, value in FULL.items() if name != missing}
    with pytest.raises(SourceError, match=missing):
        address(told, key_file=None)


def test_the_token_is_not_sent_to_another_server() -> None:
    with pytest.raises(SourceError, match="the token is only sent there"):
        address(FULL, url="https://evil.example.org")
    assert address(FULL, url="https://rp.example.org/ui").url == "https://rp.example.org"


@pytest.mark.parametrize("url", ["rp.example.org", "ftp://x", "https://", "https://a:b@h"])
def test_an_address_is_http(url: str) -> None:
    with pytest.raises(SourceError, match="ASTERISK_RP_URL"):
        address(FULL | {"ASTERISK_RP_URL": url})


def test_the_token_is_never_shown() -> None:
    assert "s3cret" not in repr(address(FULL))
    assert "s3cret" not in f"{address(FULL)}"


def test_a_key_file_gives_its_first_line(tmp_path: Path) -> None:
    key = tmp_path / "key"
    key.write_text("  from-file \nsecond\n")
    key.chmod(0o600)
    told = {**FULL, "ASTERISK_RP_TOKEN": ""}
    assert address(told, key_file=key).token == "from-file"


@pytest.mark.parametrize("mode", [0o644, 0o640, 0o604])
def test_a_key_file_that_others_can_read_is_refused_with_the_command(
    tmp_path: Path, mode: int
) -> None:
    key = tmp_path / "key"
    key.write_text("from-file")
    key.chmod(mode)
    with pytest.raises(SourceError, match=f"chmod 600 {key}") as error:
        address({**FULL, "ASTERISK_RP_TOKEN": ""}, key_file=key)
    assert "from-file" not in str(error.value)


def test_key_files_that_give_nothing(tmp_path: Path) -> None:
    told = {**FULL, "ASTERISK_RP_TOKEN": ""}
    with pytest.raises(SourceError, match="is not there"):
        address(told, key_file=tmp_path / "none")
    with pytest.raises(SourceError, match="is no regular file"):
        address(told, key_file=tmp_path)
    key = tmp_path / "key"
    for content, said in ((b"", "is empty"), (b"\x80\xff\n", "odd signs")):
        key.write_bytes(content)
        key.chmod(0o600)
        with pytest.raises(SourceError, match=said):
            address(told, key_file=key)
