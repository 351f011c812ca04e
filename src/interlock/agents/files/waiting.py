"""One dispatch that waits for its artifact: what is seen of its two files, and what that means.

Knows the life of a signal (waiting, processing, done, error), that a bad artifact is looked at
twice, and that a signal replaced by nonsense is written again. Refuses to know when to look.
"""

import os
from collections.abc import Callable
from contextlib import suppress
from hashlib import blake2b
from pathlib import Path

import msgspec

from interlock.agents.carrier import Ask, Clock, Deliver, Reply
from interlock.agents.files.artifact import LARGEST, Doubt, Foreign, judge
from interlock.agents.files.case_folder import CaseFolder
from interlock.agents.files.signal_paper import (
    LARGEST_SIGNAL,
    signal_at,
    told_where,
    waiting_signal,
)
from interlock.engine.circuit import CRASH, UNREADABLE
from interlock.signals.signal_file import SignalStatus, encode_signal, read_signal
from interlock.system.safe_file import (
    FileStamp,
    UnreadableFile,
    read_regular,
    set_aside,
    stamp,
    write_whole,
)
from interlock.system.strict_json import Problem, decode_object

SECOND_LOOK = 1.0
"""Seconds between the two looks at a file that is no valid JSON."""
_LONGEST_ERROR = 2_000
_MOST_REFUSED = 50
"""Refusals journaled for one dispatch; whoever writes more nonsense adds nothing new."""


class _Sight(msgspec.Struct):
    """How a file stood when it was last looked at, and whether a second look is due."""

    stamp: FileStamp | None = None
    doubted: FileStamp | None = None
    ripe: bool = False

    def clear(self) -> None:
        self.doubted = None
        self.ripe = False


