"""Notifications: what people want to hear about a run without looking at it; what daemons say.

Only what one says; how it travels is the business of whoever is given it, and returns at once.
"""

from collections.abc import Callable, Mapping
from typing import Any, Literal, Protocol

import msgspec

NotificationKind = Literal["gate", "query", "stuck", "rate-limit", "budget-low", "budget", "over"]
MAX_NAMED = 100
"""Cases and questions that one notice names; it says how many there are."""


class Notification(msgspec.Struct, frozen=True):
    """Something happened that a person may want to act on."""

    event: NotificationKind
    run_id: int
    at: float
    text: str
    """One line for people."""
    about: str = ""
    """What it is about: notices about the same may travel as one. A step and a family, an account,
    a limit, a status."""
    cases: tuple[str, ...] = ()
    questions: tuple[int | str, ...] = ()
    until: float = 0.0
    """When a rate limit ends."""


Tell = Callable[[Notification], None]


class Report(Protocol):
    """Told, in a line each, what a coordinator or a worker does; and the same as fields."""

    def __call__(self, text: str, **fields: Any) -> None: ...


def ignore_notification(_notice: Notification) -> None:
    """Nobody wants to hear of it."""


def join_notifications(one: Notification, other: Notification) -> Notification:
    """Two notices about the same as one: of gates that opened, cases that got stuck."""
    cases = tuple(dict.fromkeys(one.cases + other.cases))
    questions = tuple(dict.fromkeys(one.questions + other.questions))
    text = other.text if len(cases) <= 1 else format_many(one.event, one.about, cases, questions)
    return msgspec.structs.replace(
        one, text=text, cases=cases, questions=questions, at=max(one.at, other.at)
    )


def format_many(
    event: NotificationKind, about: str, cases: tuple[str, ...], questions: tuple[int | str, ...]
) -> str:
    """One line about cases that wait at the same gate, or are stuck."""
    step = about.partition("/")[0]
    named = cases[0] if len(cases) == 1 else f"{cases[0]} and {len(cases) - 1} more"
    if event == "gate":
        return f"{named} at {step}: 'interlock answer {questions[0]} DECISION'"
    return f"{named} stuck at {step}: 'interlock explain {cases[0]}'"


def build_json(notice: Notification) -> Mapping[str, Any]:
    """A notice for programs. `id` is the same whenever the same notice is sent again."""
    body: dict[str, Any] = msgspec.to_builtins(notice)
    marks = (notice.run_id, notice.event, notice.about, *notice.questions[:1], notice.at)
    return {
        "schema_version": 1,
        "id": "/".join(map(str, marks)),
        **body,
        "cases": list(notice.cases[:MAX_NAMED]),
        "questions": list(notice.questions[:MAX_NAMED]),
        "case_count": len(notice.cases),
        "question_count": len(notice.questions),
    }
