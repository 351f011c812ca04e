"""Merge finished tasks to the merge branch, one commit each, in turn.

A change is applied to the branch's tip in a separate tree, verified there, and becomes the new tip
unless the branch moved meanwhile. Its trailers identify a change that was merged before; conflicts
are never merged. `publish` brings the branch into the user's repository, and moves nothing there
that is not as we left it.
"""

import re
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from interlock.system.errors import SourceError, StateError
from interlock.system.files import is_folder, remove_tree, save_file
from interlock.system.git import Git, date_variables
from interlock_delivery.worktrees.clone import fill_submodules
from interlock_delivery.worktrees.names import format_path, kept_ref, merge_ref, published_ref
from interlock_delivery.worktrees.ref_guard import MovedError
from interlock_delivery.worktrees.snapshot import check_out_commit
from interlock_delivery.worktrees.tree import (
    ASIDE,
    INDEXES,
    TREES,
    TaskTree,
    build_tree_variables,
    clear_operations,
    repair_tree,
)

if TYPE_CHECKING:
    from interlock_delivery.worktrees.workspace import DeliveryWorkspace

NAME = "_line"
"""The folder of the merge tree; no task's folder has this name."""


class MergeTree:
    """The tree in which a workspace applies and verifies changes."""

    def __init__(self, workspace: "DeliveryWorkspace") -> None:
        self.workspace = workspace
        self.root = workspace.home / TREES / NAME
        self.folder = self.root / workspace.source.prefix
        self.admin = workspace.repo / "worktrees" / NAME
        self.index = workspace.home / INDEXES / NAME
        self.git = workspace.open_git(self.admin, tree=self.root, index=self.index)

    def environment(self, ports: tuple[int, int] | None = None) -> dict[str, str]:
        return build_tree_variables(self.root, self.folder, ports)

    def check_out(self, commit: str) -> None:
        """Check out the files of a commit; remove all others except ignored ones."""
        try:
            self._check_out(commit)
        except SourceError:
            self.remove()
            self._check_out(commit)

    def remove(self) -> None:
        for place in (self.root, self.admin, self.index):
            remove_tree(place)

    def _check_out(self, commit: str) -> None:
        for folder in (TREES, INDEXES):
            (self.workspace.home / folder).mkdir(exist_ok=True)
        self.workspace.restore_settings()
        repair_tree(self.root, self.admin, self.workspace.home / ASIDE)
        if not is_folder(self.admin):
            self.admin.mkdir(parents=True)
        facts = {"commondir": "../..", "gitdir": str(self.root / ".git"), "locked": "interlock"}
        for name, content in {**facts, "HEAD": commit}.items():
            save_file(self.admin / name, f"{content}\n".encode())
        clear_operations(self.admin)
        check_out_commit(self.git, self.index, self.root, commit)
        self.folder.mkdir(parents=True, exist_ok=True)
        fill_submodules(self.git, self.workspace.source)


def cherry_pick(git: Git, commit: str) -> list[bytes]:
    """Apply a commit's change to a clean tree, and return the files in conflict."""
    ran = git.run("cherry-pick", "--no-commit", "--allow-empty", commit)
    files = git.read_paths("diff", "--name-only", "--diff-filter=U", "-z")
    if not ran.is_ok and not files:
        raise SourceError(f"{commit[:12]} cannot be brought in: {ran.reason}")
    return sorted(set(files))


class Publication(msgspec.Struct, frozen=True, kw_only=True):
    """The branch in the user's repository; if it is not done, `sentence` says what to do."""

    branch: str
    sha: str
    is_done: bool
    is_new: bool = False
    sentence: str = ""


def publish(workspace: "DeliveryWorkspace", tip: str) -> Publication:
    """Move the published branch to a tip. Doing it again changes nothing."""
    ref, found = published_ref(workspace.slug), workspace.source
    branch = ref.removeprefix("refs/heads/")
    if not (Path(found.shared) / "objects").is_dir():
        raise SourceError(f"{found.folder} no longer exists; restore it and run it again")
    user = workspace.open_git(Path(found.shared), safe=found.safe)
    at = user.run("rev-parse", "--verify", "--quiet", ref).text.strip()
    if at == tip and at in workspace.ledger.published:
        return Publication(branch=branch, sha=tip, is_done=True)
    problem = _explain_conflict(workspace, user, ref, at, tip)
    if not problem:
        workspace.ledger.record_published(*sorted({at, tip} - {""}))
        words = (
            "fetch",
            "--quiet",
            "--no-tags",
            "--no-write-fetch-head",
            "--no-recurse-submodules",
        )
        user.read_line(
            *words, "--no-auto-maintenance", str(workspace.repo), merge_ref(workspace.slug)
        )
        old = at or "0" * len(tip)
        ran = user.run("update-ref", "--no-deref", "-m", "interlock: publish", ref, tip, old)
        problem = "" if ran.is_ok else f"git did not move {branch}: {ran.reason}"
    if problem:
        return Publication(branch=branch, sha=at, is_done=False, sentence=problem)
    workspace.ledger.record_published(tip)
    return Publication(branch=branch, sha=tip, is_done=True, is_new=True)


