"""Setting uncommitted work aside, and bringing it back: a stash, known by its commit.

A ref of ours keeps the commit even when someone drops the stash from git's list. Knows git's words
for it. Refuses to know why, and to throw anything away.
"""

from typing import Final

from interlock.epic.recovery.git_state import spared
from interlock.system.errors import SourceError
from interlock.system.own_git import Git

_TOP: Final = "refs/stash"


def push_stash(git: Git, label: str) -> str:
    """Set everything aside that is not committed, new files too; the commit it is kept as."""
    before = git.line("rev-parse", "--verify", "--quiet", _TOP)
    ran = git.run("stash", "push", "--include-untracked", "-m", label, "--", *spared())
    found = git.line("rev-parse", "--verify", "--quiet", _TOP)
    if not ran.fine:
        raise SourceError(f"git stash failed: {ran.reason}")
    if not found or found == before:
        raise SourceError("git stash found nothing to set aside")
    return found


def find_stash(git: Git, label: str) -> str:
    """The commit of the stash with this label, or ""; a crash may have come before it was noted."""
    if not git.line("rev-parse", "--verify", "--quiet", _TOP):
        return ""
    lines = git.line("stash", "list", "--format=%H %gs").splitlines()
    named = (line.partition(" ") for line in lines)
    return next((commit for commit, _, said in named if said.endswith(f": {label}")), "")


def keep_stash(git: Git, commit: str) -> None:
    """A ref on the stash, so that it stays when git's own list is cleared. If that cannot be, the
    list still has it."""
    git.run("update-ref", f"refs/interlock/stash/{commit}", commit)


def apply_stash(git: Git, commit: str) -> None:
    """Bring it back into the work tree, staged as it was. It is kept, whatever comes of it."""
    ran = git.run("stash", "apply", "--quiet", "--index", commit)
    if ran.fine:
        return
    raise SourceError(
        f"the stash {commit[:12]} does not fit into the work tree: {ran.reason}; it is kept: "
        f"look at git status, make room, or use: git checkout -b rescue {commit[:12]}^ && "
        f"git stash apply {commit[:12]}"
    )
