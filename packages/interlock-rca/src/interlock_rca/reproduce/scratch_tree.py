"""A work tree of our own, in which a user's commits are checked out and tested.

It borrows the objects of the user's repository and writes nothing there: no branch, index or work
tree of theirs is touched, and the repository may be read-only. The folder is locked while its
process lives; the next process removes what a killed one left.
"""

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from interlock.system.errors import SourceError
from interlock.system.files import make_own_folder, remove_tree
from interlock.system.git import OWN_CLONE, Git, GitPlaces
from interlock.system.locks import hold_lock, take_lock
from interlock_rca.sources.git.repository import Repository

_LOCK = ".lock"
_CLONE, _TREE = "repo.git", "tree"


class ScratchTree:
    """A folder that can check out any commit of a repository."""

    def __init__(self, home: Path, repository: Repository) -> None:
        self.folder = home / _TREE
        self._clone = home / _CLONE
        self._clone.mkdir()
        self._git = Git(self._clone, OWN_CLONE)
        source = repository.git
        form = source.try_line("rev-parse", "--show-object-format") or "sha1"
        self._git.read_line("init", "--quiet", "--bare", "--template=", f"--object-format={form}")
        self._borrow_objects(source)
        self._copy_tags(source)

    def check_out(self, commit: str, *, keep_ignored: bool) -> str:
        """Check out a commit and remove everything a command left; ignored files may stay. Return
        why that is impossible, or ""."""
        words = ("checkout", "--quiet", "--force", "--detach", commit)
        clean = ("clean", "--quiet", "-ffd" if keep_ignored else "-ffdx")
        if self.folder.is_dir():
            git = self._open_tree()
            if git.run(*words).is_ok and git.run(*clean).is_ok:
                return ""
        # A command may have broken the tree, or this is the first use: create it anew.
        remove_tree(self.folder)
        self._git.run("worktree", "prune", "--expire=now")
        made = self._git.run(
            "worktree", "add", "--quiet", "--detach", "--no-checkout", str(self.folder), commit
        )
        ran = self._open_tree().run(*words) if made.is_ok else made
        return "" if ran.is_ok else f"it cannot be checked out: {ran.reason}"

    def _open_tree(self) -> Git:
        inside = self._clone / "worktrees" / _TREE
        return Git(inside, OWN_CLONE, places=GitPlaces(self.folder, shared=self._clone))

    def _borrow_objects(self, source: Git) -> None:
        common = source.read_line("rev-parse", "--path-format=absolute", "--git-common-dir")
        objects = source.read_line("rev-parse", "--path-format=absolute", "--git-path", "objects")
        if "\n" in objects:
            raise SourceError(f"{objects!r} cannot be borrowed from: its path holds a line break")
        borrowed = self._clone / "objects" / "info" / "alternates"
        borrowed.parent.mkdir(exist_ok=True)
        borrowed.write_bytes(os.fsencode(objects) + b"\n")
        shallow = Path(common) / "shallow"
        if shallow.is_file():
            (self._clone / "shallow").write_bytes(shallow.read_bytes())

    def _copy_tags(self, source: Git) -> None:
        """Copy tags, for builds that derive a version from the nearest one."""
        found = source.run("for-each-ref", "--format=create %(refname) %(objectname)", "refs/tags")
        if found.is_ok and found.stdout and not found.cut:
            self._git.run("update-ref", "--stdin", stdin=found.stdout)


@contextmanager
def open_scratch_tree(home: Path, repository: Repository) -> Iterator[ScratchTree]:
    """Yield a tree below `home`, and remove it at the end."""
    try:
        make_own_folder(home)
        remove_abandoned_trees(home)
        folder = home / secrets.token_hex(6)
        folder.mkdir()
        with hold_lock(folder / _LOCK):
            try:
                yield ScratchTree(folder, repository)
            finally:
                with suppress(SourceError):
                    remove_tree(folder)
    except OSError as error:
        place = error.filename or home
        raise SourceError(
            f"no work tree can be made in {place}: {error.strerror or error}; "
            "make room, or check its rights"
        ) from None


def remove_abandoned_trees(home: Path) -> None:
    """Remove the trees of dead processes."""
    for folder in home.iterdir():
        opened = take_lock(folder / _LOCK, create=False) if _is_ours(folder) else None
        if opened is not None:
            try:
                with suppress(SourceError):
                    remove_tree(folder)
            finally:
                os.close(opened)


def _is_ours(folder: Path) -> bool:
    return folder.is_dir() and not folder.is_symlink() and (folder / _LOCK).is_file()
