"""The scratch workspace: prompts, signals, manifest and budget as a coordinator writes them.

Files are read without leaving a trace, so that a watcher's reading shows in their access times.
"""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import msgspec

from interlock.signals.batch import (
    BatchBudget,
    BatchManifest,
    Briefing,
    build_budget,
    encode_budget,
    encode_manifest,
    render_briefing,
)
from interlock.signals.signal_file import SignalFile, encode_signal
from interlock.system.strict_json import LARGEST

AT: Final = "2026-02-16T12:00:00Z"
ARTIFACTS: Final = {
    "F0_RECALL": "recall-result.json",
    "F1_TRIAGE": "triage-result.json",
    "F2_RESOLVE": "resolve-result.json",
    "F3_INVESTIGATE": "artifact.json",
}
_FIRST_ID = 4101
_NO_TRACE = os.O_RDONLY | os.O_NONBLOCK | getattr(os, "O_NOATIME", 0)


class StagedDispatch(msgspec.Struct, frozen=True):
    """A dispatch: its files, the word its prompt asks for, and what was there before."""

    signal: SignalFile
    path: Path
    word: str
    before: bytes | None

    @property
    def artifact_path(self) -> Path:
        return Path(self.signal.artifact_path)

    @property
    def dispatch_id(self) -> int:
        return self.signal.dispatch_id


class ScratchWorkspace:
    """The files of one scenario."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.root = folder / ".asterisk"
        self.suite = self.root / "calibrate" / "1"
        self.suite.mkdir(parents=True)
        self.owned: dict[Path, bytes] = {}
        """The content of each file of ours that nobody else may change."""
        self._last_id = _FIRST_ID
        self.write_owned(folder / "README.md", b"This file is not part of the protocol.\n")
        self.has_access_times = _has_access_times(folder / "README.md")

    @property
    def manifest_path(self) -> Path:
        return self.suite / "batch-manifest.json"

    def write_owned(self, path: Path, content: bytes) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        replace_file(path, content)
        self.owned[path] = content

    def prepare(self, case: int, step: str = "F0_RECALL", *, prompt: bool = True) -> StagedDispatch:
        """Prepare a new dispatch, with its prompt and without its signal."""
        self._last_id += 1 + self._last_id % 3
        folder = self.suite / str(100 + case)
        folder.mkdir(exist_ok=True)
        word = f"word-{self._last_id}"
        prompt_path = folder / f"prompt-{step.split('_')[1].lower()}-{self._last_id}.md"
        if prompt:
            self.write_owned(prompt_path, _render_prompt(word))
        artifact_path = folder / ARTIFACTS[step]
        signal = SignalFile(
            status="waiting",
            dispatch_id=self._last_id,
            case_id=f"C{case}",
            step=step,
            prompt_path=str(prompt_path),
            artifact_path=str(artifact_path),
            timestamp=AT,
        )
        return StagedDispatch(signal, folder / "signal.json", word, peek(artifact_path))

    def publish(self, dispatches: Sequence[StagedDispatch], manifest: BatchManifest | None) -> None:
        """Write the signals and then the manifest, as quickly as possible."""
        files = {dispatch.path: encode_signal(dispatch.signal) for dispatch in dispatches}
        if manifest is not None:
            files[self.manifest_path] = encode_manifest(manifest)
        for path, content in files.items():
            _build_temporary_path(path).write_bytes(content)
        for path in files:
            _build_temporary_path(path).rename(path)

    def write_briefing(self, cases: int) -> str:
        """Write the briefing and return its path as the manifest names it."""
        briefing = Briefing(
            batch_id=1,
            scenario="conform",
            suite_id="1",
            phase="triage",
            in_batch=cases,
            total=cases,
            completed=0,
        )
        self.write_owned(self.suite / "briefing.md", render_briefing(briefing).encode())
        return self.make_relative(self.suite / "briefing.md")

    def write_budget(self, total: int, used: int) -> BatchBudget:
        budget = build_budget(total, used)
        self.write_owned(self.suite / "budget-status.json", encode_budget(budget))
        return budget

    def make_relative(self, path: Path) -> str:
        return str(path.relative_to(self.folder))


def replace_file(path: Path, content: bytes) -> None:
    """Replace a file whole, as a careful writer does."""
    _build_temporary_path(path).write_bytes(content)
    _build_temporary_path(path).rename(path)


def peek(path: Path) -> bytes | None:
    """Read a file without changing its access time."""
    try:
        with os.fdopen(os.open(path, _NO_TRACE), "rb") as file:
            return file.read(LARGEST + 1)
    except OSError:
        return None


def mark_unread(path: Path) -> None:
    """Set a file's access time to a mark, so that the next reader shows."""
    os.utime(path, ns=(0, path.stat().st_mtime_ns))


def has_been_read(path: Path) -> bool:
    """Return whether the marked file was read or removed since."""
    try:
        return path.stat().st_atime_ns != 0
    except FileNotFoundError:
        return True


def _has_access_times(path: Path) -> bool:
    """Return whether this system can tell a watcher's reading from ours."""
    mark_unread(path)
    peek(path)
    quiet = not has_been_read(path)
    path.read_bytes()
    return quiet and has_been_read(path)


def _build_temporary_path(path: Path) -> Path:
    return path.with_name(f".{path.name}.kit")


def _render_prompt(word: str) -> bytes:
    answer = f'{{"ok": true, "echo": "{word}"}}'
    return f"""\
# A question of the conformance kit

Answer with exactly this JSON object as your artifact's data, and nothing else:

{answer}
""".encode()
