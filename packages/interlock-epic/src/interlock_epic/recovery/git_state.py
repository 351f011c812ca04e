"""Compare git with a checkpoint, and stash uncommitted work.

A stash is identified by its commit, and a ref of ours keeps that commit even if it is dropped from
git's list. A stash that fails half-way is undone. No work is ever lost.
"""

import hashlib
import os
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from interlock.system.errors import SourceError
from interlock.system.files import exists
from interlock.system.git import USER_TREE, Git, GitPlaces, is_installed
from interlock_epic.checkpoints.record import GitWork
from interlock_epic.recovery.policy import GitFinding, GitState

OURS: Final = (".sage", ".interlock", ".asterisk")
"""Top-level folders of the tools, which never count as changes and are never stashed."""
_SHOWN: Final = 20
_STASH_REF: Final = "refs/stash"
_UNTRACKED: Final = "??"
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
    """Return the state of git, as a checkpoint records it."""
    git = _open_repository(root)
    if git is None:
        return GitWork()
    head = _find_commit(git, "HEAD")
    dirt = _compute_digest(git, _list_changes(git), head)
    return GitWork(commit=head, branch=_read_branch(git), dirt=dirt, unborn=not head)


def compare_git(root: Path, recorded: GitWork) -> GitState:
    """Compare git with a recorded state."""
    git = _open_repository(root)
    if git is None:
        gone = recorded.commit or recorded.unborn
        finding = GitFinding.REPOSITORY_GONE if gone else GitFinding.NO_REPOSITORY
        return GitState(findings=(finding,), recorded_commit=recorded.commit)
    head, branch, operation = _find_commit(git, "HEAD"), _read_branch(git), _find_operation(git)
    relation, ahead, behind = _compare_commits(git, head, recorded)
    changes = _list_changes(git)
    findings = [relation, *_compare_branches(branch, recorded)]
    findings += [GitFinding.OPERATION] if operation else []
    findings += _compare_dirt(git, head, changes, recorded)
    tracked = [path for mark, path in changes if mark != _UNTRACKED]
    untracked = [path for mark, path in changes if mark == _UNTRACKED]
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


def _find_commit(git: Git, name: str) -> str:
    return git.try_line("rev-parse", "--verify", "--quiet", f"{name}^{{commit}}")


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
    there = _find_commit(git, recorded.commit)
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


def _list_changes(git: Git, *, ours: bool = False) -> list[tuple[str, str]]:
    """Return uncommitted changes as (mark, path), outside the tools' folders or, with `ours`,
    inside.
    """
    words = ("status", "--porcelain=v1", "-z", "--no-renames", "--ignore-submodules=dirty")
    ran = git.run(*words)
    if not ran.is_ok:
        raise SourceError(f"git status failed in {git.folder}: {ran.reason}")
    entries = os.fsdecode(ran.stdout).split("\0")
    found = [(entry[:2], entry[3:]) for entry in entries if len(entry) > 3]
    return sorted((mark, path) for mark, path in found if (path.split("/")[0] in OURS) == ours)


def _compare_dirt(
    git: Git, head: str, changes: list[tuple[str, str]], recorded: GitWork
) -> list[GitFinding]:
    if not changes:
        return []
    if recorded.dirt and _compute_digest(git, changes, head) == recorded.dirt:
        return [GitFinding.DIRTY_AS_LEFT]
    marks = {mark == _UNTRACKED for mark, _ in changes}
    kinds = {False: GitFinding.DIRTY_TRACKED, True: GitFinding.DIRTY_UNTRACKED}
    return [kinds[mark] for mark in sorted(marks)]


def _compute_digest(git: Git, changes: list[tuple[str, str]], head: str) -> str:
    """Return a digest of uncommitted work: all file names, and the content of tracked files."""
    if not changes:
        return ""
    found = hashlib.sha256(repr(changes).encode(errors="surrogateescape"))
    if head:
        words = ("diff", "--binary", "--no-ext-diff", "--no-textconv", "HEAD", "--", ":/")
        content = hashlib.sha256()
        for chunk in git.stream(*words, *_exclude(OURS)):
            content.update(chunk)
        found.update(content.hexdigest().encode())
    return found.hexdigest()


