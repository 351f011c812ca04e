"""A human comment as sentences and clauses, each with what it says.

Knows where sentences end and which tables each one meets. Refuses to weigh them
against each other: `comment` does.
"""

# ruff: noqa: RUF001 -- dashes as people type them

import re
from collections.abc import Iterator
from typing import Final

from interlock.epic.approval import comment_past as past
from interlock.epic.approval import comment_words as table
from interlock.epic.approval.comment_approval import LONGEST_CLAUSE, VOTE, approves
from interlock.epic.approval.comment_concerns import CLAUSE, concerns_of, is_past
from interlock.epic.approval.comment_harmless import is_deed, is_harmless
from interlock.epic.approval.comment_holds import APPROVAL_WORD
from interlock.epic.approval.comment_kind import Kind, Piece
from interlock.epic.approval.comment_settled import is_settled_within, parts_of
from interlock.epic.approval.comment_text import LINK, SMILE, Words

_SENTENCE: Final = re.compile(
    r"[^.!?;\n…]*+(?:(?:\.(?=[^\s.])"
    r"|[.!?;…]++(?=[^\s.!?;…)\"'\x01\x03]))[^.!?;\n…]*+)*+([.!?;…)\"']*+)"
)
_ITEM: Final = re.compile(r"[ \t]{0,6}(?:[-+*]|\d{1,3}[.)])[ \t]")
_NEAR: Final = 200
"""Characters before a clause in which a name is looked for."""
_LONGEST_SETTLED: Final = 1000
"""Characters of a sentence that may settle a fault of its own."""
_ODD: Final = re.compile(r"[^\x00-\x7f]")
_ID_AROUND: Final = r"(?<![\w#-])(?:(?:request|issue|epic|story|task|pr|gate) )?#?{}(?![\w-])"


def pieces(words: Words, comment: str, request_id: str = "") -> list[Piece]:
    """Everything seen in a comment, in order."""
    found: list[Piece] = []
    listed = False
    for start, end, mark in _sentences(words.text):
        text = _known_id(words.text[start:end], request_id)
        if not text.strip(" \t\r.,!-—–_" + LINK + SMILE):
            if text.startswith("!"):
                found.append(Piece(Kind.UNKNOWN, start, end))
            continue
        item = listed and _ITEM.match(comment, start) is not None
        listed = item or table.CHECKED.fullmatch(text.strip()) is not None
        if listed and (not item or _is_plain_item(text.strip(), mark)):
            continue
        lazy = any(first < end and start < last for first, last in words.lazy)
        found += _of_sentence(text, start, mark, comment, lazy)
    return _with_remarks(found)


def _is_plain_item(text: str, mark: str) -> bool:
    named = table.ITEM.fullmatch(text.rstrip(".,")) and not APPROVAL_WORD.search(text)
    return bool(named) and not concerns_of(text, mark)


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
    """What a sentence says, cut where it starts afresh: what stands before that is left behind."""
    calm = table.HARMLESS.sub(lambda hit: "fine".ljust(len(hit[0])), text)
    calm = table.SUBJECTS.sub(lambda hit: "part".ljust(len(hit[0])), calm)
    begun = 0
    for reset in past.RESET.finditer(calm):
        yield from _of_stretch(calm[begun : reset.start()], at + begun, "", comment, lazy)
        yield Piece(Kind.RESET, at + reset.start(), at + reset.end())
        begun = reset.end()
    yield from _of_stretch(calm[begun:], at + begun, mark, comment, lazy)


