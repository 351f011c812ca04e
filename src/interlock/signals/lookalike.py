"""Lines that were meant to be signals: a known name, or one that looks like it, behind markup.

Knows letters, marks and invisible characters. Refuses to know whether a line is live: it is asked
only when no legal signal was found, to say why.
"""

# ruff: noqa: RUF001 -- letters that look like others are the subject here

import re
import unicodedata
from collections import deque
from functools import cache
from operator import itemgetter
from typing import Final

from interlock.signals.grammar import WORDS

_MARKS: Final = (
    r"[^\w\n<\x1b\[]*+(?:(?=[<\x1b\[_\d])(?:[^\w\n<\x1b\[]++|\x1b\[[0-9;?]*+[A-Za-z]"
    r"|</?[A-Za-z][^<>\n]{0,200}+>|\[[xX]\]|\d{1,9}+[.)]|<+(?=<)|[<\x1b\[_])*+)?+"
)
_FOREIGN_LINE: Final = re.compile(r"\n[\x00-\x09\x0b-\x7f]*+[^\x00-\x7f]")
_LONGEST_NAME: Final = 160
_SHORT_LINE: Final = 16
_MOST_LOOKS: Final = 16
_FIRST_PART: Final = 1 << 16
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
    (0x0300, 0x0370),
    (0x115F, 0x1161),
    (0x17B4, 0x17B6),
    (0x180B, 0x180F),
    (0x200B, 0x2010),
    (0x202A, 0x202F),
    (0x2060, 0x2070),
    (0xFE00, 0xFE10),
)
_INVISIBLE_SINGLES: Final = "\u00ad\u061c\u3164\ufeff\uffa0"
_JOINTS: Final = "\u00a0\u202f\u205f\u2212\u3000\ufe58\ufe63\uff0d\uff3f"


@cache
def _folding() -> dict[int, str | None]:
    """Every character that looks like a letter or joint of ours, or like nothing."""
    table: dict[int, str | None] = {}
    for first, last in _LETTER_RANGES:
        table.update(
            {code: base for code in range(first, last) if len(base := _base(chr(code))) == 1}
        )
    for letter, drawn in _DRAWN_ALIKE.items():
        table.update(dict.fromkeys(map(ord, drawn), letter))
    for first, last in _INVISIBLE:
        table.update(dict.fromkeys(range(first, last)))
    table.update(dict.fromkeys(map(ord, _INVISIBLE_SINGLES)))
    joints = [*range(0x2000, 0x200B), *range(0x2010, 0x2016), *map(ord, _JOINTS)]
    table.update(dict.fromkeys(joints, " "))
    return table


def _base(character: str) -> str:
    plain = unicodedata.normalize("NFKD", character)
    return "".join(c for c in plain if not unicodedata.combining(c)).strip("()").upper()


def _name(word: str) -> str:
    parts = ("".join(f"[{c}{c.lower()}]" for c in part) for part in re.split("[_ ]", word))
    return r"[-_ \t]++".join(parts)


_FIRST: Final = "|".join(sorted({_name(word[:2]) for word in WORDS}))
_NAMES: Final = "|".join(f"({_name(word)})" for word in WORDS)
_PATTERN: Final = re.compile(rf"\n{_MARKS}(?={_FIRST})(?:{_NAMES})(?!\w)")
_PARTS: Final = sorted({max(re.split("[_ ]", word), key=len) for word in WORDS})
_MARKS_RE: Final = re.compile(rf"\n{_MARKS}")


def last_lookalike(source: str) -> tuple[str, int] | None:
    """The name that was meant, and where, of the last line that looks like a signal."""
    plain = _last_plain(source)
    folded = None if source.isascii() else _last_folded(source)
    return max(filter(None, (plain, folded)), key=itemgetter(1), default=None)


def _last_plain(source: str) -> tuple[str, int] | None:
    found = None
    if source.isascii() and source.count("\n") * _SHORT_LINE > len(source):
        found = _from_the_end(source, source.upper())
    if found is None:
        found = _last_match(source)
    return (_word(found[-1]), found[-1].start()) if found else None


def _last_match(source: str) -> list[re.Match[str]]:
    """The last match, looked for in ever larger parts of the end; no match crosses a line."""
    size = _FIRST_PART
    while True:
        start = max(0, source.rfind("\n", 0, max(0, len(source) - size) + 1))
        found = deque(_PATTERN.finditer(source, start), maxlen=1)
        if found or start == 0:
            return list(found)
        size *= 8


def _from_the_end(source: str, capital: str) -> list[re.Match[str]] | None:
    """Where lines are many and short, look only at those that hold a part of a name; None if
    these are too many to be worth it."""
    found = []
    for part in _PARTS:
        end = len(capital)
        for _ in range(_MOST_LOOKS):
            start = source.rfind("\n", 0, max(0, capital.rfind(part, 0, end)))
            if start < 0:
                break
            if meant := _PATTERN.match(source, start):
                found.append(meant)
                break
            end = start
        else:
            return None
    return sorted(found, key=re.Match.start)


def _last_folded(source: str) -> tuple[str, int] | None:
    """Only lines with letters that are not ours can hold what the plain pattern does not see."""
    last = None
    for line in _FOREIGN_LINE.finditer(source):
        marks = _MARKS_RE.match(source, line.start())
        start = marks.end() if marks else line.end()
        name = source[start : start + _LONGEST_NAME].partition("\n")[0].translate(_folding())
        if meant := _PATTERN.match(f"\n{name}"):
            last = _word(meant), line.start()
    return last


def _word(meant: re.Match[str]) -> str:
    return WORDS[(meant.lastindex or 1) - 1]


def meant_by(text: str) -> tuple[str, str] | None:
    """The name that a text starts with, or that it looks like, and what follows it."""
    plain = text if text.isascii() else text.translate(_folding())
    meant = _PATTERN.match(f"\n{plain}")
    return (_word(meant), plain[meant.end() - 1 :]) if meant else None