def _exclude(names: Iterable[str]) -> list[str]:
    return [f":(exclude,top){name}" for name in names]


def push_stash(git: Git, label: str) -> str:
    """Stash all uncommitted work, including new files, and return the stash's commit."""
    changes = _list_changes(git)
    digest = _compute_digest(git, changes, _find_commit(git, "HEAD"))
    ours = {path.split("/")[0] for _, path in _list_changes(git, ours=True)}
    # Name only folders that git would stash, since it refuses to exclude an ignored one.
    paths = ["--", ":/", *_exclude(sorted(ours))] if ours else []
    before = _find_commit(git, _STASH_REF)
    try:
        ran = git.run("stash", "push", "--include-untracked", "-m", label, *paths)
        problem = "" if ran.is_ok else ran.reason.removesuffix(":")
    except SourceError as error:
        problem = str(error)
    stash = _find_commit(git, _STASH_REF)
    is_new = bool(stash) and stash != before
    if not problem and not is_new:
        raise SourceError("git stash found nothing to stash")
    if not problem:
        return stash
    if is_new and not _undo_stash(git, stash, changes, digest):
        keep_stash(git, stash)
        raise SourceError(
            f"git stash failed half-way: {problem}; your work is kept as stash {stash[:12]}"
        )
    raise SourceError(f"git stash failed, and nothing was changed: {problem}")


def _undo_stash(git: Git, stash: str, changes: list[tuple[str, str]], digest: str) -> bool:
    """Undo a stash that stopped half-way; return False if worktree and index cannot be restored."""
    kept = set(git.read_paths("ls-tree", "-r", "-z", "--full-tree", "--name-only", stash))
    tracked = [os.fsencode(path) for mark, path in changes if mark != _UNTRACKED]
    for path in tracked:
        # One file at a time, so that a filter that fails for one does not block the others.
        words = ("restore", f"--source={stash}", "--worktree", "--pathspec-from-file=-")
        if path in kept:
            git.run(*words, "--pathspec-file-nul", stdin=b":(top,literal)" + path)
    if _find_commit(git, f"{stash}^3"):
        with tempfile.TemporaryDirectory() as folder:
            untracked = Git(git.folder, git.policy, places=GitPlaces(index=Path(folder) / "index"))
            untracked.run("read-tree", f"{stash}^3")
            untracked.run("checkout-index", "--all", "--quiet")  # keeps existing files
    git.run("read-tree", f"{stash}^2")
    git.run("update-index", "-q", "--refresh")
    if _compute_digest(git, _list_changes(git), _find_commit(git, "HEAD")) != digest:
        return False
    return git.is_true("stash", "drop", "--quiet", "stash@{0}")


def find_stash(git: Git, label: str) -> str:
    """Return the commit of the stash with this label, which a crash may have left unrecorded, or
    "".
    """
    if not _find_commit(git, _STASH_REF):
        return ""
    lines = git.try_line("stash", "list", "--format=%H %gs").splitlines()
    named = (line.partition(" ") for line in lines)
    return next((commit for commit, _, title in named if title.endswith(f": {label}")), "")


def keep_stash(git: Git, commit: str) -> None:
    """Make a ref to the stash that outlives git's own list."""
    git.run("update-ref", f"refs/interlock/stash/{commit}", commit)


def apply_stash(git: Git, commit: str) -> None:
    """Apply the stash to a worktree without changes, and to its index.

    After a conflict the worktree is as it was. The stash is kept in any case.
    """
    untracked = git.run("ls-tree", "-r", "-z", "--full-tree", "--name-only", f"{commit}^3").stdout
    paths = [git.folder / os.fsdecode(path) for path in untracked.split(b"\0") if path]
    new = [path for path in paths if not exists(path)]
    ran = git.run("stash", "apply", "--quiet", "--index", commit)
    if ran.is_ok:
        return
    git.run("reset", "--quiet", "--merge")
    for path in new:
        path.unlink(missing_ok=True)
    raise SourceError(
        f"the stash {commit[:12]} cannot be applied to the work tree ({ran.reason.rstrip('.')}), "
        f"which is unchanged. The stash is kept: make room for it, or run git checkout -b rescue "
        f"{commit[:12]}^ && git stash apply {commit[:12]}"
    )
