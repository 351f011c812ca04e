"""The four shapes of checkpoint that older tools have left, one function each.

Knows their field names and which of ours each means. What a function does not take stays in the
leftover. Refuses to know how a file is told to be of a shape.
"""

from typing import Final, get_args

from interlock.epic.checkpoints.checkpoint import (
    ActionType,
    Checkpoint,
    Epic,
    EpicFailure,
    GitWork,
    Hitl,
    Metrics,
    NextAction,
    Position,
    Story,
)
from interlock.epic.checkpoints.legacy import InvalidError, LegacyFields
from interlock.epic.status import Status

_ACTIONS: Final[tuple[ActionType, ...]] = get_args(ActionType)
_OTHER_ACTIONS: Final[dict[str, ActionType]] = {
    "resume": "continue",
    "spawn-fixer": "spawn",
    "hitl-clarification": "hitl",
}
_PHASES: Final = ("DESIGN", "PLAN", "BUILD", "VALIDATE")


def nested(left: LegacyFields) -> Checkpoint:
    """`.sage/state/{epic_id}.json`, "1.0": sections within the file."""
    epic_id = left.text("epic.id", needed=True)
    story_id = left.text("current.story_id", needed=True)
    retries = left.count("current.retry_count")
    status = left.status("current.status", "story")
    stories = {each.id: each for each in map(_completed, left.items("completed"))}
    current = Story(id=story_id, file=left.text("current.story_file"), status=status)
    if story_id not in stories or status != Status.IN_PROGRESS:
        stories[story_id] = current
    left.take("epic.stories_complete")
    commit = left.take("git.last_checkpoint_commit")
    if commit is None:
        raise InvalidError("git.last_checkpoint_commit is missing")
    return Checkpoint(
        created=left.text("created"),
        updated=left.text("updated"),
        epic=Epic(
            id=epic_id,
            file=left.text("epic.file"),
            status=left.status("epic.status", "epic"),
            stories_total=left.count("epic.stories_total"),
        ),
        stories=tuple(stories.values()),
        position=_nested_position(left, story_id),
        git=GitWork(commit=LegacyFields({"c": commit}).commit("c"), branch=left.text("git.branch")),
        next_action=_next_action(left),
        hitl=_hitl(left),
        failures=tuple(_failure(each) for each in left.items("failure_history")),
        attempts={"retry": retries} if retries else {},
        metrics=_metrics(left),
    )


def _nested_position(left: LegacyFields, story_id: str) -> Position:
    number, name = left.count("lifecycle.phase"), left.text("lifecycle.phase_name")
    by_number = _PHASES[number - 1] if 0 < number <= len(_PHASES) else ""
    return Position(
        story_id=story_id,
        phase=name or by_number,
        task=str(left.count("current.task_index", needed=True)),
        task_total=left.count("current.task_total"),
        step=left.text("current.step"),
    )


def flat(left: LegacyFields) -> Checkpoint:
    """`current-checkpoint.json`, "1.0": all fields beside each other."""
    left_commit = left.take("commit_hash")
    if left_commit is None:
        raise InvalidError("commit_hash is missing")
    story_id = left.text("story_id", needed=True)
    word = left.text("status", needed=True)
    status = LegacyFields({"status": word}).status("status", "story")
    return Checkpoint(
        created=left.text("started_at"),
        updated=left.text("updated_at"),
        epic=Epic(id=left.text("epic_id", needed=True)),
        stories=(Story(id=story_id, status=status),),
        position=Position(
            story_id=story_id,
            phase=left.text("phase", needed=True),
            task=str(left.count("task_index", needed=True)),
        ),
        git=GitWork(
            commit=LegacyFields({"c": left_commit}).commit("c"), branch=left.text("branch")
        ),
        note=left.text("notes"),
    )


def ad_hoc(left: LegacyFields) -> Checkpoint:
    """`checkpoint.json`: what the commands that show and clear one expect."""
    story_id = left.text("story")
    status = left.status("state", "story")
    stories = (Story(id=story_id, status=status),) if story_id else ()
    step, ref = left.text("step"), left.text("git_ref")
    commit = LegacyFields({"c": ref}).commit("c")
    return Checkpoint(
        updated=left.text("timestamp"),
        epic=Epic(id=left.text("epic", needed=True)),
        stories=stories,
        position=Position(story_id=story_id, phase=left.text("phase") or step, step=step),
        git=GitWork(commit=commit, branch="" if commit else ref.removeprefix("refs/heads/")),
        next_action=_next_action(left, needed=False),
        note=left.words("context"),
    )


