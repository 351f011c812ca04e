"""A case: one piece of work on its way through a circuit, and the records that move it.

A signal is a decoded answer, a decision is what the table makes of it, and a case is the fold of
its decisions. Nothing here decides anything.
"""

from collections.abc import Mapping
from typing import Any, Final, Literal, NamedTuple

import msgspec

Status = Literal["open", "ended", "stuck"]
OPEN: Final = "open"
ENDED: Final = "ended"
STUCK: Final = "stuck"
OTHERWISE = "otherwise"


class Usage(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """The cost of an answer, as far as the agent reports it."""

    tokens: int = 0
    money: float = 0.0


class ModelCall(msgspec.Struct, frozen=True, gc=False):
    """One request to a model's endpoint, as the endpoint reports it. Tokens read from its cache or
    written to it are not part of `input`."""

    model: str
    """The model that answered, which may differ from the one requested."""
    request_id: str
    """The endpoint's own name for the request."""
    input: int = 0
    cached: int = 0
    cache_write: int = 0
    output: int = 0
    money: float = 0.0
    is_estimate: bool = False
    """True if the price comes from a public list and not from the project's settings."""

    @property
    def usage(self) -> Usage:
        return Usage(self.input + self.cached + self.cache_write + self.output, self.money)


class Signal(msgspec.Struct, frozen=True, gc=False):
    """A decoded answer. `subject` is what it speaks about, where the language names one."""

    name: str
    data: Mapping[str, Any] = {}
    subject: str | None = None
    usage: Usage = Usage()


class RefusedAnswer(NamedTuple):
    """The reason an answer is not a signal: a word for the machine, a sentence for its author."""

    reason: str
    sentence: str


class PassedRule(msgspec.Struct, frozen=True, gc=False, array_like=True):
    """A rule that was examined and not taken: its guard was false, or its loop was spent."""

    rule: str
    why: Literal["false", "spent"]


class Decision(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """The record of one advance; with the answer, which is kept apart by hash, it rebuilds the
    case."""

    step: str
    attempt: int
    signal: str
    status: Status
    to: str = ""
    rule: str = ""
    loop: str = ""
    read: Mapping[str, Any] = {}
    passed: tuple[PassedRule, ...] = ()
    noted: tuple[str, ...] = ()
    adds: Mapping[str, Any] = {}
    detour: bool = False
    back: bool = False
    hold: str = ""
    release: str = ""
    reason: str = ""


class Case(msgspec.Struct, frozen=True, gc=False):
    """The position of a piece of work.

    `visits` counts the dispatches of each step, `moves` those of all; `complaint` tells the next
    attempt why the last answer was unusable.
    """

    case_id: str
    step: str
    status: Status = "open"
    end: str = ""
    reason: str = ""
    complaint: str = ""
    moves: int = 0
    loops: Mapping[str, int] = {}
    visits: Mapping[str, int] = {}
    stack: tuple[str, ...] = ()
    context: Mapping[str, Any] = {}
    answers: Mapping[str, Any] = {}
    input: Mapping[str, Any] = {}

    @property
    def attempt(self) -> int:
        return self.visits.get(self.step, 0)
