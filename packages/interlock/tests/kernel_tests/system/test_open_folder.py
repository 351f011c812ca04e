"""The tree reads and writes inside itself only, through no symlink, and whole files only."""

import os
from pathlib import Path

import pytest

from interlock.system.errors import SourceError
from interlock.system.open_folder import OpenFolder


@pytest.fixture
def tree(tmp_path: Path) -> OpenFolder:
    (tmp_path / "tree" / "case").mkdir(parents=True)
    (tmp_path / "secret").write_text("secret")
    (tmp_path / "tree" / "case" / "file").write_text("inside")
    return OpenFolder(tmp_path / "tree")


def test_reads_a_file_inside(tree: OpenFolder) -> None:
    assert tree.read(tree.root / "case" / "file") == b"inside"


def test_the_way_to_the_root_may_be_a_symlink(tree: OpenFolder, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tree.root)
    linked = OpenFolder(tmp_path / "link")
    assert linked.read(tmp_path / "link" / "case" / "file") == b"inside"
    assert linked.read(tree.root / "case" / "file") == b"inside"


@pytest.mark.parametrize(
    "name", ["../secret", "case/../../secret", "/etc/hostname", "file", ".", "a\0b"]
)
def test_refuses_what_is_outside(tree: OpenFolder, name: str) -> None:
    path = Path(name) if name == "file" else tree.root / name
    with pytest.raises(SourceError, match=r"is not inside|is not a plain path"):
        tree.read(path)


def test_refuses_odd_files(tree: OpenFolder, tmp_path: Path) -> None:
    case = tree.root / "case"
    (case / "link").symlink_to(tmp_path / "secret")
    (tree.root / "linked").symlink_to(case)
    os.mkfifo(case / "pipe")
    (case / "folder").mkdir()
    for path in (case / "link", tree.root / "linked" / "file", case / "pipe", case / "folder"):
        with pytest.raises(SourceError, match=r"symlink|regular file"):
            tree.read(path)
        with pytest.raises(SourceError, match=r"symlink|regular file"):
            tree.write(path, b"new", lambda: True)
    assert (tmp_path / "secret").read_text() == "secret"


def test_refuses_a_file_that_is_too_large(tree: OpenFolder) -> None:
    with pytest.raises(SourceError, match="more than 5 bytes"):
        tree.read(tree.root / "case" / "file", most=5)


def test_missing_file_is_told_as_such(tree: OpenFolder) -> None:
    for path in (tree.root / "case" / "none", tree.root / "none" / "none"):
        with pytest.raises(FileNotFoundError):
            tree.read(path)


def test_replaces_whole_and_privately(tree: OpenFolder) -> None:
    path = tree.root / "case" / "file"
    assert tree.write(path, b"new", lambda: path.read_bytes() == b"inside")
    assert path.read_bytes() == b"new"
    assert path.stat().st_mode & 0o777 == 0o600
    assert list(path.parent.iterdir()) == [path]


def test_replaces_nothing_that_is_not_wanted_any_more(tree: OpenFolder) -> None:
    path = tree.root / "case" / "file"
    assert not tree.write(path, b"new", lambda: False)
    assert path.read_bytes() == b"inside"
    assert list(path.parent.iterdir()) == [path]
