"""A repository made from its history is the same on every machine."""

from datetime import datetime, timedelta, timezone
from pathlib import Path

from interlock.system.git import SEED, Git
from interlock_rca.seed_repository import SeedCommit, check_out, seed_repository


def test_the_same_history_gives_the_same_hashes(tmp_path: Path) -> None:
    at = datetime(2026, 9, 7, 8, 12, 41, tzinfo=timezone(timedelta(hours=2)))
    commits = [
        SeedCommit(author="A <a@x>", at=at, message="Begin", write={"a b/ü.txt": "x\n"}, id="one"),
        SeedCommit(
            author="B <b@x>",
            at=at,
            message="Rename\n\nFor a reason.\n",
            write={"b.txt": "x\n"},
            remove=("a b/ü.txt",),
            tags=("t",),
        ),
    ]
    found = []
    for name in ("first", "second"):
        (tmp_path / name).mkdir()
        found.append(seed_repository(tmp_path / name, commits))
    assert found[0] == found[1]
    assert found[0].keys() == {"one", "t", "HEAD"}
    result = Git(tmp_path / "first", SEED).read_line("log", "-1", "--format=%an %aI %cn %s|%b")
    assert result == "B 2026-09-07T08:12:41+02:00 B Rename|For a reason.\n"
    check_out(tmp_path / "first", found[0]["one"], tmp_path / "ci" / "r")
    assert (tmp_path / "ci" / "r" / "a b" / "ü.txt").read_text() == "x\n"
    assert not (tmp_path / "first" / "a b").exists()
