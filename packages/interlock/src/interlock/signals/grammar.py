"""Match the first line of a text signal by patterns built from the catalogue.

Also finds lines that were meant as signals: a known name, or one that resembles it in other letters
or behind markup. These are only searched when no legal signal was found, to say why. `own_words`
and `text` judge where a line stands and who said it.
"""

import re
import unicodedata
from collections import deque
from functools import cache, lru_cache
from operator import itemgetter
from typing import Final

import msgspec

from interlock.signals.catalogue import SignalRow, find_signal, list_signals
from interlock.signals.own_words import LiveLines

LONGEST_ID: Final = 128
_ID_CHARACTER: Final = r"[A-Za-z0-9._/#-]"
ID: Final = rf"[A-Za-z0-9]{_ID_CHARACTER}{{0,{LONGEST_ID - 1}}}+"
_PATH: Final = r"(?!\[[^\]\n]*\][ \t]*+(?=\n|\Z))[^\s\x00-\x1f\x7f][^\x00-\x08\x0a-\x1f\x7f]*+"
_BLANK: Final = r"[ \t]++"
_NONCE: Final = re.compile(r"[ \t]+\[dispatch ([A-Za-z0-9._-]{1,128})\][ \t]*$")
_NONCE_TAIL: Final = r"(?:[ \t]++\[dispatch [A-Za-z0-9._-]{1,128}+\])?+"


def _build_line_pattern(row: SignalRow) -> str:
    if row.subject == "path":
        return rf"{row.word}:{_BLANK}{_PATH}"
    return _build_untagged_pattern(row) + _NONCE_TAIL


def _build_untagged_pattern(row: SignalRow) -> str:
    value = "" if row.name == row.word else row.name.partition(": ")[2]
    value = ID if row.subject else value
    return rf"{row.word}:{_BLANK}{value}" if value else row.word


_ROWS: Final = tuple(row for row in list_signals("text") if row.key != "unknown")
_UNTAGGED: Final = "|".join(_build_untagged_pattern(row) for row in _ROWS if row.subject != "path")
SIGNAL_WORDS: Final = tuple(dict.fromkeys(row.word for row in _ROWS))
_NAMES: Final = "|".join(sorted(SIGNAL_WORDS, key=len, reverse=True))
_LEGAL: Final = "|".join(_build_line_pattern(row) for row in _ROWS)

SIGNALS: Final = LiveLines(_LEGAL)
MALFORMED: Final = LiveLines(rf"(?!(?:{_LEGAL})[ \t]*+(?=\n|\Z))(?:{_NAMES})(?!\w)[^\n]*+")
UNKNOWN: Final = LiveLines(r"[A-Z][A-Z0-9]*+(?:_[A-Z0-9]++)++(?::[^\n]*+)?+")
SAGE_LINES: Final = LiveLines(r"SAGE_SIGNAL:[^\n]*+")
_NAMED: Final = re.compile(rf"(?<!\w)(?:{_NAMES})(?!\w)")


def tag_nonce(source: str, nonce: str) -> str:
    """Rewrite this nonce, in any form on a signal line, to the one form we parse."""
    mark = rf"[\[(]?(?i:dispatch)?[:=]?[ \t]*{re.escape(nonce)}[\])]?"
    line = re.compile(rf"(\n(?:{_UNTAGGED}))[ \t]+{mark}[ \t]*(?=\n|\Z)")
    return line.sub(lambda found: f"{found[1]} [dispatch {nonce}]", source)


class SignalName(msgspec.Struct, frozen=True):
    """One legal signal line, as it was written."""

    row: SignalRow
    subject: str | None
    nonce: str | None
    start: int
    end: int


def parse_signal_line(line: re.Match[str]) -> SignalName:
    """Parse a line that SIGNALS has found."""
    return SignalName(*_parse_words(line[0].strip(" \t\n")), line.start(), line.end())


@lru_cache(maxsize=1024)
def _parse_words(words: str) -> tuple[SignalRow, str | None, str | None]:
    tag = _NONCE.search(words)
    words = words[: tag.start()] if tag else words
    word, _, value = words.partition(":")
    value = value.strip(" \t")
    row = find_signal("text", word) or find_signal("text", f"{word}: {value}")
    if row is None:
        raise LookupError(words)
    subject = (value.strip("`") if row.subject == "path" else value) if row.subject else None
    return row, subject, tag[1] if tag else None


def has_signal_name(source: str) -> bool:
    """Return True if any known name stands anywhere, even in the middle of a line."""
    return any(word in source for word in SIGNAL_WORDS) and bool(_NAMED.search(source))


def is_outside_workspace(path: str) -> bool:
    """Return True if the text of a relative path leads out of its workspace."""
    if path.startswith(("/", "~", "\\")) or re.match(r"[A-Za-z]:", path) or "://" in path:
        return True
    depth = 0
    for part in re.split(r"[/\\]", path):
        depth += {"..": -1, ".": 0, "": 0}.get(part, 1)
        if depth < 0:
            return True
    return False


