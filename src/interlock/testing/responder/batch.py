"""A parent's notes in `batch-manifest.json`: in progress, claimed, done, error.

Knows how to write them without losing those of another responder or of the coordinator. They are
courtesy: what counts is the artifact. Refuses to know workers.
"""

import asyncio
from collections.abc import Callable

from interlock.signals.batch import (
    BatchManifest,
    EntryStatus,
    encode_manifest,
    move_entry,
    move_manifest,
)
from interlock.system.errors import SourceError
from interlock.system.tree import OpenFolder
from interlock.testing.responder.claim import take
from interlock.testing.responder.lookout import SignalBatch, SignalFinder

_TRIES = 100
_PAUSE = 0.01


class Notes:
    """Writes what becomes of a batch's signals."""

    def __init__(self, lookout: SignalFinder, now: Callable[[], str]) -> None:
        self._lookout = lookout
        self._now = now

    async def note(self, tree: OpenFolder, batch: SignalBatch, status: EntryStatus) -> None:
        """Set one entry's status, if the batch still is the one it was."""
        for _ in range(_TRIES):
            try:
                lock = take(tree, batch.path, "manifest")
                if lock is not None:
                    try:
                        return self._write(tree, batch, status)
                    finally:
                        lock.settle()
            except (OSError, SourceError):
                return None
            await asyncio.sleep(_PAUSE)
        return None

    def _write(self, tree: OpenFolder, batch: SignalBatch, status: EntryStatus) -> None:
        before = self._lookout.manifest(tree, batch.path)
        if before is None or before.batch_id != batch.manifest.batch_id:
            return
        after = _noted(before, batch.entry.case_id, status, self._now())
        if after != before:
            tree.replace(
                batch.path,
                encode_manifest(after),
                lambda: self._lookout.manifest(tree, batch.path) == before,
            )


def _noted(manifest: BatchManifest, case_id: str, status: EntryStatus, at: str) -> BatchManifest:
    try:
        if manifest.status == "pending":
            manifest = move_manifest(manifest, "in_progress", at)
        return (
            move_entry(manifest, case_id, status, at)
            if manifest.status == "in_progress"
            else manifest
        )
    except ValueError:
        return manifest