def _of_stretch(calm: str, at: int, mark: str, comment: str, lazy: bool) -> Iterator[Piece]:
    """What speaks against an approval, unless it does not block or is over; then the clauses."""
    end, text = at + len(calm), calm.strip()
    if not text.strip(".,!; "):
        return
    remark = past.NOT_BLOCKING.search(text)
    if remark:
        calm = past.NOT_BLOCKING.sub(lambda hit: "fine".ljust(len(hit[0]))[: len(hit[0])], calm)
    concerns, settled = concerns_of(calm, mark), False
    if remark and not past.BINDING.search(calm) and not _refused(concerns, calm, remark):
        bare = remark[0] and _ABOUT.fullmatch(past.NOT_BLOCKING.sub("", text))
        yield Piece(Kind.ABOUT if bare else Kind.REMARK, at, end)
        concerns = []
    elif is_past(calm, concerns):
        yield Piece(Kind.PAST, at, end)
        return
    elif concerns == [Kind.CHANGE] and _is_settled(calm):
        yield Piece(Kind.SETTLED, at, end)
        concerns, settled = [], True
    for kind in concerns:
        yield Piece(kind, at, end)
    if past.SETTLED.search(calm) and not concerns:
        yield Piece(Kind.SETTLED, at, end)
    yield from _clauses(calm, at, comment, bool(concerns), settled or remark is not None, lazy)


def _is_settled(text: str) -> bool:
    parts = parts_of(text[:_LONGEST_SETTLED])
    faulty = [at for at, part in enumerate(parts) if Kind.CHANGE in concerns_of(part, "")]
    return len(text) <= _LONGEST_SETTLED and is_settled_within(faulty, parts)


_ABOUT: Final = re.compile(
    r"(?:(?:this|that|that's|it|is|it's|these|those|are|they|just|a|an|minor|nit|and|all|so|none"
    r"|of|but|for|me|though|only|really|at)|[\s.,!()-])*"
)
_NEVER_REMARKS: Final = {
    *(Kind.HALT, Kind.REFUSE, Kind.SARCASM, Kind.BACK, Kind.WAIT, Kind.QUESTION, Kind.FOREIGN),
}
_NOT_BEFORE: Final = {*_NEVER_REMARKS, Kind.CONDITION, Kind.HEDGE}


def _refused(concerns: list[Kind], calm: str, remark: re.Match[str]) -> bool:
    """Whether a sentence is no mere remark; a hedge before the word that it does not block may
    belong to something else."""
    head = calm[: len(calm) - len(calm.lstrip()) + remark.start()]
    return bool({*concerns} & _NEVER_REMARKS or {*concerns_of(head, "")} & _NOT_BEFORE)


def _clauses(
    text: str, at: int, comment: str, troubled: bool, remark: bool, lazy: bool
) -> Iterator[Piece]:
    """Approvals, and what is neither an approval nor harmless."""
    for hit in CLAUSE.finditer(text):
        clause = hit[0].rstrip(" \t\r.!?;…\"'" + SMILE + LINK)
        clause = re.sub(rf"[{SMILE}{LINK}\s]+", " ", clause).strip()
        if not clause.strip("."):
            continue
        start, end = at + hit.start(), at + hit.end()
        if not _stuck(text, hit.start(), hit.end()) and _says_so(
            clause, text[max(0, hit.start() - _NEAR) : hit.start()]
        ):
            yield Piece(Kind.UNKNOWN if lazy else Kind.APPROVE, start, end)
        elif not troubled and not remark and not is_harmless(clause, comment, start, end):
            yield Piece(Kind.UNKNOWN, start, end)


_PEOPLE: Final = table.words(r"team|all|everyone|everybody|folks|guys|hi|hello|hey|dear|@[\w-]+")


def _says_so(clause: str, before: str) -> bool:
    """Whether a clause approves, by itself or after what the reader did; a bare `approve` behind
    somebody's name asks for it."""
    if VOTE.fullmatch(clause):
        return not _PEOPLE.search(before)
    deed, link, verdict = clause[:LONGEST_CLAUSE].rpartition(" and ")
    if link and deed.startswith(("i ", "i've ", "we ", "we've ")) and is_deed(deed):
        return approves(verdict)
    return approves(clause)


def _stuck(text: str, start: int, end: int) -> bool:
    """Whether a clause is part of something longer: a name, a call, a shortcode."""
    before = start > 0 and not text[start].isspace() and text[start - 1] in ":-"
    return before or (text[end : end + 1] == "(" and not text[end - 1].isspace())


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
