"""Lines of a log: which of them complain, and which are only chatter.

`classify_line` looks at one line carefully, for choosing evidence. `find_complaints` and the like
search a whole log of any size in one fast pass, for those who compare failures or look for a
culprit. The words are those of languages, compilers, build tools and test frameworks in general.
"""

import re
from enum import IntEnum

from interlock.system.test_output.counts import strip_clock
from interlock.system.text import strip_colours


class LineKind(IntEnum):
    """From noise to the plainest complaint."""

    EMPTY = 0
    """Nothing, or a rule of dashes."""
    QUIET = 1
    """Progress, settings, information, warnings."""
    PLAIN = 2
    """Says nothing by itself; may belong to a complaint above it."""
    HEADLINE = 3
    """Says that something failed, but not what."""
    FRAME = 4
    """A stack frame, or another part of a trace."""
    WORD = 5
    """Has a word of failure."""
    ERROR = 6
    """Is marked as an error, names a failed test or an exception."""


_EMPTY = re.compile(r"[\s\-=_*#~.+|<>!\u2500-\u257f\u23af]*$")
_LEVEL = re.compile(
    r"\s*(?:\S{1,60}\s+){0,4}?[\[(<]{0,2}(?P<level>TRACE|DEBUG|INFO|NOTICE|WARN|WARNING|ERROR"
    r"|SEVERE|FATAL|CRITICAL|Info|Warning|Error|debug|info|notice|warn|warning|error|fatal)"
    r"(?:[\])>]+|:(?=\s)|(?=\s+[\[(\w]))"
)
_BRACKET_LEVEL = re.compile(r"\s*(?:##)?\[(?P<level>\w{4,8})\s*\]", re.IGNORECASE)
_ERROR_LEVELS = frozenset({"error", "severe", "fatal", "critical"})
_HARMLESS_LEVELS = frozenset(
    {"trace", "debug", "info", "notice", "warn", "warning", "command", "group"}
)
_HEADLINE = re.compile(
    r"(?:\W*(?:BUILD FAIL(?:ED|URE)|COMPILATION (?:ERROR|FAILURE)|FAIL(?:ED|URES?)?|ERRORS?)\W*$"
    r"|BUILD FAILED in |FAILURE: Build |Finished: |\* What went wrong|\* Try:|\* Get more help"
    r"|> Run with --|\d+ errors?\s*$|=+ (?:FAILURES|ERRORS|short test summary info) =+$"
    r"|exit (?:status|code) \d+$"
    r"|(?:The )?(?:command|process|job|build) .{0,80}exit(?:ed)?(?: with)? (?:code|status) ?\d+\.?"
    r"$)",
    re.IGNORECASE,
)
_FRAME = re.compile(
    r"\s*(?:at (?:async )?[\w.$<>/@\\\[\]-]+(?: \[as \w+\])?\s*\(.*\)|at \S+:\d+|Caused by:"
    r"|\.\.\. \d+ (?:more|lines)|Suppressed:|Also:\s|File \".*\", line \d+|goroutine \d+"
    r"|\S+\.(?:go|rs|py|rb|c|cc|cpp|h|hpp|kt|java|js|ts|php|swift|cs|scala):\d+(?::\d+)?"
    r"(?::?\s+\+0x[0-9a-f]+|:in .*|: in \w+.*|:)?\s*$"
    r"|#\d+ +0x[0-9a-f]+|\^+\s*$|~+\^|stack backtrace|During handling of the above)"
)
_STEM_TEXT = (
    "error|fail|exception|fatal|panic|cannot|can't|couldn't|could not|unable to|denied|refus"
    "|reject|timed out|timeout|no such|not exist|n't exist|not found|undefined|unresolved"
    "|missing|invalid|unexpected|unsupported|incompatib|mismatch|violat|corrupt|abort|crash"
    "|unsuccess|expected|conflict|forbidden|unauthori|illegal|broken|exceeded|killed|assert"
    "|went wrong|traceback|segmentation|core dumped|out of memory|outofmemory|non-zero|nonzero"
    "|not ok |*** "
    "|<<< |\u2715|\u2717|\u2718|\xd7|\u25cf"
)
_STEMS = tuple(_STEM_TEXT.split("|"))
"""In small letters: a line without any of these does not complain."""
_ERROR_START = re.compile(
    r"\s*(?:(?:ERROR|FATAL|FAIL|FAILED|Error|error|fatal|panic|CRITICAL)(?:[:!\s\[(]|$)"
    r"|E {3}|E: |(?:\w+ )?ERR!|--- FAIL|not ok \d"
    r"|[\u2715\u2717\u2718\u00d7\u25cf] |Traceback \(most recent)"
)
_ERROR = re.compile(
    r"(?<=\w)(?:Error|Exception|Panic|Failure)\b(?![.\w]*[=(])"
    r"|\berror(?:\[\w+\]|\s+[A-Z]+\d+)?:\s|\bfatal(?: error)?:\s|\bFAILED\b|\*\*\* "
    r"|<<< (?:FAILURE|ERROR)|Segmentation fault|core dumped|\bKilled\b|OutOfMemory|out of memory"
    r"|\[FAIL\]|panicked at|assertion failed"
)
_CODED = re.compile(r"\s*[\w./\\-]{1,300}\.\w{1,5}:\d+(?::\d+)?:? +[A-Z]{1,5}\d{2,5}\b")
"""A file, a line and the code of a rule: a linter's finding needs no other word."""
_WARNED = re.compile(r"\s*(?:\S{1,300}:\d+: )?\w+Warning: ")
_PLACE = re.compile(r"\s*[\w./\\-]{1,300}\.\w{1,5}(?::\d+|\(\d+)[:,)\d]*: ")
"""A file and a line: what follows a compiler's or a linter's mark is meant."""
_WORD = re.compile(
    r"\b(?:errors?|fail(?:ed|s|ure|ures|ing)?|fatal|cannot|can't|couldn't|could not|unable to"
    r"|denied|refused|rejected|timed out|timeout(?! *[=:] *\d)|no such|does not exist"
    r"|doesn't exist|not found|undefined|unresolved|missing|invalid|unexpected|unsupported"
    r"|incompatible|mismatch|violat\w+|corrupt\w*"
    r"|abort(?:ed|ing)?|crash(?:ed)?|exception|panic|unsuccessful|expected|conflict|forbidden"
    r"|unauthori[sz]ed|illegal|broken|exceeded|non-?zero|went wrong)\b"
)
_GOOD = ("pass", "ok", "0 ", "no ", "zero ", ": 0", "=0", "= 0", "werror", "fail", "error")
_HARMLESS = re.compile(
    r"\b(?:0|no|zero) (?:errors?|failures?|failed|problems?|issues?|warnings?)\b"
    r"|(?:errors|failed|failures)\s*[:=]\s*0\b|\bpassed\b(?!.*\bfailed\b)|\bpass\b|\bfail[-_]?fast\b"
    r"|\b(?:on|continue-on|ignore|if)[-_ ]?(?:error|failure)s?\b|-werror|--fail|\bok$|^ok\s|\bxfail"
    r"|error[-_]?prone|^\s*[\w.-]+:\s*(?:true|false)$"
)
_SOME_FAILED = re.compile(
    r"\b(?:errors|failed|failures)\s*[:=]\s*[1-9]|\b[1-9]\d* (?:errors?|failures?|failed)\b"
)
_CHATTER = re.compile(
    r"\s*(?:Download(?:ing|ed)?\b|Progress\b|Receiving objects|Resolving |Unpacking|Preparing"
    r"|Setting up|Get:\d|Collecting |Requirement already|Installing |Fetching |Selecting "
    r"|Using cached|remote: |\[command\]|##\[(?:group|endgroup|command|debug)|Run |Compiling \d"
    r"|Total time|Finished at|Picked up |\+ |\$ |shell: |env:$|\d+%"
    r"|> Task .*(?:UP-TO-DATE|NO-SOURCE|SKIPPED|FROM-CACHE)?$)"
)
_LONG = 4_000


