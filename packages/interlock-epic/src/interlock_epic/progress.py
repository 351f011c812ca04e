"""Apply the signals of a session to its checkpoint, and detect if the work moved.

The functions are pure and idempotent: a checkpoint and the session's signals in, a checkpoint out.
An illegal status change of a story becomes a note. `CheckpointUpdater` applies them after each
session and builds the artifact that the circuit's rules read.
"""

import hashlib
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

import msgspec

from interlock.carriers.contract import Ask
from interlock.signals.catalogue import list_signals
from interlock.system.errors import InterlockError, SourceError
from interlock.system.time import format_timestamp
from interlock_epic.checkpoints.record import (
    Checkpoint,
    EpicFailure,
    GitWork,
    Hitl,
    NextAction,
    StatedPosition,
    Story,
    apply_position,
)
from interlock_epic.checkpoints.store import Checkpoints, LoadedCheckpoint
from interlock_epic.recovery.git_state import read_git_work
from interlock_epic.sessions.record import RecordedSignal, SessionAttempt
from interlock_epic.status import NEXT, Status, change_status, read_status

_ON_THE_WAY: Final = (Status.READY, Status.IN_PROGRESS)
_BROKEN: Final = (Status.FAILED, Status.BLOCKED, Status.HALTED, Status.PARTIAL)
_FAILED: Final = (
    "CRASH",
    "SESSION_TIMEOUT",
    "IDLE_TIMEOUT",
    "FATAL_ERROR",
    "RECOVERABLE_ERROR",
    "RECOVERY_FAILED",
    "NOTHING",
)
_LONGEST_MESSAGE: Final = 1_000
_MOST_STORIES: Final = 1_000
_MOST_NOTES: Final = 20
_REASONS: Final = ("message", "error", "reason", "status")
_POSITION: Final = ("story_id", "phase", "task")
_CODES: Final = tuple(
    value
    for row in list_signals("line")
    for field in row.payload
    if field.name == "error_code"
    for value in field.choices
)
_DEFAULT_CODES: Final = {"RECOVERY_FAILED": "GIT_STATE_MISMATCH"}
MOST_SIGNALS: Final = 50
"""The most signals of a session that its answer lists."""
_CRASHED: Final = ("CRASH", "SESSION_TIMEOUT", "IDLE_TIMEOUT")
_NEEDS_CHECKPOINT: Final = ("CHECKPOINT_WRITE", "HITL_REQUIRED")
"""Ends that the checkpoint must record first; failing that, they are fatal."""
_LONGEST_PROBLEM: Final = 2_000


def build_mark(checkpoint: Checkpoint | None) -> str:
    """Return a digest of the work's position; it changes when the work moves."""
    if checkpoint is None:
        return "none"
    position = checkpoint.position
    parts = (position, checkpoint.stories, checkpoint.git, checkpoint.note, checkpoint.next_action)
    digest = hashlib.sha256(msgspec.json.encode(parts)).hexdigest()[:12]
    where = ":".join(part or "-" for part in (position.story_id, position.phase, position.task))
    return f"{where}@{checkpoint.git.commit[:12] or '-'}#{digest}"


def reach_status(before: Status, after: Status) -> Status | None:
    """Return the new status if it can be reached, directly or by way of others, or None."""
    for step in (*_ON_THE_WAY, after):
        if after == before or after in NEXT[before]:
            return after
        if step in NEXT[before]:
            before = step
    return None


def apply_stories(
    checkpoint: Checkpoint, signals: Iterable[RecordedSignal]
) -> tuple[Checkpoint, list[str]]:
    """Apply all signals about stories; return notes on those that cannot be applied."""
    notes: list[str] = []
    for signal in signals:
        if not signal.counts or signal.type not in ("STORY_STARTED", "STORY_COMPLETE"):
            continue
        story_id = str(signal.fields.get("story_id", ""))
        if not story_id:
            continue
        default = Status.IN_PROGRESS if signal.type == "STORY_STARTED" else Status.DONE
        try:
            status = read_status(str(signal.fields.get("status", default)))
        except SourceError as error:
            notes.append(f"story {story_id}: {error}")
            continue
        checkpoint, note = _apply_story(checkpoint, story_id, status)
        notes += [note] if note else []
    return checkpoint, notes[:_MOST_NOTES]


