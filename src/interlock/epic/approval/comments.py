"""What one comment on an issue decides: its text goes in, a decision and the reason come out.

Small and strict on purpose. A command decides. Without one, a comment approves only if it consists
of approval phrases and politeness and nothing else: whoever wants to say more uses a command. Who
wrote the comment, and when, is up to `thread`.
"""

import re
from enum import StrEnum
from typing import Final

import msgspec

from interlock.signals.comments import (
    LONGEST,
    CommentCommand,
    LiveText,
    blank_range,
    find_commands,
    find_doubt,
    find_live_text,
    is_doubt,
)


class CommentDecision(StrEnum):
    """How a comment is read."""

    APPROVE = "APPROVE"
    REVISE = "REVISE"
    DISCUSS = "DISCUSS"
    HALT = "HALT"
    DEFER = "DEFER"
    UNCLEAR = "UNCLEAR"
    IGNORED = "IGNORED"


APPROVE, REVISE, DISCUSS, HALT, DEFER, UNCLEAR, IGNORED = CommentDecision
CAUTION: Final = (HALT, REVISE, DISCUSS, DEFER, UNCLEAR, APPROVE)
"""The most cautious first."""
COMMANDS: Final = {
    decision.value.lower(): decision for decision in (APPROVE, REVISE, DISCUSS, HALT, DEFER)
}
DOUBT: Final = "doubt"
"""The kind of evidence that makes an unclear comment hold back somebody else's approval."""

# In these tables a blank stands for any run of blanks and tabs, never for a line end, and a longer
# phrase stands before a shorter one that it begins with.
_IT: Final = r"(?:(?:the|this) (?:plan|request)|this|it|that)"
_GO: Final = r"(?:(?:please|let's|lets|you (?:can|may)|we can)(?: now)? )?"
_ALL: Final = r"(?: all| everyone| team)?"
_NO: Final = r"(?:no[.,!]? )?"
_FROM_ME: Final = r"(?: now)?(?: from (?:me|us|my side))?"
_WORK: Final = r"update|plan|hard work|work|effort|patience|quick reply|reply|explanation|write-?up"
POLITENESS: Final = (
    rf"(?:hi|hello|hey|dear|good (?:morning|afternoon|evening))(?: there| folks)?{_ALL}",
    # "@bob approved" may tell what somebody else did.
    r"@[a-z0-9][a-z0-9-]*+(?:/[a-z0-9-]++)?(?! (?:approved|accepted))",
    rf"(?:many )?(?:thanks|thank you|thx|cheers) for (?:the|your) (?:{_WORK})",
    rf"(?:many )?(?:thanks|thank you|thx|cheers)(?: so much| very much| a lot| again)?{_ALL}",
    rf"(?:great|nice|good|excellent|awesome|amazing|solid) (?:work|job|stuff|plan){_ALL}",
    rf"great|nice|perfect|excellent|awesome|amazing|brilliant|wonderful|well done{_ALL}",
    r"(?:best |kind |warm )?regards|best wishes|sent from my (?:iphone|ipad|android|phone)",
)
YES: Final = (r"yes|yep|yeah|ok|okay|sure|\+1",)
"""They may begin an answer and are not one themselves."""
VOTE: Final = (rf"approve(?: {_IT})?",)
"""Without a word of politeness it is a vote; with one, somebody else may be asked for it."""
PHRASES: Final = {
    APPROVE: (
        rf"(?:i|we)(?: hereby)? approve(?: {_IT})?(?: now)?",
        rf"(?:(?:{_IT} is|it's) )?(?:now )?(?:approved|accepted)(?: by (?:me|us)|{_FROM_ME})",
        r"(?:the )?(?:plan|request) (?:approved|accepted)",
        rf"(?:this )?lgtm{_FROM_ME}",
        rf"{_GO}ship (?:it|this)(?: now)?(?: please)?",
        rf"{_GO}(?:go ahead|proceed)(?: with {_IT})?(?: now)?(?: please)?",
        rf"(?:{_IT} )?looks good(?: to (?:me|us))?{_FROM_ME}",
    ),
    HALT: (
        rf"{_NO}{_GO}(?:stop|halt|abort|cancel)(?: {_IT}| everything)?(?: now)?(?: please)?",
        rf"{_NO}(?:please )?(?:do not|don't|dont) (?:proceed|go ahead)(?: with {_IT})?",
        rf"(?:you|we) must not (?:proceed|go ahead)(?: with {_IT})?",
    ),
    DEFER: (
        rf"{_NO}{_GO}(?:defer|postpone)(?: {_IT})?(?: please)?|deferred|postponed",
        rf"{_GO}(?:(?:move|put) {_IT} (?:to|in|into|on) )?(?:the )?backlog",
        rf"{_NO}not now",
    ),
    DISCUSS: (
        rf"{_NO}(?:(?:please|let's|lets|we (?:need to|should)) )?discuss(?: {_IT})?",
        rf"{_NO}(?:let's|lets|we (?:need to|should)) talk(?: about {_IT})?",
        r"i have (?:a question|(?:some )?questions)",
    ),
}
_VERBS: Final = r"change|fix|add|remove|rename|rewrite|update|replace|split|use|simplify|clarify"
_OTHER_NEEDS: Final = r"\W+(?:\w+\W+){0,3}?(?:approv\w*|stop|wait|talk|discuss\w*)"
REFUSALS: Final = (
    r"(?:no|nope|nah)(?=\s*(?:[.,;!\n]|\Z)|\s+-)|no (?:way|thanks|thank you)|absolutely not",
    rf"(?:(?:{_IT} is )?not|{_IT} isn't) (?:yet )?(?:approved|accepted|acceptable|lgtm)",
    rf"(?:(?:{_IT} is )?not|{_IT} isn't) (?:ready|good|ok|yet)",
    r"(?:(?:i|we) )?(?:(?:do|can|will) not|don't|dont|cannot|can't|cant|won't) approve",
    r"(?:i|we) (?:reject|decline|disapprove|object)",
    r"reject(?:ed)?|declined|disapproved?|denied|changes (?:are )?(?:requested|required|needed)",
    rf"please (?:{_VERBS}|correct|include)|(?:please )?(?:revise|rework|redo|reconsider)",
    # "Fix approved" and "Update looks good" are about a fix and an update.
    rf"(?:{_VERBS})(?= [a-z`\"'])(?! (?:approved|accepted|looks?|is|was|lgtm|m[ey])\b)",
    rf"(?:(?:{_IT}|you|we) )?(?:still )?(?:needs?|must)(?!{_OTHER_NEEDS})",
)
"""What refuses or asks for a change, if a comment begins with it."""
_QUESTION: Final = re.compile(
    r"(?:why|what|who|which|when|where|how|is|are|was|were|can|could|should|shall|do|does|did|will"
    r"|would|have|has|may)(?![\w'])[^.;!?\n]*\?+"
)


