"""Human comments: the decision that one comment makes, by a strict white list.

A command at the start of a line decides: `/approve`, `/revise`, `/discuss`, `/halt`, `/defer`.
Without one, only a comment that is nothing but an approval approves. Everything else is unclear.
Quotes, code and hidden text are inert. The author's right to decide is checked elsewhere.
"""

import re
from enum import StrEnum
from typing import Final

import msgspec

from interlock.signals.own_words import split_units

LONGEST: Final = 65_536
"""Characters of a comment that are read; GitHub accepts no more."""
_MARKER: Final = re.compile(r"<!--\s*interlock\b", re.IGNORECASE)
_REPLIED: Final = re.compile(r"<!--\s*interlock:asked-back (\S{1,80})\s*-->")


class CommentDecision(StrEnum):
    """The decision that a comment makes."""

    APPROVE = "APPROVE"
    REVISE = "REVISE"
    DISCUSS = "DISCUSS"
    HALT = "HALT"
    DEFER = "DEFER"
    UNCLEAR = "UNCLEAR"
    IGNORED = "IGNORED"


APPROVE, REVISE, DISCUSS, HALT, DEFER, UNCLEAR, IGNORED = CommentDecision
CAUTION: Final = (HALT, REVISE, DISCUSS, DEFER, UNCLEAR, APPROVE)
"""Decisions, most cautious first."""


class CommentReading(msgspec.Struct, frozen=True):
    """The decision of one comment, the reason, and the notes that come with it."""

    decision: CommentDecision
    why: str
    notes: str = ""


_COMMAND: Final = re.compile(
    r"^ {0,3}/(approve|revise|discuss|halt|defer)(?![\w/-]|\.\w)", re.MULTILINE | re.IGNORECASE
)
_TAG: Final = re.compile(
    r"<(?:!--|(?:pre|code|thinking|think|blockquote)(?=[\s>/]))", re.IGNORECASE
)
_INLINE: Final = re.compile(r"<!--(?:[^\n-]|-(?!->))*+-->|<code>[^\n<]*+</code>", re.IGNORECASE)
"""Hidden text and code that begin and end in one line."""
_INDENTED: Final = re.compile(
    r"(?:\A|\n[ \t]*)\n(?=(?: {4}| {0,3}\t)[ \t]*\S)"
    r"(?:\n?(?: {4}| {0,3}\t)[^\n]*|\n[ \t]*(?=\n))*"
)
_NOT_BLANK: Final = re.compile(r"[^\n]")
_SLIPPED: Final = "\x02"

# In an approval, emoji and mentions become these two characters, which no comment may contain.
_SIGN, _MENTIONED = "\x00", "\x01"
_EMOJI: Final = re.compile(
    r"[👍✅✔☑🚀🎉🚢🙌👏💯🙏😀😃😄😁😊🙂☺❤♥💚💙💜⭐🌟🥳💪👌🤝✨🏆🎊][\ufe0f\U0001f3fb-\U0001f3ff]*"
    r"|:(?:\+1|thumbsup|shipit|ship|rocket|tada|white_check_mark|100|clap|heart|smile):"
)
_MENTION: Final = re.compile(
    r"(?<![^ \t\n\x00])@[a-z0-9][a-z0-9-]*(?:/[a-z0-9][\w.-]*)?[,:]?(?![^ \t\n\x00])",
    re.IGNORECASE | re.ASCII,
)
_GAP: Final = r"[ \t\n\x00\x01]"
_END: Final = r"(?:[.,]|!{1,3})?"
_THANKS: Final = rf"(?:thanks|thank[ \t]+you|great[ \t]+work|nice[ \t]+work|well[ \t]+done){_END}"
_YES: Final = rf"(?:/approve|approved?|lgtm|ship[ \t]+it){_END}"
_APPROVAL: Final = re.compile(
    rf"{_GAP}*(?:{_YES}(?:{_GAP}+{_THANKS})?|{_THANKS}{_GAP}+{_YES}){_GAP}*",
    re.IGNORECASE | re.ASCII,
)
_ADDRESSED: Final = re.compile(r"\x01[ \t\n\x00]*approve", re.IGNORECASE)
"""`@bob approved` may report what Bob did, and `@bob approve` may ask him to."""


