"""The subject of a prompt: everything that is known when one step of one case is asked.

Also how much of it a prompt may show. The groups, the history and the blocks are all made from it.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec

from interlock.engine.case import Case
from interlock.runtime.fence import PromptFence
from interlock_rca.records import Checkout, Failure, Job, Launch, PriorKnowledge, Sibling
from interlock_rca.steps import StepFamily
from interlock_rca.taxonomy import Taxonomy

_NAME_TEXT: Final = """
identity envelope env git failure timestamps siblings workspace urls prior history digest taxonomy
artifact_schema guards data fence notes missing
"""
PARAMETER_NAMES: Final = tuple(_NAME_TEXT.split())
"""The names that `build_parameters` gives to a template, beside those every prompt can read."""


class ClockLimits(msgspec.Struct, frozen=True, kw_only=True):
    """From where on a difference is a sign of skew."""

    start_minutes: float = 5
    """Between the start of the launch and of its CI job."""
    step_hours: float = 2
    """The duration of one test."""
    launch_factor: float = 3
    """How many times longer the launch is than all its jobs together."""


class PromptLimits(msgspec.Struct, frozen=True, kw_only=True):
    """How much a prompt may show, in characters and in rows."""

    prompt: int = 24_000
    value: int = 300
    """A value that stands in one line."""
    words: int = 1_500
    """A sentence or more of an earlier answer."""
    snippet: int = 2_000
    """A text where the step has no room of its own for it."""
    siblings: int = 20
    attributes: int = 40
    repos: int = 30
    symptoms: int = 5
    rcas: int = 10
    digest: int = 20
    skipped_share: float = 0.4
    """From which share of skipped tests on it is a sign."""
    clocks: ClockLimits = ClockLimits()


class PromptSubject(msgspec.Struct, frozen=True, kw_only=True):
    """One step of one case. `siblings` never hold the failure itself, and `siblings_total` counts
    the failures beside it."""

    failure: Failure
    launch: Launch | None
    repos: Sequence[Checkout]
    siblings: Sequence[Sibling]
    siblings_total: int
    case: Case
    family: StepFamily
    history: PriorKnowledge
    taxonomy: Taxonomy
    fence: PromptFence
    limits: PromptLimits

    def format_line(self, value: Any) -> str:
        return self.fence.format_line(value, self.limits.value)

    def format_lines(self, pairs: Mapping[str, Any]) -> dict[str, str]:
        """Each value as one harmless line, MISSING where there is none."""
        return {name: self.format_line(value) for name, value in pairs.items()}

    @property
    def job(self) -> Job | None:
        """The job of the launch in which the test ran."""
        jobs = self.launch.jobs if self.launch else ()
        return next((job for job in jobs if job.name == self.failure.job), None)

    @property
    def now(self) -> str:
        """The time that stands for now: when the test failed, or else its launch began."""
        return self.failure.at or (self.launch.started_at if self.launch else "")
