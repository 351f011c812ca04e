"""A stage for one scenario: a workspace, the watcher under test, and the coordinator's part.

It asks, waits for answers, and always checks that the watcher leaves our files alone. Waiting is
bounded and ends early when the watcher dies. The watcher is a process group of its own, which is
ended as a whole.
"""

import os
import secrets
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Literal

import msgspec

from interlock.carriers.contract import Ask, Reply
from interlock.carriers.files.case_folder import (
    MAX_ARTIFACT,
    CaseFolder,
    DoubtfulArtifact,
    judge_artifact,
)
from interlock.carriers.files.file import SECOND_LOOK_AFTER
from interlock.signals.batch import BatchManifest, build_manifest, encode_manifest, read_manifest
from interlock.signals.signal_file import (
    Artifact,
    SignalFile,
    encode_signal,
    move_signal,
    read_artifact,
    read_signal,
)
from interlock.system.errors import SourceError
from interlock.system.files import UnreadableFile, read_file
from interlock.system.process_table import Process, TagNames, list_processes
from interlock.system.process_tree import kill_group, send_signal
from interlock.system.strict_json import Problem
from interlock.testing.conform.workspace import (
    AT,
    ScratchWorkspace,
    StagedDispatch,
    has_been_read,
    mark_unread,
    peek,
    replace_file,
)

Outcome = Literal["pass", "fail", "skip"]


class ScenarioResult(msgspec.Struct, frozen=True, kw_only=True):
    """A row of the kit's table."""

    scenario: str
    verdict: Outcome
    expected: str
    seen: str
    why: str
    notes: tuple[str, ...] = ()
    seconds: float = 0.0


class FailedError(Exception):
    """The watcher broke a rule; the message names the rule and what was seen."""

    def __init__(self, expected: str, seen: str) -> None:
        super().__init__(seen)
        self.expected = expected
        self.seen = seen


class SkippedError(Exception):
    """The rule does not apply to this kind of watcher."""


class StoppedError(Exception):
    """The kit was stopped."""


_LONGEST_PARTIAL = 0.5
"""The time for which a file may look half-written: not every writer renames."""


class InvariantCheck:
    """Check the coordinator's files against changes by the watcher."""

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
        """The dispatches that the watcher gave up on, with its reasons."""
        self.written_manifest: BatchManifest | None = None
        """The manifest as the watcher left it; None while it is untouched."""

    def expect(self, path: Path, content: SignalFile | bytes) -> None:
        """Expect this content, which we just wrote, at that path."""
        self._signals[path] = content
        self._broken.pop(path, None)

    def expect_manifest(self, manifest: BatchManifest) -> None:
        self._manifest = manifest
        self._broken.pop(self._workspace.manifest_path, None)
        self.written_manifest = None

    @property
    def is_in_doubt(self) -> bool:
        """Return whether some file looks broken but may only be half-written."""
        return bool(self._broken)

    def check(self) -> None:
        """Raise FailedError if one of our files was harmed."""
        for path, ours in self._signals.items():
            self._check_signal(path, ours)
        if self._manifest is not None:
            self._check_manifest(self._manifest)

    def check_at_end(self) -> None:
        """Check everything once more at the end: every file of ours, and files that are
        nobody's."""
        self.check()
        for path, content in self._workspace.owned.items():
            if peek(path) != content:
                name = self._workspace.make_relative(path)
                raise FailedError("only artifacts and signals are written", f"{name} was changed")
        for path in sorted(self._workspace.folder.rglob("*")):
            if path.is_file() and not self._is_known(path):
                self._note(f"{self._workspace.make_relative(path)} is new outside the case folders")

    def _is_known(self, path: Path) -> bool:
        workspace = self._workspace
        in_case = path.is_relative_to(workspace.suite) and path.parent != workspace.suite
        return in_case or path in workspace.owned or path == workspace.manifest_path

    def _check_signal(self, path: Path, ours: SignalFile | bytes) -> None:
        raw = peek(path)
        if raw == (ours if isinstance(ours, bytes) else encode_signal(ours)):
            self._broken.pop(path, None)
            return
        if isinstance(ours, bytes):
            raise FailedError("a signal that cannot be read is left alone", "it was rewritten")
        found = read_signal(raw) if raw is not None else Problem("empty", "the file is gone")
        if isinstance(found, Problem):
            self._tolerate(path, "signal.json stays readable", found)
            return
        self._broken.pop(path, None)
        self._compare(ours, found)

    def _tolerate(self, path: Path, expected: str, problem: Problem) -> None:
        since = self._broken.setdefault(path, self._clock())
        if not problem.may_be_partial or self._clock() - since > _LONGEST_PARTIAL:
            name = self._workspace.make_relative(path)
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

    def _check_manifest(self, ours: BatchManifest) -> None:
        raw = peek(self._workspace.manifest_path)
        if raw == encode_manifest(ours):
            return
        found = read_manifest(raw) if raw is not None else Problem("empty", "the file is gone")
        if isinstance(found, Problem):
            self._tolerate(self._workspace.manifest_path, "the manifest stays readable", found)
            return
        self._broken.pop(self._workspace.manifest_path, None)
        self._compare_batch(ours, found)
        self.written_manifest = found

    def _compare_batch(self, ours: BatchManifest, found: BatchManifest) -> None:
        if _list_fixed_fields(found) != _list_fixed_fields(ours):
            raise FailedError("only statuses of the manifest change", "other fields were changed")
        if found.status in ("done", "error") and ours.status not in ("done", "error"):
            self._note(f"the batch was set to {found.status}; only the coordinator should")
        for entry in found.signals:
            if entry.status == "done" and not self._is_answered(entry.signal_path):
                expected = "an entry is done once its artifact is there"
                raise FailedError(expected, f"{entry.case_id} is done without one")

    def _is_answered(self, signal_path: str) -> bool:
        path = self._workspace.folder / signal_path
        ours = self._signals.get(path)
        return isinstance(ours, SignalFile) and read_answer(ours, path).artifact is not None


