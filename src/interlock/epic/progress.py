"""How the signals of a session change its checkpoint, and whether anything moved at all.

The functions are pure: a checkpoint and what was heard in, a checkpoint out. A story's status
follows as far as it may; the rest becomes a note. `CheckpointKeeper` applies them before and after
each session, and builds the artifact that the circuit's rules read; twice for one session, as after
a crash, it comes to the same.
"""

import hashlib
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

import msgspec

from interlock.agents.carrier import Ask
from interlock.epic.checkpoints.record import (
    Checkpoint,
    EpicFailure,
    GitWork,
    Hitl,
    NextAction,
    StatedPosition,
    Story,
    apply_position,
)
from interlock.epic.checkpoints.store import Checkpoints, LoadedCheckpoint
from interlock.epic.recovery.git_state import read_git_work
from interlock.epic.sessions.carrier import SessionAttempt
from interlock.epic.sessions.record import HeardSignal
from interlock.epic.status import NEXT, Status, read_status
from interlock.system.errors import InterlockError, SourceError
from interlock.system.time import format_timestamp

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


def build_mark(checkpoint: Checkpoint | None) -> str:
    """One word for where the work stands; equal words mean that nothing moved."""
    if checkpoint is None:
        return "none"
    place = checkpoint.position
    parts = (place, checkpoint.stories, checkpoint.git, checkpoint.note, checkpoint.next_action)
    digest = hashlib.sha256(msgspec.json.encode(parts)).hexdigest()[:12]
    where = ":".join(each or "-" for each in (place.story_id, place.phase, place.task))
    return f"{where}@{checkpoint.git.commit[:12] or '-'}#{digest}"


def reach_status(before: Status, after: Status) -> Status | None:
    """The status after what was said, by way of those between; None where it cannot follow."""
    here = before
    for step in (*_ON_THE_WAY, after):
        if after == here or after in NEXT[here]:
            return after
        if step in NEXT[here]:
            here = step
    return after if after in NEXT[here] else None


def apply_stories(
    checkpoint: Checkpoint, heard: Iterable[HeardSignal]
) -> tuple[Checkpoint, list[str]]:
    """The checkpoint after all that was said about stories, and what could not be followed."""
    notes: list[str] = []
    for each in heard:
        if not each.counts or each.type not in ("STORY_STARTED", "STORY_COMPLETE"):
            continue
        story_id = str(each.fields.get("story_id", ""))
        if not story_id:
            continue
        usual = Status.IN_PROGRESS if each.type == "STORY_STARTED" else Status.DONE
        try:
            status = read_status(str(each.fields.get("status", usual)))
        except SourceError as error:
            notes.append(f"story {story_id}: {error}")
            continue
        checkpoint, note = _apply_story(checkpoint, story_id, status)
        notes += [note] if note else []
    return checkpoint, notes[:_MOST_NOTES]


def _apply_story(checkpoint: Checkpoint, story_id: str, status: Status) -> tuple[Checkpoint, str]:
    known = checkpoint.story(story_id) or Story(id=story_id, status=Status.READY)
    if len(checkpoint.stories) >= _MOST_STORIES and checkpoint.story(story_id) is None:
        return checkpoint, f"story {story_id} is not noted: there are {_MOST_STORIES} already"
    found = reach_status(known.status, status)
    if found is None:
        return checkpoint, f"story {story_id} is {known.status}, so it was not made {status}"
    return checkpoint.with_story(msgspec.structs.replace(known, status=found)), ""


def apply_announced_position(
    checkpoint: Checkpoint | None, word: HeardSignal, work: GitWork, at: str
) -> Checkpoint:
    """The checkpoint that a session announced and did not write itself."""
    fields = {name: str(value) for name, value in word.fields.items()}
    known = checkpoint.story(fields["story_id"]) if checkpoint else None
    status = Status.IN_PROGRESS
    if checkpoint and known:
        found = reach_status(known.status, Status.IN_PROGRESS)
        status = found or known.status
        if found:
            ready = msgspec.structs.replace(known, status=Status.IN_PROGRESS)
            checkpoint = checkpoint.with_story(ready)
    said = StatedPosition(
        epic_id=fields["epic_id"],
        story_id=fields["story_id"],
        phase=fields["phase"],
        task=fields["task"],
        status=status,
    )
    return apply_position(checkpoint, said, work, at)


def has_written(before: str, checkpoint: Checkpoint | None, word: HeardSignal) -> bool:
    """Whether the session has written the checkpoint that it announced."""
    if checkpoint is None or build_mark(checkpoint) == before:
        return False
    place, fields = checkpoint.position, word.fields
    wanted = (fields.get("story_id"), fields.get("phase"), fields.get("task"))
    return (place.story_id, place.phase, place.task) == wanted


def apply_request(checkpoint: Checkpoint, word: HeardSignal, at: str) -> Checkpoint:
    """A human is asked; the work waits until one has approved, whatever happens meanwhile."""
    issue = word.fields.get("issue", 0)
    hitl = Hitl(issue=issue if isinstance(issue, int) else 0, waiting_since=at)
    first = NextAction(type="hitl", description="a human is asked")
    epic = msgspec.structs.replace(checkpoint.epic, status=Status.WAITING)
    return msgspec.structs.replace(checkpoint, epic=epic, hitl=hitl, next_action=first)


def apply_question(checkpoint: Checkpoint, request_id: str, at: str, deadline: str) -> Checkpoint:
    """The question as it is known where it is asked, and until when an answer counts."""
    hitl = msgspec.structs.replace(
        checkpoint.hitl or Hitl(waiting_since=at), request_id=request_id, deadline=deadline
    )
    return msgspec.structs.replace(checkpoint, hitl=hitl)


