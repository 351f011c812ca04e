"""Tokens: where they are looked for, and what is said where there is none that can be used."""

import os
from pathlib import Path

import pytest

from interlock.system.errors import SourceError
from interlock.system.http import find_token

NAMES = ("BOAT_TOKEN", "BOAT_KEY")


def key_file(folder: Path, text: str, mode: int = 0o600) -> Path:
    path = folder / "key"
    path.write_text(text)
    path.chmod(mode)
    return path


def test_a_named_file_goes_before_the_environment_and_that_before_the_usual_file(
    tmp_path: Path,
) -> None:
    path = key_file(tmp_path, "\nfrom-file\nmore\n")
    both = {"BOAT_TOKEN": " ", "BOAT_KEY": " second "}
    assert find_token("Boat", both, NAMES, "none", path) == "from-file"
    assert find_token("Boat", both, NAMES, str(path)) == "second"
    assert find_token("Boat", {}, NAMES, str(path)) == "from-file"


def test_none_at_all_says_where_to_put_it(tmp_path: Path) -> None:
    usual = str(tmp_path / "nothing")
    with pytest.raises(SourceError, match="Boat needs a token: set BOAT_TOKEN, or put it into"):
        find_token("Boat", {}, NAMES, usual)


@pytest.mark.parametrize(
    ("text", "mode", "words"),
    [
        ("secret", 0o644, "can be read by others: run chmod 600"),
        ("two words", 0o600, "unusual characters"),
        ("se\tcret", 0o600, "unusual characters"),
        ("\xe9", 0o600, "unusual characters"),
        ("", 0o600, "is empty"),
        (" \n\n", 0o600, "is empty"),
    ],
)
def test_files_that_are_no_use(tmp_path: Path, text: str, mode: int, words: str) -> None:
    path = key_file(tmp_path, text, mode)
    with pytest.raises(SourceError, match=words) as output:
        find_token("Boat", {}, NAMES, "none", path)
    assert not text or text not in str(output.value).replace(str(path), "")


def test_a_file_that_was_named_must_be_there(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="is not there"):
        find_token("Boat", {}, NAMES, "none", tmp_path / "no")
    with pytest.raises(SourceError, match="regular file"):
        find_token("Boat", {}, NAMES, "none", tmp_path)


def test_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe", 0o600)
    with pytest.raises(SourceError, match="regular file"):
        find_token("Boat", {}, NAMES, "none", tmp_path / "pipe")
