"""The carrier `batch-file`: many signals at once, listed in a manifest for a parent agent.

One batch is out at a time. It takes the asks that are ready when the one before is over, at most
its size; above 80 % of the token budget its size is one. All signals are written first, then the
briefing and the budget, then the manifest. The carrier `file` handles each signal; a failed one
comes again, in a later batch, only if its circuit asks again. Both sides write the manifest: the
other side claims, we say how it ended. The manifest of a dead process is archived and ignored.
"""

import re
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from interlock.carriers.contract import Ask, CarrierWrapper, Session, Traits
from interlock.carriers.files.case_folder import SIGNAL_FILE, make_run_folder
from interlock.carriers.files.file import DEFAULT_TIMEOUT, FileCarrier
from interlock.carriers.registry import DEFAULT_BATCH_SIZE
from interlock.signals.batch import (
    LARGEST_BRIEFING,
    BatchBudget,
    BatchManifest,
    build_budget,
    build_manifest,
    close_batch,
    encode_budget,
    encode_manifest,
    limit_batch_size,
    merge_claims,
    move_entry,
    read_manifest,
)
from interlock.system.clock import Clock
from interlock.system.errors import SourceError
from interlock.system.files import (
    FileStamp,
    UnreadableFile,
    move_aside,
    read_file,
    read_stamp,
    write_file,
)
from interlock.system.strict_json import Problem
from interlock.system.time import format_timestamp

MANIFEST_FILE = "batch-manifest.json"
BRIEFING_FILE = "briefing.md"
_ENDED_STATUSES = ("done", "error")
MAX_MANIFEST = 16 * 1024 * 1024
_STALE_NAME = re.compile(r"batch-manifest\.stale-([0-9]{1,18})(?:-[0-9]+)?\.json", re.ASCII)
_BRIEFING_TITLE = re.compile(rb"# [^\n]* Batch ([0-9]{1,18})\n")
"""The title of a briefing. It is written before its manifest, so the title still knows a lost
manifest's id."""


