"""What an agent's session came to, by the truth table of its CLI.

Knows the facts a row can name and that the first row that holds decides. Never the exit code
alone, never a word of a tool, a thought or a sub-agent. Refuses to know any CLI: the rows are in
its profile.
"""

from collections.abc import Sequence
from typing import Literal

import msgspec

from interlock.agents.carrier import Reply
from interlock.agents.cli.profile import OutcomeRule, When
from interlock.engine.case import Usage
from interlock.engine.circuit import CRASH, RATE_LIMIT, UNREADABLE, Language
from interlock.signals.answer_text import NoObject, object_in

_LONGEST = 2_000


class SessionFacts(msgspec.Struct, frozen=True, kw_only=True):
    """What is known when a session is over. Only what came before our own signal is in it."""

    end: str = ""
    """The CLI's own name for the last end it told; empty if it told none."""
    error: bool = False
    turns: Literal["none", "some", "unknown"] = "unknown"
    text: bool = False
    open: bool = False
    limited: bool = False
    began: bool = False
    by: Literal["itself", "us", "clock"] = "itself"
    exit: Literal["zero", "other", "signal", "unknown"] = "zero"
    exit_code: int | None = 0


class SessionReport(msgspec.Struct, frozen=True, kw_only=True):
    """The words that go with the facts."""

    final: str = ""
    said: str = ""
    clock: str = ""
    stderr: str = ""
    exit: str = ""
    notes: tuple[str, ...] = ()
    resets_at: float | None = None
    usage: Usage = Usage()


class SessionOutcome(msgspec.Struct, frozen=True):
    """The verdict: the answer's bytes, or the failure and its reason."""

    content: bytes = b""
    failure: str = ""
    reason: str = ""
    until: float = 0
    notes: tuple[str, ...] = ()
    usage: Usage = Usage()

    def reply(self, dispatch_id: int) -> Reply:
        return Reply(
            dispatch_id,
            self.content,
            failure=self.failure,
            reason=self.reason,
            usage=self.usage,
            until=self.until,
        )


_FAILURES = {"unreadable": UNREADABLE, "limit": RATE_LIMIT, "crash": CRASH}


def row_for(table: Sequence[OutcomeRule], facts: SessionFacts) -> OutcomeRule:
    """The first row that holds. The last row of every table holds always."""
    return next(row for row in table if holds(row.when, facts))


def holds(when: When, facts: SessionFacts) -> bool:
    return all(
        wanted is None or wanted == getattr(facts, name)
        for name, wanted in msgspec.structs.asdict(when).items()
    )


def judge(
    table: Sequence[OutcomeRule],
    facts: SessionFacts,
    told: SessionReport,
    language: Language = "json",
) -> SessionOutcome:
    """The outcome of a session. A message in text is the answer as it stands."""
    row = row_for(table, facts)
    if row.then == "accept" and language == "text":
        return SessionOutcome(
            told.final.encode(errors="replace"), notes=told.notes, usage=told.usage
        )
    if row.then == "accept":
        return _answer(told)
    reason = _reason(row, told)
    until = told.resets_at or 0 if row.then == "limit" else 0
    return _failed(_FAILURES[row.then], reason, told, until)


def _answer(told: SessionReport) -> SessionOutcome:
    found = object_in(told.final)
    if isinstance(found, NoObject):
        began = " ".join(told.final.split())[:200]
        said = f" (it began: {began})" if began else ""
        return _failed(UNREADABLE, f"{found.sentence}{said}", told)
    return SessionOutcome(found, notes=told.notes, usage=told.usage)


def _failed(failure: str, reason: str, told: SessionReport, until: float = 0) -> SessionOutcome:
    noted = f"; {'; '.join(told.notes)}" if told.notes else ""
    whole = f"{reason}{noted}"[:_LONGEST]
    return SessionOutcome(b"", failure, whole, until, told.notes, told.usage)


def _reason(row: OutcomeRule, told: SessionReport) -> str:
    words = {"{said}": told.said, "{clock}": told.clock}
    words |= {"{stderr}": told.stderr, "{exit}": told.exit}
    reason = row.why
    for name, word in words.items():
        reason = reason.replace(name, word or "it said nothing")
    return reason
