"""Provide a repository with two commits, and its checkpoints."""

from pathlib import Path

import pytest

from interlock_epic.checkpoints.place import find_state_folder
from interlock_epic.checkpoints.store import Checkpoints
from tests.world.git_repo import GitRepo


@pytest.fixture
def repo(tmp_path: Path) -> GitRepo:
    made = GitRepo(tmp_path / "repo")
    made.commit("one", {"a.txt": "one\n"})
    made.commit("two", {"a.txt": "two\n", "b.txt": "b\n"})
    return made


@pytest.fixture
def kept(repo: GitRepo) -> Checkpoints:
    return Checkpoints(find_state_folder(repo.folder))
