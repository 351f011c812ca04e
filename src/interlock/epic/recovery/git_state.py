"""How git stands compared with a checkpoint, and stashing uncommitted work.

A stash is known by its commit, and a ref of ours keeps that commit even when someone drops the
stash from git's list. Nothing is thrown away.
"""

import hashlib
import os
from pathlib import Path
from typing import Final

from interlock.epic.checkpoints.record import GitWork
from interlock.epic.recovery.policy import GitFinding, GitState
from interlock.system.errors import SourceError
from interlock.system.git import USER_TREE, Git, is_installed

OURS: Final = (".sage", ".interlock", ".asterisk")
"""Folders at the top that belong to the tools: never dirt, and never stashed."""
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


def read_git_work(root: Path) -> GitWork:
    """How git stands now, as a checkpoint records it."""
    git = _open_repository(root)
    if git is None:
        return GitWork()
    head = _read_head(git)
    dirt = _compute_digest(git, _list_changes(git), head)
    return GitWork(commit=head, branch=_read_branch(git), dirt=dirt, unborn=not head)


def compare_git(root: Path, recorded: GitWork) -> GitState:
    """Compare what is there with what was recorded."""
    git = _open_repository(root)
    if git is None:
        gone = recorded.commit or recorded.unborn
        finding = GitFinding.REPOSITORY_GONE if gone else GitFinding.NO_REPOSITORY
        return GitState(findings=(finding,), recorded_commit=recorded.commit)
    head, branch, operation = _read_head(git), _read_branch(git), _find_operation(git)
    relation, ahead, behind = _compare_commits(git, head, recorded)
    changes = _list_changes(git)
    findings = [relation, *_compare_branches(branch, recorded)]
    findings += [GitFinding.OPERATION] if operation else []
    findings += _compare_dirt(git, head, changes, recorded)
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


def _open_repository(root: Path) -> Git | None:
    git = Git(root, USER_TREE)
    inside = is_installed() and git.try_line("rev-parse", "--is-inside-work-tree") == "true"
    return git if inside else None


def _read_head(git: Git) -> str:
    return git.try_line("rev-parse", "--verify", "--quiet", "HEAD^{commit}")


def _read_branch(git: Git) -> str:
    return git.try_line("symbolic-ref", "--quiet", "--short", "HEAD")


def _find_operation(git: Git) -> str:
    folder = Path(git.try_line("rev-parse", "--absolute-git-dir"))
    return next((word for name, word in _OPERATIONS if (folder / name).exists()), "")


def _compare_commits(git: Git, head: str, recorded: GitWork) -> tuple[GitFinding, int, int]:
    if not recorded.commit:
        if not head:
            return GitFinding.EQUAL, 0, 0
        return (GitFinding.AHEAD if recorded.unborn else GitFinding.UNRECORDED), 0, 0
    there = git.try_line("rev-parse", "--verify", "--quiet", f"{recorded.commit}^{{commit}}")
    if not there:
        return GitFinding.MISSING_COMMIT, 0, 0
    if there == head:
        return GitFinding.EQUAL, 0, 0
    counted = (
        git.try_line("rev-list", "--left-right", "--count", f"{there}...{head}") if head else ""
    )
    behind, ahead = (int(word) for word in (counted or "1 1").split())
    if behind and ahead:
        return GitFinding.DIVERGED, ahead, behind
    return (GitFinding.AHEAD, ahead, 0) if ahead else (GitFinding.BEHIND, 0, behind)


def _compare_branches(branch: str, recorded: GitWork) -> list[GitFinding]:
    if not recorded.branch or branch == recorded.branch:
        return []
    return [GitFinding.OTHER_BRANCH if branch else GitFinding.DETACHED]


def _list_changes(git: Git) -> list[tuple[str, str]]:
    """What is not committed, as (mark, path); the tools' own folders do not count."""
    words = ("status", "--porcelain=v1", "-z", "--no-renames", "--ignore-submodules=dirty")
    ran = git.run(*words)
    if not ran.is_ok:
        raise SourceError(f"git cannot say what has changed in {git.folder}: {ran.reason}")
    entries = os.fsdecode(ran.stdout).split("\0")
    found = [(entry[:2], entry[3:]) for entry in entries if len(entry) > 3]
    return sorted((m, path) for m, path in found if path.split("/")[0] not in OURS)


def _compare_dirt(
    git: Git, head: str, changes: list[tuple[str, str]], recorded: GitWork
) -> list[GitFinding]:
    if not changes:
        return []
    if recorded.dirt and _compute_digest(git, changes, head) == recorded.dirt:
        return [GitFinding.DIRTY_AS_LEFT]
    marks = {mark == "??" for mark, _ in changes}
    kinds = {False: GitFinding.DIRTY_TRACKED, True: GitFinding.DIRTY_UNTRACKED}
    return [kinds[each] for each in sorted(marks)]


def _compute_digest(git: Git, changes: list[tuple[str, str]], head: str) -> str:
    """One word for what is not committed: names of all files, and what tracked ones hold."""
    if not changes:
        return ""
    found = hashlib.sha256(repr(changes).encode(errors="surrogateescape"))
    if head:
        words = (
            "diff",
            "--binary",
            "--no-ext-diff",
            "--no-textconv",
            "HEAD",
            "--",
            *exclude_tool_folders(),
        )
        content = hashlib.sha256()
        for chunk in git.stream(*words):
            content.update(chunk)
        found.update(content.hexdigest().encode())
    return found.hexdigest()


def exclude_tool_folders() -> list[str]:
    """Path words for git: everything but the tools' own folders."""
    return [":/", *(f":(exclude,top){name}" for name in OURS)]


_TOP: Final = "refs/stash"


def push_stash(git: Git, label: str) -> str:
    """Set everything aside that is not committed, new files too; the commit it is kept as."""
    before = git.try_line("rev-parse", "--verify", "--quiet", _TOP)
    ran = git.run(
        "stash", "push", "--include-untracked", "-m", label, "--", *exclude_tool_folders()
    )
    found = git.try_line("rev-parse", "--verify", "--quiet", _TOP)
    if not ran.is_ok:
        raise SourceError(f"git stash failed: {ran.reason}")
    if not found or found == before:
        raise SourceError("git stash found nothing to set aside")
    return found


def find_stash(git: Git, label: str) -> str:
    """The commit of the stash with this label, or ""; a crash may have come before it was noted."""
    if not git.try_line("rev-parse", "--verify", "--quiet", _TOP):
        return ""
    lines = git.try_line("stash", "list", "--format=%H %gs").splitlines()
    named = (line.partition(" ") for line in lines)
    return next((commit for commit, _, said in named if said.endswith(f": {label}")), "")


def keep_stash(git: Git, commit: str) -> None:
    """A ref on the stash, so that it stays when git's own list is cleared. If that cannot be, the
    list still has it."""
    git.run("update-ref", f"refs/interlock/stash/{commit}", commit)


def apply_stash(git: Git, commit: str) -> None:
    """Bring it back into the work tree, staged as it was. It is kept, whatever comes of it."""
    ran = git.run("stash", "apply", "--quiet", "--index", commit)
    if ran.is_ok:
        return
    raise SourceError(
        f"the stash {commit[:12]} does not fit into the work tree: {ran.reason}; it is kept: "
        f"look at git status, make room, or use: git checkout -b rescue {commit[:12]}^ && "
        f"git stash apply {commit[:12]}"
    )
