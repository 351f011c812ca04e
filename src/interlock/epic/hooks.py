"""The application of the circuit `epic`: what its sessions and its humans are told.

Stands between the loop and the checkpoint. Everything it decides is decided by the circuit's rules;
this fills prompts, names questions and says the signals that belong to them.
"""

from collections.abc import Iterable, Mapping
from typing import Any, Final

from interlock.agents.carrier import NO_CONTEXT, ExecutionContext
from interlock.engine.case import Case
from interlock.epic.driver import SignalLog
from interlock.epic.parameters import build_parameters
from interlock.epic.progress import CheckpointUpdater
from interlock.epic.terms import EpicConfig
from interlock.runtime.application import DefaultHooks
from interlock.system.errors import InterlockError

_GATES: Final = ("REVIEW", "GIT_GATE")


class GateQuestions:
    """The numbers by which people know what they are asked: an issue's, or the inbox's own."""

    def __init__(self, voice: SignalLog, *, on_issues: bool) -> None:
        self._voice = voice
        self._on_issues = on_issues
        self.last = 0

    def opened(self, step: str, dispatch_id: int) -> None:
        if not self._on_issues:
            self._say(step, dispatch_id)

    def on_issue(self, step: str, number: int) -> None:
        """The question stands on an issue now."""
        self._say(step, number)

    def _say(self, step: str, number: int) -> None:
        self.last = number
        if step == "GIT_GATE":
            self._voice.emit("HITL_REQUIRED", [str(number)])
        self._voice.emit("HITL_WAITING", [str(number)])


class EpicHooks(DefaultHooks):
    """What the circuit `epic` needs while a run of it is worked on."""

    def __init__(
        self,
        terms: EpicConfig,
        keeper: CheckpointUpdater,
        voice: SignalLog,
        questions: GateQuestions,
        told: list[str],
    ) -> None:
        self.voice = voice
        self._terms = terms
        self._keeper = keeper
        self._questions = questions
        self._told = told

    def context_for(self, case_no: int, case: Case, dispatch_id: int) -> ExecutionContext:
        if case.step in _GATES:
            self._questions.opened(case.step, dispatch_id)
        if case.step != "SESSION":
            return NO_CONTEXT
        return ExecutionContext(variables={"INTERLOCK_EPIC_ID": self._terms.epic_id})

    def prompt_values(
        self, case_no: int, case: Case, premises: ExecutionContext
    ) -> Mapping[str, Any]:
        terms = self._terms
        epic = {"id": terms.epic_id, "title": terms.title, "file": terms.file}
        say = terms.settings.resume_prompt
        try:
            checkpoint = self._keeper.read()
        except InterlockError as error:
            self._told.append(str(error))
            checkpoint = None
        return build_parameters(checkpoint, terms.stories, epic, say)

    def notes(self) -> Iterable[str]:
        return self._told