def classify_line(line: str) -> LineKind:
    """The kind of one line of a console log."""
    text = strip_clock(strip_colours(line[:_LONG]))
    level = _read_level(text)
    if level in _ERROR_LEVELS:
        return LineKind.HEADLINE if _HEADLINE.match(_strip_level(text)) else LineKind.ERROR
    if _EMPTY.match(text):
        return LineKind.EMPTY
    if _HEADLINE.match(_strip_level(text)):
        return LineKind.HEADLINE
    low = text.lower()
    if level in _HARMLESS_LEVELS or (any(map(low.__contains__, _GOOD)) and _is_harmless(low)):
        return LineKind.QUIET
    if _FRAME.match(text):
        return LineKind.FRAME
    return _classify_complaint(text, low)


def _is_harmless(low: str) -> bool:
    """Whether nothing failed, by its counts or words; one count of nothing excuses no other."""
    return bool(_HARMLESS.search(low)) and not _SOME_FAILED.search(low)


def _classify_complaint(text: str, low: str) -> LineKind:
    if _CODED.match(text):
        return LineKind.ERROR
    if _WARNED.match(text):
        return LineKind.QUIET
    complains = any(map(low.__contains__, _STEMS))
    if _ERROR_START.match(text) or (complains and _ERROR.search(text)):
        return LineKind.ERROR
    if _CHATTER.match(text):
        return LineKind.QUIET
    if not complains or not _WORD.search(low):
        return LineKind.PLAIN
    return LineKind.ERROR if _PLACE.match(text) else LineKind.WORD


