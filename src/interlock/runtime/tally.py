"""The tally: how a run stands, in numbers, for whoever watches it."""

import msgspec


class RunCounts(msgspec.Struct):
    """How a run stands, in numbers."""

    cases: int = 0
    ended: int = 0
    unhealthy: int = 0
    stuck: int = 0
    halted: str = ""
    """The case whose end stopped the run."""
    in_flight: int = 0
    questions: int = 0
    refused: int = 0
    limited: int = 0
    """Dispatches that wait for the end of a rate limit."""
    limited_until: float = 0.0
    """When the first account goes on again; 0 if none rests."""
