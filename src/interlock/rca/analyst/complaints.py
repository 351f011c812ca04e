"""The lines of a log that complain: a quick look for what went wrong, in one pass over any size.

Knows the words programs use when they fail. Refuses to weigh the lines: choosing evidence for a
reader is another file's work; this is what the judges of kinship, kind and culprit read.
"""

import re

MOST = 400
"""Lines from either end of the log; a log that complains more repeats itself."""
LONGEST = 600
_LOOKED_AT = 4_000
"""A line without end is judged by its beginning."""

_WORD = re.compile(
    r"ERROR|Error|\berror|FAIL|Fail|\bfail|Exception|\bexception|FATAL|Fatal|\bfatal|panic"
    r"|Caused by|\bE  |CRITICAL|Traceback|[Tt]imed out|[Tt]imeout|TIMEOUT|refused|REFUSED"
    r"|[Cc]annot |[Cc]ould not|Couldn't|[Uu]nable to|[Nn]ot found|\bmissing\b|denied|[Vv]iolat"
    r"|[Kk]illed|[Aa]bort|[Ii]nvalid|[Uu]nexpected|[Uu]ndefined|[Uu]nresolved|[Uu]nknown "
    r"|Expected|\bexpected|Tests run:|BUILD |does not|did not|must |requires |[Cc]onflict"
)
_HINTS = (
    *("rror", "RROR", "ail", "AIL", "xception", "atal", "ATAL", "panic", "aused by", "E  "),
    *("CRITICAL", "raceback", "imed out", "imeout", "IMEOUT", "efused", "EFUSED", "annot "),
    *("ould", "nable to", "ot found", "issing", "enied", "iolat", "illed", "bort", "nvalid"),
    *("xpected", "ndefined", "nresolved", "nknown ", "ests run:", "BUILD ", "does not"),
    *("did not", "must ", "requires ", "onflict"),
)
"""What a line must hold to be worth the pattern: plain text is found ten times as fast."""
_QUIET = re.compile(
    r"^\[?(?:DEBUG|TRACE)\b|[Dd]ownload(?:ing|ed) |\b0 (?:errors|failures|failed)\b"
    r"|Failures: 0, Errors: 0\b"
)


def complaints(log: str, most: int = MOST) -> list[str]:
    """The complaining lines in their order; of many, the first and the last."""
    found = [line[:LONGEST].strip() for line in log.split("\n") if _complains(line)]
    if len(found) > most:
        found = found[: most // 2] + found[-(most - most // 2) :]
    return found


_NOISE = re.compile(
    r"[Dd]ownload(?:ing|ed)\b|^Progress|is present in the local repository|Plugin validation"
    r"|^\[ERROR\] (?:\[Help|Re-run|To see|For more|After correcting)"
    r"|^\[WARNING\] (?:The POM|The artifact|Parameter)|^\[?(?:DEBUG|TRACE)\b"
)
"""What build tools say whatever happens."""
_INFORMING = re.compile(r"^(?:\[[\w .:-]+\] )?\[?INFO\b")
_FOLLOWING = 40


def told(log: str, most: int = 3_000) -> list[str]:
    """The complaints with what stands under them: traces, trees, details. Read by suspects."""
    found: list[str] = []
    following = 0
    for line in log.split("\n"):
        if _NOISE.search(line[:_LOOKED_AT]):
            continue
        if _INFORMING.match(line):
            following = 0
        elif _complains(line):
            following = _FOLLOWING
            found.append(line[: 2 * LONGEST])
        elif following:
            following = following - 1 if line.strip() else min(following, 2)
            found.append(line[: 2 * LONGEST])
        if len(found) >= most:
            break
    return found


_LOUD = re.compile(
    r"^\W{0,3}(?:ERROR|FATAL|SEVERE|CRITICAL|E\b|FAIL(?:ED|URE)?\b|error\b|fatal\b|panic)"
    r"|(?:^|\s)(?:ERROR|FATAL)\b|\b(?:error|fatal):|<<< |Caused by|BUILD FAIL"
)


def loudest(log: str, most: int = 200) -> list[str]:
    """Distinct complaints at the level of errors; where nobody shouts, all complaints."""
    lines = [line for line in complaints(log, 2_000) if not _NOISE.search(line)]
    shouted = [line for line in lines if _LOUD.search(line)]
    return list(dict.fromkeys(shouted or lines))[:most]


def _complains(line: str) -> bool:
    for hint in _HINTS:
        if hint in line:
            return _WORD.search(line[:_LOOKED_AT]) is not None and not _QUIET.search(
                line[:_LOOKED_AT]
            )
    return False
