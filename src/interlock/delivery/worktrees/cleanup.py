"""Taking a workshop away: what the manifest says is ours, and nothing that is lost by it.

Knows what would be lost: unrecorded work in a tree, tasks that were not merged, a line that was not
published. Those stay, with what they need, unless forced. Never touches the user's repository.
"""

import os
from pathlib import Path

import msgspec

from interlock.delivery.worktrees.founding import (
    CLONE,
    CONFIG,
    EMPTY,
    EXCLUDE,
    LEDGER,
    MAKING,
    ORIGIN,
)
from interlock.delivery.worktrees.tree import ASIDE, INDEXES, TASKS, TREES, TaskTree
from interlock.delivery.worktrees.workshop import (
    LOCK,
    MANIFEST,
    DeliveryWorkspace,
    lock_workspace,
    read_manifest,
)
from interlock.system.errors import SourceError, StateError
from interlock.system.files import exists, is_folder, remove

_LOOSE = (TREES, INDEXES, ASIDE, MAKING)
_REST = (CLONE, TASKS, EMPTY, LEDGER, ORIGIN, CONFIG, EXCLUDE)
_LAST = (".gitignore", MANIFEST, LOCK)
"""In this order: while the manifest is there, the folder can be cleaned again."""


class Removal(msgspec.Struct, frozen=True):
    """One thing of ours. Kept if there is a reason."""

    path: str
    reason: str = ""

    @property
    def is_kept(self) -> bool:
        return bool(self.reason)


def clean(
    home: Path, *, dry_run: bool = True, force: bool = False, also: tuple[str, ...] = ()
) -> list[Removal]:
    """What is removed, or would be, and what is kept and why; `also` are names of folders that
    whoever works here has put beside ours."""
    if not is_folder(home) or read_manifest(home) is None:
        raise SourceError(f"{home} is not a workshop of Interlock, so nothing is removed there")
    if force or not is_folder(home / CLONE):
        lock = lock_workspace(home)
        try:
            return _take_all(home, dry_run, also)
        finally:
            os.close(lock)
    with DeliveryWorkspace.open(home) as shop:
        found = _losses(shop)
        kept = {loss.path for loss in found}
        trees = [tree for tree in shop.trees() if str(tree.root) not in kept]
        if not found:
            return _take_all(home, dry_run, also)
        for tree in trees:
            if exists(tree.root):
                found.append(Removal(str(tree.root)))
                if not dry_run:
                    tree.close()
        return sorted(found, key=lambda row: row.path)


def _losses(shop: DeliveryWorkspace) -> list[Removal]:
    found = [loss for tree in shop.trees() if (loss := _loss(shop, tree))]
    tip = shop.line.tip
    if tip != shop.base and tip not in shop.ledger.published:
        reason = "the line has merged work that is not published; publish it, or use force"
        found.append(Removal(str(shop.repo), reason))
    elif found:
        found.append(Removal(str(shop.repo), "work that is kept is recorded in it"))
    return found


def _loss(shop: DeliveryWorkspace, tree: TaskTree) -> Removal | None:
    where = str(tree.root)
    try:
        if tree.is_dirty():
            return Removal(where, "it has work that is not recorded; snapshot it, or use force")
    except (SourceError, StateError) as error:
        return Removal(where, f"it cannot be read ({error}); look at it, or use force")
    if tree.tip not in (tree.base, *_merged(shop)):
        return Removal(where, "its work is recorded but not merged; merge it, or use force")
    return None


def _merged(shop: DeliveryWorkspace) -> set[str]:
    """The snapshots that the line has, by its trailers."""
    words = (
        "log",
        "--format=%(trailers:key=Interlock-Change,valueonly)",
        f"{shop.base}..{shop.line.tip}",
    )
    return set(shop.git.ask(*words).split())


def _take_all(home: Path, dry_run: bool, also: tuple[str, ...]) -> list[Removal]:
    names = [name for name in (*_LOOSE, *also, *_REST, *_LAST) if exists(home / name)]
    found = [Removal(str(home / name)) for name in names]
    if not dry_run:
        for name in names:
            remove(home / name)
        if not any(home.iterdir()):
            home.rmdir()
    return found
