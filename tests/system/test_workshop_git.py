"""Running git: bounded, ended in time, told from outside by nothing."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from tests.world.git_repo import GitRepo
from tests.world.workbench import Workbench

from interlock.system.errors import SourceError, StateError
from interlock.system.workshop_git import CloneGit


@pytest.fixture
def repo(tmp_path: Path) -> GitRepo:
    made = GitRepo(tmp_path / "shop")
    made.commit("Begin", {"a.txt": "a\n" * 100_000})
    return made


@pytest.fixture
def git(repo: GitRepo) -> CloneGit:
    return CloneGit(repo.folder / ".git", tree=repo.folder)


def test_output_is_cut_and_said_to_be(git: CloneGit) -> None:
    ran = git.run("show", "HEAD:a.txt", most=1_000)
    assert (len(ran.out), ran.cut, ran.fine) == (1_000, True, True)
    exact = git.run("show", "HEAD:a.txt", most=200_000)
    assert (len(exact.out), exact.cut) == (200_000, False)


def test_a_failure_is_a_sentence(git: CloneGit) -> None:
    with pytest.raises(SourceError, match=r"git rev-parse failed in .*Needed a single revision"):
        git.ask("rev-parse", "--verify", "nothing")
    with pytest.raises(SourceError, match="git ls-tree failed"):
        git.paths("ls-tree", "-z", "nothing")
    with pytest.raises(SourceError, match="cannot be run"):
        git.run("show", "nul\0")


def test_what_does_not_end_is_ended(git: CloneGit, repo: GitRepo) -> None:
    command = f"{sys.executable} -c 'import time; time.sleep(600)'"
    with pytest.raises(SourceError, match=r"git -c took longer than 0\.5 s and was stopped"):
        git.run("-c", f"alias.hang=!{command}", "hang", patience=0.5)


def test_a_git_that_outlives_us_keeps_the_workshop(tmp_path: Path) -> None:
    bench = Workbench(tmp_path)
    bench.open_workspace().close()
    text = (
        "from pathlib import Path\n"
        "from interlock.delivery.worktrees.workspace import DeliveryWorkspace\n"
        f"shop = DeliveryWorkspace.open(Path({str(bench.home)!r}))\n"
        "print('open', flush=True)\n"
        "shop.git.run('-c', 'alias.hang=!echo $$ >&2; exec cat fifo', 'hang')\n"
    )
    fifo = bench.home / "repo.git" / "fifo"
    os.mkfifo(fifo)
    source = Path(__file__).parents[2] / "src"
    child = subprocess.Popen(
        [sys.executable, "-c", text],
        env={**os.environ, "PYTHONPATH": str(source)},
        stdout=subprocess.PIPE,
    )
    with child:
        assert child.stdout is not None
        assert child.stdout.readline() == b"open\n"
        with fifo.open("wb"):  # opens when the other end is: git is running now
            child.send_signal(signal.SIGKILL)
            child.wait()
            with pytest.raises(StateError, match="in use"):
                bench.open_workspace()
    bench.open_workspace().close()
