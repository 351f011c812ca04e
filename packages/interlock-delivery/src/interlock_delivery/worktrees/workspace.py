"""Manage a run's workspace: a folder with our clone, task trees, merge branch and ledger.

Creates it, opens it again after a crash at any point, and removes it. One process uses it at a
time. Only what the manifest names is removed; unrecorded work, unmerged tasks and an unpublished
branch stay unless forced. The user's repository is never touched.
"""

import os
import re
import time
from collections.abc import Iterable
from pathlib import Path

import msgspec

from interlock.system.errors import SourceError, StateError
from interlock.system.files import exists, is_folder, remove_tree, save_file
from interlock.system.git import OWN_CLONE, Git, GitPlaces, OnStep, ignore_step
from interlock.system.locks import take_lock
from interlock_delivery.worktrees.clone import (
    CLONE,
    CONFIG,
    EMPTY,
    EXCLUDE,
    LEDGER,
    MAKING,
    ORIGIN,
    Clock,
    SourceRepo,
    create_clone,
    inspect_repository,
)
from interlock_delivery.worktrees.merge_branch import MergeBranch
from interlock_delivery.worktrees.names import check_slug
from interlock_delivery.worktrees.ref_guard import RefLedger
from interlock_delivery.worktrees.tree import ASIDE, INDEXES, TASKS, TREES, TaskTree

MANIFEST = "workspace.json"
LOCK = "lock"
_FORM = 1
_PATIENCE = 2.0
"""The seconds to wait for a git that outlived its run and still holds the lock."""
_OURS = frozenset({LOCK, ".gitignore", MANIFEST, f".{MANIFEST}.new"})

_SPECIAL, _ESCAPED = re.compile(r"([*?\[\\ #!])"), r"\\\1"


def read_wall_clock() -> int:
    return int(time.time())


class WorkspaceManifest(msgspec.Struct, frozen=True, kw_only=True):
    """The description of a workspace; a folder without one is never touched."""

    interlock_workspace: int
    slug: str
    asked: str
    keep_hooks: bool
    found: SourceRepo