# ruff: noqa: RUF001 -- letters that look like others are the subject here


_MARKS: Final = (
    r"[^\w\n<\x1b\[]*+(?:(?=[<\x1b\[_\d])(?:[^\w\n<\x1b\[]++|\x1b\[[0-9;?]*+[A-Za-z]"
    r"|</?[A-Za-z][^<>\n]{0,200}+>|\[[xX]\]|\d{1,9}+[.)]|<+(?=<)|[<\x1b\[_])*+)?+"
)
_FOREIGN_LINE: Final = re.compile(r"\n[\x00-\x09\x0b-\x7f]*+[^\x00-\x7f]")
_LONGEST_NAME: Final = 160
_SHORT_LINE: Final = 16
_MOST_TRIES: Final = 16
_FIRST_PART: Final = 1 << 16
# Letters of other scripts that look like ours and that Unicode does not decompose.
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
def _build_folding() -> dict[int, str | None]:
    """Return a table from characters that look like our letters, joints or nothing to those."""
    table: dict[int, str | None] = {}
    for first, last in _LETTER_RANGES:
        table.update(
            {code: base for code in range(first, last) if len(base := _fold_letter(chr(code))) == 1}
        )
    for letter, drawn in _DRAWN_ALIKE.items():
        table.update(dict.fromkeys(map(ord, drawn), letter))
    for first, last in _INVISIBLE:
        table.update(dict.fromkeys(range(first, last)))
    table.update(dict.fromkeys(map(ord, _INVISIBLE_SINGLES)))
    joints = [*range(0x2000, 0x200B), *range(0x2010, 0x2016), *map(ord, _JOINTS)]
    table.update(dict.fromkeys(joints, " "))
    return table


def _fold_letter(character: str) -> str:
    plain = unicodedata.normalize("NFKD", character)
    return "".join(c for c in plain if not unicodedata.combining(c)).strip("()").upper()


def _build_name_pattern(word: str) -> str:
    parts = ("".join(f"[{c}{c.lower()}]" for c in part) for part in re.split("[_ ]", word))
    return r"[-_ \t]++".join(parts)


_FIRST: Final = "|".join(sorted({_build_name_pattern(word[:2]) for word in SIGNAL_WORDS}))
_LOOKALIKES: Final = "|".join(f"({_build_name_pattern(word)})" for word in SIGNAL_WORDS)
_PATTERN: Final = re.compile(rf"\n{_MARKS}(?={_FIRST})(?:{_LOOKALIKES})(?!\w)")
_PARTS: Final = sorted({max(re.split("[_ ]", word), key=len) for word in SIGNAL_WORDS})
_MARKS_RE: Final = re.compile(rf"\n{_MARKS}")


def find_last_lookalike(source: str) -> tuple[str, int] | None:
    """Return the intended name and the position of the last line that looks like a signal."""
    plain = _find_last_plain(source)
    folded = None if source.isascii() else _find_last_folded(source)
    return max(filter(None, (plain, folded)), key=itemgetter(1), default=None)


def _find_last_plain(source: str) -> tuple[str, int] | None:
    found = None
    if source.isascii() and source.count("\n") * _SHORT_LINE > len(source):
        found = _search_from_end(source, source.upper())
    if found is None:
        found = _find_last_match(source)
    return (_get_word(found[-1]), found[-1].start()) if found else None


def _find_last_match(source: str) -> list[re.Match[str]]:
    """Return the last match, searching ever larger parts of the end; no match crosses a line."""
    size = _FIRST_PART
    while True:
        start = max(0, source.rfind("\n", 0, max(0, len(source) - size) + 1))
        found = deque(_PATTERN.finditer(source, start), maxlen=1)
        if found or start == 0:
            return list(found)
        size *= 8


def _search_from_end(source: str, capital: str) -> list[re.Match[str]] | None:
    """Search only lines that hold a part of a name; return None if there are too many.

    This is faster where lines are many and short.
    """
    found = []
    for part in _PARTS:
        end = len(capital)
        for _ in range(_MOST_TRIES):
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


def _find_last_folded(source: str) -> tuple[str, int] | None:
    """Search lines with foreign letters, which the plain pattern cannot match."""
    last = None
    for line in _FOREIGN_LINE.finditer(source):
        marks = _MARKS_RE.match(source, line.start())
        start = marks.end() if marks else line.end()
        name = source[start : start + _LONGEST_NAME].partition("\n")[0].translate(_build_folding())
        if meant := _PATTERN.match(f"\n{name}"):
            last = _get_word(meant), line.start()
    return last


def _get_word(meant: re.Match[str]) -> str:
    return SIGNAL_WORDS[(meant.lastindex or 1) - 1]


def guess_signal(text: str) -> tuple[str, str] | None:
    """Return the name that a text starts with or resembles, and the rest of the text."""
    plain = text if text.isascii() else text.translate(_build_folding())
    meant = _PATTERN.match(f"\n{plain}")
    return (_get_word(meant), plain[meant.end() - 1 :]) if meant else None
