"""A human's comment: which of its words are its own, and the slash commands among them.

Quotes, code, hidden text and friendly signs are inert. A command stands at the start of a line of
its own words. What a command means is up to whoever reads the comment; who wrote it, and whether
they have the right, too.
"""

# ruff: noqa: RUF001 -- dashes and apostrophes as people type them

import re
import string
from typing import Final

import msgspec

from interlock.signals.own_words import split_units

LONGEST: Final = 65_536
"""Characters of a comment that is read; GitHub accepts no longer ones."""
_MARKER: Final = re.compile(r"<!--\s*interlock\b", re.IGNORECASE)
_REPLIED: Final = re.compile(r"<!--\s*interlock:asked-back (\S{1,80})\s*-->")
DOUBTS: Final = """
no not never none nothing nobody neither nor nope nah without cannot cant dont wont isnt hardly
if unless until till once when whenever after before provided assuming pending subject only first
then conditional conditionally depends depending contingent except excluding apart but however
though although yet still otherwise instead rather maybe perhaps probably mostly partly partially
almost hm hmm unsure doubt doubts concern concerns worried guess suppose seems hope should must need
needs could would fix fixes change changes rename remove revise rework replace check missing wrong
broken breaks fail fails failed failing failure bug bugs typo todo blocking blocker wait hold stop
halt abort cancel defer postpone pause skip later tomorrow next second half part some scratch
nevermind nvm oops sorry kidding joking joke lol jk sarcasm ignore disregard test testing
nicht kein keine aber nur wenn ohne pas mais sauf pero sin solo excepto ma senza
"""
"""Words that may be meant against a command beside them, or against somebody else's approval."""
_DOUBT: Final = re.compile(
    rf"\?|\.\.|…|n't\b|(?<![\w'])(?:{'|'.join(DOUBTS.split())})(?![\w'])"
    r"|(?<![\w'])please[ \t]+(?!go[ \t]+ahead|proceed|ship)"
)
_FRIENDLY: Final = "👍✅✔☑🚀🎉🚢🙌👏💯🙏😀😃😄😁😊🙂☺❤♥💚💙💜⭐🌟🥳💪👌🤝✨🏆🎊"
_SHORTCODES: Final = r"\+1|thumbsup|shipit|ship|rocket|tada|white_check_mark|100|clap|heart|smile"
_COMMAND: Final = re.compile(r"^ {0,3}/(?P<word>[a-z][\w-]*)(?P<rest>[^\n]*)$", re.MULTILINE)
_SMILE: Final = re.compile(
    rf"[{_FRIENDLY}](?:[\ufe0f\U0001f3fb-\U0001f3ff]|\u200d[\U0001f300-\U0001faff])*+"
    rf"|:(?:{_SHORTCODES}):|(?<![\w:]):-?[)D](?![\w)])"
)
_MAIL: Final = re.compile(
    r"\nOn [A-Z][a-z]{2}, [A-Za-z0-9 ,]{5,30} at \d?\d:\d\d[^\n]{0,100}\s+wrote:(?=\s*\n>)"
)
"""How a mail program opens the quote of the mail that is answered."""
_INDENTED: Final = re.compile(
    r"(?:\A|\n[ \t]*)\n(?=(?: {4}| {0,3}\t)[ \t]*\S)"
    r"(?:\n?(?: {4}| {0,3}\t)[^\n]*|\n[ \t]*(?=\n))*"
)
_HIDDEN: Final = re.compile(r"<!--(?:[^-\n]|-(?!->)){0,2000}+-->")
_EMPHASIS: Final = re.compile(r"(?<![\w*])([*_]{1,3})(?=\S)([^*_\n]{1,200}?)(?<=\S)(\1)(?![\w*])")
_MARKS: Final = re.compile(r"(?<=\n)[ \t]*+(?:#{1,6}(?=[ \t])|[-+*](?=[ \t])|\d{1,3}[.)](?=[ \t]))")
_PLAIN: Final = str.maketrans(string.ascii_uppercase + "’‘ʼ–—", string.ascii_lowercase + "'''--")


class CommentCommand(msgspec.Struct, frozen=True):
    """A slash word at the start of a line."""

    word: str
    start: int
    end: int
    stop: int
    """Where the text ends that belongs to it: its line, and lines that go on in lower case."""
    is_marked: bool
    """It stands behind a list's mark, so not at the start of its line."""