def apply_issue(checkpoint: Checkpoint, number: int, url: str) -> Checkpoint:
    """The question stands on an issue of ours; one that the session named gives way to it."""
    hitl = msgspec.structs.replace(checkpoint.hitl or Hitl(), issue=number, url=url)
    return msgspec.structs.replace(checkpoint, hitl=hitl)


def apply_answer(checkpoint: Checkpoint, decision: str, comment: str, at: str) -> Checkpoint:
    """What a human decided, with the notes for the next session."""
    hitl = msgspec.structs.replace(
        checkpoint.hitl or Hitl(), response=decision, comment=comment, answered_at=at
    )
    after = {
        "approve": NextAction(type="continue", description=comment),
        "revise": NextAction(type="revise", description=comment or "see the review"),
    }.get(decision, checkpoint.next_action)
    return msgspec.structs.replace(checkpoint, hitl=hitl, next_action=after)


def is_unanswered(checkpoint: Checkpoint) -> bool:
    """Whether somebody asked for a human and none has let the work go on."""
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
        message=attempt.message[:_LONGEST_MESSAGE],
    )
    return checkpoint.with_failure(failure)


def explain_contradiction(checkpoint: Checkpoint | None) -> str:
    """Why an epic cannot have succeeded, as far as its own stories tell."""
    broken = [each for each in (checkpoint.stories if checkpoint else ()) if each.status in _BROKEN]
    if not broken:
        return ""
    shown = ", ".join(f"{each.id} is {each.status}" for each in broken[:3])
    return f"success was said, but story {shown}"


def list_unfinished(checkpoint: Checkpoint | None) -> str:
    """The stories that nobody has reported as over, a few by name."""
    stories = checkpoint.stories if checkpoint else ()
    left = [each.id for each in stories if NEXT[each.status]]
    more = f" and {len(left) - 5} more" if len(left) > 5 else ""
    return f"{', '.join(left[:5])}{more}" if left else ""


_SHOWN: Final = 50
_CRASHED: Final = ("CRASH", "SESSION_TIMEOUT", "IDLE_TIMEOUT")
_KEPT: Final = ("CHECKPOINT_WRITE", "HITL_REQUIRED")
"""What must stand in the checkpoint before anything follows; if it cannot, that is fatal."""
_LONGEST_PROBLEM: Final = 2_000


class CheckpointUpdater:
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
        return build_mark(self.read())

    def after(self, ask: Ask, attempt: SessionAttempt) -> Mapping[str, Any]:
        kept, problem = self._update(attempt)
        fields = attempt.word.fields if attempt.word else {}
        success = attempt.ended_by == "EPIC_COMPLETE" and fields.get("status") == "success"
        doubt = explain_contradiction(kept) if success else ""
        if success and (left := list_unfinished(kept)):
            self._note(f"success was said; not reported as done: {left}")
        crashes = ask.case.context.get("crashes", 0) if ask.case else 0
        died = attempt.ended_by in _CRASHED
        after = build_mark(kept)
        lost = problem and attempt.ended_by in _KEPT
        return {
            "ended_by": "FATAL_ERROR" if lost else attempt.ended_by,
            "success": success and not doubt,
            "moved": after != attempt.before,
            "crashes": (crashes if isinstance(crashes, int) else 0) + 1 if died else 0,
            "error_code": str(fields.get("error_code", "")),
            "message": (doubt or problem or _find_message(attempt))[:_LONGEST_PROBLEM],
            "payload": dict(fields),
            "heard": [msgspec.to_builtins(each) for each in attempt.heard[:_SHOWN]],
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
        """The checkpoint with all that the session said; or as it was, and why."""
        before, word = self.read(), attempt.word
        work: GitWork | None = None
        if word is not None and word.type == "CHECKPOINT:WRITE":
            written = has_written(attempt.before, before, word)
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
        """A human is asked, or asked still after a restart: the same words change nothing."""
        self._change_if_needed(
            lambda known: apply_question(
                known, request_id, format_timestamp(since), format_timestamp(deadline)
            )
        )

    def record_issue(self, number: int, url: str) -> None:
        """The question stands on that issue."""
        self._change_if_needed(lambda known: apply_issue(known, number, url))

    def _change_if_needed(self, change: Callable[[Checkpoint], Checkpoint]) -> None:
        """For whoever reads the checkpoint; the question itself does not hang on it."""
        try:
            before = self.read()
            if before is not None and change(before) != before:
                self._checkpoints.update(
                    self._epic_id, lambda now: change(now or before), self._timestamp()
                )
        except InterlockError as error:
            self._note(f"the checkpoint does not tell of the question: {error}")

    def _timestamp(self) -> str:
        return format_timestamp(self._now())


def _apply_session(
    before: Checkpoint | None, attempt: SessionAttempt, work: GitWork | None, at: str
) -> tuple[Checkpoint | None, list[str]]:
    """The checkpoint after the session, and what could not be followed. With `work`, the session
    has announced a place that it did not write down."""
    after, word = before, attempt.word
    notes: list[str] = []
    if after is not None:
        after, notes = apply_stories(after, attempt.heard)
    if word is not None and work is not None:
        after = apply_announced_position(after, word, work, at)
    if after is None:
        return None, notes
    if word is not None and word.type == "HITL_REQUIRED":
        after = apply_request(after, word, at)
    return apply_failure(after, attempt, at), notes


def _find_message(attempt: SessionAttempt) -> str:
    fields = attempt.word.fields if attempt.word else {}
    for name in ("message", "error", "status"):
        if fields.get(name):
            return str(fields[name])
    return attempt.message
