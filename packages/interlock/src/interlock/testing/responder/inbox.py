"""Find the signals that wait for a responder, and claim them.

`SignalFinder` finds waiting signals, each with its batch, again and again at little cost. A claim
is a locked file `.claim-{dispatch_id}` beside the signal. The system releases the lock when its
owner dies, so a claim file without a lock may be taken over.
"""

import json
import os
import socket
import time
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

import msgspec

from interlock.signals.batch import (
    BatchBudget,
    BatchEntry,
    BatchManifest,
    read_budget,
    read_manifest,
)
from interlock.signals.signal_file import Artifact, SignalFile, read_artifact, read_signal
from interlock.system.errors import SourceError
from interlock.system.locks import take_lock
from interlock.system.open_folder import OpenFolder
from interlock.system.strict_json import Problem

Record = TypeVar("Record", SignalFile, BatchManifest)
SIGNAL = "signal.json"
MANIFEST = "batch-manifest.json"
BUDGET = "budget-status.json"
_FRESH = 200_000_000
"""Nanoseconds within which a file may change again without a new time stamp."""


class SignalBatch(msgspec.Struct, frozen=True):
    """The manifest that lists a signal, and its entry there."""

    path: Path
    manifest: BatchManifest
    entry: BatchEntry


class WaitingSignal(msgspec.Struct, frozen=True):
    """A signal that asks for an answer."""

    tree: OpenFolder
    path: Path
    signal: SignalFile
    batch: SignalBatch | None = None

    @property
    def suite(self) -> Path:
        """The folder that holds the budget."""
        return self.batch.path.parent if self.batch else self.path.parent.parent


class SignalFinder:
    """Watch one signal, or everything below some folders."""

    def __init__(self, paths: Sequence[Path], report: Callable[[str], None]) -> None:
        self._places = [_open_place(path) for path in paths]
        self._report = report
        self._reported: dict[Path, str] = {}
        self._seen: dict[Path, tuple[tuple[int, int, int], SignalFile | None]] = {}

    def find_waiting(self) -> list[WaitingSignal]:
        """Return everything that waits and has no answer yet, oldest dispatch first."""
        found = [waiting for tree, only in self._places for waiting in self._find_in(tree, only)]
        return sorted(found, key=lambda waiting: waiting.signal.dispatch_id)

    def read_now(self, waiting: WaitingSignal) -> SignalFile | None:
        """Return the signal as it is at this moment; None if it cannot be read."""
        return self._read(waiting.tree, waiting.path)

    def is_answered(self, waiting: WaitingSignal) -> bool:
        """Return whether an artifact for this dispatch is already there."""
        try:
            raw = waiting.tree.read(Path(waiting.signal.artifact_path))
        except (OSError, SourceError):
            return False
        found = read_artifact(raw)
        return isinstance(found, Artifact) and found.dispatch_id == waiting.signal.dispatch_id

    def _find_in(self, tree: OpenFolder, only: Path | None) -> Iterator[WaitingSignal]:
        """Yield the waiting signals; manifests are read last, because signals are written before
        them."""
        files = [only] if only else list(_walk_files(tree.root))
        read = {path: self._read_if_changed(tree, path) for path in files if path.name == SIGNAL}
        waits = {path: one for path, one in read.items() if one and one.status == "waiting"}
        manifests = {path for path in files if path.name == MANIFEST}
        if not only:
            manifests |= {path.parent.with_name(MANIFEST) for path in waits}
        batches = self._find_batches(tree, manifests, waits)
        for path, signal in waits.items():
            waiting = WaitingSignal(tree, path, signal, batches.get(path))
            if not self.is_answered(waiting):
                yield waiting

    def _find_batches(
        self, tree: OpenFolder, manifests: Iterable[Path], signals: Container[Path]
    ) -> Mapping[Path, SignalBatch]:
        found: dict[Path, SignalBatch] = {}
        for path in manifests:
            if not path.is_relative_to(tree.root):
                continue
            manifest = self.read_manifest(tree, path)
            if manifest is None or manifest.status not in ("pending", "in_progress"):
                continue
            for entry in manifest.signals:
                signal_path = _find_listed(path, entry.signal_path, signals)
                if signal_path and entry.status in ("pending", "claimed"):
                    found[signal_path] = SignalBatch(path, manifest, entry)
        return found

    def read_manifest(self, tree: OpenFolder, path: Path) -> BatchManifest | None:
        return self._read_or_report(path, lambda: read_manifest(tree.read(path)))

    def read_budget(self, waiting: WaitingSignal) -> BatchBudget | Problem | None:
        """Return what the suite may still spend; None if nothing limits it."""
        try:
            return read_budget(waiting.tree.read(waiting.suite / BUDGET))
        except (OSError, SourceError):
            return None

    def _read_if_changed(self, tree: OpenFolder, path: Path) -> SignalFile | None:
        """Return the signal, read anew only if its file has changed."""
        try:
            there = os.lstat(path)
        except OSError:
            self._seen.pop(path, None)
            return None
        stamp = (there.st_mtime_ns, there.st_ino, there.st_size)
        before = self._seen.get(path)
        if before is None or before[0] != stamp:
            signal = self._read(tree, path)
            if time.time_ns() - there.st_mtime_ns < _FRESH:
                return signal
            self._seen[path] = before = (stamp, signal)
        return before[1]

    def _read(self, tree: OpenFolder, path: Path) -> SignalFile | None:
        return self._read_or_report(path, lambda: read_signal(tree.read(path)))

    def _read_or_report(self, path: Path, read: Callable[[], Record | Problem]) -> Record | None:
        """Read a file; report once why it cannot be taken."""
        try:
            found = read()
        except FileNotFoundError:
            return None
        except (OSError, SourceError) as error:
            self._report_once(path, str(error))
            return None
        if isinstance(found, Problem):
            if not found.may_be_partial:
                self._report_once(path, f"{path}: {found.sentence}")
            return None
        self._reported.pop(path, None)
        return found

    def _report_once(self, path: Path, sentence: str) -> None:
        if self._reported.get(path) != sentence:
            self._reported[path] = sentence
            self._report(f"skipped: {sentence}")