def epic_state(left: LegacyFields) -> Checkpoint:
    """`epic-{id}-state.json`: the state of a run over a queue of stories."""
    at = left.count("current_story_index")
    queue = [_named(each) for each in left.items("story_queue")]
    current = left.text("current_story") or (queue[at] if at < len(queue) else "")
    states = dict.fromkeys(queue, Status.READY)
    if current:
        states[current] = Status.IN_PROGRESS
    stories = {name: Story(id=name, status=status) for name, status in states.items()}
    stories |= {name: Story(id=name, status=Status.SKIPPED) for name in _names(left, "skipped")}
    for each in left.items("failed_stories"):
        name, reason = _named(each), each.text("reason")
        stories[name] = Story(id=name, status=Status.FAILED, reason=reason)
    stories |= {name: Story(id=name, status=Status.DONE) for name in _names(left, "completed")}
    counters = ("chunk_retry_count", "test_attempt", "review_iteration")
    attempts = {name: left.count(name) for name in counters}
    chunk = left.take("current_chunk_index")
    error = left.take("error")
    return Checkpoint(
        updated=left.text("last_updated"),
        epic=Epic(
            id=left.text("epic_id", needed=True),
            title=left.text("epic_title"),
            file=left.text("epic_path"),
            stories_total=len(queue),
        ),
        stories=tuple(stories.values()),
        position=Position(
            story_id=current,
            phase=left.text("phase", needed=True),
            task="" if chunk is None else str(LegacyFields({"c": chunk}).count("c")),
        ),
        git=GitWork(branch=left.text("story_branch") or left.text("epic_branch")),
        attempts={name: value for name, value in attempts.items() if value},
        failures=(EpicFailure(type="error", message=str(error)[:2_000]),) if error else (),
    )


def _names(left: LegacyFields, word: str) -> list[str]:
    return [_named(each) for each in left.items(f"{word}_stories")]


def _named(item: LegacyFields) -> str:
    return item.text("id") or item.text("story_id") or item.text("story_key", needed=True)


def _completed(item: LegacyFields) -> Story:
    return Story(
        id=item.text("story_id") or item.text("id", needed=True),
        status=item.status("status", "story", Status.DONE),
        commit=item.commit("checkpoint_commit"),
    )


def _next_action(left: LegacyFields, needed: bool = True) -> NextAction:
    word = left.text("next_action.type", needed)
    kind = next((each for each in _ACTIONS if each == word), None) or _OTHER_ACTIONS.get(word)
    if word and kind is None:
        raise InvalidError(f"next_action.type {word[:40]!r} is none of {', '.join(_ACTIONS)}")
    return NextAction(
        type=kind or "continue",
        description=left.text("next_action.description"),
        subagent=left.text("next_action.subagent") or ("FIXER" if "fixer" in word else ""),
    )


def _hitl(left: LegacyFields) -> Hitl | None:
    found = Hitl(
        type=left.text("hitl.type") or "issue",
        issue=left.count("hitl.github_issue_id"),
        url=left.text("hitl.github_url"),
        waiting_since=left.text("hitl.waiting_since"),
        response=left.text("hitl.response_status"),
        comment=left.text("hitl.response_comment"),
        answered_at=left.text("hitl.response_at"),
    )
    return None if found == Hitl() else found


def _failure(item: LegacyFields) -> EpicFailure:
    return EpicFailure(
        at=item.text("timestamp"),
        task=item.text("task_id"),
        type=item.text("failure_type"),
        message=item.text("error_message"),
        retry_count=item.count("retry_count"),
        reverted_to=item.commit("reverted_to"),
        recovered=item.take("recovered") is True,
    )


def _metrics(left: LegacyFields) -> Metrics:
    return Metrics(**{name: left.about(f"metrics.{name}") for name in Metrics.__struct_fields__})