def _explain_conflict(
    workspace: "DeliveryWorkspace", user: Git, ref: str, at: str, tip: str
) -> str:
    """Return why the branch may not be moved, and what to do, or ""."""
    branch = ref.removeprefix("refs/heads/")
    advice = f"rename it (git branch -m {branch} another-name) and run it again"
    if at and at not in workspace.ledger.published:
        return f"the branch {branch} exists and is not as Interlock left it; {advice}"
    worktrees = user.read_line("worktree", "list", "--porcelain").split("\n")
    if f"branch {ref}" in worktrees:
        return f"the branch {branch} is checked out; switch to another one and run it again"
    if at and not workspace.git.is_true("merge-base", "--is-ancestor", at, tip):
        return f"the branch {branch} would not go forward; {advice}"
    above = ref.rpartition("/")[0]
    if not at and user.is_true("rev-parse", "--verify", "--quiet", above):
        name = above.removeprefix("refs/heads/")
        return f"a branch {name!r} leaves no room for {branch}; rename it and run it again"
    below = user.read_line("for-each-ref", "--count=1", "--format=%(refname:short)", f"{ref}/")
    if below:
        return f"the branch {below} leaves no room for {branch}; rename it and run it again"
    return ""


_MOST_TEXT = 20_000
_MOST_TITLE = 200
_HASH = re.compile(r"[0-9a-f]{40,64}")


class TaskChange(msgspec.Struct, frozen=True, kw_only=True):
    """A task's change from `base` to `sha`; the two ids identify it."""

    task_id: str
    dispatch_id: str
    sha: str
    base: str
    title: str = ""


class Proposal(msgspec.Struct, frozen=True, kw_only=True):
    """A change on the tip that is not merged yet; `folder` holds it for verification."""

    commit: str
    tip: str
    folder: str


class Merged(msgspec.Struct, frozen=True):
    sha: str


class AlreadyMerged(msgspec.Struct, frozen=True):
    """The merge branch has this change already, as `sha`."""

    sha: str


class NothingToMerge(msgspec.Struct, frozen=True):
    """The change has nothing that the merge branch lacks."""


class Conflict(msgspec.Struct, frozen=True):
    """The merge branch changed the same places; `text` shows them, up to a limit."""

    files: tuple[str, ...]
    text: str
    tip: str


class Rebased(msgspec.Struct, frozen=True):
    """A task's tree is on the merge branch's tip now, with conflicts in these files."""

    base: str
    files: tuple[str, ...]