class PendingFile:
    """An open dispatch with its papers on the table."""

    def __init__(
        self, ask: Ask, place: CaseFolder, clock: Clock, deliver: Deliver, *, tells: bool = True
    ) -> None:
        """`tells` in the prompt's file where the answer is to be written, and how."""
        self.ask = ask
        self.place = place
        self.taken = False
        self._artifact_path = str(place.artifact)
        self._signal_path = str(place.signal)
        self._clock = clock
        self._deliver = deliver
        self._artifact = _Sight()
        self._signal = _Sight()
        self._refused: set[tuple[str, bytes]] = set()
        self._timers: list[Callable[[], None]] = []
        self._current = waiting_signal(ask, place)
        self._prompt = told_where(ask, place) if tells else ask.prompt

    def stirs(self, *, signal_too: bool) -> bool:
        """Whether a look may be worth it. Asked of every open dispatch all the time: it must cost
        next to nothing, and may miss what only a look can see (a link that leads nowhere)."""
        if self._artifact.stamp is not None or os.access(self._artifact_path, os.F_OK):
            return True
        return signal_too and self._signal_stirs()

    def _signal_stirs(self) -> bool:
        seen = self._signal.stamp
        try:
            found = os.lstat(self._signal_path)
        except OSError:
            return True
        return seen is None or (found.st_mtime_ns, found.st_ino) != (seen.modified, seen.inode)

    def lay_out(self) -> None:
        """Write prompt and signal, unless this very dispatch already lies there. What an earlier
        one left at the artifact's place is set aside. OSError if the files cannot be written."""
        there = signal_at(self.place.signal)
        again = there is not None and there.dispatch_id == self.ask.dispatch_id
        if not again and not self._is_ours():
            set_aside(self.place.artifact, f"attempt-{self.ask.attempt - 1}")
        write_whole(self.place.prompt, self._prompt.encode())
        if there == self._current:
            self._signal.stamp = stamp(self.place.signal)
        elif not (again and there is not None and there.status == "error"):
            self._write_signal()

    def look(self, *, closely: bool = True) -> None:
        """See what has become of the files; `closely` reads also what seems unchanged."""
        if not self.taken:
            self._look_at_artifact(closely)
        if not self.taken:
            self._look_at_signal()

    def give_up(self, reason: str) -> None:
        """A responder says it cannot answer; an artifact that is there counts all the same."""
        self.look()
        if not self.taken:
            self._fail(CRASH, reason)

    def leave(self) -> None:
        """Look no more; the papers stay as they are."""
        self.taken = True
        for cancel in self._timers:
            cancel()

    def settle(self, error: str) -> None:
        """Say in the signal how the dispatch ended."""
        self.leave()
        with suppress(OSError):
            self._mark("error" if error else "done", error[:_LONGEST_ERROR])

    def refuse(self, reason: str, sentence: str, raw: bytes = b"") -> None:
        """Have it journaled, once for each content."""
        key = (sentence, blake2b(raw, digest_size=16).digest())
        if key not in self._refused and len(self._refused) < _MOST_REFUSED:
            self._refused.add(key)
            sentence = f"{sentence[:1].upper()}{sentence[1:]}."
            self._deliver(Reply(self.ask.dispatch_id, raw, refused=reason, reason=sentence))

    def _look_at_artifact(self, closely: bool) -> None:
        sight = self._artifact
        now = stamp(self.place.artifact)
        unchanged = now == sight.stamp
        sight.stamp = now
        if now is None:
            if sight.doubted is not None:
                self.refuse("Missing", f"{self.place.artifact.name} vanished before it was valid")
            sight.clear()
        elif not unchanged or sight.ripe or (closely and sight.doubted is None):
            self._read_artifact(now)

    def _read_artifact(self, now: FileStamp) -> None:
        raw = self._read(self.place.artifact, LARGEST)
        match Doubt(raw.reason) if isinstance(raw, UnreadableFile) else judge(raw, self.ask):
            case Doubt(reason) if isinstance(raw, UnreadableFile) and raw.kind != "large":
                self.refuse("Missing" if raw.kind == "gone" else "Malformed", reason)
            case Doubt(reason):
                if self._look_again(self._artifact, now):
                    self._fail(UNREADABLE, reason)
            case Foreign(sentence):
                self._artifact.clear()
                self.refuse("Stale", sentence, raw if isinstance(raw, bytes) else b"")
            case Reply() as reply:
                self._take(reply)

    def _take(self, reply: Reply) -> None:
        self.taken = True
        self._deliver(reply)
        with suppress(OSError):
            self._mark("processing")

    def _fail(self, failure: str, reason: str) -> None:
        self.taken = True
        reason = reason[:_LONGEST_ERROR]
        self._deliver(Reply(self.ask.dispatch_id, failure=failure, reason=reason))

    def _look_again(self, sight: _Sight, now: FileStamp | None) -> bool:
        """Whether this was the second look at the same thing; else there will be one."""
        if sight.ripe and sight.doubted == now:
            return True
        sight.doubted = now
        sight.ripe = False

        def ripen() -> None:
            if sight.doubted == now:
                sight.ripe = True
                self.look()

        self._timers.append(self._clock.call_at(self._clock.now() + SECOND_LOOK, ripen))
        return False

    def _look_at_signal(self) -> None:
        sight = self._signal
        now = stamp(self.place.signal)
        if now is not None and now in (sight.stamp, None if sight.ripe else sight.doubted):
            return
        raw = self._read(self.place.signal, LARGEST_SIGNAL)
        problem = self._signal_problem(raw)
        if problem is None:
            sight.clear()
            sight.stamp = now
        elif problem.may_be_partial and not self._look_again(sight, now):
            return
        elif not self.taken:
            self._restore(problem.sentence, b"" if isinstance(raw, UnreadableFile) else raw)

    def _signal_problem(self, raw: bytes | UnreadableFile) -> Problem | None:
        """Why this is not our signal. An error that carries our id ends the dispatch."""
        if isinstance(raw, UnreadableFile):
            return Problem("wrong-field", raw.reason)
        found = decode_object(raw)
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

    def _restore(self, sentence: str, raw: bytes) -> None:
        self._signal.clear()
        self.refuse("Malformed", f"signal.json was replaced and is written again: {sentence}", raw)
        with suppress(OSError):
            self.place.folder.mkdir(mode=0o700, exist_ok=True)
            if stamp(self.place.prompt) is None:
                write_whole(self.place.prompt, self._prompt.encode())
            self._write_signal()

    def _mark(self, status: SignalStatus, error: str = "") -> None:
        self._current = msgspec.structs.replace(self._current, status=status, error=error)
        self._write_signal()

    def _read(self, path: Path, most: int) -> bytes | UnreadableFile:
        if self.place.moved():
            return UnreadableFile(
                f"the folder {self.place.folder} was replaced by a link or removed"
            )
        return read_regular(path, most)

    def _write_signal(self) -> None:
        if self.place.moved():
            raise FileNotFoundError(self.place.folder)
        if self.place.signal.is_dir() and not self.place.signal.is_symlink():
            set_aside(self.place.signal, "refused")
        # The decision waits behind `processing`, and it is soon replaced: no sync for this one.
        lasting = self._current.status != "processing"
        content = encode_signal(self._current)
        self._signal.stamp = write_whole(self.place.signal, content, sync=lasting)

    def _is_ours(self) -> bool:
        """Whether the artifact that lies there answers this dispatch: its signal was lost."""
        raw = read_regular(self.place.artifact, LARGEST)
        found = judge(raw, self.ask) if isinstance(raw, bytes) else None
        return isinstance(found, Reply)