def _join(*patterns: str) -> str:
    return "|".join(patterns).replace(" ", r"[ \t]+")


_BLANKS: Final = " \t\r\n"
_POLITE: Final = ("POLITE", "YES")
_STOP: Final = r"(?=[ \t]*(?:[.,;]|!+)?(?:\s|\Z))"
"""Where a phrase ends: one mark at most. Three dots hedge, and `approved.txt` is a name."""
_PHRASE: Final = re.compile(
    rf"(?a)(?:(?P<POLITE>{_join(*POLITENESS)})|(?P<YES>{_join(*YES)})|(?P<VOTE>{_join(*VOTE)})|"
    + "|".join(f"(?P<{name}>{_join(*forms)})" for name, forms in PHRASES.items())
    + f"){_STOP}"
)
_GAP: Final = re.compile(r"(?a)[ \t]*(?:[.,;]|!+)?\s*(?:(?:-{1,3}|&)\s+)?(?:and[ \t]+)?")
_REFUSAL: Final = re.compile(rf"(?:{_join(*REFUSALS)})(?![\w'])")
_SCOPE: Final = re.compile(r"(?:\A|[.!;\n])[ \t]*+(?:for|in|on|to|with|at|from|of|by|story|part)\b")
_NAMED: Final = re.compile(r"(?i:thanks|thank you|thx|cheers|hi|hello|hey),? ([A-Z][a-z]+)\b")


class Span(msgspec.Struct, frozen=True):
    """A place in the comment and what was seen there."""

    start: int
    end: int
    kind: str


class CommentReading(msgspec.Struct, frozen=True):
    """How one comment is read, and why."""

    decision: CommentDecision
    why: str
    notes: str = ""
    """What the human wants, in their words."""
    evidence: tuple[Span, ...] = ()


def read_comment(comment: str, request_id: str = "") -> CommentReading:
    """How the comment of somebody who may answer is read."""
    if len(comment) > LONGEST:
        return CommentReading(UNCLEAR, f"it has more than {LONGEST:,} characters")
    live = find_live_text(comment, request_id)
    if not live.text.strip():
        return CommentReading(UNCLEAR, "it has no words of its own")
    commands = find_commands(live.text, comment)
    return _read_commands(commands, live, comment) if commands else _read_words(live, comment)


def strip_politeness(text: str) -> tuple[list[Span], int]:
    """Known phrases from the start on, and the place of the first word that belongs to none."""
    text = text.rstrip(_BLANKS)
    found, at = list[Span](), len(text) - len(text.lstrip(_BLANKS))
    while hit := _PHRASE.match(text, at):
        kind = hit.lastgroup or ""
        if kind == "YES" and any(span.kind not in _POLITE for span in found):
            break
        found.append(Span(hit.start(), hit.end(), kind))
        gap = _GAP.match(text, hit.end())
        at = gap.end() if gap else hit.end()
    return found, at


def find_doubts(text: str) -> tuple[Span, ...]:
    """The first word that could be meant against an approval, if there is one."""
    hit = find_doubt(text)
    return (Span(hit.start(), hit.end(), DOUBT),) if hit else ()


