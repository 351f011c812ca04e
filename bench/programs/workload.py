"""The work every program does: cases of seven steps, answered at once by a deterministic agent.

Knows what a case, a prompt, an answer look like, and counts how often the agent was asked.
Knows nothing of databases or libraries. Standard library only: it runs in several environments.
"""

import asyncio
import itertools
import threading
import time
from typing import Any

STEPS = ("recall", "triage", "resolve", "investigate", "correlate", "review", "report")
HALF = 3  # a half-done case has this many steps behind it


def case_ids(count: int) -> list[str]:
    return [f"case-{number:05d}" for number in range(count)]


def opening(case_id: str) -> dict[str, Any]:
    """What is known of a case before its first step, about 140 bytes of JSON."""
    return {
        "case_id": case_id,
        "test": f"suite.network.test_{case_id[-5:]}",
        "error": "AssertionError: interface did not come up within 30 s",
        "attempt": 1,
    }


def prompt(case_id: str, step: str) -> str:
    """What the agent is asked, about 180 bytes."""
    return (
        f"{case_id}, step {step}. The test failed: AssertionError: interface did not come up "
        "within 30 s. Compare this with what is known, answer in JSON: match, confidence, note."
    )


class Agent:
    """Answers at once. Told to hold at a step, it is asked and never answers: work in flight."""

    def __init__(self, *, hold_at: str | None = None) -> None:
        self.first_ask_at: float | None = None
        self._hold_at = hold_at
        self._tickets = itertools.count()
        self._held_tickets = itertools.count()
        self.asks = 0
        self.held = 0

    def answer(self, case_id: str, step: str) -> dict[str, Any]:
        if self._is_held(step):
            threading.Event().wait()
        return self._compose(case_id, step)

    async def answer_async(self, case_id: str, step: str) -> dict[str, Any]:
        if self._is_held(step):
            await asyncio.Event().wait()
        return self._compose(case_id, step)

    def _is_held(self, step: str) -> bool:
        if self.first_ask_at is None:
            self.first_ask_at = time.monotonic()
        # next() on a count is atomic between threads; max() makes the published number only rise.
        self.asks = max(self.asks, next(self._tickets) + 1)
        if step != self._hold_at:
            return False
        self.held = max(self.held, next(self._held_tickets) + 1)
        return True

    @staticmethod
    def _compose(case_id: str, step: str) -> dict[str, Any]:
        return {"match": True, "confidence": 0.9, "note": f"{step} of {case_id}: seen before"}
