"""A scene of an agent's session, and what must come of it: for the tests of the truth tables."""

from datetime import UTC, datetime
from typing import Any

import msgspec

from interlock.carriers.cli.process import EndedBy

NOW = datetime(2026, 3, 10, 9, 0, tzinfo=UTC).timestamp()
GOOD = '{"n": 1}'


class Scene(msgspec.Struct, frozen=True, kw_only=True):
    """What was printed before our signal and after it, and how the process ended."""

    events: list[Any]
    late: list[Any] = []
    code: int | None = 0
    by: EndedBy = "itself"
    stderr: str = ""
    left: bool = False


class Verdict(msgspec.Struct, frozen=True, kw_only=True):
    """What must come of it: `accept` or a failure, words of the reason, and the notes."""

    is_: str
    words: str = ""
    until: float = 0
    notes: tuple[str, ...] = ()


ACCEPT = Verdict(is_="accept")


def crash(words: str, *notes: str) -> Verdict:
    return Verdict(is_="crash", words=words, notes=notes)


def timeout(words: str, *notes: str) -> Verdict:
    return Verdict(is_="timeout", words=words, notes=notes)


def unreadable(words: str, *notes: str) -> Verdict:
    return Verdict(is_="unreadable", words=words, notes=notes)


def limit(words: str, until: float = 0) -> Verdict:
    return Verdict(is_="rate-limit", words=words, until=until)


def accept(*notes: str) -> Verdict:
    return Verdict(is_="accept", notes=notes)


Scenes = dict[str, tuple[Scene, Verdict]]
