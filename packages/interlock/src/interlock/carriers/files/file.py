"""The carrier `file`: a signal in the case's folder asks, an artifact beside it answers.

`PendingFile` is one open dispatch: it follows its signal (waiting, processing, done, error), reads
an artifact that is not valid JSON a second time, and restores a signal that was overwritten with
nonsense. `FileCarrier` knows which dispatches are open and when to look; an artifact written while
nothing ran is found when its dispatch is sent again. `ManualCarrier` writes the same files, but a
later command saves the answer.
"""

import os
from collections.abc import Callable, Sequence
from contextlib import suppress
from hashlib import blake2b
from pathlib import Path

import msgspec

from interlock.carriers.background import report_error
from interlock.carriers.contract import Ask, Carrier, Deliver, Reply, Session, Traits
from interlock.carriers.files import DispatchFiles, NameFiles, name_files
from interlock.carriers.files.case_folder import (
    MAX_ARTIFACT,
    MAX_SIGNAL,
    SIGNAL_FILE,
    CaseFolder,
    DoubtfulArtifact,
    ForeignArtifact,
    build_signal,
    end_stale_signal,
    judge_artifact,
    make_case_folder,
    make_run_folder,
    read_signal_at,
    render_prompt_file,
)
from interlock.engine.circuit import CRASH, UNREADABLE
from interlock.signals.signal_file import (
    Artifact,
    SignalStatus,
    encode_artifact,
    encode_signal,
    read_artifact,
    read_signal,
)
from interlock.system.clock import Clock
from interlock.system.errors import SourceError
from interlock.system.files import (
    FileStamp,
    UnreadableFile,
    make_own_folder,
    move_aside,
    read_file,
    read_stamp,
    remove_staged,
    write_file,
)
from interlock.system.folder_watch import FolderWatch, Mode
from interlock.system.strict_json import Problem, read_object

SECOND_LOOK_AFTER = 1.0
"""Seconds between the two looks at a file that is not valid JSON."""
_MAX_ERROR = 2_000
_MAX_REFUSALS = 50
"""The number of refusals that are journaled for one dispatch."""


class _FileState(msgspec.Struct):
    """The state of a file at the last look, and whether a second look is due."""

    stamp: FileStamp | None = None
    doubted_stamp: FileStamp | None = None
    is_second_look: bool = False

    def clear(self) -> None:
        self.doubted_stamp = None
        self.is_second_look = False


