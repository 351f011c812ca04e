"""What a scenario found: pass, fail or skip, what was expected and what was seen.

Knows how a scenario ends early. Refuses to know scenarios.
"""

from typing import Literal

import msgspec

Word = Literal["pass", "fail", "skip"]


class ScenarioResult(msgspec.Struct, frozen=True, kw_only=True):
    """One row of the kit's table."""

    scenario: str
    verdict: Word
    expected: str
    seen: str
    why: str
    notes: tuple[str, ...] = ()
    seconds: float = 0.0


class FailedError(Exception):
    """The watcher broke a rule: which one, and what was seen instead."""

    def __init__(self, expected: str, seen: str) -> None:
        super().__init__(seen)
        self.expected = expected
        self.seen = seen


class SkippedError(Exception):
    """The rule does not apply to this kind of watcher."""


class StoppedError(Exception):
    """Somebody stopped the kit."""
