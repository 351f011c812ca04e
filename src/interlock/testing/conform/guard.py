"""Rules that hold at every moment of every scenario: our files stay ours.

Knows what a watcher may write into `signal.json` and the manifest, and what it may not touch at
all. Refuses to know which scenario plays.
"""

from collections.abc import Callable
from pathlib import Path

from interlock.signals.batch import BatchManifest, encode_manifest, read_manifest
from interlock.signals.signal_file import (
    Artifact,
    SignalFile,
    encode_signal,
    read_artifact,
    read_signal,
)
from interlock.system.strict_json import Problem
from interlock.testing.conform.verdict import FailedError
from interlock.testing.conform.workspace import ScratchWorkspace, peek

_PATIENCE = 0.5
"""How long a file may look half-written: not every writer renames."""


class InvariantCheck:
    """Watches over the coordinator's files."""

    def __init__(
        self, workspace: ScratchWorkspace, clock: Callable[[], float], note: Callable[[str], None]
    ) -> None:
        self._workspace = workspace
        self._clock = clock
        self._note = note
        self._signals: dict[Path, SignalFile | bytes] = {}
        self._manifest: BatchManifest | None = None
        self._broken: dict[Path, float] = {}
        self.errors: dict[int, str] = {}
        """Dispatches that the watcher gave up on, with its reasons."""
        self.noted: BatchManifest | None = None
        """The manifest as the watcher left it; None while it has not touched it."""

    def expect(self, path: Path, content: SignalFile | bytes) -> None:
        """What we just wrote: a signal, or for once something that is none."""
        self._signals[path] = content
        self._broken.pop(path, None)

    def expect_manifest(self, manifest: BatchManifest) -> None:
        self._manifest = manifest
        self._broken.pop(self._workspace.manifest_path, None)
        self.noted = None

    @property
    def in_doubt(self) -> bool:
        """Whether some file looks broken, and may yet turn out to be only half-written."""
        return bool(self._broken)

    def look(self) -> None:
        """Fail when something of ours was harmed."""
        for path, ours in self._signals.items():
            self._look_at_signal(path, ours)
        if self._manifest is not None:
            self._look_at_manifest(self._manifest)

    def look_at_the_end(self) -> None:
        """Also what costs more to see: every file of ours, and files that are nobody's."""
        self.look()
        for path, content in self._workspace.owned.items():
            if peek(path) != content:
                name = self._workspace.relative(path)
                raise FailedError("only artifacts and signals are written", f"{name} was changed")
        for path in sorted(self._workspace.folder.rglob("*")):
            if path.is_file() and not self._known(path):
                self._note(f"{self._workspace.relative(path)} is new outside the case folders")

    def _known(self, path: Path) -> bool:
        workspace = self._workspace
        in_case = path.is_relative_to(workspace.suite) and path.parent != workspace.suite
        return in_case or path in workspace.owned or path == workspace.manifest_path

    def _look_at_signal(self, path: Path, ours: SignalFile | bytes) -> None:
        raw = peek(path)
        if raw == (ours if isinstance(ours, bytes) else encode_signal(ours)):
            self._broken.pop(path, None)
            return
        if isinstance(ours, bytes):
            raise FailedError("a signal that cannot be read is left alone", "it was rewritten")
        found = read_signal(raw) if raw is not None else Problem("empty", "the file is gone")
        if isinstance(found, Problem):
            self._bear(path, "signal.json stays readable", found)
            return
        self._broken.pop(path, None)
        self._compare(ours, found)

    def _bear(self, path: Path, expected: str, problem: Problem) -> None:
        since = self._broken.setdefault(path, self._clock())
        if not problem.may_be_partial or self._clock() - since > _PATIENCE:
            name = self._workspace.relative(path)
            raise FailedError(expected, f"{name} was destroyed: {problem.sentence}")

    def _compare(self, ours: SignalFile, found: SignalFile) -> None:
        if found.dispatch_id != ours.dispatch_id:
            expected = f"signal.json keeps dispatch_id {ours.dispatch_id}"
            raise FailedError(expected, f"it was rewritten with {found.dispatch_id}")
        if found.status == "error" and ours.status == "waiting":
            self.errors[ours.dispatch_id] = found.error
            if not found.error:
                self._note("status error was written without a reason")
        elif found.status == "processing" and ours.status in ("waiting", "error"):
            self._note("status processing was written; only the coordinator should")
        elif found != ours and not (found.status == "error" == ours.status):
            expected = f"signal.json stays {ours.status}, or becomes error while it waits"
            raise FailedError(expected, f"it was rewritten with status {found.status}")

    def _look_at_manifest(self, ours: BatchManifest) -> None:
        raw = peek(self._workspace.manifest_path)
        if raw == encode_manifest(ours):
            return
        found = read_manifest(raw) if raw is not None else Problem("empty", "the file is gone")
        if isinstance(found, Problem):
            self._bear(self._workspace.manifest_path, "the manifest stays readable", found)
            return
        self._broken.pop(self._workspace.manifest_path, None)
        self._compare_batch(ours, found)
        self.noted = found

    def _compare_batch(self, ours: BatchManifest, found: BatchManifest) -> None:
        if _fixed(found) != _fixed(ours):
            raise FailedError("only statuses of the manifest change", "other fields were changed")
        if found.status in ("done", "error") and ours.status not in ("done", "error"):
            self._note(f"the batch was set to {found.status}; only the coordinator should")
        for entry in found.signals:
            if entry.status == "done" and not self._is_answered(entry.signal_path):
                expected = "an entry is done once its artifact is there"
                raise FailedError(expected, f"{entry.case_id} is done without one")

    def _is_answered(self, signal_path: str) -> bool:
        ours = self._signals.get(self._workspace.folder / signal_path)
        if not isinstance(ours, SignalFile):
            return False
        found = read_artifact(peek(Path(ours.artifact_path)) or b"")
        return isinstance(found, Artifact) and found.dispatch_id == ours.dispatch_id


def _fixed(manifest: BatchManifest) -> object:
    entries = [(each.case_id, each.signal_path) for each in manifest.signals]
    return manifest.batch_id, manifest.phase, manifest.total, manifest.briefing_path, entries
