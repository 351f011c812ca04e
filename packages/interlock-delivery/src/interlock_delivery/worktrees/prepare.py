"""Prepare a tree for work: copy files that git does not have, and run the set-up command.

None of that is anybody's change: new files are excluded and changed ones restored. Nothing is
copied from outside the user's folder.
"""

import os
import shutil
import subprocess
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import msgspec

from interlock.carriers.cli.profiles import filter_environment
from interlock.system.files import exists, is_folder, remove_tree
from interlock.system.git import Git
from interlock.system.process_tree import kill_group
from interlock_delivery.worktrees.clone import fill_submodules
from interlock_delivery.worktrees.names import format_path
from interlock_delivery.worktrees.snapshot import list_changed, list_untracked

if TYPE_CHECKING:
    from interlock_delivery.worktrees.workspace import DeliveryWorkspace

PATIENCE = 600.0
_TAIL = 16_000
_MOST_NAMED = 10


class PrepareTarget(Protocol):
    """A tree that can be prepared: a task's, or the merge tree."""

    workspace: "DeliveryWorkspace"
    root: Path
    folder: Path
    git: Git

    def environment(self, ports: tuple[int, int] | None = None) -> dict[str, str]: ...


class Prepared(msgspec.Struct, frozen=True, kw_only=True):
    """The result; if the tree is not ready, `output` is the end of the set-up command's output."""

    is_ready: bool
    copied: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    exit_code: int | None = None
    is_late: bool = False
    output: str = ""


def prepare_tree(
    tree: PrepareTarget,
    files_to_copy: Sequence[str] = (),
    setup: Sequence[str] = (),
    ports: tuple[int, int] | None = None,
    *,
    environ: Mapping[str, str] | None = None,
    patience: float = PATIENCE,
) -> Prepared:
    """Copy files, run the set-up command, and hide the traces of both from snapshots."""
    had_work = bool(list_changed(tree.git) or list_untracked(tree.git))
    notes = fill_submodules(tree.git, tree.workspace.source)
    copied, remarks = _copy_all(tree, files_to_copy)
    notes += remarks
    if not setup:
        return Prepared(is_ready=True, copied=tuple(copied), notes=tuple(notes))
    around = filter_environment(os.environ) if environ is None else dict(environ)
    around |= tree.environment(ports)
    code, is_late, output = _run_setup(list(setup), tree.folder, around, patience)
    if not had_work:
        notes += _undo_setup_changes(tree)
    return Prepared(
        is_ready=code == 0,
        copied=tuple(copied),
        notes=tuple(notes),
        exit_code=code,
        is_late=is_late,
        output=output,
    )


def _undo_setup_changes(tree: PrepareTarget) -> list[str]:
    """Exclude new files of the command, and restore changed ones."""
    notes = []
    new = list_untracked(tree.git)
    if new:
        tree.workspace.exclude(path.decode(errors="surrogateescape") for path in new)
        notes.append(f"the set-up command left {_format_paths(new)}, which will not be recorded")
    differing = sorted(list_changed(tree.git))
    if differing:
        tree.git.read_line("checkout-index", "--force", "--all")
        notes.append(f"the set-up command changed {_format_paths(differing)}; this is undone")
    return notes


def _format_paths(paths: Sequence[bytes]) -> str:
    names = ", ".join(format_path(path) for path in paths[:_MOST_NAMED])
    more = len(paths) - _MOST_NAMED
    return f"{names} and {more} more" if more > 0 else names


def _copy_all(tree: PrepareTarget, patterns: Sequence[str]) -> tuple[list[str], list[str]]:
    source = Path(tree.workspace.source.folder)
    copied: list[str] = []
    notes: list[str] = []
    for pattern in patterns:
        found, note = _find_matches(source, pattern)
        notes += [note] if note else []
        for path in found:
            name = str(path.relative_to(source))
            note = _copy_path(tree, source, name)
            notes += [note] if note else []
            copied += [] if note else [name]
    prefix = tree.workspace.source.prefix
    tree.workspace.exclude(f"{prefix}{name}" for name in copied)
    return copied, notes


def _find_matches(source: Path, pattern: str) -> tuple[list[Path], str]:
    parts = Path(pattern).parts
    if not parts or Path(pattern).is_absolute() or ".." in parts or ".git" in parts:
        return [], f"{pattern!r} is not copied: name a file inside {source}"
    try:
        found = sorted(source.glob(pattern))
    except (ValueError, OSError, NotImplementedError) as error:
        return [], f"{pattern!r} is not copied: {error}"
    return found, "" if found else f"{pattern!r} is not copied: there is no such file in {source}"


def _copy_path(tree: PrepareTarget, source: Path, name: str) -> str:
    """Copy one file or folder; return why that is impossible, or ""."""
    origin, target = source / name, tree.folder / name
    try:
        resolved = origin.resolve(strict=True)
        if not resolved.is_relative_to(Path(tree.workspace.source.top)):
            return f"{name!r} is not copied: it leads out of the repository"
        if tree.git.read_paths("ls-files", "-z", "--", str(target)):
            return f"{name!r} is not copied: it is committed, and the committed one is used"
        if not target.parent.resolve().is_relative_to(tree.root.resolve()):
            return f"{name!r} is not copied: its place in the tree leads elsewhere"
        if exists(target) and not is_folder(target):
            remove_tree(target)
        target.parent.mkdir(parents=True, exist_ok=True)
        if resolved.is_dir():
            shutil.copytree(resolved, target, symlinks=True, dirs_exist_ok=True)
        else:
            shutil.copy2(resolved, target)
    except (OSError, shutil.Error) as error:
        return f"{name!r} is not copied: {error}"[:300]
    return ""


def _run_setup(
    command: list[str], folder: Path, environ: Mapping[str, str], patience: float
) -> tuple[int, bool, str]:
    """Run a command; return its exit code, whether it timed out, and the end of its output."""
    try:
        process = subprocess.Popen(  # noqa: S603
            command,
            cwd=folder,
            env=dict(environ),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    except (OSError, ValueError) as error:
        return 127, False, f"{command[0]!r} cannot be run: {error}; correct the set-up command"
    tail = bytearray()
    reader = threading.Thread(target=_read_tail, args=(process, tail), daemon=True)
    reader.start()
    is_late = False
    try:
        process.wait(patience)
    except subprocess.TimeoutExpired:
        is_late = True
    kill_group(process.pid)
    process.wait()
    # A process that left the group may hold the pipe for ever, so do not wait for it.
    reader.join(1.0)
    return process.returncode, is_late, bytes(tail).decode(errors="replace")


def _read_tail(process: "subprocess.Popen[bytes]", tail: bytearray) -> None:
    stream = process.stdout
    while stream is not None and (chunk := stream.read1(1 << 16)):  # type: ignore[attr-defined]
        tail += chunk
        del tail[:-_TAIL]
    if stream is not None:
        stream.close()