class MergeBranch:
    """The merge branch of a workspace. It has one tree, so merges happen one at a time."""

    def __init__(self, workspace: "DeliveryWorkspace") -> None:
        self.workspace = workspace
        self.ref = merge_ref(workspace.slug)
        self.merge_tree = MergeTree(workspace)

    @property
    def tip(self) -> str:
        return self.workspace.ledger.refs[self.ref]

    def propose(self, change: TaskChange) -> Proposal | AlreadyMerged | NothingToMerge | Conflict:
        """Apply the change to the tip in the merge tree, without moving the branch."""
        git, tip = self.workspace.git, self._restore_tip()
        merged = self.find_merged(change)
        if merged:
            return AlreadyMerged(merged)
        squashed = self._squash(change, tip)
        if squashed is None:
            return NothingToMerge()
        self.merge_tree.check_out(tip)
        files = cherry_pick(self.merge_tree.git, squashed)
        if files:
            text = self.merge_tree.git.run("diff", "--no-color", max_output=_MOST_TEXT).text
            return Conflict(tuple(format_path(path) for path in files), text, tip)
        tree = self.merge_tree.git.read_line("write-tree")
        if tree == git.read_line("rev-parse", f"{tip}^{{tree}}"):
            return NothingToMerge()
        when = date_variables(self.workspace.clock())
        message = _build_message(change).encode(errors="replace")
        commit = git.read_line("commit-tree", tree, "-p", tip, stdin=message, env=when)
        git.read_line("update-ref", kept_ref(self.workspace.slug, commit), commit)
        save_file(self.merge_tree.admin / "HEAD", f"{commit}\n".encode())
        clear_operations(self.merge_tree.admin)
        return Proposal(commit=commit, tip=tip, folder=str(self.merge_tree.folder))

    def accept(self, proposal: Proposal) -> Merged:
        """Make a proposal the tip; raise MovedError if the branch moved since."""
        ledger = self.workspace.ledger
        with ledger.hold():
            if self._restore_tip() != proposal.tip:
                raise MovedError
            ledger.move(self.workspace.git, {self.ref: proposal.commit}, {self.ref: proposal.tip})
        return Merged(proposal.commit)

    def find_merged(self, change: TaskChange) -> str:
        """Return the commit in which the merge branch has this change, or ""."""
        wanted = set(_build_trailers(change)[:2])
        words = (
            "log",
            "-z",
            "--first-parent",
            "--format=%H%n%B",
            f"{self.workspace.base}..{self.tip}",
        )
        for row in self.workspace.git.read_paths(*words):
            commit, _, message = row.decode(errors="replace").partition("\n")
            if wanted <= set(message.rstrip("\n").rpartition("\n\n")[2].split("\n")):
                return commit
        return ""

    def rebase(self, tree: TaskTree, sha: str, base: str) -> Rebased:
        """Move a task's change onto the tip in its own tree, with markers where it conflicts."""
        tip = self._restore_tip()
        change = TaskChange(task_id=tree.record.task_id, dispatch_id="replant", sha=sha, base=base)
        squashed = self._squash(change, tip)
        tree.restore(tip)
        tree.set_base(tip)
        files = cherry_pick(tree.git, squashed) if squashed else []
        clear_operations(tree.admin)
        tree.git.read_line("read-tree", "--reset", tip)
        tree.share_index()
        return Rebased(tip, tuple(format_path(path) for path in files))

    def publish(self) -> Publication:
        """Bring the merge branch into the user's repository, as a branch of ours."""
        return publish(self.workspace, self._restore_tip())

    def _restore_tip(self) -> str:
        """Return the tip, after undoing any move of the branch by others."""
        with self.workspace.ledger.hold():
            current = self.workspace.git.run(
                "rev-parse", "--verify", "--quiet", self.ref
            ).text.strip()
            if current != self.tip:
                self.workspace.ledger.restore(self.workspace.git, {self.ref: self.tip})
            return self.tip

    def _squash(self, change: TaskChange, tip: str) -> str | None:
        """Return the change as one commit on its base, or None if it changes nothing."""
        git = self.workspace.git
        for commit in (change.sha, change.base):
            is_hash = _HASH.fullmatch(commit) is not None
            if not is_hash or not git.is_true("cat-file", "-e", f"{commit}^{{commit}}"):
                raise SourceError(
                    f"{commit[:40]!r} is not a commit of this workspace; give a snapshot"
                )
        if not git.is_true("merge-base", "--is-ancestor", change.base, tip):
            raise StateError(
                f"{change.base[:12]}, where {change.task_id!r} began, is not on the merge branch; "
                "restore its tree to a snapshot that is"
            )
        tree = git.read_line("rev-parse", f"{change.sha}^{{tree}}")
        if tree == git.read_line("rev-parse", f"{change.base}^{{tree}}"):
            return None
        words = ("commit-tree", tree, "-p", change.base)
        return git.read_line(
            *words, stdin=_build_message(change).encode(errors="replace"), env=date_variables(0)
        )


def _build_message(change: TaskChange) -> str:
    title = " ".join((change.title or change.task_id).split())[:_MOST_TITLE]
    return "\n".join((title, "", *_build_trailers(change), ""))


def _build_trailers(change: TaskChange) -> list[str]:
    ids = (" ".join(word.split()) for word in (change.task_id, change.dispatch_id))
    task_id, dispatch_id = ids
    return [
        f"Interlock-Task: {task_id}",
        f"Interlock-Dispatch: {dispatch_id}",
        f"Interlock-Change: {change.sha}",
    ]
