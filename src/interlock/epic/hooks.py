"""The hooks of the circuit `epic`: they fill prompts, number questions and announce them.

What happens is decided by the circuit's rules, never here.
"""

from collections.abc import Iterable, Mapping
from typing import Any, Final

from interlock.agents.carrier import NO_CONTEXT, ExecutionContext
from interlock.engine.case import Case
from interlock.epic.checkpoints.record import Checkpoint
from interlock.epic.config import EpicConfig
from interlock.epic.driver import SignalLog
from interlock.epic.parameters import build_parameters
from interlock.epic.progress import CheckpointUpdater
from interlock.runtime.application import DefaultHooks
from interlock.system.errors import InterlockError

GATES: Final = ("REVIEW", "GIT_GATE")


class GateQuestions:
    """The numbers by which people know questions: an issue's, or the inbox's own."""

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
    """What the circuit `epic` needs while a run of it is worked on."""

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
        """The issue that the session named for its question; 0 if it named none."""
        checkpoint = self._read_checkpoint() if step == "REVIEW" else None
        hitl = checkpoint.hitl if checkpoint else None
        return hitl.issue if hitl and not hitl.url else 0  # one with a URL was opened by us

    def _read_checkpoint(self) -> Checkpoint | None:
        try:
            return self._updater.read()
        except InterlockError as error:
            self._notes.append(str(error))
            return None

    def notes(self) -> Iterable[str]:
        return self._notes
