"""The ledger knows where our refs are, whenever the process died."""

from pathlib import Path

import pytest
from tests.world.git_repo import GitRepo

from interlock.delivery.worktrees.ledger import GONE, MovedError, RefLedger
from interlock.system.errors import SourceError
from interlock.system.git import OWN_CLONE, Git, Heed, unheeded

REF, OTHER = "refs/heads/ours", "refs/heads/other"


@pytest.fixture
def repo(tmp_path: Path) -> GitRepo:
    made = GitRepo(tmp_path / "shop")
    for number in range(3):
        made.commit(f"{number}", {"a.txt": f"{number}\n"})
    return made


def at(repo: GitRepo, back: int) -> str:
    return repo.git("rev-parse", f"main~{back}")


def ledger(repo: GitRepo, heed: Heed = unheeded) -> tuple[RefLedger, Git]:
    git = Git(repo.folder / ".git", OWN_CLONE, heed=heed)
    return RefLedger(repo.folder / "ledger.json", heed), git


@pytest.mark.parametrize("step", [1, 2, 3])
def test_killed_at_any_step_a_move_is_done_or_was_not_begun(repo: GitRepo, step: int) -> None:
    book, git = ledger(repo)
    book.move(git, {REF: at(repo, 2), OTHER: at(repo, 2)})
    count = 0

    def heed(_: str) -> None:
        nonlocal count
        count += 1
        if count == step:
            raise KeyboardInterrupt

    book, git = ledger(repo, heed)
    with pytest.raises(KeyboardInterrupt):
        book.move(git, {REF: at(repo, 1), OTHER: GONE})
    again, git = ledger(repo)
    again.settle(git)
    expected = {REF: at(repo, 2), OTHER: at(repo, 2)} if step == 1 else {REF: at(repo, 1)}
    assert again.refs == expected
    there = repo.git("for-each-ref", "--format=%(refname)=%(objectname)", REF, OTHER).split("\n")
    assert there == sorted(f"{ref}={sha}" for ref, sha in expected.items())
    assert ledger(repo)[0].refs == expected


def test_a_move_from_elsewhere_is_refused_and_forgotten(repo: GitRepo) -> None:
    book, git = ledger(repo)
    book.move(git, {REF: at(repo, 2)})
    with pytest.raises(MovedError):
        book.move(git, {REF: at(repo, 0)}, {REF: at(repo, 1)})
    again, git = ledger(repo)
    again.settle(git)
    assert again.refs == {REF: at(repo, 2)}
    assert repo.git("rev-parse", REF) == at(repo, 2)


def test_a_move_to_nothing_is_an_error(repo: GitRepo) -> None:
    book, git = ledger(repo)
    with pytest.raises(SourceError, match="git did not move"):
        book.move(git, {REF: "f" * 40})
    assert book.refs == {}


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b'{"refs": 1}', b"\xff"])
def test_a_damaged_ledger_is_a_sentence(repo: GitRepo, content: bytes) -> None:
    (repo.folder / "ledger.json").write_bytes(content)
    with pytest.raises(SourceError, match="cannot be read"):
        ledger(repo)