class ReadAnswer(msgspec.Struct, frozen=True):
    """The coordinator's reading of an artifact.

    A `doubtful` one ends its dispatch if it stays as it is; any other that is no answer is refused,
    and waiting goes on.
    """

    content: bytes | UnreadableFile
    artifact: Artifact | None = None
    sentence: str = ""
    is_doubtful: bool = False


def read_answer(signal: SignalFile, path: Path) -> ReadAnswer:
    """Read an artifact by the product's own rules; `path` is that of its signal."""
    artifact = Path(signal.artifact_path)
    place = CaseFolder(path.parent, Path(signal.prompt_path), artifact, path)
    raw = read_file(artifact, MAX_ARTIFACT)
    if place.has_moved():
        raw = UnreadableFile("the case's folder was replaced by a link or removed")
    if isinstance(raw, UnreadableFile):
        return ReadAnswer(raw, sentence=raw.reason, is_doubtful=raw.kind == "large")
    ask = Ask(signal.dispatch_id, 0, signal.case_id, signal.step, 1, "", "")
    found, parsed = judge_artifact(raw, ask), read_artifact(raw)
    if isinstance(found, Reply) and isinstance(parsed, Artifact):
        return ReadAnswer(raw, parsed)
    if isinstance(found, DoubtfulArtifact):
        return ReadAnswer(raw, sentence=found.reason, is_doubtful=True)
    return ReadAnswer(raw, sentence=getattr(found, "sentence", "it is not an answer"))


def _list_fixed_fields(manifest: BatchManifest) -> object:
    entries = [(entry.case_id, entry.signal_path) for entry in manifest.signals]
    return manifest.batch_id, manifest.phase, manifest.total, manifest.briefing_path, entries


_GRACE = 4.0
_WATCHER_TICK = 0.01
_TAIL = 400
_TAGS = TagNames("INTERLOCK_CONFORM", "INTERLOCK_CONFORM_ABOVE", "INTERLOCK_CONFORM_OWNER")
"""The tags of a watcher; only the first is set, and marks everything that it starts."""


class Watcher:
    """One run of the command."""

    def __init__(self, argv: Sequence[str], workspace: Path, root: Path, log: Path) -> None:
        self._tag = secrets.token_hex(8)
        self._log = log
        try:
            with log.open("wb") as out:
                self._process = subprocess.Popen(  # noqa: S603 - the user's own command
                    argv,
                    cwd=workspace,
                    env={**os.environ, "INTERLOCK_ROOT": str(root), _TAGS.tag: self._tag},
                    stdin=subprocess.DEVNULL,
                    stdout=out,
                    stderr=out,
                    start_new_session=True,
                )
        except OSError as error:
            raise SourceError(f"{argv[0]} cannot be started: {error.strerror}") from None

    def describe_end(self) -> str:
        """Return how the watcher ended; '' while it lives."""
        code = self._process.poll()
        if code is None:
            return ""
        how = f"exit code {code}" if code >= 0 else f"signal {-code}"
        return f"the watcher ended with {how}{self.describe_output()}"

    def describe_output(self) -> str:
        words = self._log.read_bytes()[-_TAIL:].decode(errors="replace").strip()
        return f", saying: {words}" if words else ""

    def stop(self) -> None:
        """Stop the group, politely at first, and then processes with our mark that left it."""
        kill_group(self._process.pid, signal.SIGTERM)
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(_GRACE)
        kill_group(self._process.pid)
        self._process.wait()
        limit = time.monotonic() + _GRACE
        while (strays := self._find_strays()) and time.monotonic() < limit:
            for process in strays:
                send_signal(process, signal.SIGKILL)
            time.sleep(_WATCHER_TICK)

    def _find_strays(self) -> list[Process]:
        """Return the processes that the watcher started, known by the environment they
        inherited."""
        found = list_processes(_TAGS).values()
        return [seen.process for seen in found if self._tag in seen.tags and seen.alive]


