"""The story of a task so far: what judges hold against it, what humans said about it.

Knows the decisions of a case and the answers they were made on, those of this very turn included.
Refuses to know what is done about them.
"""

from collections.abc import Iterable, Mapping
from typing import Any, Final

import msgspec

from interlock.delivery import steps
from interlock.delivery.brief import Point
from interlock.engine.case import Decision

_OBJECTS: Final = {
    "rework-review": "critic",
    "rework-audit": "auditor",
    "violated": "checks",
    "nothing": "checks",
    "failing": "checks",
    "unmerged": "merge",
}
"""The rules that send work back, and who holds something against it then."""
_CONTENT: Final = {"reviewed": "critic", "audited": "auditor", "checked": "checks"}
"""The rules by which a judge has nothing against the work any more."""


class PastDecision(msgspec.Struct, frozen=True):
    """One decision and the answer it was made on."""

    decision: Decision
    answer: Mapping[str, Any]


def open_points(story: Iterable[PastDecision]) -> tuple[Point, ...]:
    """What judges hold against the work and have not taken back, oldest first."""
    points: list[Point] = []
    for past in story:
        rule, content = past.decision.rule, _CONTENT.get(past.decision.rule)
        if content:
            points = [point for point in points if point.by != content]
        elif rule in _OBJECTS:
            points.append(Point(_OBJECTS[rule], past.decision.attempt, _told(past.answer)))
    return tuple(points)


def guidance(story: Iterable[PastDecision]) -> tuple[str, ...]:
    """What humans said about the task, oldest first."""
    return tuple(
        str(past.answer["text"])
        for past in story
        if past.decision.step in steps.GATES and past.answer.get("text")
    )


def last_of(story: Iterable[PastDecision], *names: str) -> Mapping[str, Any]:
    """The latest answer at one of these steps."""
    found: Mapping[str, Any] = {}
    for past in story:
        if past.decision.step in names and past.decision.signal == "artifact":
            found = past.answer
    return found


def _told(answer: Mapping[str, Any]) -> str:
    return str(answer.get("text") or answer.get("summary") or "")