def _read_words(live: LiveText, comment: str) -> CommentReading:
    text = live.text
    found, at = strip_politeness(text)
    answers = [span for span in found if span.kind not in _POLITE]
    kinds = {APPROVE if span.kind == "VOTE" else CommentDecision(span.kind) for span in answers}
    notes = _quote_live_lines(text, comment)
    if at >= len(text.rstrip(_BLANKS)) and len(kinds) == 1:
        return _read_phrases(kinds.pop(), found, live, notes)
    first = answers[0].start if answers else at
    refusal = _REFUSAL.match(text, first)
    if refusal and not _has_approval_clause(text[first:]):
        seen = Span(refusal.start(), refusal.end(), "refusal or change")
        return CommentReading(REVISE, "it begins with a refusal or a change", notes, (seen,))
    question = _QUESTION.fullmatch(text.rstrip(), first)
    if question:
        seen = Span(question.start(), question.end(), "question")
        return CommentReading(DISCUSS, "it is a question", notes, (seen,))
    why = "it says more than one plain answer" if answers else "it is no plain answer"
    return CommentReading(UNCLEAR, why, "", find_doubts(text))


def _read_phrases(
    decision: CommentDecision, found: list[Span], live: LiveText, notes: str
) -> CommentReading:
    """A comment that is made of phrases of one decision, and of politeness."""
    word = decision.value.lower()
    seen = tuple(Span(span.start, span.end, word) for span in found if span.kind not in _POLITE)
    if decision is not APPROVE:
        return CommentReading(decision, f"it says to {word}", notes, seen)
    if live.is_doubtful:
        return CommentReading(
            UNCLEAR, "a line of it is part of a quote, or indented like code", "", seen
        )
    if {"VOTE", "POLITE"} <= {span.kind for span in found}:
        return CommentReading(UNCLEAR, "it may ask somebody else to approve", "", seen)
    return CommentReading(APPROVE, "it says nothing but that it approves", "", seen)


def _read_commands(commands: list[CommentCommand], live: LiveText, comment: str) -> CommentReading:
    """The most cautious command decides; `/approve` must also have nothing against it."""
    seen = tuple(Span(command.start, command.end, f"/{command.word}") for command in commands)
    first = min(
        commands, key=lambda command: (CAUTION.index(_find_decision(command)), command.start)
    )
    slip = next((command for command in commands if _find_decision(command) is UNCLEAR), None)
    decision = _find_decision(first)
    if slip and decision in (UNCLEAR, APPROVE):
        return CommentReading(UNCLEAR, f"/{slip.word} is no command", "", seen)
    rest = live.text
    for command in commands:
        rest = blank_range(rest, command.start, command.end)
    notes = _quote_live_lines(rest, comment)
    if decision is not APPROVE:
        return CommentReading(decision, f"it says /{first.word}", notes, seen)
    if live.is_doubtful or any(command.is_marked for command in commands):
        return CommentReading(
            UNCLEAR, "/approve or a line beside it may be quoted, listed or code", "", seen
        )
    for command in commands:
        if not _is_courteous(rest[command.end : command.stop], comment[command.end : command.stop]):
            why = "more than thanks or a name follows /approve"
            more = (Span(command.end, command.stop, "more"), *find_doubts(rest))
            return CommentReading(UNCLEAR, why, "", (*seen, *more))
        rest = blank_range(rest, command.end, command.stop)
    against = find_doubts(rest)
    if against or _SCOPE.search(rest) or not rest.isascii():
        why = "something beside /approve may be meant against it"
        return CommentReading(UNCLEAR, why, "", (*seen, *against))
    return CommentReading(APPROVE, "it says /approve", notes, seen)


def _find_decision(command: CommentCommand) -> CommentDecision:
    return COMMANDS.get(command.word, UNCLEAR)


def _is_courteous(tail: str, typed: str) -> bool:
    """Whether what follows `/approve` is politeness, a name that is thanked, or approval again."""
    for hit in _NAMED.finditer(typed):
        if not is_doubt(hit[1].lower()):
            tail = blank_range(tail, hit.start(1), hit.end(1))
    tail = _GAP.sub("", tail, count=1)
    found, at = strip_politeness(tail)
    kinds = {span.kind for span in found}
    return at >= len(tail.rstrip(_BLANKS)) and kinds <= {"POLITE", "YES", "VOTE", APPROVE.value}


def _has_approval_clause(text: str) -> bool:
    """Whether a whole clause approves: with a refusal beside it nobody knows which is meant."""
    clauses = (_PHRASE.fullmatch(clause.strip()) for clause in re.split(r"[.,;!\n]+|\s-+\s", text))
    return any(hit and hit.lastgroup in ("VOTE", APPROVE.value) for hit in clauses)


def _quote_live_lines(text: str, comment: str) -> str:
    """The comment's own lines as they were typed."""
    lines, at = [], 0
    for live in text.split("\n"):
        if live.strip():
            start = at + len(live) - len(live.lstrip())
            lines.append(comment[start : at + len(live.rstrip())].strip())
        at += len(live) + 1
    return "\n".join(lines)
