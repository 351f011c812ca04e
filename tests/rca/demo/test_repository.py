"""Git for the demo: what git complains about reaches the user in one sentence."""

from pathlib import Path

import pytest

from interlock.rca.demo.history import DemoCommit
from interlock.system.errors import SourceError
from interlock.system.repository import check_out, git, write_repository

HISTORY = [
    DemoCommit(at="2026-09-07T08:12:41Z", by="mara", say="Begin", write={"a b/ü.txt": "x\n"}),
    DemoCommit(
        at="2026-09-08T08:12:41Z",
        by="aiko",
        say="Rename\n\nFor a reason.\n",
        id="rename",
        tags=("t",),
        move={"a b/ü.txt": "b.txt"},
    ),
    DemoCommit(at="2026-09-09T08:12:41Z", by="mara", say="Empty it", edit={"b.txt": "-x\n"}),
]


def test_a_repository_is_its_history(tmp_path: Path) -> None:
    hashes = write_repository(tmp_path / "r", HISTORY)
    said = git(tmp_path / "r", "log", "--format=%an %aI %cn %s|%b")
    assert said.splitlines() == [
        "Mara Lindqvist 2026-09-09T08:12:41+00:00 Mara Lindqvist Empty it|",
        "Aiko Reyes 2026-09-08T08:12:41+00:00 Aiko Reyes Rename|For a reason.",
        "",
        "Mara Lindqvist 2026-09-07T08:12:41+00:00 Mara Lindqvist Begin|",
    ]
    assert hashes["t"] == hashes["rename"] == git(tmp_path / "r", "rev-parse", "t").strip()
    assert hashes["HEAD"] == git(tmp_path / "r", "rev-parse", "main").strip()
    renamed = git(tmp_path / "r", "show", "--format=", "--name-status", "-z", "t")
    assert renamed == "R100\0a b/ü.txt\0b.txt\0"


def test_a_checkout_has_the_files_of_its_revision(tmp_path: Path) -> None:
    hashes = write_repository(tmp_path / "r", HISTORY)
    check_out(tmp_path / "r", hashes["t"], tmp_path / "ci" / "r")
    assert (tmp_path / "ci" / "r" / "b.txt").read_text() == "x\n"
    assert (tmp_path / "r" / "b.txt").read_text() == ""


def test_what_git_complains_about_is_told(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match=r"git log did not work in .*: fatal: "):
        git(tmp_path, "log")
    write_repository(tmp_path / "r", HISTORY)
    with pytest.raises(SourceError, match=r"git checkout did not work in .*nowhere"):
        check_out(tmp_path / "r", "nowhere", tmp_path / "c")
    with pytest.raises(SourceError, match=r"git log did not work in .*missing"):
        git(tmp_path / "missing", "log")