def _apply_story(checkpoint: Checkpoint, story_id: str, status: Status) -> tuple[Checkpoint, str]:
    known = checkpoint.story(story_id) or Story(id=story_id, status=Status.READY)
    if len(checkpoint.stories) >= _MOST_STORIES and checkpoint.story(story_id) is None:
        return checkpoint, f"story {story_id} is not recorded: there are {_MOST_STORIES} already"
    found = reach_status(known.status, status)
    if found is None:
        return checkpoint, f"story {story_id} is {known.status} and cannot become {status}"
    return checkpoint.with_story(msgspec.structs.replace(known, status=found)), ""


def set_story_status(
    checkpoints: Checkpoints, known: Checkpoint, story_id: str, status: Status, reason: str, at: str
) -> Story:
    """Set a story's status in the checkpoint, as a person decided.

    Raise SourceError if there is no such story, StateError if the change is illegal.
    """

    def change(before: Checkpoint | None) -> Checkpoint:
        checkpoint = before or known
        found = checkpoint.story(story_id)
        if found is None:
            names = ", ".join(item.id for item in checkpoint.stories[:20]) or "none"
            raise SourceError(f"{checkpoint.epic.id} has no story {story_id}; it has {names}")
        change_status(found.status, status, f"story {story_id}")
        return checkpoint.with_story(msgspec.structs.replace(found, status=status, reason=reason))

    written = checkpoints.update(known.epic.id, change, at)
    return next(item for item in written.checkpoint.stories if item.id == story_id)


def apply_announced_position(
    checkpoint: Checkpoint | None, signal: RecordedSignal, work: GitWork, at: str
) -> Checkpoint:
    """Return the checkpoint that a session announced and did not write itself."""
    fields = {name: str(signal.fields[name]).strip() for name in ("epic_id", *_POSITION)}
    known = checkpoint.story(fields["story_id"]) if checkpoint else None
    status = Status.IN_PROGRESS
    if checkpoint and known:
        found = reach_status(known.status, Status.IN_PROGRESS)
        status = found or known.status
        if found:
            ready = msgspec.structs.replace(known, status=Status.IN_PROGRESS)
            checkpoint = checkpoint.with_story(ready)
    stated = StatedPosition(
        epic_id=fields["epic_id"],
        story_id=fields["story_id"],
        phase=fields["phase"],
        task=fields["task"],
        status=status,
    )
    return apply_position(checkpoint, stated, work, at)


def has_written(before: str, checkpoint: Checkpoint | None, signal: RecordedSignal) -> bool:
    """Return True if the session wrote the checkpoint that it announced."""
    if checkpoint is None or build_mark(checkpoint) == before:
        return False
    announced = {name: signal.fields[name] for name in _POSITION if signal.fields.get(name)}
    return all(getattr(checkpoint.position, name) == str(announced[name]) for name in announced)


def apply_request(checkpoint: Checkpoint, signal: RecordedSignal, at: str) -> Checkpoint:
    """Record that the session asked for a human; the work waits until one approves."""
    issue = signal.fields.get("issue", 0)
    hitl = Hitl(issue=issue if isinstance(issue, int) else 0, waiting_since=at)
    first = NextAction(type="hitl", description="a human is asked")
    epic = msgspec.structs.replace(checkpoint.epic, status=Status.WAITING)
    return msgspec.structs.replace(checkpoint, epic=epic, hitl=hitl, next_action=first)


def apply_question(checkpoint: Checkpoint, request_id: str, at: str, deadline: str) -> Checkpoint:
    """Record the question's id and deadline."""
    hitl = msgspec.structs.replace(
        checkpoint.hitl or Hitl(waiting_since=at), request_id=request_id, deadline=deadline
    )
    return msgspec.structs.replace(checkpoint, hitl=hitl)


