"""Git for the demo: what git complains about reaches the user in one sentence."""

from pathlib import Path

import pytest

from interlock.system.errors import SourceError
from interlock.system.git import SEED, Git
from interlock_rca.demo.history import DemoCommit
from interlock_rca.demo.world import write_repository
from interlock_rca.seed_repository import check_out

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
    result = Git(tmp_path / "r", SEED).read_line("log", "--format=%an %aI %cn %s|%b")
    assert result.splitlines() == [
        "Mara Lindqvist 2026-09-09T08:12:41+00:00 Mara Lindqvist Empty it|",
        "Aiko Reyes 2026-09-08T08:12:41+00:00 Aiko Reyes Rename|For a reason.",
        "",
        "Mara Lindqvist 2026-09-07T08:12:41+00:00 Mara Lindqvist Begin|",
    ]
    assert (
        hashes["t"]
        == hashes["rename"]
        == Git(tmp_path / "r", SEED).read_line("rev-parse", "t").strip()
    )
    assert hashes["HEAD"] == Git(tmp_path / "r", SEED).read_line("rev-parse", "main").strip()
    renamed = Git(tmp_path / "r", SEED).read_line("show", "--format=", "--name-status", "-z", "t")
    assert renamed == "R100\0a b/ü.txt\0b.txt\0"


def test_a_checkout_has_the_files_of_its_revision(tmp_path: Path) -> None:
    hashes = write_repository(tmp_path / "r", HISTORY)
    check_out(tmp_path / "r", hashes["t"], tmp_path / "ci" / "r")
    assert (tmp_path / "ci" / "r" / "b.txt").read_text() == "x\n"
    assert (tmp_path / "r" / "b.txt").read_text() == ""


def test_what_git_complains_about_is_told(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match=r"git log failed in .*"):
        Git(tmp_path, SEED).read_line("log")
    write_repository(tmp_path / "r", HISTORY)
    with pytest.raises(SourceError, match=r"git checkout failed in .*nowhere"):
        check_out(tmp_path / "r", "nowhere", tmp_path / "c")
    with pytest.raises(SourceError, match=r"git cannot be run in .*missing"):
        Git(tmp_path / "missing", SEED).read_line("log")
