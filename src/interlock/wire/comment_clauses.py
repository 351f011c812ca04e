"""A human comment as sentences and clauses, each with what it says.

Knows where sentences end and which tables each one meets. Refuses to weigh them
against each other: `comment` does.
"""

# ruff: noqa: RUF001 -- dashes as people type them

import re
from collections.abc import Iterator
from enum import StrEnum
from typing import Final

import msgspec

from interlock.wire import comment_holds as holds
from interlock.wire import comment_words as table
from interlock.wire.comment_text import LINK, QUOTED, SMILE, Words

_SENTENCE: Final = re.compile(
    r"[^.!?;\n…]*+(?:(?:\.(?=[^\s.])"
    r"|[.!?;…]++(?=[^\s.!?;…)\"'\x01\x03]))[^.!?;\n…]*+)*+([.!?;…)\"']*+)"
)
_CLAUSE: Final = re.compile(r"(?:[^,:()—–\n-]|-(?! )|(?<![ \n])-)++")
_SIGN_OFF: Final = re.compile(
    r"(?:thanks?(?: you| again| a lot)?|thx|cheers|best|regards|best regards|kind regards"
    r"|sincerely|yours|br)[,!. ]*|[-—–]+ ?"
)
_NAME: Final = re.compile(r"[A-Z][\w'.-]*(?: [A-Z][\w'.-]*){0,2}|@[\w-]+")
_THANKS: Final = re.compile(r"(?i:thanks|thank you|nice one|cheers|thx),? [A-Z][\w'.-]*")
_NO_NAME: Final = re.compile(
    r"\b(?:un|in|im|mis|dis|non)\w{4,}|\w{3,}(?:ly|ed|ing|able|ible|ion|less|ful|ness)\b|^sorry"
)
_LONGEST_CLAUSE: Final = 300
_PLAIN: Final = re.compile(rf"[a-z0-9 ,.!'\"@+{SMILE}{LINK}{QUOTED}\t/_%$&=<>#*~|()\[\]{{}}-]*")
_ODD: Final = re.compile(r"[^\x00-\x7f]")
_ID_AROUND: Final = r"(?<![\w#-])(?:(?:request|issue|epic|story|task|pr|gate) )?#?{}(?![\w-])"


class Kind(StrEnum):
    """What a sentence or clause says."""

    APPROVE = "approval"
    REFUSE = "refusal"
    HALT = "halt"
    CHANGE = "change or fault"
    CONDITION = "condition"
    EXCEPTION = "exception"
    HEDGE = "hedge"
    DISCUSS = "wish to talk"
    DEFER = "deferral"
    WAIT = "hold"
    NEGATION = "negation"
    QUESTION = "question"
    SARCASM = "sarcasm mark"
    BACK = "taking back"
    RESET = "fresh start"
    SETTLED = "settled now"
    REMARK = "remark that does not block"
    ABOUT = "word that the remark before does not block"
    PAST = "earlier refusal"
    HEARSAY = "wish or hearsay"
    UNKNOWN = "something else"
    FINE = "nothing against it"


class Piece(msgspec.Struct, frozen=True):
    """One thing seen at one place."""

    kind: Kind
    start: int
    end: int


def pieces(words: Words, comment: str, request_id: str = "") -> list[Piece]:
    """Everything seen in a comment, in order."""
    found: list[Piece] = []
    for start, end, mark in _sentences(words.text):
        text = _known_id(words.text[start:end], request_id)
        if not text.strip(" \t\r.,!-—–_" + LINK + SMILE):
            continue
        lazy = any(first < end and start < last for first, last in words.lazy)
        found += _of_sentence(text, start, mark, comment, lazy)
    return _with_remarks(found)


def _known_id(text: str, request_id: str) -> str:
    if not request_id or request_id.lower() not in text:
        return text
    pattern = _ID_AROUND.format(re.escape(request_id.lower()))
    return re.sub(pattern, lambda hit: "it"[: len(hit[0])].ljust(len(hit[0])), text)


def _sentences(text: str) -> Iterator[tuple[int, int, str]]:
    at = 0
    while at < len(text):
        found = _SENTENCE.match(text, at)
        end = found.end() if found else at
        if found and end > at:
            yield at, end, found[1]
        at = max(end, at + 1)


