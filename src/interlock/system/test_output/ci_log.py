"""A CI console log as failures and a tally, whatever test framework wrote it.

Knows how a log is walked: what a line belongs to, where a reason begins and ends. The frameworks
are the tables of `ci_counts` and `ci_names`. One pass, in memory that does not grow with the log.
"""

import hashlib
import re
from collections import deque
from collections.abc import Iterable

import msgspec

from interlock.rca.failure import Failure
from interlock.rca.launch import TestCounts
from interlock.system.test_output.ci_counts import Counting
from interlock.system.test_output.ci_lines import bare
from interlock.system.test_output.ci_names import (
    HEADING,
    WENT_WRONG,
    NamedTest,
    NamePattern,
    read_name,
)

_MOST_FAILURES = 10_000
_HEAD_LINES, _TAIL_LINES = 40, 60
_BLOCK_LINES = 20_000
"""What goes on for longer is no reason any more."""
_LINE_CHARS = 500

_TYPE = re.compile(
    r"\s*(?:E\s+|Caused by: |panicked at )?(?P<type>(?:[a-zA-Z_$][\w$]{0,80}[.\\:]{1,2}){0,20}"
    r"[A-Za-z_$][\w$]{0,80}(?:Error|Exception|Failure|Failed|Exit|Interrupt|Panic|Warning))"
    r"(?: \[\w+\])?(?:: ?(?P<message>.*)|(?: at .*)?$)"
)
_SAID = re.compile(
    r"\s*(?:E\s+|Error: |Message: |Failure/Error: |panic: |thrown: )(?P<message>\S.*)"
)
_END = re.compile(
    r"> Task |BUILD |\[=+\]|={20,}$|-{60,}$|\u23af{5}|(?:Testsuite|Testcase|Running)\b|Test run "
)
_FRAME = re.compile(r"\s*(?:at |File \"|[\w./]+:\d+: |thread '.*' .*panicked at )")
_WORDS = re.compile(r"[A-Za-z]{2}")
_RULE = re.compile(r"[-=]{60,}$")
_SUITE = re.compile(r"(?:Testsuite: |Running )(?P<cls>[\w.$]+)$|(?P<spec>[A-Z]\w*):$")
_GROUP = re.compile(r" *\u25b6 (?P<name>\S.*)$")
_LAST_WORD = frozenset({"pytest", "unittest"})
"""Tools that tell the decisive exception last."""
_FIRST_WORD = frozenset({"jest", "rust"})
"""Tools that begin with the reason, whatever it looks like."""


class TestLog(msgspec.Struct, frozen=True):
    """What a console log tells."""

    failures: list[Failure]
    tally: TestCounts


class _Told(msgspec.Struct):
    """A failure that the log named, and the lines below that say why."""

    named: NamedTest
    tool: str
    sure: bool
    head: list[str]
    tail: deque[str]
    weak: bool = False
    whole: bool = False
    stacked: bool = False
    explained: bool = False
    """Some line named it below which its reason stands."""
    size: int = 0

    def add(self, line: str) -> None:
        """Of a long reason the beginning and the end are kept."""
        self.size += 1
        (self.head if len(self.head) < _HEAD_LINES else self.tail).append(line[:_LINE_CHARS])

    def go_on(self, line: str) -> None:
        """One more line of a name: what stood above it is what it belongs to."""
        part, named = line.strip(), self.named
        if part:
            self.stacked = not part.endswith(":")
            cls = f"{named.cls} {named.name}".strip()
            self.named = msgspec.structs.replace(named, cls=cls, name=part.rstrip(":"))

    def lines(self) -> list[str]:
        left_out = self.size - len(self.head) - len(self.tail)
        return [*self.head, *([f"... {left_out} lines ..."] if left_out else []), *self.tail]


def read_log(lines: Iterable[str]) -> TestLog:
    """Failures in the order in which they are first named, and the tally of all summary lines."""
    reader = _Reader()
    for line in lines:
        reader.take(line)
    return reader.done()