class DeliveryWorkspace:
    """An open workspace, locked against other processes until it is closed."""

    def __init__(
        self, home: Path, manifest: WorkspaceManifest, lock: int, clock: Clock, on_step: OnStep
    ) -> None:
        self.home = home
        self.manifest = manifest
        self.clock = clock
        self.on_step = on_step
        self._lock = lock
        self._is_open = False
        self.repo = home / CLONE
        self.git = self.open_git(self.repo)
        self.ledger = RefLedger(home / LEDGER, on_step)

    @classmethod
    def create(
        cls,
        source: Path,
        home: Path,
        slug: str,
        base: str = "HEAD",
        *,
        keep_hooks: bool = False,
        clock: Clock = read_wall_clock,
        on_step: OnStep = ignore_step,
    ) -> "DeliveryWorkspace":
        """Create a workspace, or open the existing one, whose base stays."""
        check_slug(slug)
        seen = _has_workspace(home)
        lock = lock_workspace(home)
        try:
            manifest = read_manifest(home) if seen else None
            if manifest is None:
                found = inspect_repository(source, base)
                manifest = WorkspaceManifest(
                    interlock_workspace=_FORM,
                    slug=slug,
                    asked=base,
                    keep_hooks=keep_hooks,
                    found=found,
                )
                on_step("manifest")
                save_file(home / ".gitignore", b"*\n")
                save_file(home / MANIFEST, msgspec.json.encode(manifest))
            else:
                _check_same_run(manifest, source, slug, base)
            if not is_folder(home / CLONE):
                create_clone(home, manifest.found, slug, manifest.keep_hooks, on_step, lock)
            workspace = cls(home, manifest, lock, clock, on_step)
            workspace._recover()
        except BaseException:
            os.close(lock)
            raise
        workspace._is_open = True
        return workspace

    @classmethod
    def open(
        cls, home: Path, *, clock: Clock = read_wall_clock, on_step: OnStep = ignore_step
    ) -> "DeliveryWorkspace":
        """Open an existing workspace."""
        manifest = read_manifest(home)
        if manifest is None:
            raise SourceError(f"{home} is not a workspace of Interlock; name the folder of one")
        found = manifest.found
        return cls.create(
            Path(found.folder), home, manifest.slug, manifest.asked, clock=clock, on_step=on_step
        )

    @property
    def slug(self) -> str:
        return self.manifest.slug

    @property
    def source(self) -> SourceRepo:
        """Return the user's repository as it was found."""
        return self.manifest.found

    @property
    def base(self) -> str:
        return self.source.base

    @property
    def notes(self) -> tuple[str, ...]:
        return self.source.notes

    @property
    def merge_branch(self) -> MergeBranch:
        return MergeBranch(self)

    def open_tree(self, task_id: str) -> TaskTree:
        """Return a task's tree, new from the merge branch's tip if there is none."""
        return TaskTree.enter(self, task_id)

    def list_trees(self) -> list[TaskTree]:
        """Return all trees, ordered by folder name."""
        return TaskTree.list_trees(self)

    def open_git(
        self,
        git_dir: Path,
        tree: Path | None = None,
        index: Path | None = None,
        safe: tuple[str, ...] = (),
    ) -> Git:
        """Return git on a directory; with a tree it shares our clone."""
        shared = self.repo if tree is not None else None
        return Git(
            git_dir,
            OWN_CLONE,
            places=GitPlaces(tree, index, shared),
            on_step=self.on_step,
            safe=safe,
            lock=self._lock,
        )

    def read_origin_refs(self) -> dict[str, str]:
        """Return the refs of the user's repository as they were found."""
        file = self.home / ORIGIN
        try:
            return msgspec.json.decode(file.read_bytes(), type=dict[str, str])
        except (OSError, msgspec.MsgspecError) as error:
            raise _build_damage_error(file, error) from None

    def restore_settings(self) -> None:
        """Restore the clone's settings, which all trees share and any agent can write."""
        with self.ledger.hold():
            for kept, file in ((CONFIG, "config"), (EXCLUDE, "info/exclude")):
                _restore_file(self.home / kept, self.repo / file)
            for name in ("config.lock", "info/attributes", "info/grafts", "info/sparse-checkout"):
                remove_tree(self.repo / name)

    def exclude(self, paths: Iterable[str]) -> None:
        """Exclude paths from the snapshots of every tree."""
        with self.ledger.hold():
            file = self.home / EXCLUDE
            known = file.read_text(encoding="utf-8", errors="surrogateescape").split("\n")
            lines = [f"/{_SPECIAL.sub(_ESCAPED, path)}" for path in paths]
            new = [line for line in lines if line not in known and "\n" not in line]
            if new:
                text = "\n".join([*filter(None, known), *new, ""])
                save_file(file, text.encode(errors="surrogateescape"))
        self.restore_settings()

    def close(self) -> None:
        if self._is_open:
            self._is_open = False
            os.close(self._lock)

    def __enter__(self) -> "DeliveryWorkspace":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __del__(self) -> None:
        self.close()

    def _recover(self) -> None:
        remove_tree(self.home / MAKING)
        for lock in (self.repo / "refs").rglob("*.lock"):
            lock.unlink(missing_ok=True)
        for name in ("packed-refs.lock", "HEAD.lock", "config.lock"):
            (self.repo / name).unlink(missing_ok=True)
        self.restore_settings()
        self.ledger.finish_moves(self.git)


def read_manifest(home: Path) -> WorkspaceManifest | None:
    """Return a folder's manifest, or None; raise SourceError if it is damaged."""
    file = home / MANIFEST
    if not exists(file):
        return None
    try:
        manifest = msgspec.json.decode(file.read_bytes(), type=WorkspaceManifest)
    except (OSError, msgspec.MsgspecError) as error:
        raise SourceError(
            f"{file} cannot be read ({error}); use another folder, or inspect this one"
        ) from None
    if manifest.interlock_workspace != _FORM:
        raise SourceError(f"{file} was written by another version of Interlock; use that one")
    return manifest


def _build_damage_error(file: Path, error: Exception) -> SourceError:
    return SourceError(f"{file} cannot be read ({error}); restore it from a copy")


def _restore_file(kept: Path, file: Path) -> None:
    try:
        content = kept.read_bytes()
    except OSError as error:
        raise _build_damage_error(kept, error) from None
    if not file.is_file() or file.is_symlink() or file.read_bytes() != content:
        remove_tree(file)
        file.parent.mkdir(exist_ok=True)
        save_file(file, content)


def _has_workspace(home: Path) -> bool:
    """Return True if the folder is a workspace; raise SourceError if it is anything else."""
    if exists(home / MANIFEST):
        return True
    if not exists(home):
        return False
    if not is_folder(home):
        raise SourceError(f"{home} is not a folder; name another one for the workspace")
    others = sorted(
        entry.name
        for entry in home.iterdir()
        if entry.name not in _OURS and not re.fullmatch(r"\..*\.new", entry.name)
    )
    if others:
        raise SourceError(
            f"{home} is not empty ({others[0]!r}) and not a workspace; name an empty folder"
        )
    return False


