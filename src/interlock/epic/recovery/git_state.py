"""How git stands beside what a checkpoint recorded. Only looks.

Knows which questions to ask git and what each answer means as a finding. Refuses to know what is
done about it.
"""

import hashlib
import os
from pathlib import Path
from typing import Final

from interlock.epic.checkpoints.checkpoint import Work
from interlock.epic.recovery.policy import Finding, GitState
from interlock.system.errors import SourceError
from interlock.system.own_git import OURS, OwnGit, is_installed

_SHOWN: Final = 20
_OPERATIONS: Final = (
    ("rebase-apply/applying", "am"),
    ("rebase-merge", "rebase"),
    ("rebase-apply", "rebase"),
    ("MERGE_HEAD", "merge"),
    ("CHERRY_PICK_HEAD", "cherry-pick"),
    ("REVERT_HEAD", "revert"),
    ("sequencer", "cherry-pick or revert"),
    ("BISECT_LOG", "bisect"),
)


def current_work(root: Path) -> Work:
    """How git stands now, as a checkpoint records it."""
    git = _repository(root)
    if git is None:
        return Work()
    head = _head(git)
    dirt = _digest(git, _changes(git), head)
    return Work(commit=head, branch=_branch(git), dirt=dirt, unborn=not head)


def look(root: Path, recorded: Work) -> GitState:
    """Compare what is there with what was recorded."""
    git = _repository(root)
    if git is None:
        gone = recorded.commit or recorded.unborn
        finding = Finding.REPOSITORY_GONE if gone else Finding.NO_REPOSITORY
        return GitState(findings=(finding,), recorded_commit=recorded.commit)
    head, branch, operation = _head(git), _branch(git), _operation(git)
    relation, ahead, behind = _relation(git, head, recorded)
    changes = _changes(git)
    findings = [relation, *_branch_findings(branch, recorded)]
    findings += [Finding.OPERATION] if operation else []
    findings += _dirt_findings(git, head, changes, recorded)
    tracked = [path for mark, path in changes if mark != "??"]
    untracked = [path for mark, path in changes if mark == "??"]
    return GitState(
        findings=tuple(findings),
        head=head,
        branch=branch,
        recorded_commit=recorded.commit,
        recorded_branch=recorded.branch,
        operation=operation,
        ahead=ahead,
        behind=behind,
        tracked=tuple(tracked[:_SHOWN]),
        untracked=tuple(untracked[:_SHOWN]),
    )


def _repository(root: Path) -> OwnGit | None:
    git = OwnGit(root)
    inside = is_installed() and git.line("rev-parse", "--is-inside-work-tree") == "true"
    return git if inside else None


def _head(git: OwnGit) -> str:
    return git.line("rev-parse", "--verify", "--quiet", "HEAD^{commit}")


def _branch(git: OwnGit) -> str:
    return git.line("symbolic-ref", "--quiet", "--short", "HEAD")


def _operation(git: OwnGit) -> str:
    folder = Path(git.line("rev-parse", "--absolute-git-dir"))
    return next((word for name, word in _OPERATIONS if (folder / name).exists()), "")


def _relation(git: OwnGit, head: str, recorded: Work) -> tuple[Finding, int, int]:
    if not recorded.commit:
        if not head:
            return Finding.EQUAL, 0, 0
        return (Finding.AHEAD if recorded.unborn else Finding.UNRECORDED), 0, 0
    there = git.line("rev-parse", "--verify", "--quiet", f"{recorded.commit}^{{commit}}")
    if not there:
        return Finding.MISSING_COMMIT, 0, 0
    if there == head:
        return Finding.EQUAL, 0, 0
    counted = git.line("rev-list", "--left-right", "--count", f"{there}...{head}") if head else ""
    behind, ahead = (int(word) for word in (counted or "1 1").split())
    if behind and ahead:
        return Finding.DIVERGED, ahead, behind
    return (Finding.AHEAD, ahead, 0) if ahead else (Finding.BEHIND, 0, behind)


def _branch_findings(branch: str, recorded: Work) -> list[Finding]:
    if not recorded.branch or branch == recorded.branch:
        return []
    return [Finding.OTHER_BRANCH if branch else Finding.DETACHED]


def _changes(git: OwnGit) -> list[tuple[str, str]]:
    """What is not committed, as (mark, path); the tools' own folders do not count."""
    words = ("status", "--porcelain=v1", "-z", "--no-renames", "--ignore-submodules=dirty")
    ran = git.run(*words)
    if not ran.fine:
        raise SourceError(f"git cannot say what has changed in {git.folder}: {ran.reason}")
    entries = os.fsdecode(ran.out).split("\0")
    found = [(entry[:2], entry[3:]) for entry in entries if len(entry) > 3]
    return sorted((m, path) for m, path in found if path.split("/")[0] not in OURS)


def _dirt_findings(
    git: OwnGit, head: str, changes: list[tuple[str, str]], recorded: Work
) -> list[Finding]:
    if not changes:
        return []
    if recorded.dirt and _digest(git, changes, head) == recorded.dirt:
        return [Finding.DIRTY_AS_LEFT]
    marks = {mark == "??" for mark, _ in changes}
    kinds = {False: Finding.DIRTY_TRACKED, True: Finding.DIRTY_UNTRACKED}
    return [kinds[each] for each in sorted(marks)]


def _digest(git: OwnGit, changes: list[tuple[str, str]], head: str) -> str:
    """One word for what is not committed: names of all files, and what tracked ones hold."""
    if not changes:
        return ""
    found = hashlib.sha256(repr(changes).encode(errors="surrogateescape"))
    if head:
        words = ("diff", "--binary", "--no-ext-diff", "--no-textconv", "HEAD", "--", *spared())
        found.update(git.digest(*words).encode())
    return found.hexdigest()


def spared() -> list[str]:
    """Path words for git: everything but the tools' own folders."""
    return [":/", *(f":(exclude,top){name}" for name in OURS)]
