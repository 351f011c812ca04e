"""The lines of a log that complain: a quick look for what went wrong, in one pass over any size.

Knows the words programs use when they fail. Refuses to weigh the lines: choosing evidence for a
reader is another file's work; this is what the judges of kinship, kind and culprit read.
"""

import re
from collections.abc import Iterator

MOST = 400
"""Lines from either end of the log; a log that complains more repeats itself."""
LONGEST = 600

_WORD = re.compile(
    r"ERROR|Error|\berror|FAIL|Fail|\bfail|Exception|\bexception|FATAL|Fatal|\bfatal|panic"
    r"|Caused by|\bE  |CRITICAL|Traceback|[Tt]imed out|[Tt]imeout|TIMEOUT|refused|REFUSED"
    r"|[Cc]annot |[Cc]ould not|Couldn't|[Uu]nable to|[Nn]ot found|\bmissing\b|denied|[Vv]iolat"
    r"|[Kk]illed|[Aa]bort|[Ii]nvalid|[Uu]nexpected|[Uu]ndefined|[Uu]nresolved|[Uu]nknown "
    r"|Expected|\bexpected|Tests run:|BUILD |does not|did not|must |requires |[Cc]onflict"
)
_QUIET = re.compile(
    r"^\[?(?:DEBUG|TRACE)\b|[Dd]ownload(?:ing|ed) |\b0 (?:errors|failures|failed)\b"
    r"|Failures: 0, Errors: 0\b"
)


def complaints(log: str, most: int = MOST) -> list[str]:
    """The complaining lines in their order: the first and the last of them, where there are many."""
    found = list(_lines(log, most * 50))
    if len(found) > most:
        found = found[: most // 2] + found[-(most - most // 2) :]
    return found


def _lines(log: str, enough: int) -> Iterator[str]:
    at, count = 0, 0
    while count < enough and (word := _WORD.search(log, at)):
        start = log.rfind("\n", at, word.start()) + 1 or at
        stop = log.find("\n", word.end())
        at = stop + 1 if stop >= 0 else len(log) + 1
        line = log[start : min(at - 1, start + LONGEST)].strip()
        if line and not _QUIET.search(line):
            count += 1
            yield line
