"""What a worker that pulls its work and the coordinator say to each other: one JSON line each.

Knows the records alone. A call has a number of its worker's own, and its answer carries it back.
"""

from typing import Any, Final

import msgspec

LONGEST: Final = 8 << 20
"""Bytes of one line: an answer of the largest size, with every character escaped."""
LONGEST_WAIT: Final = 30.0
LEASE_TIME: Final = 900.0
LONGEST_LEASE: Final = 86_400.0


class _Call(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="do", kw_only=True):
    call: int


class Hello(_Call, frozen=True, tag="hello"):
    """Who speaks: said first, once."""

    worker: str
    name: str = ""


class Next(_Call, frozen=True, tag="next"):
    """Hand me something of these roles, or of any; wait so long for it."""

    wait: float = LONGEST_WAIT
    ttl: float = LEASE_TIME
    roles: tuple[str, ...] = ()


class Submit(_Call, frozen=True, tag="submit"):
    """The answer to a dispatch, as JSON text."""

    dispatch_id: int
    lease: str
    content: str


class GiveUp(_Call, frozen=True, tag="give-up"):
    """No answer will come: the attempt failed, or, with `release`, somebody else shall try it."""

    dispatch_id: int
    lease: str
    reason: str = ""
    release: bool = False


class QueryCall(_Call, frozen=True, tag="query"):
    """A question to a human about a dispatch."""

    dispatch_id: int
    lease: str
    question: str
    options: tuple[str, ...] = ()


class Poll(_Call, frozen=True, tag="poll"):
    """Whether a question has its answer."""

    query_id: str


class StatusCall(_Call, frozen=True, tag="look"):
    """How the run stands; with a lease that one is renewed, else all of the worker."""

    lease: str = ""


class Read(_Call, frozen=True, tag="read"):
    """A text: the briefing, or the prompt of an open dispatch."""

    dispatch_id: int = 0


class Cancel(_Call, frozen=True, tag="cancel"):
    """Nobody waits for the answer to that call any more."""


Call = Hello | Next | Submit | GiveUp | QueryCall | Poll | StatusCall | Read | Cancel


class WorkerReply(msgspec.Struct, frozen=True):
    """What a call gave, or why it gave nothing."""

    call: int
    data: dict[str, Any] = {}
    error: str = ""


class WorkItem(msgspec.Struct, frozen=True, kw_only=True):
    """A dispatch, handed out."""

    available: bool = True
    done: bool = False
    dispatch_id: int
    lease: str
    fence: int
    ttl: float
    run_id: int
    case_id: str
    step: str
    attempt: int
    role: str
    prompt: str
    answer_schema: dict[str, Any]
    signals: tuple[str, ...]


class NoWork(msgspec.Struct, frozen=True):
    """Nothing to hand out, and why; `leaving` when this coordinator ends its sitting."""

    reason: str
    available: bool = False
    done: bool = False
    leaving: bool = False


class Taken(msgspec.Struct, frozen=True):
    """What became of an answer. While the dispatch is `open` under its lease, try again."""

    accepted: bool
    dispatch_id: int
    open: bool = False
    refusal: str = ""
    sentence: str = ""


read_call = msgspec.json.Decoder(Call).decode
read_answer = msgspec.json.Decoder(WorkerReply).decode


def line_of(said: msgspec.Struct) -> bytes:
    """A record as it travels."""
    return msgspec.json.encode(said) + b"\n"