_FOUND_AT = re.compile(
    r"(?!\w+://)(?:\W{1,4}(?=[\w/.]))?[\w./\\@-]{1,300}\.\w{1,5}"
    r"(?:(?::\d+){1,2}|\(\d+(?:,\d+)?\)):? *(?!(?:note|info|warning|debug)\b)[^\s:\d]"
)
_BARE_WORD = re.compile(rf"(?<![\w./\\-])(?:{_WORD.pattern})(?![\w/\\-]|\.\w)")


def is_finding(text: str) -> bool:
    """Whether a line begins with a place in a file and says something about it."""
    return bool(_FOUND_AT.match(text))


def has_bare_word(text: str) -> bool:
    """Whether some word of failure is a word of its own, and no part of a name or a path."""
    return is_finding(text) or bool(_BARE_WORD.search(text.lower()))


_PRECISE = re.compile(
    r"\w(?:Error|Exception|Failure)\b: ?\S|[\w/\\]\.\w{1,5}[:(\[]+\d+|^E {3}"
    r"|\berror(?:\[\w+\])?: \S"
)
_ADVICE = re.compile(
    r"(?i)^\W*(?:\[\w+\]\W*)?(?:$|re-?run |for more information|to see the full|after correcting"
    r"|see .{0,40}(?:report|log)|try |run with|\[?help|->)"
)
_CONSEQUENCE = re.compile(
    r"(?i)returned \d+ exit status|due to (?:\d+ )?previous error|complete log of"
    r"|^\W*(?:\w+:? )?\d+ \w+(?:\(s\))?\W*$|\bexit(?:ed)?(?: with| from)? (?:code|status)"
    r"|\bcommand failed"
)


def is_precise(text: str) -> bool:
    """Whether a complaint says what is wrong, or where."""
    return bool(_PRECISE.search(text))


def is_advice(text: str) -> bool:
    """Whether a line only says what to do, or nothing."""
    return bool(_ADVICE.match(text))


def is_consequence(text: str) -> bool:
    """Whether a line says that something else failed before."""
    return bool(_CONSEQUENCE.search(text))


def _read_level(text: str) -> str:
    """The level a line is marked with; of several, one inside the other, the gravest."""
    level, at = "", 0
    while (found := _BRACKET_LEVEL.match(text, at)) and found[
        "level"
    ].lower() in _ERROR_LEVELS | _HARMLESS_LEVELS:
        level, at = found["level"].lower(), found.end()
        if level in _ERROR_LEVELS:
            break
    if level:
        return level
    found = _LEVEL.match(text[:200])
    return found["level"].lower() if found else ""


