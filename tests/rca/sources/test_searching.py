"""From a word to what there is to read."""

import os
from pathlib import Path

import pytest

from interlock.rca.sources.read import leaves_of
from interlock.system.errors import SourceError


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in ("b.xml", "a.xml", "a.log", "x.py", ".hidden.xml", "deep/er/c.XML"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("text")
    for name in (".git", "node_modules"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "d.xml").write_text("text")
    return tmp_path


def found(word: Path | str) -> list[str]:
    return [leaf.name for leaf in leaves_of(str(word))[0]]


def test_a_folder_is_searched_for_reports_and_logs(folder: Path) -> None:
    assert found(folder) == ["a.log", "a.xml", "b.xml", "c.XML"]


def test_a_glob_is_sorted_and_may_go_deep(folder: Path) -> None:
    assert found(folder / "*.xml") == ["a.xml", "b.xml"]
    assert found(folder / "**" / "*.XML") == ["c.XML"]
    assert found(folder / "d*") == ["c.XML"]


def test_a_file_with_the_signs_of_a_glob_is_a_file(folder: Path) -> None:
    (folder / "a[1].xml").write_text("text")
    assert found(folder / "a[1].xml") == ["a[1].xml"]


def test_a_file_knows_the_logs_beside_it(folder: Path) -> None:
    (leaf,), _ = leaves_of(str(folder / "a.xml"))
    assert list(leaf.neighbours()) == ["a.log"]
    assert leaf.is_given


def test_links_that_go_round_are_no_harm(folder: Path) -> None:
    (folder / "deep" / "round").symlink_to(folder)
    (folder / "broken.xml").symlink_to(folder / "nothing")
    assert found(folder) == ["a.log", "a.xml", "b.xml", "c.XML"]


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("none.xml", "is not there: give a file, a folder, a glob, a zip, or rp:LAUNCH_ID"),
        ("none*.xml", "matches no file"),
        ("a.xml/more", "cannot be read"),
        ("x\0y", "cannot be read"),
        ("n" * 5000, "cannot be read"),
    ],
)
def test_what_names_nothing_is_said(folder: Path, name: str, said: str) -> None:
    with pytest.raises(SourceError, match=said):
        leaves_of(f"{folder}/{name}")


def test_a_pipe_is_not_waited_for(folder: Path) -> None:
    os.mkfifo(folder / "pipe.xml")
    with pytest.raises(SourceError, match="is no regular file"):
        leaves_of(str(folder / "pipe.xml"))
    assert "pipe.xml" not in found(folder)
