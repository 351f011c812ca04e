"""What a batch's workers are told beforehand: who writes the briefing, and from which numbers.

Knows how far a run has come, as its loop tells it, and the plain briefing that needs no more.
Applications bring briefers that know symptoms and causes; the text itself is wire's.
"""

from collections.abc import Callable
from typing import Protocol

import msgspec

from interlock.signals.batch import Phase
from interlock.signals.briefing import Briefing


class Reading(msgspec.Struct, frozen=True):
    """How far a run has come: its cases, how many are over, and the tokens it has cost."""

    cases: int = 0
    over: int = 0
    tokens: int = 0


class ProgressGauge:
    """Carriers are made before the loop whose numbers they show; `read` is put in afterwards, and
    `enrich`, by which an application adds what it knows to a briefing."""

    def __init__(self) -> None:
        self.read: Callable[[], Reading] = Reading
        self.enrich: Callable[[Briefing], Briefing] = lambda briefing: briefing


class Briefer(Protocol):
    """Makes the briefing of a batch, anew for each."""

    def __call__(self, run_id: int, batch_id: int, phase: Phase, in_batch: int) -> Briefing:
        """All that is known when this batch goes out."""


class PlainBriefer:
    """The run's context and its counts, and what the run's application adds."""

    def __init__(self, scenario: str, gauge: ProgressGauge) -> None:
        self._scenario = scenario
        self._gauge = gauge

    def __call__(self, run_id: int, batch_id: int, phase: Phase, in_batch: int) -> Briefing:
        reading = self._gauge.read()
        plain = Briefing(
            batch_id=batch_id,
            scenario=self._scenario,
            suite_id=str(run_id),
            phase=phase,
            in_batch=in_batch,
            total=reading.cases,
            completed=reading.over,
        )
        return self._gauge.enrich(plain)
