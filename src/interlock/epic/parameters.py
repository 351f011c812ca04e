"""The parameters of an epic's prompts: its position, its stories and what comes first. Bounded."""

from collections.abc import Mapping
from typing import Any, Final

from interlock.epic.checkpoints.record import Checkpoint, EpicFailure, Story
from interlock.epic.epic_file import EpicStory

NAMES: Final = (
    "epic",
    "place",
    "stories",
    "first",
    "note",
    "failures",
    "stashes",
    "issue",
    "resume_prompt",
)
_MOST: Final = 200
_LAST_FAILURES: Final = 3
_LONGEST: Final = 4_000


def build_parameters(
    checkpoint: Checkpoint | None, written: tuple[EpicStory, ...], epic: Mapping[str, str], say: str
) -> dict[str, Any]:
    """The names of `NAMES`, also where there is no checkpoint yet."""
    kept = checkpoint.stories if checkpoint else ()
    position = checkpoint.position if checkpoint else None
    hitl = checkpoint.hitl if checkpoint else None
    stashed = (
        [each for each in checkpoint.recoveries if each.state == "stashed"] if checkpoint else []
    )
    return {
        "epic": dict(epic),
        "place": {
            "story": position.story_id if position else "",
            "phase": position.phase if position else "",
            "task": position.task if position else "",
        },
        "stories": [_build_story(each, kept) for each in written[:_MOST]]
        + _list_other_stories(kept, written),
        "first": _format_next_action(checkpoint),
        "note": _clip(checkpoint.note if checkpoint else ""),
        "failures": [_format_failure(f) for f in checkpoint.failures[-_LAST_FAILURES:]]
        if checkpoint
        else [],
        "stashes": [f"recovery {each.number}: {_clip(each.reason)}" for each in stashed[-3:]],
        "issue": hitl.issue if hitl and not hitl.url else 0,
        "resume_prompt": say,
    }


def _format_next_action(checkpoint: Checkpoint | None) -> str:
    if checkpoint is None:
        return ""
    action = checkpoint.next_action
    asked = {"revise": "A human wants changes: ", "continue": ""}.get(
        action.type, f"{action.type}: "
    )
    return _clip(f"{asked}{action.description}") if action.description or asked else ""


def _build_story(written: EpicStory, kept: tuple[Story, ...]) -> dict[str, Any]:
    known = next((each for each in kept if each.id == written.id), None)
    return {
        "id": written.id,
        "title": written.title,
        "status": (known.status if known else written.status).value,
        "criteria": [_clip(each) for each in written.acceptance_criteria[:50]],
        "tasks": [{"text": _clip(each.text), "done": each.done} for each in written.tasks[:100]],
    }


def _list_other_stories(
    kept: tuple[Story, ...], written: tuple[EpicStory, ...]
) -> list[dict[str, Any]]:
    """Stories that only the checkpoint knows."""
    named = {each.id for each in written}
    return [
        {"id": each.id, "title": "", "status": each.status.value, "criteria": [], "tasks": []}
        for each in kept[:_MOST]
        if each.id not in named
    ]


def _format_failure(failure: EpicFailure) -> str:
    return _clip(f"{failure.at} {failure.type}: {failure.message}")


def _clip(text: str) -> str:
    return " ".join(text.split())[:_LONGEST]
