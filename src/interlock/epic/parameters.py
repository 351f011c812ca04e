"""The parameters of an epic's prompts: its position, its stories and what comes first. Bounded."""

from typing import Any, Final

from interlock.epic.checkpoints.record import Checkpoint, Epic, NextAction, Story
from interlock.epic.config import EpicConfig
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
_MOST_STORIES: Final = 200
_LAST: Final = 3
_LONGEST: Final = 4_000
_PREFIXES: Final = {"revise": "A human wants changes: ", "continue": ""}


def build_parameters(checkpoint: Checkpoint | None, config: EpicConfig) -> dict[str, Any]:
    """A value for each of `NAMES`, also where there is no checkpoint yet."""
    found = checkpoint or Checkpoint(epic=Epic(id=config.epic_id))
    position, hitl = found.position, found.hitl
    stashed = [entry for entry in found.recoveries if entry.state == "stashed"]
    written = config.stories[:_MOST_STORIES]
    named = {story.id for story in config.stories}
    others = [
        EpicStory(id=story.id, status=story.status) for story in found.stories[:_MOST_STORIES]
    ]
    return {
        "epic": {"id": config.epic_id, "title": config.title, "file": config.file},
        "place": {"story": position.story_id, "phase": position.phase, "task": position.task},
        "stories": [
            _build_story(story, found.story(story.id))
            for story in (*written, *(other for other in others if other.id not in named))
        ],
        "first": _clip(_describe_action(found.next_action)),
        "note": _clip(found.note),
        "failures": [_clip(f"{f.at} {f.type}: {f.message}") for f in found.failures[-_LAST:]],
        "stashes": [
            f"recovery {entry.number}: {_clip(entry.reason)}" for entry in stashed[-_LAST:]
        ],
        "issue": hitl.issue if hitl and not hitl.url else 0,
        "resume_prompt": config.settings.resume_prompt,
    }


def _describe_action(action: NextAction) -> str:
    return f"{_PREFIXES.get(action.type, f'{action.type}: ')}{action.description}"


def _build_story(written: EpicStory, known: Story | None) -> dict[str, Any]:
    return {
        "id": written.id,
        "title": written.title,
        "status": (known.status if known else written.status).value,
        "criteria": [_clip(text) for text in written.acceptance_criteria[:50]],
        "tasks": [{"text": _clip(task.text), "done": task.done} for task in written.tasks[:100]],
    }


def _clip(text: str) -> str:
    return " ".join(text.split())[:_LONGEST]