class PendingFile:
    """An open dispatch and its files."""

    def __init__(
        self, ask: Ask, place: CaseFolder, clock: Clock, deliver: Deliver, *, explains: bool = True
    ) -> None:
        """Prepare the files of an ask; with `explains`, the prompt's file says how and where to
        answer."""
        self.ask = ask
        self.place = place
        self.is_answered = False
        self._artifact_path = str(place.artifact)
        self._signal_path = str(place.signal)
        self._clock = clock
        self._deliver = deliver
        self._artifact = _FileState()
        self._signal = _FileState()
        self._refused: set[tuple[str, bytes]] = set()
        self._timers: list[Callable[[], None]] = []
        self._current = build_signal(ask, place)
        self._prompt = render_prompt_file(ask, place) if explains else ask.prompt

    def may_have_changed(self, *, signal_too: bool) -> bool:
        """Return whether a look may be worth it.

        Asked of every open dispatch all the time, so it must cost next to nothing; it may miss a
        link that leads nowhere.
        """
        if self._artifact.stamp is not None or os.access(self._artifact_path, os.F_OK):
            return True
        return signal_too and self._may_signal_have_changed()

    def _may_signal_have_changed(self) -> bool:
        seen = self._signal.stamp
        try:
            found = os.lstat(self._signal_path)
        except OSError:
            return True
        return seen is None or (found.st_mtime_ns, found.st_ino) != (seen.modified, seen.inode)

    def write_files(self) -> None:
        """Write prompt and signal, unless this very dispatch is already there; OSError if that
        fails.

        What an earlier dispatch left at the artifact's place is set aside.
        """
        there = read_signal_at(self.place.signal)
        again = there is not None and there.dispatch_id == self.ask.dispatch_id
        if not again and not self._is_artifact_ours():
            move_aside(self.place.artifact, f"attempt-{self.ask.attempt - 1}")
        write_file(self.place.prompt, self._prompt.encode())
        if there == self._current:
            self._signal.stamp = read_stamp(self.place.signal)
        elif not (again and there is not None and there.status == "error"):
            self._write_signal()

    def check(self, *, closely: bool = True) -> None:
        """Look at the files; with `closely`, read also what seems unchanged."""
        try:
            if not self.is_answered:
                self._check_artifact(closely)
            if not self.is_answered:
                self._check_signal()
        except Exception as error:
            report_error(error, self.ask.dispatch_id)

    def give_up(self, reason: str) -> None:
        """Give up because a responder cannot answer; an artifact that is there counts all the
        same."""
        self.check()
        if not self.is_answered:
            self._fail(CRASH, reason)

    def stop(self) -> None:
        """Stop looking; the files stay as they are."""
        self.is_answered = True
        for cancel in self._timers:
            cancel()

    def settle(self, error: str) -> None:
        """Write the end of the dispatch into the signal."""
        self.stop()
        with suppress(OSError):
            self._write_status("error" if error else "done", error[:_MAX_ERROR])

    def refuse(self, reason: str, sentence: str, raw: bytes = b"") -> None:
        """Have a refusal journaled, once per content."""
        key = (sentence, blake2b(raw, digest_size=16).digest())
        if key not in self._refused and len(self._refused) < _MAX_REFUSALS:
            self._refused.add(key)
            sentence = f"{sentence[:1].upper()}{sentence[1:]}."
            self._deliver(Reply(self.ask.dispatch_id, raw, refused=reason, reason=sentence))

    def _check_artifact(self, closely: bool) -> None:
        state = self._artifact
        now = read_stamp(self.place.artifact)
        unchanged = now == state.stamp
        state.stamp = now
        if now is None:
            if state.doubted_stamp is not None:
                self.refuse("Missing", f"{self.place.artifact.name} vanished before it was valid")
            state.clear()
        elif not unchanged or state.is_second_look or (closely and state.doubted_stamp is None):
            self._read_artifact(now)

    def _read_artifact(self, now: FileStamp) -> None:
        raw = self._read_file(self.place.artifact, MAX_ARTIFACT)
        match (
            DoubtfulArtifact(raw.reason)
            if isinstance(raw, UnreadableFile)
            else judge_artifact(raw, self.ask)
        ):
            case DoubtfulArtifact(reason) if (
                isinstance(raw, UnreadableFile) and raw.kind != "large"
            ):
                self.refuse("Missing" if raw.kind == "gone" else "Malformed", reason)
            case DoubtfulArtifact(reason):
                if self._is_second_look(self._artifact, now):
                    self._fail(UNREADABLE, reason)
            case ForeignArtifact(sentence):
                self._artifact.clear()
                self.refuse("Stale", sentence, raw if isinstance(raw, bytes) else b"")
            case Reply() as reply:
                self._accept(reply)

    def _accept(self, reply: Reply) -> None:
        self.is_answered = True
        self._deliver(reply)
        with suppress(OSError):
            self._write_status("processing")

    def _fail(self, failure: str, reason: str) -> None:
        self.is_answered = True
        reason = reason[:_MAX_ERROR]
        self._deliver(Reply(self.ask.dispatch_id, failure=failure, reason=reason))

    def _is_second_look(self, state: _FileState, now: FileStamp | None) -> bool:
        """Return whether this was the second look at the same content; else schedule one."""
        if state.is_second_look and state.doubted_stamp == now:
            return True
        state.doubted_stamp = now
        state.is_second_look = False

        def look_again() -> None:
            if state.doubted_stamp == now:
                state.is_second_look = True
                self.check()

        self._timers.append(self._clock.call_at(self._clock.now() + SECOND_LOOK_AFTER, look_again))
        return False

    def _check_signal(self) -> None:
        state = self._signal
        now = read_stamp(self.place.signal)
        if now is not None and now in (
            state.stamp,
            None if state.is_second_look else state.doubted_stamp,
        ):
            return
        raw = self._read_file(self.place.signal, MAX_SIGNAL)
        problem = self._find_signal_problem(raw)
        if problem is None:
            state.clear()
            state.stamp = now
        elif problem.may_be_partial and not self._is_second_look(state, now):
            return
        elif not self.is_answered:
            self._restore_signal(problem.sentence, b"" if isinstance(raw, UnreadableFile) else raw)

    def _find_signal_problem(self, raw: bytes | UnreadableFile) -> Problem | None:
        """Return why this is not our signal; an error with our id ends the dispatch."""
        if isinstance(raw, UnreadableFile):
            return Problem("wrong-field", raw.reason)
        found = read_object(raw)
        if isinstance(found, Problem):
            return found
        named = found.get("dispatch_id")
        if isinstance(named, bool) or named != self.ask.dispatch_id:
            return Problem("wrong-dispatch-id", f"it names dispatch {named!r:.40}")
        if found.get("status") == "error":
            self._fail(CRASH, str(found.get("error") or "the responder gave no reason"))
            return None
        signal = read_signal(raw)
        return signal if isinstance(signal, Problem) else None

    def _restore_signal(self, sentence: str, raw: bytes) -> None:
        self._signal.clear()
        self.refuse("Malformed", f"signal.json was replaced and is written again: {sentence}", raw)
        with suppress(OSError):
            self.place.folder.mkdir(mode=0o700, exist_ok=True)
            if read_stamp(self.place.prompt) is None:
                write_file(self.place.prompt, self._prompt.encode())
            self._write_signal()

    def _write_status(self, status: SignalStatus, error: str = "") -> None:
        self._current = msgspec.structs.replace(self._current, status=status, error=error)
        self._write_signal()

    def _read_file(self, path: Path, most: int) -> bytes | UnreadableFile:
        if self.place.has_moved():
            return UnreadableFile(
                f"the folder {self.place.folder} was replaced by a link or removed"
            )
        return read_file(path, most)

    def _write_signal(self) -> None:
        if self.place.has_moved():
            raise FileNotFoundError(self.place.folder)
        if self.place.signal.is_dir() and not self.place.signal.is_symlink():
            move_aside(self.place.signal, "refused")
        # The decision waits behind `processing`, and it is soon replaced: no sync for this one.
        lasting = self._current.status != "processing"
        content = encode_signal(self._current)
        self._signal.stamp = write_file(self.place.signal, content, sync=lasting)

    def _is_artifact_ours(self) -> bool:
        """Return whether the artifact answers this dispatch although its signal was lost."""
        raw = read_file(self.place.artifact, MAX_ARTIFACT)
        found = judge_artifact(raw, self.ask) if isinstance(raw, bytes) else None
        return isinstance(found, Reply)