_TICK = 0.01
_SHORT_WHILE = 0.15
StartWatcher = Callable[[ScratchWorkspace], Watcher]


class Patience(msgspec.Struct, frozen=True):
    """The time for an answer, and the time in which something must not happen."""

    timeout: float

    @property
    def settle(self) -> float:
        return min(max(self.timeout / 5, 0.5), 3.0)


class Stage:
    """The place where one scenario is played."""

    def __init__(
        self, folder: Path, start: StartWatcher, patience: Patience, stop: threading.Event
    ) -> None:
        self.workspace = ScratchWorkspace(folder)
        self.notes: list[str] = []
        self.invariants = InvariantCheck(self.workspace, time.monotonic, self.note)
        self.settle = patience.settle
        self._start = start
        self._timeout = patience.timeout
        self._stop = stop
        self._watcher: Watcher | None = None
        self._asked: list[StagedDispatch] = []
        self._manifest: BatchManifest | None = None
        self.may_end = False
        """True if the watcher may exit by itself now."""

    def start(self) -> None:
        self._watcher = self._start(self.workspace)

    def stop(self) -> None:
        if self._watcher is not None:
            self._watcher.stop()

    def note(self, sentence: str) -> None:
        if sentence not in self.notes:
            self.notes.append(sentence)

    def ask(self, case: int, step: str = "F0_RECALL", *, prompt: bool = True) -> StagedDispatch:
        dispatch = self.workspace.prepare(case, step, prompt=prompt)
        self.publish([dispatch])
        return dispatch

    def publish(
        self, dispatches: Sequence[StagedDispatch], manifest: BatchManifest | None = None
    ) -> None:
        self._asked += dispatches
        self.workspace.publish(dispatches, manifest)
        for dispatch in dispatches:
            self.invariants.expect(dispatch.path, dispatch.signal)
        if manifest is not None:
            self._manifest = manifest
            self.invariants.expect_manifest(manifest)

    def publish_batch(self, cases: Sequence[int], briefing_path: str) -> list[StagedDispatch]:
        dispatches = [self.workspace.prepare(case) for case in cases]
        self.publish(dispatches, self.build_manifest(1, dispatches, briefing_path))
        return dispatches

    def build_manifest(
        self, batch_id: int, dispatches: Sequence[StagedDispatch], briefing_path: str
    ) -> BatchManifest:
        signals = {one.signal.case_id: self.workspace.make_relative(one.path) for one in dispatches}
        return build_manifest(batch_id, "triage", AT, briefing_path, signals)

    def close_batch(self, dispatches: Sequence[StagedDispatch]) -> None:
        """End a batch as the coordinator does: signals done, then the manifest."""
        for dispatch in dispatches:
            self.take(dispatch)
        if self._manifest is not None:
            entries = [msgspec.structs.replace(e, status="done") for e in self._manifest.signals]
            over = msgspec.structs.replace(self._manifest, status="done", signals=tuple(entries))
            self.publish([], over)

    def write(self, dispatch: StagedDispatch, signal: SignalFile) -> None:
        """Write the signal anew, without hiding what the watcher may have done to it."""
        self.invariants.check()
        self.wait_until(lambda: not self.invariants.is_in_doubt, self._timeout)
        replace_file(dispatch.path, encode_signal(signal))
        self.invariants.expect(dispatch.path, signal)

    def write_raw(self, dispatch: StagedDispatch, content: bytes) -> None:
        """Write into the file itself, as a careless writer does."""
        dispatch.path.write_bytes(content)
        self.invariants.expect(dispatch.path, content)

    def take(self, dispatch: StagedDispatch) -> None:
        """Take the answer as the coordinator does: processing, then done."""
        self.let_settle()
        processing = move_signal(dispatch.signal, "processing")
        self.write(dispatch, processing)
        self.write(dispatch, move_signal(processing, "done"))

    def await_answer(self, dispatch: StagedDispatch, *, patient: bool = False) -> Artifact:
        """Wait for the right answer; a wrong one that stays counts as the last, unless
        `patient`."""
        standing = _StandingArtifact(dispatch.before)
        limit = time.monotonic() + self._timeout
        while True:
            found = read_answer(dispatch.signal, dispatch.path)
            if found.artifact is not None:
                self._check_not_mixed_up(dispatch, found.artifact)
                return found.artifact
            age = standing.measure_age(found.content)
            is_late = time.monotonic() > limit
            is_final = age > self.settle and not patient
            if is_late or is_final or (found.is_doubtful and age > SECOND_LOOK_AFTER):
                raise FailedError(
                    _describe_wanted(dispatch), self._describe_instead(found, standing.is_new)
                )
            if standing.is_new:
                self._note_wrong(found, patient=patient)
            self._check_reported(dispatch)
            self._tick()

    def _note_wrong(self, found: ReadAnswer, *, patient: bool) -> None:
        raw = found.content
        problem = read_artifact(raw) if isinstance(raw, bytes) else None
        if isinstance(problem, Problem) and problem.may_be_partial:
            self.note("an artifact was seen half-written: write to a temporary name and rename")
        if isinstance(problem, Artifact) and patient:
            self.note("an answer came after its dispatch was given up; its old id fences it")

    def await_reader(self, dispatch: StagedDispatch) -> None:
        """Wait until the watcher has read the signal; where that cannot be seen, wait a while."""
        mark_unread(dispatch.path)
        limit = self._timeout if self.workspace.has_access_times else self.settle
        self.wait_until(lambda: has_been_read(dispatch.path), limit)

    def wait_until(self, true: Callable[[], object], seconds: float) -> bool:
        """Return whether it became true in time, while the rules are checked."""
        limit = time.monotonic() + seconds
        while not true():
            if time.monotonic() > limit:
                return False
            self._tick()
        return True

    def hold(self, seconds: float = _SHORT_WHILE, check: Callable[[], None] = lambda: None) -> None:
        """Let time pass in which something must not happen."""
        limit = time.monotonic() + seconds
        while time.monotonic() < limit:
            check()
            self._tick()

    def let_settle(self) -> None:
        """Give the watcher a moment, and check how it left our files."""
        self.hold()
        self.wait_until(lambda: not self.invariants.is_in_doubt, self._timeout)

    def finish(self) -> None:
        self.let_settle()
        self.invariants.check_at_end()

    def _tick(self) -> None:
        if self._stop.wait(_TICK):
            raise StoppedError
        self.invariants.check()
        ended = self._watcher.describe_end() if self._watcher and not self.may_end else ""
        if ended:
            raise FailedError("the watcher keeps running", ended)

    def _check_reported(self, dispatch: StagedDispatch) -> None:
        error = self.invariants.errors.get(dispatch.dispatch_id)
        if error is not None:
            raise FailedError(_describe_wanted(dispatch), f"the watcher reported an error: {error}")

    def _describe_instead(self, found: ReadAnswer, is_new: bool) -> str:
        output = self._watcher.describe_output() if self._watcher else ""
        return (found.sentence if is_new else "no artifact was written") + output

    def _check_not_mixed_up(self, dispatch: StagedDispatch, artifact: Artifact) -> None:
        """Check that answers are not mixed up, which the words in them show."""
        text = msgspec.json.encode(artifact.data).decode()
        for other in self._asked:
            if other.word in text and dispatch.word not in text:
                raise FailedError(
                    _describe_wanted(dispatch), f"it answers the prompt of {other.word}"
                )


class _StandingArtifact:
    """An artifact, and the time since when it has been standing."""

    def __init__(self, before: bytes | None) -> None:
        self._last: bytes | UnreadableFile | None = before
        self._since = time.monotonic()
        self.is_new = False

    def measure_age(self, content: bytes | UnreadableFile) -> float:
        now = None if isinstance(content, UnreadableFile) and content.kind == "gone" else content
        if now != self._last:
            self._last, self._since, self.is_new = now, time.monotonic(), now is not None
        return time.monotonic() - self._since if self.is_new else 0.0


def _describe_wanted(dispatch: StagedDispatch) -> str:
    return f"an artifact with dispatch_id {dispatch.dispatch_id} for {dispatch.signal.case_id}"
