"""A user's repository and a workspace on it; and git as an agent runs it, without any safety."""

import os
import subprocess
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path

import msgspec

from interlock.system.git import OnStep, ignore_step
from interlock_delivery.worktrees.merge_branch import (
    AlreadyMerged,
    Conflict,
    MergeBranch,
    Merged,
    NothingToMerge,
    Proposal,
    TaskChange,
)
from interlock_delivery.worktrees.ref_guard import MovedError
from interlock_delivery.worktrees.tree import Snapshot, TaskTree
from interlock_delivery.worktrees.workspace import DeliveryWorkspace
from tests.world.git_repo import START, GitRepo

SLUG = "plan"


class Workbench:
    """Files a.txt, b.txt and src/app.py, and a .gitignore with *.log and build/."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.source = GitRepo(folder / "shop")
        app = "".join(f"line {number}\n" for number in range(1, 21))
        files = {"a.txt": "a\n", "b.txt": "b\n", "src/app.py": app, ".gitignore": "*.log\nbuild/\n"}
        self.source.commit("Begin", files)
        self.home = folder / "home"

    def open_workspace(self, on_step: OnStep = ignore_step, slug: str = SLUG) -> DeliveryWorkspace:
        return DeliveryWorkspace.create(
            self.source.folder, self.home, slug, clock=lambda: START + 1_000, on_step=on_step
        )

    def facts(self) -> dict[str, str]:
        """All of the user's repository that must stay as it is: refs, HEAD, index, files."""
        files = {
            str(path.relative_to(self.source.folder)): path.read_bytes().hex()
            for path in sorted(self.source.folder.rglob("*"))
            if path.is_file() and ".git" not in path.relative_to(self.source.folder).parts
        }
        index = (self.source.folder / ".git" / "index").read_bytes().hex()
        head = (self.source.folder / ".git" / "HEAD").read_text()
        config = (self.source.folder / ".git" / "config").read_text()
        return {
            **files,
            "REFS": self.source.git("for-each-ref"),
            "INDEX": index,
            "HEAD": head,
            "CONFIG": config,
        }


def agent_git(tree: TaskTree, *words: str, check: bool = True) -> str:
    """git as an agent runs it: in its folder, with the environment it is given."""
    around = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    ran = subprocess.run(
        ["git", *words],
        cwd=tree.folder,
        env={**around, **tree.environment()},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        check=False,
        timeout=60,
    )
    if check and ran.returncode:
        raise AssertionError(f"git {' '.join(words)}: {ran.stderr.decode(errors='replace')}")
    return ran.stdout.decode(errors="replace").rstrip("\n")


def write(tree: TaskTree, files: Mapping[str, str | bytes | None]) -> None:
    for name, content in files.items():
        path = tree.root / name
        if content is None:
            path.unlink()
            continue
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)


def change(tree: TaskTree, dispatch_id: str = "1", message: str = "Work") -> TaskChange:
    """What the tree holds, recorded and ready to be merged."""
    sha = tree.snapshot(message).sha
    return TaskChange(task_id=tree.record.task_id, dispatch_id=dispatch_id, sha=sha, base=tree.base)


class MergeRejected(msgspec.Struct, frozen=True):
    """Verification said no."""

    sentence: str


MergeOutcome = Merged | AlreadyMerged | NothingToMerge | MergeRejected | Conflict


def merge(branch: MergeBranch, change: TaskChange, verify: Callable[[Path], str]) -> MergeOutcome:
    """Propose, verify, accept; again while the branch moves. `verify` returns a problem or ""."""
    for _ in range(5):
        proposal = branch.propose(change)
        if not isinstance(proposal, Proposal):
            return proposal
        if sentence := verify(Path(proposal.folder)):
            return MergeRejected(sentence)
        with suppress(MovedError):
            return branch.accept(proposal)
    raise AssertionError("the merge branch moved again and again")


def fine(_: Path) -> str:
    """Verification that has nothing to say."""
    return ""


def kinds(taken: Snapshot) -> list[str]:
    return [violation.kind for violation in taken.violations]
