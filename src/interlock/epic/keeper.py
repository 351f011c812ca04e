"""Who keeps an epic's place around each session: what is noted before it, and after.

Done twice for the same session, as after a crash, it comes to the same. Knows the artifact that the
circuit's rules read. Refuses to know processes.
"""

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any, Final

import msgspec

from interlock.agents.carrier import Ask
from interlock.epic import progress
from interlock.epic.checkpoints.checkpoint import Checkpoint, GitWork
from interlock.epic.checkpoints.checkpoints import Checkpoints
from interlock.epic.checkpoints.generations import LoadedCheckpoint
from interlock.epic.recovery.git_state import current_work
from interlock.epic.sessions.carrier import SessionAttempt
from interlock.system.errors import InterlockError

_SHOWN: Final = 50
_CRASHED: Final = ("CRASH", "SESSION_TIMEOUT", "IDLE_TIMEOUT")
_KEPT: Final = ("CHECKPOINT_WRITE", "HITL_REQUIRED")
"""What must stand in the checkpoint before anything follows; if it cannot, that is fatal."""
_LONGEST: Final = 2_000


class CheckpointKeeper:
    """Keeps the checkpoint of one epic."""

    def __init__(
        self,
        checkpoints: Checkpoints,
        epic_id: str,
        now: Callable[[], float],
        note: Callable[[str], None],
    ) -> None:
        self._checkpoints = checkpoints
        self._epic_id = epic_id
        self._now = now
        self._note = note

    def read(self) -> Checkpoint | None:
        """The checkpoint, if it is sound."""
        found = self._checkpoints.read(self._epic_id)
        return found.checkpoint if isinstance(found, LoadedCheckpoint) else None

    def before(self, ask: Ask) -> str:
        return progress.mark_of(self.read())

    def after(self, ask: Ask, life: SessionAttempt) -> Mapping[str, Any]:
        kept, problem = self._kept(life)
        fields = life.word.fields if life.word else {}
        success = life.ended_by == "EPIC_COMPLETE" and fields.get("status") == "success"
        doubt = progress.contradicts(kept) if success else ""
        if success and (left := progress.not_done(kept)):
            self._note(f"success was said; not reported as done: {left}")
        crashes = ask.case.context.get("crashes", 0) if ask.case else 0
        died = life.ended_by in _CRASHED
        after = progress.mark_of(kept)
        lost = problem and life.ended_by in _KEPT
        return {
            "ended_by": "FATAL_ERROR" if lost else life.ended_by,
            "success": success and not doubt,
            "moved": after != life.before,
            "crashes": (crashes if isinstance(crashes, int) else 0) + 1 if died else 0,
            "error_code": str(fields.get("error_code", "")),
            "message": (doubt or problem or _message(life))[:_LONGEST],
            "payload": dict(fields),
            "heard": [msgspec.to_builtins(each) for each in life.heard[:_SHOWN]],
            "counted": {"all": life.total, "refused": life.refused, "repeated": life.repeated},
            "checkpoint_before": life.before,
            "checkpoint_after": after,
            "exit": life.exit,
            "seconds": life.seconds,
            "record": life.record,
        }

    def _kept(self, life: SessionAttempt) -> tuple[Checkpoint | None, str]:
        """The checkpoint with all that the session said; or as it was, and why."""
        before, word = self.read(), life.word
        work: GitWork | None = None
        if word is not None and word.type == "CHECKPOINT:WRITE":
            written = progress.is_written(life.before, before, word)
            work = None if written else current_work(self._checkpoints.place.root)
        at = self._at()
        try:
            after, notes = _changed(before, life, work, at)
            for note in notes:
                self._note(note)
            if after is None or after == before:
                return before, ""
            found = self._checkpoints.update(
                self._epic_id, lambda now: _changed(now, life, work, at)[0] or after, at
            )
        except InterlockError as error:
            self._note(f"the checkpoint was not changed: {error}")
            return before, str(error)
        return found.checkpoint, ""

    def asked(self, request_id: str, since: float, deadline: float) -> None:
        """A human is asked, or asked still after a restart: the same words change nothing."""
        self._note_in(
            lambda known: progress.with_question(known, request_id, moment(since), moment(deadline))
        )

    def on_issue(self, number: int, url: str) -> None:
        """The question stands on that issue."""
        self._note_in(lambda known: progress.with_issue(known, number, url))

    def _note_in(self, change: Callable[[Checkpoint], Checkpoint]) -> None:
        """For whoever reads the checkpoint; the question itself does not hang on it."""
        try:
            before = self.read()
            if before is not None and change(before) != before:
                self._checkpoints.update(
                    self._epic_id, lambda now: change(now or before), self._at()
                )
        except InterlockError as error:
            self._note(f"the checkpoint does not tell of the question: {error}")

    def _at(self) -> str:
        return moment(self._now())


def _changed(
    before: Checkpoint | None, life: SessionAttempt, work: GitWork | None, at: str
) -> tuple[Checkpoint | None, list[str]]:
    """The checkpoint after the session, and what could not be followed. With `work`, the session
    has announced a place that it did not write down."""
    after, word = before, life.word
    notes: list[str] = []
    if after is not None:
        after, notes = progress.with_stories(after, life.heard)
    if word is not None and work is not None:
        after = progress.with_place(after, word, work, at)
    if after is None:
        return None, notes
    if word is not None and word.type == "HITL_REQUIRED":
        after = progress.with_request(after, word, at)
    return progress.with_failure(after, life, at), notes


def moment(at: float) -> str:
    """A time as checkpoints write it."""
    return datetime.fromtimestamp(at, UTC).isoformat(timespec="seconds")


def _message(life: SessionAttempt) -> str:
    fields = life.word.fields if life.word else {}
    for name in ("message", "error", "status"):
        if fields.get(name):
            return str(fields[name])
    return life.message
