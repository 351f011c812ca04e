"""The tree in which a change meets the line, before anyone says that they fit.

Knows one tree without a branch, made anew when it is not sound. Ignored files stay from merge to
merge, so that a build need not begin at nothing. Refuses to know what is merged.
"""

from interlock.delivery.worktrees.mend import clear, mend_tree
from interlock.delivery.worktrees.submodules import fill_submodules
from interlock.delivery.worktrees.taking import align, untracked
from interlock.delivery.worktrees.workshop import DeliveryWorkspace
from interlock.system.errors import SourceError
from interlock.system.files import is_folder, remove, write_whole
from interlock.system.git import first_line
from interlock.system.workshop_git import Git

NAME = "_line"
"""No task's folder is called so."""


class MergeTree:
    """One for each workshop."""

    def __init__(self, shop: DeliveryWorkspace) -> None:
        self.shop = shop
        self.root = shop.home / "trees" / NAME
        self.folder = self.root / shop.manifest.found.prefix
        self.admin = shop.repo / "worktrees" / NAME
        self.index = shop.home / "indexes" / NAME
        self.git = shop.hand(self.admin, tree=self.root, index=self.index)

    def environment(self, ports: tuple[int, int] | None = None) -> dict[str, str]:
        found = {"INTERLOCK_TREE": str(self.folder), "GIT_TERMINAL_PROMPT": "0"}
        found |= {"GIT_CEILING_DIRECTORIES": str(self.root.parent)}
        if ports is not None:
            found |= {"INTERLOCK_PORT_BASE": str(ports[0]), "INTERLOCK_PORT_COUNT": str(ports[1])}
        return found

    def show(self, commit: str) -> None:
        """The files of that commit and no others, but for ignored ones."""
        try:
            self._show(commit)
        except SourceError:
            self.drop()
            self._show(commit)

    def pick(self, commit: str) -> list[bytes]:
        """Bring the change of that commit in. The files that are in conflict."""
        return pick(self.git, commit)

    def stand_on(self, commit: str) -> None:
        write_whole(self.admin / "HEAD", f"{commit}\n".encode())

    def drop(self) -> None:
        for place in (self.root, self.admin, self.index):
            remove(place)

    def _show(self, commit: str) -> None:
        for folder in ("trees", "indexes"):
            (self.shop.home / folder).mkdir(exist_ok=True)
        self.shop.keep_settings()
        mend_tree(self.root, self.admin, self.shop.home / "aside")
        if not is_folder(self.admin):
            self.admin.mkdir(parents=True)
        facts = {"commondir": "../..", "gitdir": str(self.root / ".git"), "locked": "interlock"}
        for name, content in {**facts, "HEAD": commit}.items():
            write_whole(self.admin / name, f"{content}\n".encode())
        clear(self.admin)
        align(self.git, self.index, commit)
        self.git.run("clean", "-ffdq")
        self.git.ask("read-tree", "--reset", "-u", commit)
        for path in untracked(self.git):
            remove(self.root / path.decode(errors="surrogateescape"))
        self.folder.mkdir(parents=True, exist_ok=True)
        fill_submodules(self.git, self.shop.manifest.found)


def pick(git: Git, commit: str) -> list[bytes]:
    """Bring the change of one commit into a tree that is clean. The files that are in conflict."""
    ran = git.run("cherry-pick", "--no-commit", "--allow-empty", commit)
    files = git.paths("diff", "--name-only", "--diff-filter=U", "-z")
    if not ran.fine and not files:
        raise SourceError(f"{commit[:12]} cannot be brought in: {first_line(ran.complaint)}")
    return sorted(set(files))