def read_comment(comment: str, request_id: str = "") -> CommentReading:
    """Return the decision of a comment about this request; its author must have the right to
    decide."""
    if len(comment) > LONGEST:
        return CommentReading(UNCLEAR, f"it has more than {LONGEST:,} characters")
    text = comment.removeprefix("\ufeff").replace("\r\n", "\n")
    live = _blank_inert(text)
    if not live.strip():
        return CommentReading(UNCLEAR, "it contains only quotes, code or hidden text")
    commands = list(_COMMAND.finditer(live))
    decisions = {CommentDecision(command[1].upper()) for command in commands}
    decision = next((each for each in CAUTION if each in decisions), UNCLEAR)
    if decision not in (APPROVE, UNCLEAR):
        notes = _take_notes(text, commands)
        return CommentReading(decision, f"it says /{decision.value.lower()}", notes)
    if _is_approval(live, request_id, is_command=bool(commands)):
        return CommentReading(APPROVE, "it says nothing but that it approves")
    if commands:
        return CommentReading(UNCLEAR, "it says more than /approve")
    return CommentReading(UNCLEAR, "it is neither a command nor a bare approval")


def _is_approval(live: str, request_id: str, *, is_command: bool) -> bool:
    """Return True if live text is an approval, with nothing beside it but what the list allows."""
    if _SIGN in live or _MENTIONED in live:
        return False
    text = _EMOJI.sub(_SIGN, live)
    if request_id:
        known = rf"(?<![^ \t\n\x00])#?{re.escape(request_id)}(?![^ \t\n\x00.,!])"
        text = re.sub(known, _SIGN, text)
    text = _MENTION.sub(_MENTIONED, text)
    if is_command != ("/" in text) or (not is_command and _ADDRESSED.search(text)):
        return False
    return _APPROVAL.fullmatch(text) is not None


def _take_notes(text: str, commands: list[re.Match[str]]) -> str:
    """Return the comment without its commands."""
    for command in reversed(commands):
        text = text[: command.start()] + text[command.end() :]
    return text.strip(" \t\n:")


def _blank_inert(text: str) -> str:
    """Return a text of the same length with blanks in place of quotes, code and hidden text."""
    source, pieces, at = f"\n{text}", list[str](), 0
    tags: list[tuple[int, int]] = []
    for unit in split_units(source):
        size = len(unit.text) + (source[at] == "\n")
        piece = source[at : at + size]
        if unit.kind == "quote":
            piece = "\n".join(map(_blank_quoted, piece.split("\n")))
        elif unit.kind in ("line", "html"):
            tags += [(at + start, at + end) for start, end in _find_tags(unit.kind, piece)]
        else:
            piece = _blank(piece)
        pieces.append(piece)
        at += size
    # What follows a tag is not indented, although blanks replace the tag below.
    live = _INDENTED.sub(lambda found: _blank(found[0]), "".join(pieces))
    pieces, at = [], 0
    for start, end in tags:
        pieces += [live[at:start], _blank(live[start:end])]
        at = end
    return "".join([*pieces, live[at:]])[1:]


def _find_tags(kind: str, piece: str) -> list[tuple[int, int]]:
    """Return the spans of hidden text and code in a piece that is not wholly inert.

    A tag that is never closed is inert only from the start of a line.
    """
    if kind == "line":
        return [found.span() for found in _INLINE.finditer(piece)]
    tag = _TAG.search(piece) if piece.startswith("\n") else None
    if tag is None or (tag.end() == len(piece) and piece[: tag.start()].strip()):
        return []
    return [(tag.start(), len(piece))]


def _blank(text: str) -> str:
    return _NOT_BLANK.sub(" ", text)


def _blank_quoted(line: str) -> str:
    """Return blanks, or characters that spoil an approval if the line lacks the quote's mark.

    Such a line belongs to the quote, but its author may have forgotten a blank line before it.
    """
    if ">" in line[:12] or not line.strip():
        return _blank(line)
    return _NOT_BLANK.sub(_SLIPPED, line)


def has_own_marker(body: str) -> bool:
    """Return True if we wrote the comment: our hidden marker stands outside a quote."""
    if not _MARKER.search(body):
        return False
    return any(
        _MARKER.search(unit.text) for unit in split_units("\n" + body) if unit.kind != "quote"
    )


def format_reply_marker(mark: str) -> str:
    """Return the hidden marker of a reply, which prevents a second reply."""
    return f"<!-- interlock:asked-back {mark} -->"


def find_reply_marks(body: str) -> list[str]:
    """Return the marks of the comments that our comment replies to."""
    return _REPLIED.findall(body)
