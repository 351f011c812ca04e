"""The workshop of one run: a folder with our clone, the task trees, the line and the ledger.

Knows how it is founded, and opened again after a crash at any point. One process at a time. Refuses
to know what is done in a tree and what is merged.
"""

import os
import re
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from interlock.delivery.worktrees.founding import (
    CLONE,
    CONFIG,
    EXCLUDE,
    LEDGER,
    MAKING,
    ORIGIN,
    make,
)
from interlock.delivery.worktrees.ledger import RefLedger
from interlock.delivery.worktrees.names import checked_slug
from interlock.delivery.worktrees.source import SourceRepo, look
from interlock.system.errors import SourceError, StateError
from interlock.system.files import exists, is_folder, remove, save_file
from interlock.system.git import OWN_CLONE, Git, Heed, unheeded
from interlock.system.locks import take_lock

if TYPE_CHECKING:
    from interlock.delivery.worktrees.merge_branch import MergeBranch
    from interlock.delivery.worktrees.tree import TaskTree

MANIFEST = "workshop.json"
LOCK = "lock"
_FORM = 1
_PATIENCE = 2.0
"""Seconds for a git that outlived its run and still holds the lock."""
"""For as long, a git that a killed process left may need to end."""
_OURS = frozenset({LOCK, ".gitignore", MANIFEST, f".{MANIFEST}.new"})

_SPECIAL, _ESCAPED = re.compile(r"([*?\[\\ #!])"), r"\\\1"

Clock = Callable[[], int]


def wall_clock() -> int:
    return int(time.time())


class WorkspaceManifest(msgspec.Struct, frozen=True, kw_only=True):
    """What this folder is, kept beside what was made. Without it nothing here is touched."""

    interlock_workshop: int
    slug: str
    asked: str
    keep_hooks: bool
    found: SourceRepo


class DeliveryWorkspace:
    """An open workshop. Close it, or leave its `with`, and another process may open it."""

    def __init__(
        self, home: Path, manifest: WorkspaceManifest, lock: int, clock: Clock, heed: Heed
    ) -> None:
        self.home = home
        self.manifest = manifest
        self.clock = clock
        self.heed = heed
        self._lock = lock
        self._is_open = False
        self.repo = home / CLONE
        self.git = self.hand(self.repo)
        self.ledger = RefLedger(home / LEDGER, heed)

    @classmethod
    def found(
        cls,
        source: Path,
        home: Path,
        slug: str,
        base: str = "HEAD",
        *,
        keep_hooks: bool = False,
        clock: Clock = wall_clock,
        heed: Heed = unheeded,
    ) -> "DeliveryWorkspace":
        """Make it, or open what is there. The base of the first time stays."""
        checked_slug(slug)
        seen = _seen(home)
        lock = lock_workspace(home)
        try:
            manifest = read_manifest(home) if seen else None
            if manifest is None:
                found = look(source, base)
                manifest = WorkspaceManifest(
                    interlock_workshop=_FORM,
                    slug=slug,
                    asked=base,
                    keep_hooks=keep_hooks,
                    found=found,
                )
                heed("manifest")
                save_file(home / ".gitignore", b"*\n")
                save_file(home / MANIFEST, msgspec.json.encode(manifest))
            else:
                _same(manifest, source, slug, base)
            if not is_folder(home / CLONE):
                make(home, manifest.found, slug, manifest.keep_hooks, heed, lock)
            shop = cls(home, manifest, lock, clock, heed)
            shop._recover()
        except BaseException:
            os.close(lock)
            raise
        shop._is_open = True
        return shop

    @classmethod
    def open(
        cls, home: Path, *, clock: Clock = wall_clock, heed: Heed = unheeded
    ) -> "DeliveryWorkspace":
        """Open what was founded before."""
        manifest = read_manifest(home)
        if manifest is None:
            raise SourceError(f"{home} is not a workshop of Interlock; name the folder of one")
        found = manifest.found
        return cls.found(
            Path(found.folder), home, manifest.slug, manifest.asked, clock=clock, heed=heed
        )

    @property
    def slug(self) -> str:
        return self.manifest.slug

    @property
    def base(self) -> str:
        return self.manifest.found.base

    @property
    def notes(self) -> tuple[str, ...]:
        return self.manifest.found.notes

    @property
    def line(self) -> "MergeBranch":
        from interlock.delivery.worktrees.merge_branch import MergeBranch

        return MergeBranch(self)

    def tree(self, task_id: str) -> "TaskTree":
        """The tree of that task; made from the line's tip if there is none."""
        from interlock.delivery.worktrees.tree import TaskTree

        return TaskTree.enter(self, task_id)

    def trees(self) -> "list[TaskTree]":
        """All trees there are, by the names of their folders."""
        from interlock.delivery.worktrees.tree import TaskTree

        return TaskTree.all_of(self)

    def hand(
        self,
        git_dir: Path,
        tree: Path | None = None,
        index: Path | None = None,
        safe: tuple[str, ...] = (),
    ) -> Git:
        """git on that directory; with a tree it is one of ours, which shares our clone."""
        shared = self.repo if tree is not None else None
        return Git(
            git_dir,
            OWN_CLONE,
            tree=tree,
            index=index,
            shared=shared,
            heed=self.heed,
            safe=safe,
            lock=self._lock,
        )

    def origin(self) -> dict[str, str]:
        """The refs of the user's repository, as they were found."""
        file = self.home / ORIGIN
        try:
            return msgspec.json.decode(file.read_bytes(), type=dict[str, str])
        except (OSError, msgspec.MsgspecError) as error:
            raise _damaged(file, error) from None

    def keep_settings(self) -> None:
        """Put the clone's settings back: they count for all trees, and any agent can write."""
        with self.ledger.turn():
            for kept, file in ((CONFIG, "config"), (EXCLUDE, "info/exclude")):
                _keep(self.home / kept, self.repo / file)
            for name in ("config.lock", "info/attributes", "info/grafts", "info/sparse-checkout"):
                remove(self.repo / name)

    def exclude(self, paths: Iterable[str]) -> None:
        """These paths of every tree are nobody's work: they never become part of a snapshot."""
        with self.ledger.turn():
            file = self.home / EXCLUDE
            known = file.read_text(encoding="utf-8", errors="surrogateescape").split("\n")
            lines = [f"/{_SPECIAL.sub(_ESCAPED, path)}" for path in paths]
            new = [line for line in lines if line not in known and "\n" not in line]
            if new:
                text = "\n".join([*filter(None, known), *new, ""])
                save_file(file, text.encode(errors="surrogateescape"))
        self.keep_settings()

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
        remove(self.home / MAKING)
        for lock in (self.repo / "refs").rglob("*.lock"):
            lock.unlink(missing_ok=True)
        for name in ("packed-refs.lock", "HEAD.lock", "config.lock"):
            (self.repo / name).unlink(missing_ok=True)
        self.keep_settings()
        self.ledger.settle(self.git)