def apply_issue(checkpoint: Checkpoint, number: int, url: str) -> Checkpoint:
    """Record the issue we opened for the question, in place of one the session named."""
    hitl = msgspec.structs.replace(checkpoint.hitl or Hitl(), issue=number, url=url)
    return msgspec.structs.replace(checkpoint, hitl=hitl)


def apply_answer(checkpoint: Checkpoint, decision: str, comment: str, at: str) -> Checkpoint:
    """Record a human's decision, with the comment for the next session."""
    hitl = msgspec.structs.replace(
        checkpoint.hitl or Hitl(), response=decision, comment=comment, answered_at=at
    )
    after = {
        "approve": NextAction(type="continue", description=comment),
        "revise": NextAction(type="revise", description=comment or "see the review"),
    }.get(decision, checkpoint.next_action)
    return msgspec.structs.replace(checkpoint, hitl=hitl, next_action=after)


def is_unanswered(checkpoint: Checkpoint) -> bool:
    """Return True if a human was asked and has not let the work continue."""
    hitl = checkpoint.hitl
    return hitl is not None and hitl.response.lower() not in ("approve", "approved", "revise")


def apply_failure(checkpoint: Checkpoint, attempt: SessionAttempt, at: str) -> Checkpoint:
    if attempt.ended_by not in _FAILED:
        return checkpoint
    failure = EpicFailure(
        at=at,
        story_id=checkpoint.position.story_id,
        task=checkpoint.position.task,
        type=attempt.ended_by,
        message=_find_reason(attempt)[1][:_LONGEST_MESSAGE],
    )
    return checkpoint.with_failure(failure)


def explain_contradiction(checkpoint: Checkpoint | None) -> str:
    """Return why the epic's own stories contradict a success, or ""."""
    stories = checkpoint.stories if checkpoint else ()
    broken = [f"{story.id} is {story.status}" for story in stories if story.status in _BROKEN]
    if broken:
        return f"the session reported success, but story {', '.join(broken[:3])}"
    if stories and not any(story.status == Status.DONE for story in stories):
        return f"the session reported success, but none of {len(stories)} stories is done"
    return ""


def find_current_story(checkpoint: Checkpoint) -> str:
    """Return the story of the position, or else the first unfinished one."""
    unfinished = (story.id for story in checkpoint.stories if NEXT[story.status])
    return checkpoint.position.story_id or next(unfinished, "")


def list_unfinished(checkpoint: Checkpoint | None) -> str:
    """Return a few of the stories that no session reported as finished."""
    stories = checkpoint.stories if checkpoint else ()
    open_ids = [story.id for story in stories if NEXT[story.status]]
    more = f" and {len(open_ids) - 5} more" if len(open_ids) > 5 else ""
    return f"{', '.join(open_ids[:5])}{more}"


