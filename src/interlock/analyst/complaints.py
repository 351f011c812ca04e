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


_NOISE = re.compile(
    r"[Dd]ownload(?:ing|ed)\b|^Progress|is present in the local repository|Plugin validation"
    r"|^\[ERROR\] (?:\[Help|Re-run|To see|For more|After correcting)|^\[WARNING\] (?:The POM|The art"
    r"ifact|Parameter)|^\[?(?:DEBUG|TRACE)\b"
)
"""What build tools say whatever happens."""
_INFORMING = re.compile(r"^(?:\[[\w .:-]+\] )?\[?INFO\b")
_FOLLOWING = 40


def told(log: str, most: int = 3_000) -> list[str]:
    """The complaints with what stands under them: traces, trees, details. Read by suspects."""
    found: list[str] = []
    following = 0
    for line in log.split("\n"):
        if _NOISE.search(line):
            continue
        if _INFORMING.match(line):
            following = 0
        elif _WORD.search(line) and not _QUIET.search(line):
            following = _FOLLOWING
            found.append(line[: 2 * LONGEST])
        elif following:
            following = following - 1 if line.strip() else min(following, 2)
            found.append(line[: 2 * LONGEST])
        if len(found) >= most:
            break
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