DEFAULT_TIMEOUT = 600.0
"""Seconds a step may take if its circuit sets no timeout."""
_CLOSE_CHECK_EVERY = 1.0
"""Seconds between looks that include the signal and what seems unchanged."""
_FULL_CHECK_EVERY = 10.0
"""Seconds between looks at everything."""


class FileCarrier(Carrier):
    """Ask and answer by files below one folder."""

    explains_where = True
    """True if the file of a prompt says where its answer goes."""
    traits = Traits(default_timeout=DEFAULT_TIMEOUT)

    def __init__(
        self, root: Path, clock: Clock, *, names: NameFiles = name_files, mode: Mode = "auto"
    ) -> None:
        self.root = root.absolute()
        self.folder_watch = FolderWatch(mode)
        self.on_tick: list[Callable[[], None]] = []
        self._clock = clock
        self._names = names
        self._open: dict[int, PendingFile] = {}
        self._ticks = 0
        self._has_ended_stale = False
        self._cancel: Callable[[], None] | None = None

    def start(self, session: Session) -> None:
        super().start(session)
        try:
            make_own_folder(self.root, mode=0o700)
        except OSError as error:
            raise SourceError(
                f"the folder {self.root} cannot be created: {error.strerror}"
            ) from None
        self.root = self.root.resolve()
        self.folder_watch.start(self.root)

    def keeps_answers(self) -> bool:
        """Return True: answers are files, and are there when the run goes on."""
        return True

    def send(self, asks: Sequence[Ask]) -> None:
        for ask in asks:
            if ask.dispatch_id not in self._open:
                self._write_dispatch(ask)
        if asks and not self._has_ended_stale:
            self._has_ended_stale = True
            self._end_stale_signals(asks[0].run_id)
        if self._cancel is None and self._open:
            self._set_timer()

    def settle(self, dispatch_id: int, error: str = "") -> None:
        waiting = self._open.pop(dispatch_id, None)
        if waiting is not None:
            self.folder_watch.drop(waiting.place.folder)
            waiting.settle(error)

    async def close(self) -> None:
        self.folder_watch.close()
        if self._cancel is not None:
            self._cancel()
            self._cancel = None
        for waiting in self._open.values():
            waiting.stop()
        self._open.clear()

    def find_pending(self, dispatch_id: int) -> PendingFile | None:
        """Return that dispatch, if it is open here."""
        return self._open.get(dispatch_id)

    def _write_dispatch(self, ask: Ask) -> None:
        names = self._names(ask.step, ask.attempt)
        try:
            place = make_case_folder(self.root, ask.run_id, ask.case_no, names)
            waiting = PendingFile(
                ask, place, self._clock, self._deliver, explains=self.explains_where
            )
            waiting.write_files()
        except (OSError, SourceError) as error:
            reason = f"the dispatch cannot be written: {error}"
            self._deliver(Reply(ask.dispatch_id, failure=CRASH, reason=reason))
            return
        self._open[ask.dispatch_id] = waiting
        self.folder_watch.add(place.folder, waiting.check)
        waiting.check()

    def _end_stale_signals(self, run_id: int) -> None:
        """End signals whose dispatches are over, and remove what a killed process was about to
        rename."""
        with suppress(OSError, SourceError):
            folder = make_run_folder(self.root, run_id)
            for path in folder.glob(f"*/{SIGNAL_FILE}"):
                end_stale_signal(path, self._open.__contains__)
            for each in (folder, *folder.iterdir()):
                remove_staged(each)

    def _on_tick(self) -> None:
        self._ticks += 1
        closely, always = self._is_due(_CLOSE_CHECK_EVERY), self._is_due(_FULL_CHECK_EVERY)
        self._cancel = None
        if self._open:
            self._set_timer()
        for waiting in list(self._open.values()):
            if always or waiting.may_have_changed(signal_too=closely):
                waiting.check(closely=closely)
        if closely:
            for callback in self.on_tick:
                callback()

    def _is_due(self, seconds: float) -> bool:
        return self._ticks % max(1, round(seconds / self.folder_watch.interval)) == 0

    def _set_timer(self) -> None:
        when = self._clock.now() + self.folder_watch.interval
        self._cancel = self._clock.call_at(when, self._on_tick)