class _Reader:
    def __init__(self) -> None:
        self.counting = Counting()
        self.told: list[_Told] = []
        self.known: dict[tuple[str, str], list[_Told]] = {}
        """The failures of the present run of tests: what follows may name them again."""
        self.open: _Told | None = None
        self.suite = ""
        self.section = ""
        self.before = ""
        self.depth = 0
        self.groups: set[str] = set()
        """What was said to begin: if it fails, then because a part of it did."""

    def take(self, raw: str) -> None:
        line = bare(raw)
        if self.counting.take(line):
            self._end_run(line)
        elif not self._name(line):
            self._follow(line)
        if line.strip():
            self.before = line

    def done(self) -> TestLog:
        tally = self.counting.total()
        told = _believed([each for each in self.told if each.sure], tally.failed)
        uncounted = sum(not (each.weak or self.counting.counted(each.tool)) for each in told)
        tally = msgspec.structs.replace(
            tally, tests=tally.tests + uncounted, failed=tally.failed + uncounted
        )
        return TestLog(_failures(told), tally)

    def _end_run(self, line: str) -> None:
        if self.open and self.open.weak and not self.open.size:
            self.told.remove(self.open)  # what has a count of its own is a suite
        self.known, self.open = {}, None
        self.section = line if HEADING.match(line) else ""

    def _name(self, line: str) -> bool:
        found = read_name(line, self.before, self.section)
        if not found:
            return False
        row, named = found
        if not named.cls and row.tool in ("surefire", "sbt"):
            named = msgspec.structs.replace(named, cls=self.suite)
        deeper, self.depth = self.depth, named.depth
        if named.depth < deeper or (row.weak and named.name in self.groups):
            return True  # a part of it failed just before
        told = self._again(row, named)
        if not told and len(self.told) < _MOST_FAILURES:
            told = _Told(
                named=named,
                tool=row.tool,
                sure=not row.pending,
                head=[],
                tail=deque(maxlen=_TAIL_LINES),
                weak=row.weak,
                whole=row.whole,
                stacked=row.stacked,
            )
            self.told.append(told)
            keys = {named.key, named.loose_key, named.class_key}
            for key in keys if named.cls.islower() else keys - {named.class_key}:
                self.known.setdefault(key, []).append(told)
        if told and row.block:
            told.explained = True
        self.open = told if row.block else None
        return True

    def _again(self, row: NamePattern, named: NamedTest) -> _Told | None:
        """The failure that is named once more. One without a file takes that of the later line."""
        known = self.known.get(named.loose_key if row.loose else named.key, [])
        if row.loose and not known:
            known = self.known.get(named.class_key, [])
        for told in known:
            if not row.loose and told.named.name != named.name:
                continue
            if told.weak != row.weak or (not row.repeats and told.explained):
                continue
            if not told.named.file or told.named.file == named.file or not named.file:
                message = told.named.message or named.message
                file = told.named.file or named.file
                told.named = msgspec.structs.replace(told.named, file=file, message=message)
                return told
        return None

    def _follow(self, line: str) -> None:
        self._place(line)
        told = self.open
        if not told or (told.size < 3 and _RULE.match(line)):
            return
        if told.stacked:
            told.go_on(line)
        elif not told.sure:
            if not line.strip():
                return
            told.sure = bool(WENT_WRONG.match(line))
            self.open = told if told.sure else None
        elif _END.match(line) or told.size == _BLOCK_LINES:
            self.open = None
        else:
            told.add(line)

    def _place(self, line: str) -> None:
        """What the lines below this one belong to."""
        if heading := HEADING.match(line):
            if heading["title"] or self.section not in ("FAILURES", "ERRORS"):
                self.section = heading["title"] or heading["line"]
                self.open = None
        elif suite := _SUITE.match(line):
            self.suite = suite["cls"] or suite["spec"]
        elif group := _GROUP.match(line):
            self.groups.add(group["name"])
        elif line.strip() == "}":
            self.depth = 0


def _believed(told: list[_Told], failed: int) -> list[_Told]:
    """Without what merely looks like a failing test, unless the counts leave room for it."""
    sure = {each.named.name: each for each in told if not each.weak}
    room = failed - sum(not (each.weak or each.whole) for each in told)
    weak: dict[str, dict[tuple[str, str], _Told]] = {}
    for each in told:
        other = sure.get(each.named.name)
        if each.weak and not other:
            weak.setdefault(each.tool, {}).setdefault(each.named.key, each)
        elif each.weak and other and not other.size:
            other.head, other.tail, other.size = each.head, each.tail, each.size
    kept: set[int] = set()
    for group in weak.values():
        if len(group) <= room:
            room -= len(group)
            kept.update(map(id, group.values()))
    return [each for each in told if not each.weak or id(each) in kept]


def _failures(told: list[_Told]) -> list[Failure]:
    """As records. A parent that failed only because a part of it did is left out."""
    parents = {
        name.rsplit("/", at)[0] for name in _go_names(told) for at in (1, 2, 3) if "/" in name
    }
    seen: dict[tuple[str, str, str], int] = {}
    made = []
    for each in told:
        if each.tool == "go" and each.named.name in parents:
            continue
        key = (each.named.file, each.named.cls, each.named.name)
        seen[key] = seen.get(key, 0) + 1
        made.append(_failure(each, seen[key]))
    return made


def _go_names(told: list[_Told]) -> Iterable[str]:
    return (each.named.name for each in told if each.tool == "go")


def _failure(told: _Told, occurrence: int) -> Failure:
    named = told.named
    module = re.sub(r"\.py$", "", named.file).replace("/", ".") if told.tool == "pytest" else ""
    cls = ".".join(part for part in (module, named.cls.replace("::", ".")) if part)
    kind, message = _reason(told)
    words = "\0".join((named.file, named.cls, named.name, str(occurrence)))
    digest = hashlib.blake2b(words.encode("utf-8", "surrogatepass"), digest_size=8)
    return Failure(
        id=digest.hexdigest(),
        test_name=named.name,
        class_name=cls if cls != named.name else "",
        type=kind,
        message=message,
        stack="\n".join(told.lines()).strip("\n"),
        file=named.file,
    )


def _reason(told: _Told) -> tuple[str, str]:
    """The type and message of the exception that the lines name, else what was said on one line."""
    lines = [told.named.message, *told.lines()]
    found = [(at, match) for at, line in enumerate(lines) if (match := _TYPE.match(line))]
    if found:
        at, best = found[-1 if told.tool in _LAST_WORD else 0]
        below = "".join(lines[at + 1 : at + 2]) if best["message"] == "" else ""
        message = best["message"] or told.named.message or below
        return best["type"], "" if _FRAME.match(message) else message.strip()
    said = [match["message"] for line in lines if (match := _SAID.match(line))]
    said = said or [told.named.message]
    if not said[0] and told.tool in _FIRST_WORD:
        said = [line for line in lines if _WORDS.search(line) and not _FRAME.match(line)]
    return "", said[0].strip() if said else ""
