"""What a human's comment is taken for: an answer to a request, or none.

Knows the order of things: commands first, then words. A comment approves only if nothing in it
speaks against that; what holds work back is taken leniently. Refuses to know who wrote it and
when: `comment_thread` does.
"""

# ruff: noqa: RUF001 -- dashes as people type them

from typing import Final

from interlock.epic.approval.comment_approval import BESIDE, approves
from interlock.epic.approval.comment_clauses import is_odd, pieces
from interlock.epic.approval.comment_command import CommentCommand, commands, leading
from interlock.epic.approval.comment_harmless import greets
from interlock.epic.approval.comment_kind import Kind, Piece
from interlock.epic.approval.comment_settled import names_in, reach, settled_names
from interlock.epic.approval.comment_text import SMILE, Words, words_of
from interlock.epic.approval.comment_verdict import CommentDecision, CommentReading, Span
from interlock.epic.approval.comment_words import SCOPE

LONGEST: Final = 65_536
"""Characters of a comment that is read; GitHub takes no longer ones."""
_HOLDS: Final = (
    (Kind.HALT, CommentDecision.HALT, "it says to stop"),
    (Kind.CHANGE, CommentDecision.REVISE, "it states a change or a fault"),
    (Kind.REFUSE, CommentDecision.REVISE, "it refuses"),
    (Kind.CONDITION, CommentDecision.DISCUSS, "it has a condition"),
    (Kind.EXCEPTION, CommentDecision.DISCUSS, "it makes an exception"),
    (Kind.DISCUSS, CommentDecision.DISCUSS, "it wants to talk"),
    (Kind.HEDGE, CommentDecision.DISCUSS, "it hedges"),
    (Kind.DEFER, CommentDecision.DEFER, "it puts the work off"),
)
_DOUBTS: Final = (
    (Kind.SARCASM, "a mark of sarcasm stands beside it"),
    (Kind.BACK, "something is taken back in it"),
    (Kind.WAIT, "it says to wait"),
    (Kind.QUESTION, "it asks a question"),
    (Kind.NEGATION, "it negates something"),
    (Kind.HEARSAY, "it tells a wish, or what others said"),
    (Kind.FOREIGN, "it is not all in English"),
    (Kind.UNKNOWN, "it says something else beside"),
)
_EARLIER: Final = {Kind.PAST, Kind.REMARK, Kind.ABOUT, Kind.SETTLED, Kind.RESET, Kind.FINE}


def read_comment(comment: str, request_id: str = "") -> CommentReading:
    """The verdict about one comment of somebody who may answer."""
    if len(comment) > LONGEST:
        return CommentReading(CommentDecision.UNCLEAR, f"it has more than {LONGEST:,} characters")
    words = words_of(comment)
    if not words.text.strip():
        return CommentReading(CommentDecision.UNCLEAR, "it has no words of its own")
    said = commands(words.text, comment)
    if said:
        return _by_command(said, words, comment, request_id)
    return _by_words(pieces(words, comment, request_id), words, comment)


def _by_command(
    said: list[CommentCommand], words: Words, comment: str, request_id: str
) -> CommentReading:
    first = leading(said)
    seen = tuple(Span(each.start, each.end, f"/{each.word}") for each in said)
    if first.outcome is CommentDecision.UNCLEAR or any(
        each.outcome is CommentDecision.UNCLEAR
        for each in said
        if first.outcome is CommentDecision.APPROVE
    ):
        slip = next(each for each in said if each.outcome is CommentDecision.UNCLEAR)
        return CommentReading(CommentDecision.UNCLEAR, f"/{slip.word} is no command", "", seen)
    if first.outcome is CommentDecision.APPROVE and any(_is_lazy(each, words) for each in said):
        return CommentReading(
            CommentDecision.UNCLEAR, "/approve does not stand at the start of a line", "", seen
        )
    rest = words.text
    for each in said:
        rest = rest[: each.start] + " " * (each.end - each.start) + rest[each.end :]
    if first.outcome is not CommentDecision.APPROVE:
        return CommentReading(first.outcome, f"it says /{first.word}", _told(rest, comment), seen)
    for each in said:
        typed = comment[each.end : each.stop].strip(" \t\r\n.,!;:()—–-*_")
        if not greets(typed) and not _is_courtesy(each.rest, request_id):
            why = "more than thanks or a name follows /approve on its line"
            return CommentReading(
                CommentDecision.UNCLEAR, why, "", (*seen, Span(each.end, each.stop, "more"))
            )
        rest = rest[: each.end] + " " * (each.stop - each.end) + rest[each.stop :]
    seen_there = pieces(Words(rest, words.lazy), comment, request_id)
    found = _counted(seen_there, len(comment), rest)
    against = [each for each in found if _is_against(each, rest, comment)]
    if against or is_odd(words.text):
        why = f"/approve stands beside a {against[0].kind}" if against else "it has odd signs"
        return CommentReading(CommentDecision.UNCLEAR, why, "", (*seen, *_spans(against)))
    return CommentReading(CommentDecision.APPROVE, "it says /approve", _told(rest, comment), seen)


