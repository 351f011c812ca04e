"""Reading a repository runs nothing of it and writes nothing to it."""

from pathlib import Path

import pytest

from interlock.system.git import (
    OWN_CLONE,
    Git,
    GitPlaces,
)
from interlock_rca.records import Repo
from interlock_rca.sources.git.repository import Repository
from tests.world.git_repo import GitRepo


@pytest.fixture
def world(tmp_path: Path) -> GitRepo:
    made = GitRepo(tmp_path / "shop")
    made.commit("Begin", {"cart.py": "total = 1\n" * 1_000})
    made.commit("Go on", {"cart.py": "total = 2\n" * 1_000})
    return made


@pytest.fixture
def clone(world: GitRepo) -> Git:
    return Git(world.folder / ".git", OWN_CLONE, places=GitPlaces(world.folder))


def ask_everything(folder: Path, cache: Path) -> Repository:
    repository = Repository(Repo(name="shop", path=str(folder)), cache=cache)
    for commit in repository.list_commits_since(None):
        repository.read_change(commit)
        repository.is_on_branch(commit.hash)
    repository.blame_line("cart.py", 1)
    repository.find_files("cart.py")
    repository.read_entry("cart.py")
    assert repository.browse is None
    return repository


def test_programs_named_in_a_repository_s_settings_are_not_run(
    world: GitRepo, tmp_path: Path
) -> None:
    trap = tmp_path / "trap.sh"
    trap.write_text(f"#!/bin/sh\necho $0 $* >> {tmp_path}/sprung\ncat\n")
    trap.chmod(0o755)
    for name in ("core.fsmonitor", "core.pager", "diff.external", "gpg.program", "core.sshCommand"):
        world.git("config", name, str(trap))
    world.git("config", "log.showSignature", "true")
    world.git("config", "diff.trap.textconv", str(trap))
    world.git("config", "diff.trap.command", str(trap))
    world.git("config", "filter.trap.smudge", str(trap))
    world.git("config", "pager.log", str(trap))
    world.git("config", "protocol.file.allow", "always")
    (world.folder / ".git" / "info").mkdir(exist_ok=True)
    (world.folder / ".git" / "info" / "attributes").write_text("* diff=trap filter=trap\n")
    hooks = world.folder / ".git" / "hooks"
    hooks.mkdir(exist_ok=True)
    for name in ("post-checkout", "reference-transaction", "pre-auto-gc"):
        (hooks / name).write_bytes(trap.read_bytes())
        (hooks / name).chmod(0o755)
    assert ask_everything(world.folder, tmp_path / "cache").is_readable
    assert not (tmp_path / "sprung").exists()


def test_nothing_is_written_to_the_repository(world: GitRepo, tmp_path: Path) -> None:
    def state() -> list[tuple[str, int, int]]:
        found = [(path, path.lstat()) for path in sorted(world.folder.rglob("*"))]
        return [(str(path), stat.st_mtime_ns, stat.st_size) for path, stat in found]

    before = state()
    ask_everything(world.folder, tmp_path / "cache")
    assert state() == before