class LiveText(msgspec.Struct, frozen=True):
    """A comment's own words in lower case, and blanks in place of everything inert: as long as the
    comment, so that places in it are places in the comment."""

    text: str
    is_doubtful: bool
    """A line slipped into a quote because the blank line was forgotten, or is indented like code.
    Nobody can tell whether it was meant."""


def find_live_text(comment: str, request_id: str = "") -> LiveText:
    """The comment without quotes, code, hidden text, friendly signs and this request's id."""
    text = "\n" + comment.replace("\r\n", " \n")
    text = text.replace("\ufeff", " ", 1) if comment.startswith("\ufeff") else text
    text = _MAIL.sub(_blank_match, text)
    text, is_doubtful = _blank_blocks(text)
    is_doubtful = is_doubtful or _INDENTED.search(text) is not None
    for inert in (_INDENTED, _HIDDEN, _SMILE):
        text = inert.sub(_blank_match, text)
    text = text.translate(_PLAIN)
    text = _EMPHASIS.sub(lambda hit: _blank(hit[1]) + hit[2] + _blank(hit[3]), text)
    text = _MARKS.sub(_blank_match, text)
    if request_id:
        name = re.escape(request_id.translate(_PLAIN))
        known = rf"(?<![\w#-])(?:(?:for )?(?:the )?request )?#?{name}(?![\w-])"
        text = re.sub(known, _blank_match, text)
    return LiveText(text[1:], is_doubtful)


def find_commands(text: str, comment: str) -> list[CommentCommand]:
    """The slash words of the live text; a path is none."""
    found = []
    for hit in _COMMAND.finditer(text):
        if re.match(r"[/.]\w", hit["rest"]):
            continue
        start, stop = hit.start("word") - 1, hit.end()
        while comment[stop : stop + 1] == "\n" and comment[stop + 1 : stop + 2].islower():
            stop = max(text.find("\n", stop + 1), 0) or len(text)
        is_marked = bool(comment[hit.start() : start].strip(" \ufeff"))
        found.append(CommentCommand(hit["word"], start, hit.end("word"), stop, is_marked))
    return found


def find_doubt(text: str) -> re.Match[str] | None:
    """The first word of live text that could be meant against a command in it."""
    return _DOUBT.search(text)


def is_doubt(word: str) -> bool:
    return _DOUBT.fullmatch(word) is not None


def _blank_blocks(text: str) -> tuple[str, bool]:
    """The text without its inert blocks, and whether a quote has lines without its mark."""
    pieces, has_lazy_lines, at = list[str](), False, 0
    for unit in split_units(text):
        piece = text[at : at + len(unit.text) + (text[at] == "\n")]
        at += len(piece)
        if unit.kind == "quote":
            lines = [(line, ">" not in line[:12] and line.strip()) for line in piece.split("\n")]
            has_lazy_lines = has_lazy_lines or any(own for _, own in lines)
            piece = "\n".join(line if own else _blank(line) for line, own in lines)
        elif unit.kind == "html":
            # Text on the line before the tag opens is live.
            head = re.match(r"\n[^<\n]*", piece)
            before = head[0] if head else "" if "<" in piece else piece
            piece = before + _blank(piece[len(before) :])
        elif unit.kind != "line":
            piece = _blank(piece)
        pieces.append(piece)
    return "".join(pieces), has_lazy_lines


def _blank(text: str) -> str:
    return re.sub(r"[^\n]", " ", text)


def blank_range(text: str, start: int, end: int) -> str:
    return text[:start] + _blank(text[start:end]) + text[end:]


def _blank_match(hit: re.Match[str]) -> str:
    return _blank(hit[0])


def has_own_marker(body: str) -> bool:
    """Whether we wrote this: our hidden marker is outside a quote."""
    if not _MARKER.search(body):
        return False
    return any(
        _MARKER.search(unit.text) for unit in split_units("\n" + body) if unit.kind != "quote"
    )


def format_reply_marker(mark: str) -> str:
    """The hidden marker of our reply: what it replies to is not replied to again."""
    return f"<!-- interlock:asked-back {mark} -->"


def find_reply_marks(body: str) -> list[str]:
    """What a comment of ours replies to."""
    return _REPLIED.findall(body)