def lock_workspace(home: Path) -> int:
    """Lock the folder until the process ends."""
    try:
        home.mkdir(parents=True, exist_ok=True)
        taken = take_lock(home / LOCK, f"{os.getpid()}\n".encode(), wait=_PATIENCE)
    except OSError as error:
        raise SourceError(f"{home} cannot be used: {error}; name another folder") from None
    if taken is None:
        raise StateError(
            f"{home} is in use by another process; wait for it, or stop that run first"
        )
    return taken


def _check_same_run(manifest: WorkspaceManifest, source: Path, slug: str, base: str) -> None:
    """Raise SourceError unless the workspace was made for the same slug, source and base."""
    found = manifest.found
    if manifest.slug != slug:
        raise SourceError(f"this workspace belongs to {manifest.slug!r}; name another folder")
    if source.resolve() != Path(found.folder):
        raise SourceError(f"this workspace belongs to {found.folder}; name another folder")
    if base != manifest.asked and inspect_repository(source, base).base != found.base:
        raise SourceError(
            f"this run began at {found.base[:12]}, which is not {base!r}; omit --base, or "
            "start a new run"
        )


_LOOSE = (TREES, INDEXES, ASIDE, MAKING)
_REST = (CLONE, TASKS, EMPTY, LEDGER, ORIGIN, CONFIG, EXCLUDE)
_LAST = (".gitignore", MANIFEST, LOCK)
"""Removed last: while the manifest exists, the folder can be cleaned again."""


class Removal(msgspec.Struct, frozen=True):
    """Something of ours that is removed, or kept if there is a reason."""

    path: str
    reason: str = ""

    @property
    def is_kept(self) -> bool:
        return bool(self.reason)


def clean_workspace(
    home: Path, *, dry_run: bool = True, force: bool = False, also: tuple[str, ...] = ()
) -> list[Removal]:
    """Remove a workspace, or list what would go; return what is kept and why.

    `also` names folders that were put beside ours.
    """
    if not is_folder(home) or read_manifest(home) is None:
        raise SourceError(f"{home} is not a workspace of Interlock, so nothing is removed there")
    if force or not is_folder(home / CLONE):
        lock = lock_workspace(home)
        try:
            return _remove_all(home, dry_run, also)
        finally:
            os.close(lock)
    with DeliveryWorkspace.open(home) as workspace:
        found = _find_losses(workspace)
        kept = {loss.path for loss in found}
        trees = [tree for tree in workspace.list_trees() if str(tree.root) not in kept]
        if not found:
            return _remove_all(home, dry_run, also)
        for tree in trees:
            if exists(tree.root):
                found.append(Removal(str(tree.root)))
                if not dry_run:
                    tree.close()
        return sorted(found, key=lambda row: row.path)


def _find_losses(workspace: DeliveryWorkspace) -> list[Removal]:
    found = [loss for tree in workspace.list_trees() if (loss := _find_loss(workspace, tree))]
    tip = workspace.merge_branch.tip
    if tip != workspace.base and tip not in workspace.ledger.published:
        reason = "the merge branch has work that is not published; publish it, or use --force"
        found.append(Removal(str(workspace.repo), reason))
    elif found:
        found.append(Removal(str(workspace.repo), "work that is kept is recorded in it"))
    return found


def _find_loss(workspace: DeliveryWorkspace, tree: TaskTree) -> Removal | None:
    where = str(tree.root)
    try:
        if tree.is_dirty():
            return Removal(where, "it has work that is not recorded; snapshot it, or use --force")
    except (SourceError, StateError) as error:
        return Removal(where, f"it cannot be read ({error}); inspect it, or use --force")
    if tree.tip not in (tree.base, *_list_merged(workspace)):
        return Removal(where, "its work is recorded but not merged; merge it, or use --force")
    return None


def _list_merged(workspace: DeliveryWorkspace) -> set[str]:
    """Return the snapshots that the merge branch has, by its trailers."""
    words = (
        "log",
        "--format=%(trailers:key=Interlock-Change,valueonly)",
        f"{workspace.base}..{workspace.merge_branch.tip}",
    )
    return set(workspace.git.read_line(*words).split())


def _remove_all(home: Path, dry_run: bool, also: tuple[str, ...]) -> list[Removal]:
    names = [name for name in (*_LOOSE, *also, *_REST, *_LAST) if exists(home / name)]
    found = [Removal(str(home / name)) for name in names]
    if not dry_run:
        for name in names:
            remove_tree(home / name)
        if not any(home.iterdir()):
            home.rmdir()
    return found
