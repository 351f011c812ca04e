"""Lines that were meant to be signals: a known name, or one that looks like it, behind markup.

Knows letters, marks and invisible characters. Refuses to know whether a line is live: it is asked
only when no legal signal was found, to say why.
"""

# ruff: noqa: RUF001 -- letters that look like others are the subject here

import re
import unicodedata
from collections import deque
from functools import cache
from typing import Final

from interlock.wire.grammar import WORDS

# Marks may run over several lines: what counts is that only marks stand before the name.
_MARKS: Final = (
    r"[^\w<\x1b\[]*+(?:(?=[<\x1b\[_\d])(?:[^\w<\x1b\[]++|\x1b\[[0-9;?]*+[A-Za-z]"
    r"|</?[A-Za-z][^<>\n]{0,200}+>|\[[xX]\]|\d{1,9}+[.)]|<+(?=<)|[<\x1b\[_])*+)?+"
)
# Letters of other scripts that are drawn like ours and that Unicode does not decompose.
_DRAWN_ALIKE: Final = {
    "A": "ΑАᎪꓮ",
    "B": "ΒВвᏴꓐ",
    "C": "СсϹᏟꓚⅭⅽ",
    "D": "ᎠꓓⅮⅾ",
    "E": "ΕЕеᎬꓰ",
    "F": "ϜꓝᖴғҒ",
    "G": "ԌᏀꓖɡ",
    "H": "ΗНнᎻꓧһҺ",
    "I": "ΙІіӀӏᏆꓲⅠⅰıιǀ",
    "K": "ΚКкᏦꓗ",
    "L": "ᏞꓡⅬⅼ",
    "M": "ΜМмᎷꓟⅯⅿ",
    "N": "Νꓠɴ",
    "O": "ΟОоοꓳՕօ",
    "P": "ΡРрρᏢꓑ",
    "Q": "Ԛԛ",
    "R": "ᎡꓣƦʀ",
    "S": "ЅѕᏚꓢՏ",
    "T": "ΤТтτᎢꓔ",
    "U": "Սսꓴυ",
    "V": "ѴѵᏙꓦⅤⅴν",
    "W": "ԜԝᎳꓪ",
    "X": "ΧХхχꓫⅩⅹ",
    "Y": "ΥҮУүуᎩꓬ",
}
_LETTER_RANGES: Final = (
    (0x00C0, 0x0250),
    (0x02B0, 0x02E4),
    (0x1D2C, 0x1D6B),
    (0x1E00, 0x1F00),
    (0x2071, 0x209D),
    (0x2100, 0x214F),
    (0x249C, 0x24EA),
    (0xFF21, 0xFF5B),
    (0x1D400, 0x1D6A6),
    (0x1F130, 0x1F14A),
)
_INVISIBLE: Final = (
    r"[\u00ad\u0300-\u036f\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180e\u200b-\u200f"
    r"\u202a-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0]*+"
)
_JOINTS: Final = (
    r"[-_ \t\u00a0\u00ad\u2000-\u200a\u2010-\u2015\u202f\u205f\u2212\u3000"
    r"\ufe58\ufe63\uff0d\uff3f]++"
)


@cache
def _letter(letter: str, folded: bool) -> str:
    ours = f"[{letter}{letter.lower()}]"
    if not folded:
        return ours
    drawn = _DRAWN_ALIKE.get(letter, "")
    for first, last in _LETTER_RANGES:
        drawn += "".join(c for c in map(chr, range(first, last)) if _base(c) == letter)
    return rf"(?:{ours}|(?=[^\x00-\x7f])[{drawn}])" if drawn else ours


def _base(character: str) -> str:
    plain = unicodedata.normalize("NFKD", character)
    return "".join(c for c in plain if not unicodedata.combining(c)).strip("()").upper()


def _name(word: str, folded: bool) -> str:
    if not folded:
        return r"[-_ \t]++".join(
            "".join(_letter(c, False) for c in part) for part in re.split("[_ ]", word)
        )
    joint = f"{_INVISIBLE}{_JOINTS}{_INVISIBLE}"
    return joint.join(
        _INVISIBLE.join(_letter(c, True) for c in part) for part in re.split("[_ ]", word)
    )


@cache
def _pattern(folded: bool) -> re.Pattern[str]:
    names = "|".join(_name(word, folded) for word in WORDS)
    first = "".join(sorted({word[0] + word[0].lower() for word in WORDS}))
    return re.compile(rf"\n{_MARKS}(?=[{first}]|[^\x00-\x7f])(?:{names})(?!\w)")


@cache
def _name_pattern(word: str, folded: bool) -> re.Pattern[str]:
    return re.compile(rf"\n{_MARKS}{_name(word, folded)}(?!\w)")


def last_lookalike(source: str) -> tuple[str, int] | None:
    """The name that was meant, and where, of the last line that looks like a signal."""
    folded = not source.isascii()
    found = deque(_pattern(folded).finditer(source), maxlen=1)
    if not found:
        return None
    start = source.rfind("\n", 0, found[0].end())
    words = (w for w in WORDS if _name_pattern(w, folded).match(source, start))
    return max(words, key=len), start