def _of_sentence(text: str, at: int, mark: str, comment: str, lazy: bool) -> Iterator[Piece]:
    end = at + len(text)
    calm = table.HARMLESS.sub(lambda hit: "fine".ljust(len(hit[0])), text)
    calm = table.SUBJECTS.sub(lambda hit: "part".ljust(len(hit[0])), calm)
    for reset in table.RESET.finditer(calm):
        yield Piece(Kind.RESET, at + reset.start(), at + reset.end())
    calm = table.RESET.sub(lambda hit: " " * len(hit[0]), calm)
    remark = table.NOT_BLOCKING.search(calm.strip())
    if remark:
        calm = table.NOT_BLOCKING.sub(lambda hit: "fine".ljust(len(hit[0]))[: len(hit[0])], calm)
    concerns, settled = [*_concerns(calm, mark)], False
    if remark and not table.BINDING.search(calm) and not set(concerns) & _NEVER_REMARKS:
        bare = remark[0] and _ABOUT.fullmatch(table.NOT_BLOCKING.sub("", text.strip()))
        yield Piece(Kind.ABOUT if bare else Kind.REMARK, at, end)
        concerns = []
    elif _is_past(calm, concerns):
        yield Piece(Kind.PAST, at, end)
        return
    elif set(concerns) <= {Kind.CHANGE} and concerns and table.SETTLED.search(calm):
        yield Piece(Kind.SETTLED, at, end)
        concerns, settled = [], True
    for kind in concerns:
        yield Piece(kind, at, end)
    if table.SETTLED.search(calm) and not concerns:
        yield Piece(Kind.SETTLED, at, end)
    yield from _clauses(calm, at, comment, bool(concerns), settled or remark is not None, lazy)


_ABOUT: Final = re.compile(
    r"(?:(?:this|that|that's|it|is|it's|these|those|are|they|just|a|an|minor|nit|and|all|so|none|of|but"
    r"|for|me|though|only|really|at)|[\s.,!()-])*"
)
_NEVER_REMARKS: Final = {
    Kind.CONDITION,
    *(Kind.HALT, Kind.REFUSE, Kind.SARCASM, Kind.BACK, Kind.WAIT, Kind.HEDGE, Kind.QUESTION),
}


_STANDS: Final = re.compile(
    r"\b(?:if|unless|once|until|still|but|however|again|repeat|as (?:i|we)|not (?:yet|now))\b"
)


def _is_past(text: str, concerns: list[Kind]) -> bool:
    """Whether a sentence only tells of a refusal that is over; a fault is over when it is said to
    be settled."""
    told = {Kind.REFUSE, Kind.DISCUSS, Kind.NEGATION, Kind.CONDITION, Kind.EXCEPTION}
    if Kind.REFUSE not in concerns and not table.PAST_WISH.search(text):
        return False
    return set(concerns) <= told and bool(table.PAST.search(text)) and not _STANDS.search(text)


def _concerns(text: str, mark: str) -> Iterator[Kind]:
    """What in a sentence speaks against an approval."""
    clauses = [hit[0].strip(" \t.!?…\"'" + SMILE) for hit in _CLAUSE.finditer(text)]
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
    r"(?:is|are|was|can|could|should|shall|does|do we|did|who|what|why|how|where|which"
    r"|has anyone|have we|whose) "
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
)


def _acts(pattern: re.Pattern[str], clauses: list[str]) -> bool:
    return any(pattern.match(clause[:_LONGEST_CLAUSE]) for clause in clauses)


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
    return any(_NOT_APPROVED.search(clause[:_LONGEST_CLAUSE]) for clause in clauses)


def _clauses(
    text: str, at: int, comment: str, troubled: bool, remark: bool, lazy: bool
) -> Iterator[Piece]:
    """Approvals, and what is neither an approval nor harmless."""
    for hit in _CLAUSE.finditer(text):
        clause = hit[0].rstrip(" \t\r.!?;…\"'" + SMILE + LINK)
        clause = re.sub(rf"[{SMILE}{LINK}\s]+", " ", clause).strip()
        if not clause.strip("."):
            continue
        start, end = at + hit.start(), at + hit.end()
        if not _stuck(text, hit.start(), hit.end()) and approves(clause):
            yield Piece(Kind.UNKNOWN if lazy else Kind.APPROVE, start, end)
        elif not troubled and not remark and not _harmless(clause, comment, start, end):
            yield Piece(Kind.UNKNOWN, start, end)


