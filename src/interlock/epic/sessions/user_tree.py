"""The project's work tree: as it is handed to a session on another host, and as that comes back.

What is not committed goes along and comes back uncommitted. Only what lies ahead of what was handed
out is taken, onto the same branch, and only while nobody else has changed anything here. Taken
again, after a crash half-way, it comes to the same.
"""

import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import msgspec

from interlock.agents.carrier import PushedWork
from interlock.epic.checkpoints.place import StateFolder, make_folders
from interlock.epic.recovery.git_state import OURS
from interlock.system.errors import SourceError
from interlock.system.git import MAIL, NAME, USER_TREE, Git, date_variables, write_files
from interlock.system.git_remote import fetch_commit, is_commit

_OUR_FILES: Final = (".sage/state", ".interlock")
"""What only the coordinator writes: no work of a session may change it."""
_IDENTITY: Final = {
    f"GIT_{who}_{what}": value
    for who in ("AUTHOR", "COMMITTER")
    for what, value in (("NAME", NAME), ("EMAIL", MAIL))
}
_SHOWN: Final = 3


class TreeState(msgspec.Struct, frozen=True):
    """How a work tree stands: its branch, the commit of that, and a commit of all files."""

    branch: str
    head: str
    commit: str
    """`head` itself if there is no more than that, else a commit of all files on top of it."""


def record_tree(place: StateFolder, stashes: Sequence[str] = ()) -> TreeState:
    """How the work tree stands now. The same files give the same commit, from which the stashes can
    be reached too, as far as they are still here."""
    git = Git(place.root, USER_TREE)
    head = git.try_line("rev-parse", "--verify", "--quiet", "HEAD^{commit}")
    branch = git.try_line("symbolic-ref", "--quiet", "--short", "HEAD")
    if place.git_dir is None or not head or not branch:
        raise SourceError(
            f"workers get the files of {place.root} as a commit on a branch: "
            + ("check a branch out" if head else "make it a git repository, and commit something")
        )
    if git.try_line("ls-files", "--", f":(top){_OUR_FILES[0]}"):
        raise SourceError(
            f"{_OUR_FILES[0]} is in git, where every session would change it: "
            f"git rm -r --cached {_OUR_FILES[0]}, and commit that"
        )
    make_folders(place)
    with tempfile.TemporaryDirectory(prefix="tree-", dir=place.safest) as folder:
        own = Git(place.root, USER_TREE, index=Path(folder) / "index")
        made = write_files(own, head, OURS)
    stashes = [each for each in stashes if git.is_true("cat-file", "-e", f"{each}^{{commit}}")]
    if not stashes and made == git.read_line("rev-parse", f"{head}^{{tree}}"):
        return TreeState(branch, head, head)
    when = date_variables(int(git.read_line("show", "--no-patch", "--format=%ct", head)))
    parents = [word for each in (head, *stashes) for word in ("-p", each)]
    words = ("commit-tree", made, *parents, "-m", "Not committed yet")
    return TreeState(branch, head, git.read_line(*words, env={**_IDENTITY, **when}))


class TakenWork:
    """The work of a session on another host, which is kept here by a ref until it is applied."""

    def __init__(
        self, place: StateFolder, remote: str, handed: TreeState, pushed: PushedWork
    ) -> None:
        """Fetch it; SourceError if it is not there as it was announced."""
        if place.git_dir is None or not is_commit(pushed.head):
            raise SourceError(f"{pushed.head[:80]!r} is no commit that could be taken")
        self._place = place
        self._handed = handed
        self._git = Git(place.root, USER_TREE)
        self.made = TreeState(handed.branch, pushed.head, pushed.commit)
        self._kept = f"refs/interlock/epics/{pushed.commit}"
        fetch_commit(place.git_dir, remote, pushed.commit, pushed.ref, self._kept)

    def check(self) -> None:
        """SourceError if it is not what a session could have made of what was handed out."""
        made, handed = self.made, self._handed
        parents = self._git.try_line("rev-parse", f"{made.commit}^@").splitlines()
        if made.commit != made.head and parents != [made.head]:
            raise SourceError(f"its files do not lie on top of its commit {made.head[:12]}")
        if not self.has_ancestor(handed.head, made.head):
            raise SourceError(
                f"its commit {made.head[:12]} does not come after {handed.head[:12]}, which it was "
                "given"
            )
        for path in _OUR_FILES:
            found = {self._find(commit, path) for commit in (made.head, made.commit)}
            if found != {self._find(handed.head, path)}:
                raise SourceError(f"it changes {path}, where only the coordinator writes")
        if any(" blob " in self._find(commit, ".sage") for commit in (made.head, made.commit)):
            raise SourceError("it has a file or a link in the place of the folder .sage")

    def has_ancestor(self, before: str, after: str) -> bool:
        """Whether one commit is the other, or comes before it."""
        return self._git.is_true("merge-base", "--is-ancestor", before, after)

    def _find(self, commit: str, path: str) -> str:
        """The entry of a path in a commit; empty if it has none."""
        return self._git.read_line("ls-tree", "--full-tree", commit, "--", path)

    def apply(self) -> None:
        """Let the work tree be as the session left its own; SourceError if somebody has changed
        something here meanwhile."""
        now, made, handed = record_tree(self._place), self.made, self._handed
        if now.branch != handed.branch or now.head not in (handed.head, made.head):
            raise SourceError(
                f"{now.branch} was at {handed.head[:12]} when the session was given it, and now "
                f"{self._place.root} is at {now.head[:12]} of {now.branch}"
            )
        if foreign := self._list_changed(handed, now) & self._list_changed(now, made):
            names = sorted(path.decode(errors="replace") for path in foreign)
            raise SourceError(
                f"{', '.join(names[:_SHOWN])} changed in {self._place.root} while the session "
                "worked on it"
            )
        with tempfile.TemporaryDirectory(prefix="tree-", dir=self._place.safest) as folder:
            own = Git(self._place.root, USER_TREE, index=Path(folder) / "index")
            own.read_line("read-tree", now.commit)
            own.run("update-index", "-q", "--refresh")
            own.read_line("read-tree", "-m", "-u", now.commit, made.commit)
        if now.head != made.head:
            words = ("update-ref", "-m", "interlock: a session on another host")
            self._git.read_line(*words, f"refs/heads/{made.branch}", made.head, now.head)
        self._git.read_line("reset", "--quiet")
        self._git.run("update-ref", "-d", self._kept)

    def _list_changed(self, before: TreeState, after: TreeState) -> frozenset[bytes]:
        words = ("diff-tree", "-r", "-z", "--name-only", "--no-renames")
        return frozenset(self._git.read_paths(*words, before.commit, after.commit))
