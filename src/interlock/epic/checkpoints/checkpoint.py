"""The checkpoint of an epic: one record, version 2, with everything a fresh session needs.

Knows its fields and how a session moves it. Refuses to know bytes, clocks and git: the work commit
is given, and is never the hash of the checkpoint itself.
"""

from typing import Any, Final, Literal

import msgspec

from interlock.epic.status import NEXT, Status, change_status
from interlock.system.errors import StateError

VERSION: Final = 2
_MOST_FAILURES: Final = 50
_MOST_RECOVERIES: Final = 50

ActionType = Literal["continue", "retry", "revise", "hitl", "spawn", "complete"]


class Epic(msgspec.Struct, frozen=True, kw_only=True):
    """The epic as a whole."""

    id: str
    title: str = ""
    file: str = ""
    status: Status = Status.IN_PROGRESS
    stories_total: int = 0


class Story(msgspec.Struct, frozen=True, kw_only=True):
    """A story of the epic, as far as it was seen."""

    id: str
    file: str = ""
    status: Status = Status.IN_PROGRESS
    commit: str = ""
    reason: str = ""


class Position(msgspec.Struct, frozen=True, kw_only=True):
    """Where the work stands: the four fields of the signal, and what older files add."""

    story_id: str = ""
    phase: str = ""
    task: str = ""
    task_total: int = 0
    step: str = ""


class GitWork(msgspec.Struct, frozen=True, kw_only=True):
    """How git stood when the checkpoint was written. No commit: it was not known."""

    commit: str = ""
    branch: str = ""
    dirt: str = ""
    """A digest of what was not committed; empty when all was."""
    unborn: bool = False
    """There was a repository without any commit."""


class NextAction(msgspec.Struct, frozen=True, kw_only=True):
    """What the next session does first."""

    type: ActionType = "continue"
    description: str = ""
    subagent: str = ""


class Hitl(msgspec.Struct, frozen=True, kw_only=True):
    """A request to a human, and what came back."""

    request_id: str = ""
    type: str = "issue"
    issue: int = 0
    url: str = ""
    waiting_since: str = ""
    deadline: str = ""
    response: str = ""
    comment: str = ""
    answered_at: str = ""


class EpicFailure(msgspec.Struct, frozen=True, kw_only=True):
    """Something that went wrong, for the next session to know."""

    at: str = ""
    story_id: str = ""
    task: str = ""
    type: str = ""
    message: str = ""
    retry_count: int = 0
    reverted_to: str = ""
    recovered: bool = False


class Recovery(msgspec.Struct, frozen=True, kw_only=True):
    """One line of the recovery journal. A stash is known by its commit."""

    number: int
    at: str = ""
    reason: str = ""
    action: str = ""
    state: Literal["started", "stashed", "complete", "failed", "restored"] = "started"
    head: str = ""
    stash: str = ""
    error: str = ""


class Metrics(msgspec.Struct, frozen=True, kw_only=True):
    """What the work has cost so far."""

    tokens_used: int = 0
    subagents_spawned: int = 0
    clears_performed: int = 0
    recoveries_performed: int = 0
    time_elapsed_minutes: int = 0


class Checkpoint(msgspec.Struct, frozen=True, kw_only=True):
    """Everything. `generation` rises with every write; of two sound files the higher is newer."""

    version: int = VERSION
    generation: int = 0
    created: str = ""
    updated: str = ""
    epic: Epic
    stories: tuple[Story, ...] = ()
    position: Position = Position()
    git: GitWork = GitWork()
    next_action: NextAction = NextAction()
    hitl: Hitl | None = None
    failures: tuple[EpicFailure, ...] = ()
    attempts: dict[str, int] = {}
    metrics: Metrics = Metrics()
    recoveries: tuple[Recovery, ...] = ()
    note: str = ""
    extra: dict[str, Any] = {}

    def story(self, story_id: str) -> Story | None:
        return next((each for each in self.stories if each.id == story_id), None)

    def with_story(self, story: Story) -> "Checkpoint":
        """The story in its place, or at the end."""
        known = [story if each.id == story.id else each for each in self.stories]
        stories = known if self.story(story.id) else [*known, story]
        return msgspec.structs.replace(self, stories=tuple(stories))

    def with_failure(self, failure: EpicFailure) -> "Checkpoint":
        failures = (*self.failures, failure)[-_MOST_FAILURES:]
        return msgspec.structs.replace(self, failures=failures)

    def with_recovery(self, entry: Recovery) -> "Checkpoint":
        """The entry in its place or at the end; one whose stash still lies there is never lost."""
        others = [each for each in self.recoveries if each.number != entry.number]
        entries = sorted([*others, entry], key=lambda each: each.number)
        old, new = entries[:-_MOST_RECOVERIES], entries[-_MOST_RECOVERIES:]
        kept = (*(each for each in old if each.state == "stashed"), *new)
        return msgspec.structs.replace(self, recoveries=kept)


class StatedPosition(msgspec.Struct, frozen=True, kw_only=True):
    """What a session says about its place when it writes a checkpoint."""

    epic_id: str
    story_id: str
    phase: str
    task: str
    status: Status = Status.IN_PROGRESS
    note: str | None = None
    next_action: NextAction | None = None


def moved(before: Checkpoint | None, said: StatedPosition, work: GitWork, at: str) -> Checkpoint:
    """The checkpoint after a session has said where it is."""
    checkpoint = before or Checkpoint(epic=Epic(id=said.epic_id), created=at)
    epic = _at_work(checkpoint.epic)
    known = checkpoint.story(said.story_id) or Story(id=said.story_id, status=said.status)
    status = change_status(known.status, said.status, f"story {said.story_id}")
    commit = work.commit if status == Status.DONE else known.commit
    checkpoint = checkpoint.with_story(msgspec.structs.replace(known, status=status, commit=commit))
    position = Position(story_id=said.story_id, phase=said.phase, task=said.task)
    note = checkpoint.note if said.note is None else said.note
    return msgspec.structs.replace(
        checkpoint,
        epic=epic,
        position=position,
        git=work,
        updated=at,
        note=note,
        next_action=said.next_action or NextAction(),
    )


def _at_work(epic: Epic) -> Epic:
    if not NEXT[epic.status]:
        raise StateError(
            f"epic {epic.id} is {epic.status}: begin a new one, or clear its checkpoint first"
        )
    return msgspec.structs.replace(epic, status=Status.IN_PROGRESS)