def _stuck(text: str, start: int, end: int) -> bool:
    """Whether a clause is part of something longer: a name, a call, a shortcode."""
    before = start > 0 and not text[start].isspace() and text[start - 1] in ":-"
    return before or (text[end : end + 1] == "(" and not text[end - 1].isspace())


def approves(clause: str) -> bool:
    """Whether a clause is made of approving words and of what may stand beside them, whole."""
    at, found = 0, False
    if len(clause) > _LONGEST_CLAUSE or clause.startswith("please approve"):
        return False
    while at < len(clause):
        if clause[at] in " &":
            at += 1
            continue
        hit = table.APPROVING.match(clause, at)
        found = found or bool(hit)
        hit = hit or (table.TAIL.match(clause, at) if found else None)
        hit = hit or table.BESIDE.match(clause, at)
        if not hit or hit.end() == at:
            return False
        at = hit.end()
    return found


def _harmless(clause: str, comment: str, start: int, end: int) -> bool:
    """Praise, thanks, what the reader did, a name: nothing that could be meant against it."""
    if table.NEUTRAL.fullmatch(clause) or not clause.strip(QUOTED + LINK + " "):
        return QUOTED not in clause
    said = comment[start:end].strip(" \t\r\n.,!;:()—–-*_")
    if _NAME.fullmatch(said) and not _NO_NAME.search(said.lower()) and _signs(comment[:start]):
        return True
    if _THANKS.fullmatch(said) and not _NO_NAME.search(said.lower()):
        return True
    if _beside(clause) or table.PAST_WISH.search(clause) or table.SETTLED.search(clause):
        return True
    return (
        len(clause) <= _LONGEST_CLAUSE
        and _PLAIN.fullmatch(clause) is not None
        and table.GOOD.search(clause) is not None
        and not table.TELLS.search(clause)
        and (table.FRAMES.fullmatch(clause) is not None or _only_plain_words(clause))
    )


def _only_plain_words(clause: str) -> bool:
    """Praise among words that cannot turn it: the closed list keeps irony and scope out."""
    rest = table.GOOD.sub(" ", clause)
    return all(word in table.PLAIN_WORDS for word in re.findall(r"[^\s,.!]+", rest))


def _beside(clause: str) -> bool:
    """Whether a clause is made of what may stand beside an approval, and of nothing else."""
    at = 0
    while at < len(clause):
        hit = table.BESIDE.match(clause, at)
        if not hit:
            return False
        at = hit.end() + (clause[hit.end() : hit.end() + 1] == " ")
    return True


def _signs(before: str) -> bool:
    """Whether a name may follow: after thanks, a greeting or a dash, or within a sentence."""
    line = before.rstrip(" \t").rpartition("\n")[2].lower().strip()
    if line.endswith((",", "—", "–", "-")):
        return True
    above = before.rstrip().rpartition("\n")[2].lower().strip()
    return not line and _SIGN_OFF.fullmatch(above) is not None


def _with_remarks(found: list[Piece]) -> list[Piece]:
    """A sentence that only says it does not block speaks of the one before it."""
    kept: list[Piece] = []
    for piece in found:
        if piece.kind is Kind.ABOUT and kept:
            last = kept[-1].start
            about = [each for each in kept if each.start >= last]
            if all(each.kind in _REMARKABLE for each in about):
                kept = [each for each in kept if each.start < last]
        kept.append(piece)
    return kept


_REMARKABLE: Final = {
    Kind.HEARSAY,
    Kind.CHANGE,
    Kind.UNKNOWN,
    Kind.FINE,
    Kind.QUESTION,
    Kind.CONDITION,
}


def is_odd(text: str) -> bool:
    """Whether live words hold signs that a reader cannot see or could take for other letters."""
    for hit in _ODD.finditer(text):
        sign = hit[0]
        if sign in "–—…’‘“”«»•·" or ("\u00c0" <= sign <= "\u017f" and sign not in "×÷"):
            continue
        return True
    return False
