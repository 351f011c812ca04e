"""Lines of a CI console, as the tool wrote them: without colours, clocks and level prefixes.

Knows what terminals and CI servers put around a line; knows no test framework. Long lines are cut,
so that a log without line ends takes no more memory than any other.
"""

import re
from collections.abc import Iterator
from typing import BinaryIO

ANSI = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b\n]*(?:\x07|\x1b\\)?|[@-Z\\^_=>])")
"""Colours, cursor moves and titles of a terminal."""

LINE_LIMIT = 65_536
"""Of a longer line only the beginning is read."""

_CLOCK = re.compile(
    r"\ufeff?(?:[^\t\n]{1,200}\t[^\t\n]{1,200}\t)?\[?\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d"
    r"(?:[.,]\d{1,9})?(?:Z|[+-]\d\d:?\d\d)?\]?[ ]?|\[?\d\d:\d\d:\d\d(?:\.\d{1,6})?\]?[ ]{1,2}"
)
_LEVELS = re.compile(
    r"(?:[ ]{0,8}\[(?:info|error|warn|warning|debug|junit|testng|exec|java|scalatest)\][ ]?){1,3}",
    re.IGNORECASE,
)


def plain(text: str) -> str:
    """`text` without a terminal's colours."""
    return ANSI.sub("", text) if "\x1b" in text else text


def unclocked(line: str) -> str:
    """A plain line without the time that a CI server put before it."""
    found = _CLOCK.match(line)
    return line[found.end() :] if found else line


def bare(line: str) -> str:
    """What the tool itself wrote: no colours, no clock, no level, no blanks at the end."""
    line = unclocked(plain(line))
    found = _LEVELS.match(line)
    return (line[found.end() :] if found else line).rstrip()


def lines_of(file: BinaryIO, limit: int = LINE_LIMIT) -> Iterator[str]:
    """The lines of a file, numbered as `\\n` ends them, each cut at `limit` bytes."""
    while raw := file.readline(limit):
        yield raw.decode("utf-8", "replace").rstrip("\r\n")
        while not raw.endswith(b"\n") and (raw := file.readline(limit)):
            pass
