"""The live words of a human comment, at their own places.

Knows Markdown, mail and HTML far enough to blank out what is quoted, code, struck out or a footer.
The result is as long as the comment, so places in it are places in the comment. Refuses to know
what any word means.
"""

# ruff: noqa: RUF001 -- quotes as people type them

import re
import string
from typing import Final

import msgspec

from interlock.signals.own_words import units

QUOTED: Final = "\x01"
"""Stands for each character of what is quoted, code, struck out, or a link's text."""
LINK: Final = "\x02"
SMILE: Final = "\x03"
"""Stands for a friendly sign; a sign that is not known to be friendly stays as it is."""

_LOWER: Final = str.maketrans(string.ascii_uppercase + "’‘ʼ", string.ascii_lowercase + "'''")
_MAIL: Final = re.compile(
    r"\n[ \t]*+(?:on [^\n]{4,200}(?:\n[^\n]{0,120})?\bwrote:|-{2,}[ ]?original message[ ]?-{2,}"
    r"|_{20,}|from: [^\n]{3,200}\n(?:sent|date|to|subject): )[\s\S]*",
    re.IGNORECASE,
)
_SIGNATURE: Final = re.compile(r"\n--[ \t]{0,3}\n(?P<foot>(?:[^\n]*+(?:\n|\Z)){1,12}?)\Z")
_SPEAKS: Final = re.compile(
    r"approv|lgtm|ship|proceed|\bnot?\b|n't|stop|halt|abort|cancel|wait|hold|fix|edit|updat|chang"
    r"|revis|reject|defer|pause|skip|please|but\b|unless|until|\bif\b|\?|/",
    re.IGNORECASE,
)
_FOOTER: Final = re.compile(
    r"\n[ \t]*+(?:sent from (?:my|mail|outlook|yahoo)\b|get outlook for"
    r"|reply to this email directly|you are receiving this because|(?:this"
    r"|the information in this) (?:e-?mail|message) [^\n]{0,80}\b(?:confidential|intended)"
    r"|message id: <)[^\n]*",
    re.IGNORECASE,
)
_INDENTED: Final = re.compile(
    r"(?:\A|\n[ \t]*)\n(?=(?: {4}| {0,3}\t)[ \t]*\S)"
    r"(?:\n?(?: {4}| {0,3}\t)[^\n]*|\n[ \t]*(?=\n))*"
)
_PLAIN_TAG: Final = re.compile(r"</?(?:b|i|em|strong|u|p|br|span|div|h[1-6]|sub|sup)[ \t]*/?>")
_INLINE: Final = re.compile(
    r"(?P<comment><!--(?:[^-]|-(?!->))*+-->)|(?P<quoted>``[^\n]{1,400}?``|`[^`\n]*+`|~~[^~\n]*+~~"
    r"|\"[^\"\n]{0,400}+\"|“[^”\n]{0,400}+”|«[^»\n]{0,400}+»|(?<!\w)'[^'\n]{1,120}+'(?!\w)"
    r"|(?<!!)\[[^\]\n]{0,300}+\]\([^)\n]{0,2000}+\)|<(?P<struck>s|del|strike|code|q"
    r"|kbd)>[^<\n]{0,2000}+</(?P=struck)>|</?[a-z][^<>\n]{0,300}+>)"
    r"|(?P<link>!\[[^\]\n]{0,300}+\]\([^)\n]{0,2000}+\)|<?https?://[^\s<>()]*[^\s<>().,!?;:]>?)"
)
_MARKS: Final = re.compile(r"(?<=\n)[ \t]*+(?:#{1,6}(?=[ \t])|[-+*](?=[ \t])|\d{1,3}[.)](?=[ \t]))")
_BOLD: Final = re.compile(r"(\*{1,3})(?=[^\s*])([^*\n]*[^\s*])(\1)")
_SLANTED: Final = re.compile(r"(?<![a-z0-9_])(_{1,3})(?=[^\s_])([^_\n]*[^\s_])(\1)(?![a-z0-9_])")
_FRIENDLY: Final = (
    "👍✅✔☑🚀🎉🚢🙌👏💯🙏😀😃😄😁😊🙂☺❤♥💚💙💜🧡⭐🌟🥳💪👌🤝😎🟢✨🏆🎊🤩😍🎈🥇💖🫡⛵🛳🏁➡"
)
_SMILES: Final = re.compile(
    rf"[{_FRIENDLY}](?:[\ufe0f\U0001f3fb-\U0001f3ff]|\u200d[\U0001f300-\U0001faff])*+"
    r"|:(?:\+1|thumbsup|shipit|ship|rocket|tada|white_check_mark|heavy_check_mark|100|clap"
    r"|raised_hands|heart|smile|smiley|blush|pray|ok_hand|sparkles|star|muscle|partying_face):"
    r"|(?<![\w:]):-?[)D](?![\w)])"
)
_BREAKS: Final = re.compile(r"<(?:br|p|div|h[1-6])[ \t]*/?>")


