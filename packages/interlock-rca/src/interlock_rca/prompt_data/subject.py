"""The subject of a prompt: everything known when one step of one case is asked.

Also limits how much of it a prompt may show. The groups, the history and the blocks are all made
from it.
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
"""The names that `build_parameters` gives to a template, besides those of every prompt."""


class ClockLimits(msgspec.Struct, frozen=True, kw_only=True):
    """Differences from which on clock skew is suspected."""

    start_minutes: float = 5
    """Between the start of the launch and of its CI job."""
    step_hours: float = 2
    """The duration of one test."""
    launch_factor: float = 3
    """The ratio of the launch's duration to that of all its jobs together."""


class PromptLimits(msgspec.Struct, frozen=True, kw_only=True):
    """The most that a prompt may show, in characters and in rows."""

    prompt: int = 24_000
    value: int = 300
    """A value on one line."""
    words: int = 1_500
    """A sentence or more of an earlier answer."""
    snippet: int = 2_000
    """A text in a step that gives it no room of its own."""
    siblings: int = 20
    attributes: int = 40
    repos: int = 30
    symptoms: int = 5
    rcas: int = 10
    digest: int = 20
    skipped_share: float = 0.4
    """The share of skipped tests that is worth a note."""
    clocks: ClockLimits = ClockLimits()


class PromptSubject(msgspec.Struct, frozen=True, kw_only=True):
    """One step of one case. `siblings` exclude the failure itself, and `siblings_total` counts the
    other failures."""

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
        """Return each value as one harmless line, or MISSING."""
        return {name: self.format_line(value) for name, value in pairs.items()}

    @property
    def job(self) -> Job | None:
        """Return the launch's job in which the test ran."""
        jobs = self.launch.jobs if self.launch else ()
        return next((job for job in jobs if job.name == self.failure.job), None)

    @property
    def now(self) -> str:
        """Return the reference time: when the test failed, else when its launch began."""
        return self.failure.at or (self.launch.started_at if self.launch else "")
