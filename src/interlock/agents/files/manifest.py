"""The manifest on disk: one file that we and a parent agent both write.

Knows what is ours to say (who is settled, how the batch ended) and what is theirs (claims), and
that a manifest of a dead process is archived, not obeyed. Refuses to know signals and artifacts.
"""

import re
from contextlib import suppress
from pathlib import Path

from interlock.signals.batch import (
    BatchManifest,
    close_batch,
    encode_manifest,
    merge_claims,
    move_entry,
    read_manifest,
)
from interlock.signals.briefing import LARGEST_BRIEFING
from interlock.system.safe_file import (
    FileStamp,
    UnreadableFile,
    read_regular,
    set_aside,
    stamp,
    write_whole,
)
from interlock.system.strict_json import Problem

MANIFEST = "batch-manifest.json"
BRIEFING = "briefing.md"
_ENDED = ("done", "error")
_LARGEST = 16 * 1024 * 1024
_NUMBERED = re.compile(r"batch-manifest\.stale-([0-9]{1,18})(?:-[0-9]+)?\.json", re.ASCII)
_TITLE = re.compile(rb"# [^\n]* Batch ([0-9]{1,18})\n")
"""A briefing is written before its manifest, so its title knows an id that a lost manifest had."""


class ManifestFile:
    """`batch-manifest.json` of one run. `ours` says only what we know; claims are merged in."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._path = folder / MANIFEST
        self._ours: BatchManifest | None = None
        self._seen: FileStamp | None = None
        self._last_id = self._archive()

    def next_id(self) -> int:
        """Batch ids rise within a run, also over its restarts."""
        self._last_id += 1
        return self._last_id

    def open(self, manifest: BatchManifest) -> None:
        self._ours = manifest
        self._write(manifest)

    def settle(self, case_id: str, *, failed: bool, at: str) -> None:
        """Note how a signal ended, and with the last one the batch."""
        if self._ours is None or self._ours.status in _ENDED:
            return
        moved = move_entry(self._ours, case_id, "error" if failed else "done", at)
        self._ours = close_batch(moved, at)
        theirs = self._read()
        merged = (
            merge_claims(self._ours, theirs) if isinstance(theirs, BatchManifest) else self._ours
        )
        self._write(merged)

    def changed(self) -> bool:
        return self._ours is not None and stamp(self._path) != self._seen

    def read_back(self) -> tuple[set[str], str]:
        """The cases the other side has given up, and what is wrong with the file, if anything.
        Where it goes behind what we know, it is written again."""
        assert self._ours is not None  # noqa: S101
        self._seen = stamp(self._path)
        theirs = self._read()
        if isinstance(theirs, Problem):
            self._write(self._ours)
            return set(), theirs.sentence
        merged = merge_claims(self._ours, theirs)
        if _behind(self._ours, theirs):
            self._write(merged)
        return {one.case_id for one in merged.signals if one.status == "error"}, ""

    def _read(self) -> BatchManifest | Problem:
        raw = read_regular(self._path, _LARGEST)
        return (
            Problem("wrong-field", raw.reason)
            if isinstance(raw, UnreadableFile)
            else read_manifest(raw)
        )

    def _write(self, manifest: BatchManifest) -> None:
        with suppress(OSError):
            if self._path.is_dir() and not self._path.is_symlink():
                set_aside(self._path, "refused")
            self._seen = write_whole(self._path, encode_manifest(manifest))

    def _archive(self) -> int:
        """Put away what a dead process left, and find the highest id that was ever given."""
        left = self._read()
        known = left.batch_id if isinstance(left, BatchManifest) else 0
        if isinstance(left, Problem) or left.status not in _ENDED:
            with suppress(OSError):
                set_aside(self._path, f"stale-{known}")
        names = (_NUMBERED.fullmatch(path.name) for path in self.folder.iterdir())
        told = read_regular(self.folder / BRIEFING, LARGEST_BRIEFING)
        titled = _TITLE.match(told) if isinstance(told, bytes) else None
        return max([known, 0, *(int(found[1]) for found in (*names, titled) if found)])


def _behind(ours: BatchManifest, theirs: BatchManifest) -> bool:
    """Whether their copy lacks something that we have settled. That it says more is their right."""
    noted = {(one.case_id, one.signal_path): one.status for one in theirs.signals}
    shown = [(one.status, noted.get((one.case_id, one.signal_path))) for one in ours.signals]
    return (
        theirs.batch_id != ours.batch_id
        or (ours.status in _ENDED and theirs.status != ours.status)
        or any(their is None or (our in _ENDED and their != our) for our, their in shown)
    )
