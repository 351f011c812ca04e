"""The ledger of tries: only added to, half lines and damage never make it count less."""

import pytest
from tests.world.git_repo import GitRepo

from interlock.epic.checkpoints.store import Checkpoints
from interlock.epic.recovery.recover import add_try, ledger_file, tried
from interlock.system.errors import SourceError


def test_counts_each_key(kept: Checkpoints) -> None:
    place = kept.place
    assert tried(place, "e", "a") == 0
    assert [add_try(place, "e", key, "T") for key in ("a", "b", "a")] == [1, 1, 2]
    assert (tried(place, "e", "a"), tried(place, "f", "a")) == (2, 0)


def test_a_torn_line_still_counts(kept: Checkpoints) -> None:
    place = kept.place
    add_try(place, "e", "a", "T")
    with ledger_file(place, "e").open("ab") as file:
        file.write(b'{"key": "a", "a')
    assert add_try(place, "e", "a", "T") == 3
    assert tried(place, "e", "b") == 1


def test_no_reset_and_no_clean_reaches_it(repo: GitRepo, kept: Checkpoints) -> None:
    add_try(kept.place, "e", "a", "T")
    repo.git("reset", "--quiet", "--hard", "HEAD~1")
    repo.git("clean", "-fdxq")
    assert tried(kept.place, "e", "a") == 1


def test_a_link_is_refused(kept: Checkpoints) -> None:
    add_try(kept.place, "e", "a", "T")
    path = ledger_file(kept.place, "e")
    path.rename(path.with_name("elsewhere"))
    path.symlink_to(path.with_name("elsewhere"))
    with pytest.raises(SourceError, match="cannot be written"):
        add_try(kept.place, "e", "a", "T")
    with pytest.raises(SourceError, match="is a symbolic link"):
        tried(kept.place, "e", "a")
