"""A process that does a whole run in a workspace and dies by SIGKILL at the step it is told.

    python workcrash.py FOLDER FIRST STRIDE

For each number a child of its own is forked, dies at that step, and another finishes the run. One
line of JSON each: the number, whether it died, and what came out. Ends where nobody dies any more.
"""

import json
import os
import shutil
import signal
import sys
from pathlib import Path

from interlock.system.git import OnStep, ignore_step
from interlock_delivery.worktrees.merge_branch import Conflict, Proposal, TaskChange
from interlock_delivery.worktrees.prepare import prepare_tree
from interlock_delivery.worktrees.workspace import DeliveryWorkspace

START = 1_700_001_000


def run(folder: Path, on_step: OnStep) -> None:
    """Two tasks in conflict with each other: prepared, recorded, merged, replanted, published.

    What is written down by `noted` is what a journal would know: nothing is taken from memory.
    """
    source, home = folder / "shop", folder / "home"
    with DeliveryWorkspace.create(
        source, home, "plan", clock=lambda: START, on_step=on_step
    ) as workspace:
        for task_id in ("one", "two"):
            tree = workspace.open_tree(task_id)
            prepare_tree(tree, [".env"], [sys.executable, "-I", "-S", "-c", "open('x.log', 'w')"])
            sha = noted(folder, f"{task_id}-work")
            if not sha:
                tree.restore(tree.base)
                (tree.root / "a.txt").write_text(f"by {task_id}\n")
                (tree.root / f"{task_id}.txt").write_text("new\n")
                sha = note(folder, f"{task_id}-work", f"{tree.snapshot('Work').sha} {tree.base}")
        for task_id in ("one", "two"):
            merge(workspace, folder, task_id)
        result = workspace.merge_branch.publish()
        assert result.is_done, result.sentence


def merge(workspace: DeliveryWorkspace, folder: Path, task_id: str) -> None:
    sha, base = noted(folder, f"{task_id}-work").split()
    change = TaskChange(task_id=task_id, dispatch_id="1", sha=sha, base=base)
    proposal = workspace.merge_branch.propose(change)
    if isinstance(proposal, Proposal):
        assert (Path(proposal.folder) / "a.txt").exists()
        workspace.merge_branch.accept(proposal)
    if not isinstance(proposal, Conflict):
        return
    tree = workspace.open_tree(task_id)
    if not noted(folder, f"{task_id}-resolved"):
        workspace.merge_branch.rebase(tree, sha, base)
        (tree.root / "a.txt").write_text("by both\n")
        taken = tree.snapshot("Resolved")
        note(folder, f"{task_id}-resolved", f"{taken.sha} {tree.base}")
    sha, base = noted(folder, f"{task_id}-resolved").split()
    change = TaskChange(task_id=task_id, dispatch_id="2", sha=sha, base=base)
    proposal = workspace.merge_branch.propose(change)
    if isinstance(proposal, Proposal):
        workspace.merge_branch.accept(proposal)


def note(folder: Path, name: str, text: str) -> str:
    (folder / f"{name}.new").write_text(text)
    (folder / f"{name}.new").replace(folder / name)
    return text


def noted(folder: Path, name: str) -> str:
    return (folder / name).read_text() if (folder / name).exists() else ""


def dying(number: int) -> OnStep:
    count = 0

    def on_step(_: str) -> None:
        nonlocal count
        count += 1
        if count == number:
            os.kill(os.getpid(), signal.SIGKILL)

    return on_step


def forked(folder: Path, on_step: OnStep) -> int:
    child = os.fork()
    if child == 0:
        try:
            run(folder, on_step)
        except BaseException as error:
            sys.stderr.write(f"{error!r}\n")
            os._exit(1)
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def main(folder: Path, first: int, step: int) -> None:
    number = first
    while True:
        place = folder / f"run-{number}"
        shutil.copytree(folder / "shop", place / "shop")
        died = forked(place, dying(number))
        ended = forked(place, ignore_step)
        sys.stdout.write(json.dumps([number, died, ended]) + "\n")
        sys.stdout.flush()
        if died == 0:
            return
        number += step


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))
