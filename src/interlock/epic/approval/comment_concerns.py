"""What in a sentence speaks against an approval.

Knows which tables a sentence meets, and what a clause is. Refuses to know approvals, and to weigh
one concern against another.
"""

# ruff: noqa: RUF001 -- dashes as people type them

import re
from collections.abc import Iterator
from typing import Final

from interlock.epic.approval import comment_holds as holds
from interlock.epic.approval import comment_past as past
from interlock.epic.approval.comment_approval import LONGEST_CLAUSE
from interlock.epic.approval.comment_kind import Kind
from interlock.epic.approval.comment_text import SMILE

CLAUSE: Final = re.compile(r"(?:[^,:()—–\n\x03-]|-(?! )|(?<![ \n])-)++")
_STANDS: Final = re.compile(
    r"\b(?:if|unless|only|except|once|until|still|but|however|again|repeat|stands?|remains?"
    r"|as (?:i|we)|not (?:yet|now))\b"
)


def is_past(text: str, concerns: list[Kind]) -> bool:
    """Whether a sentence only tells of a refusal that is over; a fault is over when it is said to
    be settled."""
    told = {Kind.REFUSE, Kind.DISCUSS, Kind.NEGATION, Kind.CONDITION, Kind.EXCEPTION}
    if Kind.REFUSE not in concerns and not past.PAST_WISH.search(text):
        return False
    return set(concerns) <= told and bool(past.PAST.search(text)) and not _STANDS.search(text)


def concerns_of(text: str, mark: str) -> list[Kind]:
    """What in a sentence speaks against an approval. A sentence in another language is not read;
    a time that belongs to a deferral or a pause is no condition."""
    if holds.FOREIGN.search(text) and not holds.ENGLISH.search(text):
        return [Kind.FOREIGN]
    found = [*_found(text, mark)]
    if {Kind.DEFER, Kind.WAIT} & {*found} and not holds.APPROVAL_WORD.search(text):
        found = [each for each in found if each not in {Kind.CONDITION, Kind.EXCEPTION}]
    return found


def _found(text: str, mark: str) -> Iterator[Kind]:
    clauses = [hit[0].strip(" \t.!?…\"'" + SMILE) for hit in CLAUSE.finditer(text)]
    negation = [*holds.NEGATION.finditer(text)]
    if holds.DO_NOT.search(text) or _acts(holds.HALT, clauses):
        yield Kind.HALT
    if _refuses(text, clauses, len(negation)):
        yield Kind.REFUSE
    put_off = _acts(holds.DEFER, clauses)
    if holds.CHANGE.search(text) or holds.FAULT.search(text) or _commands(clauses, put_off):
        yield Kind.CHANGE
    if put_off:
        yield Kind.DEFER
    for kind, pattern in _PLAIN_TABLES:
        if pattern.search(text):
            yield kind
    if negation:
        yield Kind.NEGATION
    if "?" in mark or "?" in text or _QUESTION.match(text.strip()):
        yield Kind.QUESTION
    if mark.startswith(("...", "…")) or "..." in text or "…" in text:
        yield Kind.HEDGE


_QUESTION: Final = re.compile(
    r"(?:is|are|was|can|could (?:you|we|i|it|this|someone)|should|shall|does|do we|did|who|what"
    r"|why|how|where|which|has anyone|have we|whose) "
)
_PLAIN_TABLES: Final = (
    (Kind.CONDITION, holds.CONDITION),
    (Kind.EXCEPTION, holds.EXCEPTION),
    (Kind.HEDGE, holds.HEDGE),
    (Kind.DISCUSS, holds.DISCUSS),
    (Kind.WAIT, holds.WAIT),
    (Kind.SARCASM, holds.SARCASM),
    (Kind.BACK, holds.TAKEN_BACK),
    (Kind.HEARSAY, holds.HEARSAY),
    (Kind.FOREIGN, holds.FOREIGN),
)


def _acts(pattern: re.Pattern[str], clauses: list[str]) -> bool:
    return any(pattern.match(clause[:LONGEST_CLAUSE]) for clause in clauses)


def _commands(clauses: list[str], put_off: bool) -> bool:
    return not put_off and _acts(holds.IMPERATIVE, clauses)


_DEPENDS: Final = re.compile(r"\b(?:if|unless)\b")
_NOT_APPROVED: Final = re.compile(
    rf"{holds.NEGATION.pattern}[^,]{{0,60}}{holds.APPROVAL_WORD.pattern}"
)


def _refuses(text: str, clauses: list[str], negations: int) -> bool:
    if holds.REFUSE.search(text) or any(map(holds.PLAIN_NO.fullmatch, clauses)):
        return True
    if negations != 1 or _DEPENDS.search(text):
        return False
    return any(_NOT_APPROVED.search(clause[:LONGEST_CLAUSE]) for clause in clauses)
