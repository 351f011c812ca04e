"""A stage for one scenario: a workspace, a watcher, and the coordinator's part in the play.

Knows how to ask, to wait for the answer and to see what must not happen. All waiting is bounded and
ends early when the watcher dies. Refuses to know any scenario's story.
"""

import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec

from interlock.signals.batch import BatchManifest, new_manifest
from interlock.signals.signal_file import (
    Artifact,
    SignalFile,
    encode_signal,
    move_signal,
    read_artifact,
)
from interlock.system.strict_json import Problem
from interlock.testing.conform.guard import InvariantCheck
from interlock.testing.conform.verdict import FailedError, StoppedError
from interlock.testing.conform.watcher import Watcher
from interlock.testing.conform.workspace import (
    AT,
    ScratchWorkspace,
    StagedDispatch,
    arm,
    peek,
    put,
    was_read,
)

_TICK = 0.01
_BREATH = 0.15
Start = Callable[[ScratchWorkspace], Watcher]


class Patience(msgspec.Struct, frozen=True):
    """How long an answer may take, and how long we watch for what must not happen."""

    timeout: float

    @property
    def settle(self) -> float:
        return min(max(self.timeout / 5, 0.5), 3.0)


class Stage:
    """Where one scenario is played."""

    def __init__(
        self, folder: Path, start: Start, patience: Patience, stop: threading.Event
    ) -> None:
        self.workspace = ScratchWorkspace(folder)
        self.notes: list[str] = []
        self.guard = InvariantCheck(self.workspace, time.monotonic, self.note)
        self.settle = patience.settle
        self._start = start
        self._timeout = patience.timeout
        self._stop = stop
        self._watcher: Watcher | None = None
        self._asked: list[StagedDispatch] = []
        self._manifest: BatchManifest | None = None
        self.may_end = False
        """Whether the watcher may leave now of its own accord."""

    def start(self) -> None:
        self._watcher = self._start(self.workspace)

    def end(self) -> None:
        if self._watcher is not None:
            self._watcher.end()

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
        for each in dispatches:
            self.guard.expect(each.path, each.signal)
        if manifest is not None:
            self._manifest = manifest
            self.guard.expect_manifest(manifest)

    def batch(self, cases: Sequence[int], briefing_path: str) -> list[StagedDispatch]:
        dispatches = [self.workspace.prepare(case) for case in cases]
        self.publish(dispatches, self.manifest(1, dispatches, briefing_path))
        return dispatches

    def manifest(
        self, batch_id: int, dispatches: Sequence[StagedDispatch], briefing_path: str
    ) -> BatchManifest:
        signals = {one.signal.case_id: self.workspace.relative(one.path) for one in dispatches}
        return new_manifest(batch_id, "triage", AT, briefing_path, signals)

    def close_batch(self, dispatches: Sequence[StagedDispatch]) -> None:
        """The coordinator's end of a batch: signals done, then the manifest."""
        for each in dispatches:
            self.take(each)
        if self._manifest is not None:
            entries = [msgspec.structs.replace(e, status="done") for e in self._manifest.signals]
            over = msgspec.structs.replace(self._manifest, status="done", signals=tuple(entries))
            self.publish([], over)

    def write(self, dispatch: StagedDispatch, signal: SignalFile) -> None:
        """Write the signal anew, but do not cover up what the watcher may have done to it."""
        self.guard.look()
        self.until(lambda: not self.guard.in_doubt, self._timeout)
        put(dispatch.path, encode_signal(signal))
        self.guard.expect(dispatch.path, signal)

    def write_raw(self, dispatch: StagedDispatch, content: bytes) -> None:
        """Not as a careful writer does: into the file itself."""
        dispatch.path.write_bytes(content)
        self.guard.expect(dispatch.path, content)

    def take(self, dispatch: StagedDispatch) -> None:
        """The coordinator takes the answer: processing, then done."""
        self.calm_down()
        processing = move_signal(dispatch.signal, "processing")
        self.write(dispatch, processing)
        self.write(dispatch, move_signal(processing, "done"))

    def answered(self, dispatch: StagedDispatch, *, patient: bool = False) -> Artifact:
        """Wait for the right answer. A wrong one that stays is taken for the watcher's last word,
        unless the scenario is patient with it."""
        wrong = _Standing(dispatch.before)
        limit = time.monotonic() + self._timeout
        while True:
            raw = peek(dispatch.artifact_path)  # once: it may come between two looks
            found = _read(dispatch, raw)
            if isinstance(found, Artifact):
                self._not_anothers(dispatch, found)
                return found
            stands = wrong.stands_for(raw)
            late = time.monotonic() > limit
            if late or (stands > self.settle and not patient):
                raise FailedError(_wanted(dispatch), self._instead(found, wrong.written))
            if found.may_be_partial and wrong.written:
                self.note("an artifact was seen half-written: write to a temporary name and rename")
            if found.is_stale and wrong.written and patient:
                self.note("an answer came after its dispatch was given up; its old id fences it")
            self._reported(dispatch)
            self._tick()

    def seen(self, dispatch: StagedDispatch) -> None:
        """Wait until the watcher has read the signal; where that does not show, a while."""
        arm(dispatch.path)
        limit = self._timeout if self.workspace.shows_readers else self.settle
        self.until(lambda: was_read(dispatch.path), limit)

    def until(self, true: Callable[[], object], seconds: float) -> bool:
        """Whether it came true in time; the rules are watched meanwhile."""
        limit = time.monotonic() + seconds
        while not true():
            if time.monotonic() > limit:
                return False
            self._tick()
        return True

    def hold(self, seconds: float = _BREATH, check: Callable[[], None] = lambda: None) -> None:
        """Let time pass in which something must not happen."""
        limit = time.monotonic() + seconds
        while time.monotonic() < limit:
            check()
            self._tick()

    def calm_down(self) -> None:
        """Give the watcher a moment, and see how it left our files."""
        self.hold()
        self.until(lambda: not self.guard.in_doubt, self._timeout)

    def finish(self) -> None:
        self.calm_down()
        self.guard.look_at_the_end()

    def _tick(self) -> None:
        if self._stop.wait(_TICK):
            raise StoppedError
        self.guard.look()
        ended = self._watcher.ended() if self._watcher and not self.may_end else ""
        if ended:
            raise FailedError("the watcher lives on", ended)

    def _reported(self, dispatch: StagedDispatch) -> None:
        error = self.guard.errors.get(dispatch.dispatch_id)
        if error is not None:
            raise FailedError(_wanted(dispatch), f"the watcher reported an error: {error}")

    def _instead(self, found: Problem, written: bool) -> str:
        said = self._watcher.said() if self._watcher else ""
        return (found.sentence if written else "no artifact was written") + said

    def _not_anothers(self, dispatch: StagedDispatch, artifact: Artifact) -> None:
        """The words make it visible when answers are mixed up; nobody is asked to be clever."""
        text = msgspec.json.encode(artifact.data).decode()
        for other in self._asked:
            if other.word in text and dispatch.word not in text:
                raise FailedError(_wanted(dispatch), f"it answers the prompt of {other.word}")


class _Standing:
    """Since when an artifact has been standing that was not there before."""

    def __init__(self, before: bytes | None) -> None:
        self._last = before
        self._since = time.monotonic()
        self.written = False

    def stands_for(self, content: bytes | None) -> float:
        if content != self._last:
            self._last, self._since, self.written = content, time.monotonic(), content is not None
        return time.monotonic() - self._since if self.written else 0.0


def _read(dispatch: StagedDispatch, raw: bytes | None) -> Artifact | Problem:
    found = read_artifact(raw) if raw is not None else Problem("empty", "there is no artifact")
    if isinstance(found, Artifact) and found.dispatch_id != dispatch.dispatch_id:
        sentence = f"the artifact has dispatch_id {found.dispatch_id}"
        return Problem("wrong-dispatch-id", sentence)
    return found


def _wanted(dispatch: StagedDispatch) -> str:
    return f"an artifact with dispatch_id {dispatch.dispatch_id} for {dispatch.signal.case_id}"