def _is_against(piece: Piece, text: str, comment: str) -> bool:
    """Whether a piece spoils a command; something else beside it does when it narrows it down, or
    goes on with the command's sentence on the next line."""
    if piece.kind is not Kind.UNKNOWN:
        return piece.kind not in {*_EARLIER, Kind.APPROVE}
    if SCOPE.match(text[piece.start : piece.end].strip()):
        return True
    above = comment[max(0, piece.start - 200) : piece.start].rstrip(" \t").removesuffix("\n")
    said = comment[piece.start : piece.end].strip()
    return above.rpartition("\n")[2].lstrip().startswith("/") and not said[:1].isupper()


def _is_lazy(command: CommentCommand, words: Words) -> bool:
    return command.marked or any(start <= command.start < end for start, end in words.lazy)


def _is_courtesy(rest: str, request_id: str) -> bool:
    """Thanks, praise, a name, this request's id; nothing else may follow an approval."""
    rest = rest.replace(request_id.lower(), " ") if request_id else rest
    text = " ".join(rest.replace(SMILE, " ").replace("#", " ").split())
    if "?" in text or any(sign in text for sign in ("...", "…")):
        return False
    for part in text.replace("!", ",").replace(".", ",").replace(":", ",").split(","):
        at, clause = 0, part.strip(" -—–")
        while at < len(clause):
            hit = BESIDE.match(clause, at)
            if not hit:
                return approves(clause)
            at = hit.end() + (clause[hit.end() : hit.end() + 1] == " ")
    return True


def _by_words(found: list[Piece], words: Words, comment: str) -> CommentReading:
    approvals = [each for each in found if each.kind is Kind.APPROVE]
    counted = _counted(found, approvals[-1].start if approvals else -1, words.text)
    kinds = {each.kind for each in counted}
    for kind, outcome, why in _HOLDS:
        if kind in kinds:
            seen = [each for each in counted if each.kind is kind]
            return CommentReading(outcome, why, _notes(kind, kinds, words, comment), _spans(seen))
    for kind, why in _DOUBTS:
        if kind in kinds:
            seen = [each for each in counted if each.kind is kind]
            return CommentReading(CommentDecision.UNCLEAR, why, "", _spans(seen))
    if not approvals or Kind.APPROVE not in kinds:
        return CommentReading(CommentDecision.UNCLEAR, "it has no word of approval")
    if is_odd(words.text):
        return CommentReading(CommentDecision.UNCLEAR, "it has signs that cannot be read for sure")
    remarks = [each for each in found if each.kind is Kind.REMARK]
    notes = "\n".join(comment[each.start : each.end].strip() for each in remarks)
    return CommentReading(
        CommentDecision.APPROVE,
        "it approves, and nothing speaks against it",
        notes,
        _spans([*approvals, *remarks]),
    )


def _counted(found: list[Piece], approved_at: int, text: str) -> list[Piece]:
    """What still counts: a final approval leaves behind what was refused and settled before."""
    starts = [each.end for each in found if each.kind is Kind.RESET and each.end <= approved_at]
    fresh = max(starts, default=0)
    over = _overcome(found, approved_at, text)
    kept = []
    for each in found:
        past = each.kind is Kind.PAST and each.start < approved_at
        if each.start < fresh or each.start in over or past:
            continue
        if each.kind is Kind.PAST:
            each = Piece(Kind.REFUSE, each.start, each.end)  # noqa: PLW2901
        kept.append(Piece(Kind.BACK, each.start, each.end) if _late(each, approved_at) else each)
    return kept


_OVERCOME: Final = {Kind.REFUSE, Kind.CHANGE, Kind.NEGATION, Kind.UNKNOWN}
_SETTLED: Final = 20
"""How many words that something is settled are looked at."""


def _overcome(found: list[Piece], approved_at: int, text: str) -> set[int]:
    """Where the refusals and faults stand that a later sentence before the approval settles."""
    settled = [each for each in found if each.kind is Kind.SETTLED and each.start <= approved_at]
    open_ones = [each for each in found if each.kind in _OVERCOME]
    over = set[int]()
    for done in settled[-_SETTLED:]:
        said = text[done.start : done.end]
        before = [each for each in open_ones if each.end <= done.start]
        far, named = reach(said), settled_names(said)
        for each in before:
            last = far == "last" and each.start == before[-1].start
            names = names_in(text[each.start : each.end])
            if far == "all" or last or any(thing <= names for thing in named):
                over.add(each.start)
    return over


def _late(piece: Piece, approved_at: int) -> bool:
    """A fresh start after the approval takes it back."""
    return piece.kind is Kind.RESET and piece.start > approved_at >= 0


def _notes(kind: Kind, kinds: set[Kind], words: Words, comment: str) -> str:
    plain = kind is Kind.REFUSE and not kinds & {
        Kind.CHANGE,
        Kind.UNKNOWN,
        Kind.CONDITION,
        Kind.EXCEPTION,
    }
    return "" if plain else _told(words.text, comment)


def _told(text: str, comment: str) -> str:
    """The comment's own lines, without what is not live around them."""
    lines, at = [], 0
    for live in text.split("\n"):
        if live.strip():
            start = at + len(live) - len(live.lstrip())
            lines.append(comment[start : at + len(live.rstrip())].strip())
        at += len(live) + 1
    return "\n".join(line for line in lines if line)


def _spans(found: list[Piece]) -> tuple[Span, ...]:
    return tuple(Span(each.start, each.end, str(each.kind)) for each in found)