class Words(msgspec.Struct, frozen=True):
    """The comment in small letters with blanks for what does not count, and its doubtful lines."""

    text: str
    lazy: tuple[tuple[int, int], ...] = ()
    """Lines that slipped into a quote by laziness: they can hold work back, never let it pass."""


def words_of(comment: str) -> Words:
    """What a human said with their own words in this comment."""
    text = comment.replace("\r\n", " \n")
    if text.startswith("\ufeff"):
        text = " " + text[1:]
    text = _without_mail("\n" + text)
    text, lazy = _without_blocks(text)
    text = _INDENTED.sub(lambda found: _blank(found[0]), text)
    text = _SMILES.sub(lambda found: SMILE * len(found[0]), text).translate(_LOWER)
    text = _BREAKS.sub(lambda found: "\n" + " " * (len(found[0]) - 1), text)
    text = _PLAIN_TAG.sub(lambda found: " " * len(found[0]), text)
    text = _INLINE.sub(_hide, text)
    for emphasis in (_BOLD, _SLANTED):
        text = emphasis.sub(lambda found: _blank(found[1]) + found[2] + _blank(found[3]), text)
    text = _MARKS.sub(lambda found: " " * len(found[0]), text)
    return Words(text[1:], tuple((start - 1, stop - 1) for start, stop in lazy))


def _without_mail(text: str) -> str:
    """The mail that is answered, footers and a signature are not this comment's words."""
    text = _MAIL.sub(lambda found: _blank(found[0]), text)
    text = _FOOTER.sub(lambda found: _blank(found[0]), text)
    foot = _SIGNATURE.search(text)
    if foot and not _SPEAKS.search(foot["foot"]):
        text = text[: foot.start()] + _blank(foot[0])
    return text


def _without_blocks(text: str) -> tuple[str, list[tuple[int, int]]]:
    pieces, lazy, at = list[str](), list[tuple[int, int]](), 0
    for unit in units(text):
        stop = at + len(unit.text) + (text[at] == "\n")
        piece = text[at:stop]
        if unit.kind == "quote":
            piece, late = _lazy_lines(piece)
            lazy += [(at + start, at + end) for start, end in late]
        elif unit.kind == "html":
            head = re.match(r"\n[^<\n]*", piece)
            live = head[0] if head else "" if "<" in piece else piece
            piece = live + _blank(piece[len(live) :])
        elif unit.kind != "line":
            piece = _blank(piece)
        pieces.append(piece)
        at = stop
    return "".join(pieces), lazy


def _lazy_lines(quote: str) -> tuple[str, list[tuple[int, int]]]:
    """The quote with nothing but the lines that continue it without its mark, and their places."""
    kept, places, at = list[str](), list[tuple[int, int]](), 0
    for line in quote.split("\n"):
        own = bool(line.strip()) and at > 0 and ">" not in line[:12]
        kept.append(line if own else " " * len(line))
        if own:
            places.append((at, at + len(line)))
        at += len(line) + 1
    return "\n".join(kept), places


def _blank(text: str) -> str:
    return re.sub(r"[^\n]", " ", text)


def _hide(found: re.Match[str]) -> str:
    if found["comment"]:
        return _blank(found[0])
    return (LINK if found["link"] else QUOTED) * len(found[0])