def _strip_level(text: str) -> str:
    found = _BRACKET_LEVEL.match(text)
    return text[found.end() :].strip() if found else text.strip()


MAX_COMPLAINTS = 400
"""Lines from either end of the log; a log that complains more repeats itself."""
MAX_COMPLAINT_LENGTH = 600
_LOOKED_AT = 4_000
"""A line without end is judged by its beginning."""

_COMPLAINT = re.compile(
    r"ERROR|Error|\berror|FAIL|Fail|\bfail|Exception|\bexception|FATAL|Fatal|\bfatal|panic"
    r"|Caused by|\bE  |CRITICAL|Traceback|[Tt]imed out|[Tt]imeout|TIMEOUT|refused|REFUSED"
    r"|[Cc]annot |[Cc]ould not|Couldn't|[Uu]nable to|[Nn]ot found|\bmissing\b|denied|[Vv]iolat"
    r"|[Kk]illed|[Aa]bort|[Ii]nvalid|[Uu]nexpected|[Uu]ndefined|[Uu]nresolved|[Uu]nknown "
    r"|Expected|\bexpected|Tests run:|BUILD |does not|did not|must |requires |[Cc]onflict"
)
_HINT_TEXT = (
    "rror|RROR|ail|AIL|xception|atal|ATAL|panic|aused by|E  |CRITICAL|raceback|imed out|imeout"
    "|IMEOUT|efused|EFUSED|annot |ould|nable to|ot found|issing|enied|iolat|illed|bort|nvalid"
    "|xpected|ndefined|nresolved|nknown |ests run:|BUILD |does not|did not|must |requires "
    "|onflict"
)
_HINTS = tuple(_HINT_TEXT.split("|"))
"""What a line must hold to be worth the pattern: plain text is found ten times as fast."""
_QUIET = re.compile(
    r"^\[?(?:DEBUG|TRACE)\b|[Dd]ownload(?:ing|ed) |\b0 (?:errors|failures|failed)\b"
    r"|Failures: 0, Errors: 0\b"
)


def find_complaints(log: str, most: int = MAX_COMPLAINTS) -> list[str]:
    """The complaining lines in their order; of many, the first and the last."""
    found = [line[:MAX_COMPLAINT_LENGTH].strip() for line in log.split("\n") if _is_complaint(line)]
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


def find_complaint_blocks(log: str, most: int = 3_000) -> list[str]:
    """The complaints with what stands under them: traces, trees, details. Read by suspects."""
    found: list[str] = []
    following = 0
    for line in log.split("\n"):
        if _NOISE.search(line[:_LOOKED_AT]):
            continue
        if _INFORMING.match(line):
            following = 0
        elif _is_complaint(line):
            following = _FOLLOWING
            found.append(line[: 2 * MAX_COMPLAINT_LENGTH])
        elif following:
            following = following - 1 if line.strip() else min(following, 2)
            found.append(line[: 2 * MAX_COMPLAINT_LENGTH])
        if len(found) >= most:
            break
    return found


_LOUD = re.compile(
    r"^\W{0,3}(?:ERROR|FATAL|SEVERE|CRITICAL|E\b|FAIL(?:ED|URE)?\b|error\b|fatal\b|panic)"
    r"|(?:^|\s)(?:ERROR|FATAL)\b|\b(?:error|fatal):|<<< |Caused by|BUILD FAIL"
)


def find_loudest(log: str, most: int = 200) -> list[str]:
    """Distinct complaints at the level of errors; where there are none, all complaints."""
    lines = [line for line in find_complaints(log, 2_000) if not _NOISE.search(line)]
    loud = [line for line in lines if _LOUD.search(line)]
    return list(dict.fromkeys(loud or lines))[:most]


def _is_complaint(line: str) -> bool:
    for hint in _HINTS:
        if hint in line:
            return _COMPLAINT.search(line[:_LOOKED_AT]) is not None and not _QUIET.search(
                line[:_LOOKED_AT]
            )
    return False
