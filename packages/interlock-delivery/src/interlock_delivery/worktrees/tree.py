"""Manage a task's tree: a folder with its own branch in our clone.

Creates, records, compares and restores the tree, and enters it again after a crash. Whatever an
agent did to it is found and repaired: the few files by which git knows a worktree are written here,
so that making and repairing are the same code. The agent's files are kept.
"""

import threading
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from interlock.system.errors import SourceError, StateError
from interlock.system.files import exists, is_folder, move_into, remove_tree, save_file
from interlock.system.git import date_variables
from interlock_delivery.worktrees.clone import fill_submodules
from interlock_delivery.worktrees.diff import MOST_PATCH, Diff, read_diff
from interlock_delivery.worktrees.names import (
    Violation,
    folder_name,
    kept_ref,
    merge_ref,
    task_branch,
)
from interlock_delivery.worktrees.ref_guard import RefGuard, RefPosition
from interlock_delivery.worktrees.snapshot import (
    LARGEST,
    check_out_commit,
    check_staged,
    list_forced,
    reset_index,
    stage_changes,
)

if TYPE_CHECKING:
    from interlock_delivery.worktrees.workspace import DeliveryWorkspace

_LEFT_BEHIND = (
    *("index.lock", "HEAD.lock", "MERGE_HEAD", "MERGE_MSG", "MERGE_MODE", "MERGE_RR", "SQUASH_MSG"),
    *("AUTO_MERGE", "CHERRY_PICK_HEAD", "REVERT_HEAD", "REBASE_HEAD", "ORIG_HEAD", "sequencer"),
    *("rebase-merge", "rebase-apply", "BISECT_LOG", "BISECT_START", "BISECT_NAMES", "BISECT_TERMS"),
    *("BISECT_EXPECTED_REV", "config.worktree", "config.worktree.lock", "info"),
)


def repair_tree(folder: Path, admin: Path, aside: Path) -> list[Violation]:
    """Make a folder whose .git leads to `admin`, moving anything in the way aside."""
    found = []
    if not is_folder(folder):
        if exists(folder):
            move_into(folder, aside)
        folder.mkdir(parents=True)
        found.append(
            Violation("tree-replaced", f"{folder} was missing; work in it, do not remove it")
        )
    wanted = f"gitdir: {admin}\n".encode()
    link = folder / ".git"
    if not _has_content(link, wanted):
        if is_folder(link):
            move_into(link, aside)
        remove_tree(link)
        save_file(link, wanted)
        sentence = f"{link} was removed or replaced and is restored; never run git init there"
        found.append(Violation("git-file", sentence))
    return found


def repair_admin(folder: Path, admin: Path, branch: str) -> list[Violation]:
    """Restore our clone's record of the tree, with HEAD on the task's branch."""
    found = []
    if not is_folder(admin):
        remove_tree(admin)
        admin.mkdir(parents=True)
    head = f"ref: {branch}\n".encode()
    if not _has_content(admin / "HEAD", head):
        place = _read_head(admin / "HEAD")
        remove_tree(admin / "HEAD")
        save_file(admin / "HEAD", head)
        sentence = f"HEAD was at {place}, not on {_short_ref(branch)}; stay on that branch"
        found.append(Violation("head-moved", sentence))
    facts = {"commondir": "../..\n", "gitdir": f"{folder / '.git'}\n", "locked": "interlock\n"}
    for name, content in facts.items():
        if not _has_content(admin / name, content.encode()):
            remove_tree(admin / name)
            save_file(admin / name, content.encode())
    return found


def build_tree_variables(root: Path, folder: Path, ports: tuple[int, int] | None) -> dict[str, str]:
    """Return the variables for every process in a tree; `ports` is the first port and the count."""
    found = {
        "INTERLOCK_TREE": str(folder),
        # Without its .git file, git would find the user's repository above.
        "GIT_CEILING_DIRECTORIES": str(root.parent),
        "GIT_TERMINAL_PROMPT": "0",
    }
    if ports is not None:
        found |= {"INTERLOCK_PORT_BASE": str(ports[0]), "INTERLOCK_PORT_COUNT": str(ports[1])}
    return found


def clear_operations(admin: Path) -> None:
    """Remove the traces of merges, rebases and locks, whose processes have ended."""
    for name in _LEFT_BEHIND:
        remove_tree(admin / name)


def _has_content(file: Path, content: bytes) -> bool:
    return file.is_file() and not file.is_symlink() and file.read_bytes() == content


def _read_head(file: Path) -> str:
    if not file.is_file():
        return "nothing"
    text = file.read_bytes()[:200].decode(errors="replace").strip()
    return (
        _short_ref(text.removeprefix("ref: "))
        if text.startswith("ref: ")
        else f"{text[:12]} (no branch)"
    )


def _short_ref(ref: str) -> str:
    return ref.removeprefix("refs/heads/")


_MOST_TEXT = 400_000
TASKS, TREES, INDEXES, ASIDE = "tasks", "trees", "indexes", "aside"