class CheckpointUpdater:
    """Keeps the checkpoint of one epic up to date."""

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
        """Return the checkpoint, or None if it is not sound."""
        found = self._checkpoints.read(self._epic_id)
        return found.checkpoint if isinstance(found, LoadedCheckpoint) else None

    def read_mark(self) -> str:
        return build_mark(self.read())

    def apply(self, ask: Ask, attempt: SessionAttempt) -> Mapping[str, Any]:
        """Apply the session to the checkpoint; return the artifact that describes its end."""
        checkpoint, problem = self._update(attempt)
        fields = attempt.signal.fields if attempt.signal else {}
        success = attempt.ended_by == "EPIC_COMPLETE" and fields.get("status") == "success"
        contradiction = explain_contradiction(checkpoint) if success else ""
        if success and (unfinished := list_unfinished(checkpoint)):
            self._note(f"the session reported success, but not that these are done: {unfinished}")
        crashes = ask.case.context.get("crashes", 0) if ask.case else 0
        crashed = attempt.ended_by in _CRASHED
        after = build_mark(checkpoint)
        lost = problem and attempt.ended_by in _NEEDS_CHECKPOINT
        code, reason = _find_reason(attempt)
        return {
            "ended_by": "FATAL_ERROR" if lost else attempt.ended_by,
            "success": success and not contradiction,
            "moved": after != attempt.before,
            "crashes": (crashes if isinstance(crashes, int) else 0) + 1 if crashed else 0,
            "error_code": code,
            "message": (contradiction or problem or reason)[:_LONGEST_PROBLEM],
            "payload": dict(fields),
            "heard": msgspec.to_builtins(attempt.signals[:MOST_SIGNALS]),
            "counted": {
                "all": attempt.total,
                "refused": attempt.refused,
                "repeated": attempt.repeated,
            },
            "checkpoint_before": attempt.before,
            "checkpoint_after": after,
            "exit": attempt.exit,
            "seconds": attempt.seconds,
            "record": attempt.record,
        }

    def _update(self, attempt: SessionAttempt) -> tuple[Checkpoint | None, str]:
        """Return the checkpoint with everything the session said; or unchanged, with the reason."""
        before, signal = self.read(), attempt.signal
        work: GitWork | None = None
        if signal is not None and signal.type == "CHECKPOINT:WRITE":
            written = has_written(attempt.before, before, signal)
            work = None if written else read_git_work(self._checkpoints.place.root)
        at = self._timestamp()
        try:
            after, notes = _apply_session(before, attempt, work, at)
            for note in notes:
                self._note(note)
            if after is None or after == before:
                return before, ""
            found = self._checkpoints.update(
                self._epic_id, lambda now: _apply_session(now, attempt, work, at)[0] or after, at
            )
        except InterlockError as error:
            self._note(f"the checkpoint was not changed: {error}")
            return before, str(error)
        return found.checkpoint, ""

    def record_question(self, request_id: str, since: float, deadline: float) -> None:
        """Record a question to a human; repeated after a restart."""
        self._change(
            lambda known: apply_question(
                known, request_id, format_timestamp(since), format_timestamp(deadline)
            )
        )

    def record_issue(self, number: int, url: str) -> None:
        self._change(lambda known: apply_issue(known, number, url))

    def _change(self, change: Callable[[Checkpoint], Checkpoint]) -> None:
        """Change the checkpoint; failing that only adds a note, since the question works without
        it.
        """
        try:
            known = self.read()
            if known is not None:
                self._checkpoints.update(
                    self._epic_id,
                    lambda before: change(before or known),
                    self._timestamp(),
                    if_changed=True,
                )
        except InterlockError as error:
            self._note(f"the question is not recorded in the checkpoint: {error}")

    def _timestamp(self) -> str:
        return format_timestamp(self._now())


def _apply_session(
    before: Checkpoint | None, attempt: SessionAttempt, work: GitWork | None, at: str
) -> tuple[Checkpoint | None, list[str]]:
    """Return the checkpoint after the session, and notes on what could not be applied.

    `work` is given if the session announced a position that it did not write itself.
    """
    after, signal = before, attempt.signal
    notes: list[str] = []
    if after is not None:
        after, notes = apply_stories(after, attempt.signals)
    if signal is not None and work is not None:
        after = apply_announced_position(after, signal, work, at)
    if after is None:
        return None, notes
    if signal is not None and signal.type == "HITL_REQUIRED":
        after = apply_request(after, signal, at)
    return apply_failure(after, attempt, at), notes


def _find_reason(attempt: SessionAttempt) -> tuple[str, str]:
    """Return the error code and reason that the session gave.

    A signal without a field for the code, such as RECOVERY_FAILED, may begin its text with one.
    """
    fields = attempt.signal.fields if attempt.signal else {}
    given = (str(fields[name]) for name in _REASONS if fields.get(name))
    reason, code = next(given, attempt.message), str(fields.get("error_code", ""))
    first, _, rest = reason.replace(":", " ", 1).partition(" ")
    if not code and first in _CODES:
        return first, rest.strip() or reason
    return code or _DEFAULT_CODES.get(attempt.ended_by, ""), reason