class ManualCarrier(FileCarrier):
    """A carrier whose answers come by hand; `save` puts them in place."""

    explains_where = False
    traits = Traits(answered="by hand")


def read_saved_artifact(path: Path, dispatch_id: int) -> Artifact:
    """Read the artifact in a user's file, with or without its wrapper; a wrapper must carry this
    id."""
    raw = read_file(path.resolve(), MAX_ARTIFACT)
    if isinstance(raw, UnreadableFile):
        raise SourceError(f"{raw.reason}; nothing was saved")
    found = read_object(raw)
    if isinstance(found, dict):
        if not found.keys() >= {"dispatch_id", "data"}:
            return Artifact(dispatch_id, found)
        wrapped = read_artifact(raw)
        if isinstance(wrapped, Artifact) and wrapped.dispatch_id == dispatch_id:
            return wrapped
        found = (
            wrapped if isinstance(wrapped, Problem) else _build_wrong_dispatch(wrapped, dispatch_id)
        )
    raise SourceError(f"{path}: {found.sentence}; nothing was saved")


def _build_wrong_dispatch(wrapped: Artifact, dispatch_id: int) -> Problem:
    sentence = f"it answers dispatch {wrapped.dispatch_id}, and {dispatch_id} is open"
    return Problem("wrong-dispatch-id", sentence)


def read_item_ids(path: Path) -> list[int]:
    """Return the items that an artifact says it is about, if it can be read."""
    raw = read_file(path.resolve(), MAX_ARTIFACT)
    found = None if isinstance(raw, UnreadableFile) else read_object(raw)
    data = found.get("data", found) if isinstance(found, dict) else {}
    items = data.get("case_ids") if isinstance(data, dict) else ()
    known = items if isinstance(items, list) else ()
    return [item for item in known if isinstance(item, int) and not isinstance(item, bool)]


def find_saved_artifact(
    root: Path, run_id: int, case_no: int, names: DispatchFiles, dispatch_id: int
) -> Path | None:
    """Return the artifact that was put in place after that dispatch was written out; an earlier one
    does not count."""
    folder = root.resolve() / f"{run_id}" / f"{case_no}"
    there, artifact = read_signal_at(folder / SIGNAL_FILE), folder / names.artifact
    is_asked = there is not None and there.dispatch_id == dispatch_id
    return artifact if is_asked and artifact.is_file() and not artifact.is_symlink() else None


def write_artifact(
    root: Path,
    run_id: int,
    case_no: int,
    names: DispatchFiles,
    artifact: Artifact,
    given: Path | None = None,
) -> Path:
    """Put an artifact where the next session looks, and return its path; anything else there is
    moved aside.

    The artifact may have been `given` in that very place.
    """
    place = make_case_folder(root.resolve(), run_id, case_no, names)
    try:
        if given is None or given.resolve() != place.artifact:
            move_aside(place.artifact, "replaced")
        write_file(place.artifact, encode_artifact(artifact))
    except OSError as error:
        raise SourceError(f"{place.artifact} cannot be written: {error.strerror}") from None
    return place.artifact
