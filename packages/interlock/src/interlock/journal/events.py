"""Notifications to people about a run, and reports of daemons.

This module defines the messages; the receiver decides how they travel, and returns at once.
"""

from collections.abc import Callable, Mapping
from typing import Any, Literal, Protocol

import msgspec

NotificationKind = Literal["gate", "query", "stuck", "rate-limit", "budget-low", "budget", "over"]
MAX_NAMED = 100
"""Cases and questions that one notification names; it always counts all of them."""


class Notification(msgspec.Struct, frozen=True):
    """An event that a person may want to act on."""

    event: NotificationKind
    run_id: int
    at: float
    text: str
    """One line for people."""
    about: str = ""
    """The subject, by which notifications are joined: a step and a family, an account, a limit, a
    status."""
    cases: tuple[str, ...] = ()
    questions: tuple[int | str, ...] = ()
    until: float = 0.0
    """When a rate limit ends."""


Tell = Callable[[Notification], None]


class Report(Protocol):
    """Receive each action of a coordinator or a worker, as a line and as fields."""

    def __call__(self, text: str, **fields: Any) -> None: ...


def ignore_notification(_notice: Notification) -> None:
    """Ignore the notification."""


def build_json(notice: Notification) -> Mapping[str, Any]:
    """Return a notification for programs; its `id` stays the same when it is sent again."""
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
