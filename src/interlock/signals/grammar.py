"""The first line of a text signal as patterns, built from the catalogue.

Knows what a legal line is, what an unknown name looks like, and what an id may contain.
Refuses to know where in a message a line stands or who said it.
"""

import re
from functools import lru_cache
from typing import Final

import msgspec

from interlock.signals.catalogue import row_of, rows
from interlock.signals.columns import SignalRow
from interlock.signals.own_words import LiveLines

LONGEST_ID: Final = 128
_ID_CHARACTER: Final = r"[A-Za-z0-9._/#-]"
ID: Final = rf"[A-Za-z0-9]{_ID_CHARACTER}{{0,{LONGEST_ID - 1}}}+"
_PATH: Final = r"(?!\[[^\]\n]*\][ \t]*+(?=\n|\Z))[^\s\x00-\x1f\x7f][^\x00-\x08\x0a-\x1f\x7f]*+"
_BLANK: Final = r"[ \t]++"
_NONCE: Final = re.compile(r"[ \t]+\[dispatch ([A-Za-z0-9._-]{1,128})\][ \t]*$")
_NONCE_TAIL: Final = r"(?:[ \t]++\[dispatch [A-Za-z0-9._-]{1,128}+\])?+"


def _line_pattern(row: SignalRow) -> str:
    if row.subject == "path":
        return rf"{row.word}:{_BLANK}{_PATH}"
    return _untagged(row) + _NONCE_TAIL


def _untagged(row: SignalRow) -> str:
    value = "" if row.name == row.word else row.name.partition(": ")[2]
    value = ID if row.subject else value
    return rf"{row.word}:{_BLANK}{value}" if value else row.word


_SAID: Final = tuple(row for row in rows("text") if row.key != "unknown")
_UNTAGGED: Final = "|".join(_untagged(row) for row in _SAID if row.subject != "path")
WORDS: Final = tuple(dict.fromkeys(row.word for row in _SAID))
_NAMES: Final = "|".join(sorted(WORDS, key=len, reverse=True))
_LEGAL: Final = "|".join(_line_pattern(row) for row in _SAID)

SIGNALS: Final = LiveLines(_LEGAL)
MALFORMED: Final = LiveLines(rf"(?!(?:{_LEGAL})[ \t]*+(?=\n|\Z))(?:{_NAMES})(?!\w)[^\n]*+")
UNKNOWN: Final = LiveLines(r"[A-Z][A-Z0-9]*+(?:_[A-Z0-9]++)++(?::[^\n]*+)?+")
SAGE_LINES: Final = LiveLines(r"SAGE_SIGNAL:[^\n]*+")
_NAMED: Final = re.compile(rf"(?<!\w)(?:{_NAMES})(?!\w)")


def tag_nonce(source: str, nonce: str) -> str:
    """The source with this nonce, where a signal line carries it in any form, in the one form."""
    mark = rf"[\[(]?(?i:dispatch)?[:=]?[ \t]*{re.escape(nonce)}[\])]?"
    line = re.compile(rf"(\n(?:{_UNTAGGED}))[ \t]+{mark}[ \t]*(?=\n|\Z)")
    return line.sub(lambda found: f"{found[1]} [dispatch {nonce}]", source)


class SignalName(msgspec.Struct, frozen=True):
    """One legal signal line, as it was said."""

    row: SignalRow
    subject: str | None
    nonce: str | None
    start: int
    end: int


def spoken(line: re.Match[str]) -> SignalName:
    """Read a line that SIGNALS has found."""
    return SignalName(*_read(line[0].strip(" \t\n")), line.start(), line.end())


@lru_cache(maxsize=1024)
def _read(words: str) -> tuple[SignalRow, str | None, str | None]:
    tag = _NONCE.search(words)
    words = words[: tag.start()] if tag else words
    word, _, value = words.partition(":")
    value = value.strip(" \t")
    row = row_of("text", word) or row_of("text", f"{word}: {value}")
    if row is None:
        raise LookupError(words)
    subject = (value.strip("`") if row.subject == "path" else value) if row.subject else None
    return row, subject, tag[1] if tag else None


def names_a_signal(source: str) -> bool:
    """Whether any known name stands anywhere, also in the middle of a line."""
    return any(word in source for word in WORDS) and bool(_NAMED.search(source))


def outside_workspace(path: str) -> bool:
    """Whether a path, by its letters alone, leads out of the workspace it is relative to."""
    if path.startswith(("/", "~", "\\")) or re.match(r"[A-Za-z]:", path) or "://" in path:
        return True
    depth = 0
    for part in re.split(r"[/\\]", path):
        depth += {"..": -1, ".": 0, "": 0}.get(part, 1)
        if depth < 0:
            return True
    return False