def _open_place(path: Path) -> tuple[OpenFolder, Path | None]:
    """Open the folder of a signal, which is watched alone, or of a manifest's suite."""
    if path.is_dir() or (path.name not in (SIGNAL, MANIFEST) and not path.exists()):
        return OpenFolder(path), None
    tree = OpenFolder(path.parent)
    if path.name not in (SIGNAL, MANIFEST):
        raise SourceError(f"{path} is neither a folder nor a {SIGNAL} or {MANIFEST}")
    return tree, tree.root / SIGNAL if path.name == SIGNAL else None


def _walk_files(root: Path) -> Iterator[Path]:
    for folder, _, names in os.walk(root):
        for name in names:
            if name in (SIGNAL, MANIFEST):
                yield Path(folder, name)


def _find_listed(manifest: Path, named: str, signals: Container[Path]) -> Path | None:
    """Return the signal that an entry names; paths are relative to the workspace, some folder
    above."""
    for folder in manifest.parents:
        path = folder / named
        if path in signals:
            return path
    return None


class DispatchClaim:
    """A held claim. `release` it when the work is done, `abandon` it when it is not."""

    def __init__(self, tree: OpenFolder, path: Path, descriptor: int) -> None:
        self._tree = tree
        self._path = path
        self._descriptor = descriptor

    def release(self) -> None:
        """Remove the claim's file while we still hold it: the work is done."""
        with suppress(OSError, SourceError), self._tree.open_parent(self._path) as (folder, name):
            os.unlink(name, dir_fd=folder)
        self.abandon()

    def abandon(self) -> None:
        """Release the lock and leave the file, as a sign that somebody began."""
        os.close(self._descriptor)


def take_claim(
    tree: OpenFolder, signal_path: Path, name: str, *, only_abandoned: bool = False
) -> DispatchClaim | None:
    """Take the claim of that name beside a signal; None if another living responder holds it."""
    path = signal_path.with_name(f".claim-{name}")
    owner = json.dumps({"pid": os.getpid(), "host": socket.gethostname()}).encode() + b"\n"
    try:
        with tree.open_parent(path) as (folder, file):
            taken = take_lock(Path(file), owner, create=not only_abandoned, dir_fd=folder)
    except FileNotFoundError:
        return None
    return None if taken is None else DispatchClaim(tree, path, taken)
