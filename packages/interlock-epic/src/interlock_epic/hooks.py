"""The hooks of the circuit `epic`: they fill prompts, number questions and announce them.

The circuit's rules decide everything. A prompt shows the epic's position, its stories and the next
action, all bounded.
"""

from collections.abc import Iterable, Mapping
from typing import Any, Final

from interlock.carriers.contract import NO_CONTEXT, ExecutionContext
from interlock.engine.case import Case
from interlock.runtime.application import DefaultHooks
from interlock.system.errors import InterlockError
from interlock_epic.checkpoints.record import Checkpoint, Epic, NextAction, Story
from interlock_epic.config import EpicConfig
from interlock_epic.epic_file import EpicStory
from interlock_epic.progress import CheckpointUpdater
from interlock_epic.steps import SignalLog

GATES: Final = ("REVIEW", "GIT_GATE")


class GateQuestions:
    """The numbers of questions that people see: an issue's, or the inbox's."""

    def __init__(self, signals: SignalLog, *, on_issues: bool) -> None:
        self.on_issues = on_issues
        self.last = 0
        self._signals = signals

    def announce(self, step: str, number: int) -> None:
        self.last = number
        if step == "GIT_GATE":
            self._signals.emit("HITL_REQUIRED", [str(number)])
        self._signals.emit("HITL_WAITING", [str(number)])


class EpicHooks(DefaultHooks):
    """Serves the circuit `epic` while a run is worked on."""

    def __init__(
        self,
        config: EpicConfig,
        updater: CheckpointUpdater,
        signals: SignalLog,
        questions: GateQuestions,
        notes: list[str],
    ) -> None:
        self.signals = signals
        self._config = config
        self._updater = updater
        self._questions = questions
        self._notes = notes

    def context_for(self, case_no: int, case: Case, dispatch_id: int) -> ExecutionContext:
        if case.step in GATES and not self._questions.on_issues:
            self._questions.announce(case.step, self._find_issue(case.step) or dispatch_id)
        if case.step != "SESSION":
            return NO_CONTEXT
        return ExecutionContext(variables={"INTERLOCK_EPIC_ID": self._config.epic_id})

    def prompt_values(
        self, case_no: int, case: Case, context: ExecutionContext
    ) -> Mapping[str, Any]:
        return build_parameters(self._read_checkpoint(), self._config)

    def _find_issue(self, step: str) -> int:
        """Return the issue that the session named for its question, or 0."""
        checkpoint = self._read_checkpoint() if step == "REVIEW" else None
        hitl = checkpoint.hitl if checkpoint else None
        return hitl.issue if hitl and not hitl.url else 0  # with a URL, we opened it

    def _read_checkpoint(self) -> Checkpoint | None:
        try:
            return self._updater.read()
        except InterlockError as error:
            self._notes.append(str(error))
            return None

    def notes(self) -> Iterable[str]:
        return self._notes


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
    """Return a value for each of `NAMES`, even without a checkpoint."""
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