class TreeRecord(msgspec.Struct, frozen=True, kw_only=True):
    """The stored record of a tree; the task's change is counted from `base`."""

    task_id: str
    base: str
    is_ready: bool = False
    is_open: bool = True
    dispatch_id: int = 0
    """The dispatch whose agent got the tree last."""


class Snapshot(msgspec.Struct, frozen=True):
    """A recorded state; `is_new` is True if something changed since the last one."""

    sha: str
    is_new: bool = False
    violations: tuple[Violation, ...] = ()


class TaskTree:
    """One task's tree. Threads may use different trees at once, and take turns on one."""

    def __init__(self, workspace: "DeliveryWorkspace", record: TreeRecord) -> None:
        name = folder_name(record.task_id)
        self.workspace = workspace
        self.record = record
        self.name = name
        self.branch = task_branch(workspace.slug, record.task_id)
        self.root = workspace.home / TREES / name
        self.folder = self.root / workspace.source.prefix
        """The agent's folder: the place in the tree of the user's folder in the repository."""
        self.admin = workspace.repo / "worktrees" / name
        self.index = workspace.home / INDEXES / name
        self._turn = threading.RLock()
        self.git = workspace.open_git(self.admin, tree=self.root, index=self.index)

    @classmethod
    def enter(cls, workspace: "DeliveryWorkspace", task_id: str) -> "TaskTree":
        """Return the tree as it was left, or a new one from the merge branch's tip."""
        record = _read_record(workspace, folder_name(task_id))
        if record is None:
            record = TreeRecord(
                task_id=task_id, base=workspace.ledger.refs[merge_ref(workspace.slug)]
            )
        if record.task_id != task_id:
            raise StateError(f"the tree {folder_name(task_id)} belongs to {record.task_id!r}")
        tree = cls(workspace, record)
        for folder in (TASKS, TREES, INDEXES):
            (workspace.home / folder).mkdir(exist_ok=True)
        if not record.is_ready or not record.is_open:
            tree._create()
        return tree

    @classmethod
    def list_trees(cls, workspace: "DeliveryWorkspace") -> "list[TaskTree]":
        files = sorted((workspace.home / TASKS).glob("*.json"))
        records = (_read_record(workspace, file.stem) for file in files)
        return [cls(workspace, record) for record in records if record is not None]

    @property
    def base(self) -> str:
        return self.record.base

    @property
    def tip(self) -> str:
        """Return the last state we recorded, wherever the branch is now."""
        return self.workspace.ledger.refs.get(self.branch, self.base)

    def environment(self, ports: tuple[int, int] | None = None) -> dict[str, str]:
        """Return the variables of an agent; `ports` is the first port and the count."""
        return {
            **build_tree_variables(self.root, self.folder, ports),
            "INTERLOCK_BRANCH": self.branch.removeprefix("refs/heads/"),
            "INTERLOCK_BASE": self.base,
            "GIT_EDITOR": "true",
            "GIT_PAGER": "cat",
        }

    def check_violations(self, expected_tip: str = "", base: str = "") -> list[Violation]:
        """Return what the agent did to git against the rules, after repairing it."""
        with self._turn:
            self.workspace.restore_settings()
            found = repair_tree(self.root, self.admin, self.workspace.home / ASIDE)
            found += repair_admin(self.root, self.admin, self.branch)
            others = [
                RefPosition(tree.branch, str(tree.admin))
                for tree in TaskTree.list_trees(self.workspace)
                if tree.name != self.name and tree.record.is_open
            ]
            own = RefPosition(self.branch, str(self.admin))
            workspace = self.workspace
            watch = RefGuard(
                workspace.git,
                workspace.ledger,
                workspace.slug,
                workspace.read_origin_refs(),
                own,
                others,
            )
            return found + watch.check(expected_tip or self.tip, base or self.base)

    def snapshot(self, message: str, *, largest: int = LARGEST) -> Snapshot:
        """Record the files as they are, on top of the agent's own commits."""
        with self._turn:
            left = self.tip
            violations = self.check_violations()
            clear_operations(self.admin)
            tip = self.workspace.git.read_line("rev-parse", "--verify", self.branch)
            reset_index(self.git, self.index, tip)
            forced = list_forced(self.workspace.open_git(self.admin, tree=self.root), tip)
            files = stage_changes(self.git, self.root, forced, largest)
            files += check_staged(self.git, self.base, largest)
            violations += sorted(set(files))
            tree = self.git.read_line("write-tree")
            commit = tip
            if tree != self.git.read_line("rev-parse", f"{tip}^{{tree}}"):
                feed = message.encode(errors="replace")
                when = date_variables(self.workspace.clock())
                commit = self.git.read_line("commit-tree", tree, "-p", tip, stdin=feed, env=when)
            self.move_to(commit)
            self.share_index()
            return Snapshot(commit, commit != left, tuple(violations))

    def restore(self, sha: str) -> None:
        """Restore a state exactly: unrecorded files are removed, ignored ones stay."""
        with self._turn:
            if not self.workspace.git.is_true("cat-file", "-e", f"{sha}^{{commit}}"):
                raise SourceError(
                    f"{sha[:40]!r} is not a commit of this workspace; give a snapshot"
                )
            self.workspace.restore_settings()
            repair_tree(self.root, self.admin, self.workspace.home / ASIDE)
            repair_admin(self.root, self.admin, self.branch)
            clear_operations(self.admin)
            self.move_to(sha)
            self.check_out(sha)

    def is_unchanged(self, sha: str) -> bool:
        """Return True if the tree is in that state and unchanged."""
        with self._turn:
            head = self.admin / "HEAD"
            try:
                sound = head.read_bytes() == f"ref: {self.branch}\n".encode()
                sound = (
                    sound
                    and (self.root / ".git").read_bytes() == f"gitdir: {self.admin}\n".encode()
                )
            except OSError:
                return False
            tip = self.workspace.git.run(
                "rev-parse", "--verify", "--quiet", self.branch
            ).text.strip()
            if not sound or tip != sha:
                return False
            remove_tree(self.index.with_name(f"{self.index.name}.lock"))
            # One command compares index, files and new files.
            words = ("status", "--porcelain", "-z", "--untracked-files=all", "--no-renames")
            ran = self.git.run(*words, "--ignore-submodules=dirty")
            return ran.is_ok and not ran.stdout

    def diff(self, base: str, sha: str, most: int = MOST_PATCH) -> Diff:
        """Return what changed from one commit to another."""
        return read_diff(self.workspace.git, base, sha, most)

    def set_base(self, base: str) -> None:
        """Count the task's change from that commit from now on."""
        self._write_record(msgspec.structs.replace(self.record, base=base))

    def set_dispatch(self, dispatch_id: int) -> None:
        """Record the dispatch whose agent works here from now on."""
        self._write_record(msgspec.structs.replace(self.record, dispatch_id=dispatch_id))

    def has_changed(self, path: str) -> bool:
        """Return True if a file differs from the task's base now, recorded or not."""
        words = ("-c", "diff.autoRefreshIndex=false", "diff", "--name-only", "-z", self.base)
        new = ("ls-files", "--others", "--exclude-standard", "-z")
        return any(self.git.run(*each, "--", path).stdout for each in (words, new))

    def read_old_text(self, path: str) -> str:
        """Return a file's text at the task's base, or ""."""
        ran = self.workspace.git.run(
            "cat-file", "blob", f"{self.base}:{path}", max_output=_MOST_TEXT
        )
        return ran.stdout.decode(errors="replace") if ran.is_ok else ""

    def move_to(self, commit: str) -> None:
        """Move the branch to a commit, and keep that commit for good."""
        kept = kept_ref(self.workspace.slug, commit)
        self.workspace.ledger.move(self.workspace.git, {self.branch: commit, kept: commit})

    def check_out(self, commit: str) -> list[str]:
        """Check out the files of a commit, keeping ignored ones; return notes on submodules."""
        check_out_commit(self.git, self.index, self.root, commit)
        self.folder.mkdir(parents=True, exist_ok=True)
        notes = fill_submodules(self.git, self.workspace.source)
        self.share_index()
        return notes

    def close(self, *, force: bool = False) -> None:
        """Remove the folder, keeping branch and snapshots; unrecorded work only with `force`."""
        with self._turn:
            if not force and self.record.is_ready and self.root.exists() and self.is_dirty():
                raise StateError(f"{self.root} has work that is not recorded; snapshot it first")
            self._write_record(msgspec.structs.replace(self.record, is_open=False))
            for place in (self.root, self.admin, self.index):
                remove_tree(place)

    def is_dirty(self) -> bool:
        """Return True if some files are in no snapshot."""
        return self.record.is_ready and self.record.is_open and not self.is_unchanged(self.tip)

    def _create(self) -> None:
        """Make the tree, or make it again from where its branch was left."""
        self._write_record(msgspec.structs.replace(self.record, is_ready=False, is_open=True))
        self.restore(self.tip)
        self._write_record(msgspec.structs.replace(self.record, is_ready=True))

    def _write_record(self, record: TreeRecord) -> None:
        self.workspace.on_step("record")
        save_file(self.workspace.home / TASKS / f"{self.name}.json", msgspec.json.encode(record))
        self.record = record

    def share_index(self) -> None:
        """Show the agent's git the tree as our index has it."""
        remove_tree(self.admin / "index.lock")
        save_file(self.admin / "index", self.index.read_bytes())


def _read_record(workspace: "DeliveryWorkspace", name: str) -> TreeRecord | None:
    file = workspace.home / TASKS / f"{name}.json"
    try:
        return msgspec.json.decode(file.read_bytes(), type=TreeRecord)
    except FileNotFoundError:
        return None
    except (OSError, msgspec.MsgspecError) as error:
        raise SourceError(f"{file} cannot be read ({error}); restore it from a copy") from None