def read_manifest(home: Path) -> WorkspaceManifest | None:
    """What the folder says it is; nothing if it is not ours. A damaged manifest is an error."""
    file = home / MANIFEST
    if not exists(file):
        return None
    try:
        manifest = msgspec.json.decode(file.read_bytes(), type=WorkspaceManifest)
    except (OSError, msgspec.MsgspecError) as error:
        raise SourceError(
            f"{file} cannot be read ({error}); use another folder, or look what this one is"
        ) from None
    if manifest.interlock_workshop != _FORM:
        raise SourceError(f"{file} was written by another version of Interlock; use that one")
    return manifest


def _damaged(file: Path, error: Exception) -> SourceError:
    return SourceError(f"{file} cannot be read ({error}); bring it back from a copy")


def _keep(kept: Path, file: Path) -> None:
    try:
        content = kept.read_bytes()
    except OSError as error:
        raise _damaged(kept, error) from None
    if not file.is_file() or file.is_symlink() or file.read_bytes() != content:
        remove(file)
        file.parent.mkdir(exist_ok=True)
        save_file(file, content)


def _seen(home: Path) -> bool:
    """Whether something is there already. SourceError if that is not ours."""
    if exists(home / MANIFEST):
        return True
    if not exists(home):
        return False
    if not is_folder(home):
        raise SourceError(f"{home} is not a folder; name another one for the workshop")
    others = sorted(
        entry.name
        for entry in home.iterdir()
        if entry.name not in _OURS and not re.fullmatch(r"\..*\.new", entry.name)
    )
    if others:
        raise SourceError(
            f"{home} is not empty ({others[0]!r}) and not a workshop; name an empty folder"
        )
    return False


def lock_workspace(home: Path) -> int:
    """The lock on the folder; it dies with its process."""
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


def _same(manifest: WorkspaceManifest, source: Path, slug: str, base: str) -> None:
    """What is asked for is what was founded here."""
    found = manifest.found
    if manifest.slug != slug:
        raise SourceError(f"this workshop is that of {manifest.slug!r}; name another folder")
    if source.resolve() != Path(found.folder):
        raise SourceError(f"this workshop is that of {found.folder}; name another folder")
    if base != manifest.asked and look(source, base).base != found.base:
        raise SourceError(
            f"this run began at {found.base[:12]}, which is not {base!r}; leave the base out, or "
            "start a new run"
        )