class ManifestFile:
    """`batch-manifest.json` of one run.

    Our settlements are kept apart from the parent agent's notes, which are shown and never go back.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._path = folder / MANIFEST_FILE
        self._manifest: BatchManifest | None = None
        self._noted: BatchManifest | None = None
        """The manifest as last shown, with everything the other side had noted."""
        self._stamp: FileStamp | None = None
        self._last_id = self._archive_stale()

    def next_id(self) -> int:
        """Return the next batch id; ids rise within a run, also over restarts."""
        self._last_id += 1
        return self._last_id

    def write_new(self, manifest: BatchManifest) -> None:
        self._manifest = manifest
        self._write(manifest)

    def settle_entry(self, case_id: str, *, failed: bool, at: str) -> None:
        """Note how a signal ended, and with the last one the batch."""
        if self._manifest is None or self._manifest.status in _ENDED_STATUSES:
            return
        moved = move_entry(self._manifest, case_id, "error" if failed else "done", at)
        self._manifest = close_batch(moved, at)
        self._write(self._merge(self._manifest, self._read()))

    def has_changed(self) -> bool:
        return self._manifest is not None and read_stamp(self._path) != self._stamp

    def read_back(self) -> tuple[set[str], str]:
        """Return the cases that the other side has given up, and the file's problem, if any.

        A file that is behind our knowledge is written again.
        """
        assert self._manifest is not None  # noqa: S101
        self._stamp = read_stamp(self._path)
        theirs = self._read()
        merged = self._merge(self._manifest, theirs)
        if isinstance(theirs, Problem):
            self._write(merged)
            return set(), theirs.sentence
        if _is_behind(merged, theirs):
            self._write(merged)
        self._noted = merged
        return {one.case_id for one in merged.signals if one.status == "error"}, ""

    def _merge(self, ours: BatchManifest, theirs: BatchManifest | Problem) -> BatchManifest:
        """Merge our knowledge with earlier and new notes; nothing goes back."""
        for noted in (self._noted, theirs):
            if isinstance(noted, BatchManifest):
                ours = merge_claims(ours, noted)
        return ours

    def _read(self) -> BatchManifest | Problem:
        raw = read_file(self._path, MAX_MANIFEST)
        return (
            Problem("wrong-field", raw.reason)
            if isinstance(raw, UnreadableFile)
            else read_manifest(raw)
        )

    def _write(self, manifest: BatchManifest) -> None:
        with suppress(OSError):
            if self._path.is_dir() and not self._path.is_symlink():
                move_aside(self._path, "refused")
            self._stamp = write_file(self._path, encode_manifest(manifest))
        self._noted = manifest

    def _archive_stale(self) -> int:
        """Archive what a dead process left, and return the highest id ever given."""
        left = self._read()
        known = left.batch_id if isinstance(left, BatchManifest) else 0
        if isinstance(left, Problem) or left.status not in _ENDED_STATUSES:
            with suppress(OSError):
                move_aside(self._path, f"stale-{known}")
        names = (_STALE_NAME.fullmatch(path.name) for path in self.folder.iterdir())
        briefing = read_file(self.folder / BRIEFING_FILE, LARGEST_BRIEFING)
        titled = _BRIEFING_TITLE.match(briefing) if isinstance(briefing, bytes) else None
        return max([known, 0, *(int(found[1]) for found in (*names, titled) if found)])


def _is_behind(ours: BatchManifest, theirs: BatchManifest) -> bool:
    """Return whether their copy lacks something that was settled or noted before; it may say
    more."""
    their_status = {(one.case_id, one.signal_path): one.status for one in theirs.signals}
    pairs = [(one.status, their_status.get((one.case_id, one.signal_path))) for one in ours.signals]
    return (
        theirs.batch_id != ours.batch_id
        or (ours.status in _ENDED_STATUSES and theirs.status != ours.status)
        or any(their is None or (our in _ENDED_STATUSES and their != our) for our, their in pairs)
    )


BUDGET_FILE = "budget-status.json"
_PHASE_ORDER = ("triage", "investigation")


class BatchCarrier(CarrierWrapper):
    """Hand out asks in batches, on top of the carrier `file`."""

    def __init__(
        self,
        files: FileCarrier,
        clock: Clock,
        *,
        workspace: Path,
        size: int = DEFAULT_BATCH_SIZE,
        tokens: int = 0,
    ) -> None:
        super().__init__(files)
        self.traits = Traits(capacity="shared", default_timeout=DEFAULT_TIMEOUT)
        self._files = files
        self._clock = clock
        self._workspace = workspace.resolve()
        self._size = size
        self._tokens = tokens
        self._asks: dict[int, Ask] = {}
        self._manifest: ManifestFile | None = None

    def start(self, session: Session) -> None:
        super().start(session)
        self._session = session
        self._files.on_tick.append(self._check_manifest)

    def free_capacity(self, role: str) -> int:
        return 0 if self._asks else limit_batch_size(self._size, self._read_budget())

    def send(self, asks: Sequence[Ask]) -> None:
        """Send a batch; only dispatches that were open when a process died may exceed the batch
        size."""
        fresh = [ask for ask in asks if ask.dispatch_id not in self._asks]
        self._asks |= {ask.dispatch_id: ask for ask in fresh}
        self._files.send(fresh)
        if fresh:
            self._write_batch(fresh[0].run_id)

    def settle(self, dispatch_id: int, error: str = "") -> None:
        self._files.settle(dispatch_id, error)
        ask = self._asks.pop(dispatch_id, None)
        if ask is not None and self._manifest is not None:
            self._manifest.settle_entry(ask.case_id, failed=bool(error), at=self._format_now())
            if not self._asks:
                self._write_budget(self._manifest.folder)

    def _write_batch(self, run_id: int) -> None:
        try:
            folder = make_run_folder(self._files.root, run_id)
        except SourceError:
            return  # its signals could not be written either, and each has said so
        if self._manifest is None:
            self._manifest = ManifestFile(folder)
            self._files.folder_watch.add(folder, self._check_manifest)
        asks = list(self._asks.values())
        batch_id = self._manifest.next_id()
        phase = max((self._session.phase_of(ask.step) for ask in asks), key=_PHASE_ORDER.index)
        text = self._session.write_briefing(run_id, asks, batch_id)
        with suppress(OSError):
            write_file(folder / BRIEFING_FILE, text.encode())
        self._write_budget(folder)
        signals = {
            ask.case_id: self._show_path(folder / f"{ask.case_no}" / SIGNAL_FILE) for ask in asks
        }
        briefing_path = self._show_path(folder / BRIEFING_FILE)
        self._manifest.write_new(
            build_manifest(batch_id, phase, self._format_now(), briefing_path, signals)
        )

    def _check_manifest(self) -> None:
        """Read the parent agent's notes, and give up what it gave up."""
        if self._manifest is None or not self._manifest.has_changed():
            return
        given_up, problem = self._manifest.read_back()
        for ask in list(self._asks.values()):
            waiting = self._files.find_pending(ask.dispatch_id)
            if waiting is not None and problem:
                waiting.refuse("Malformed", f"the manifest is written again: {problem}")
            if waiting is not None and ask.case_id in given_up:
                waiting.give_up("the responder marked it as error in the manifest")

    def _read_budget(self) -> BatchBudget:
        return build_budget(self._tokens, self._session.read_progress().tokens)

    def _write_budget(self, folder: Path) -> None:
        with suppress(OSError):
            if self._tokens:
                write_file(folder / BUDGET_FILE, encode_budget(self._read_budget()))

    def _show_path(self, path: Path) -> str:
        """Return a path relative to the workspace; one elsewhere is shown whole."""
        inside = path.is_relative_to(self._workspace)
        return str(path.relative_to(self._workspace) if inside else path)

    def _format_now(self) -> str:
        return format_timestamp(self._clock.now())
