"""List the lines in which test frameworks name a failed test.

Supporting another framework is one more row of the table `ROWS`: where in a log the line may stand,
how its path splits into class and name, and whether an explanation follows.
"""

import re

import msgspec

from interlock.system.test_output.counts import find_first_row, unite_patterns


class NamePattern(msgspec.Struct, frozen=True, kw_only=True):
    """One form of line. Groups: name, cls, file, message, or path to be split."""

    tool: str
    line: re.Pattern[str]
    split: str = ""
    """The separator of the parts of `path`."""
    section: re.Pattern[str] | None = None
    """Counts only below a heading like this."""
    after: re.Pattern[str] | None = None
    """Counts only below a line like this."""
    block: bool = True
    """The lines that follow explain the failure."""
    repeats: bool = True
    """The line may name a known failure again; otherwise each line is another failure."""
    loose: bool = False
    """The line leaves parameters out."""
    pending: bool = False
    """The next line says whether the test failed: see `WENT_WRONG`."""
    weak: bool = False
    """Other lines look like this too, so it counts only where the counts leave room."""
    whole: bool = False
    """The line names a file in which no test could run; summaries do not count it."""
    stacked: bool = False
    """The name continues below, until a line that ends with a colon."""


class NamedTest(msgspec.Struct, frozen=True):
    """A failing test as one line names it."""

    name: str
    cls: str = ""
    file: str = ""
    message: str = ""
    depth: int = 0
    """The indentation, where it sets parts apart from their parent."""

    @property
    def path(self) -> str:
        """The name as tools write it that name a test before it runs."""
        return f"{self.cls}.{self.name}" if self.cls else self.name

    @property
    def key(self) -> tuple[str, str]:
        """The key that short and long spellings of one test share."""
        tail = re.split(r"[.$/\\:]", self.cls)[-1]
        return tail, self.name

    @property
    def loose_key(self) -> tuple[str, str]:
        """The key without parameters."""
        tail, name = self.key
        return tail, re.split(r"[\[({]", name)[0].strip()

    @property
    def class_key(self) -> tuple[str, str]:
        """The key that a class which failed before its tests shares with the method that failed."""
        package = self.cls.islower() and self.name[:1].isupper()
        return (self.name if package else self.key[0]), ""


def _row(
    tool: str, line: str, section: str = "", after: str = "", *, split: str = "", **flags: bool
) -> NamePattern:
    return NamePattern(
        tool=tool,
        line=re.compile(line),
        section=re.compile(section) if section else None,
        after=re.compile(after) if after else None,
        split=split,
        **flags,
    )


_JVM = r"(?P<cls>(?:[\w$-]+\.)*[\w$]+)"
MARKS = "\u2715\u2716\u2717\u2718\u00d7"
"""Crosses of all kinds."""
_TIMED = r"\s+(?:--? )?Time elapsed: [\d.,]+ s(?:ec)?\s+<<< (?:FAILURE|ERROR)!"

ROWS = (
    _row("pytest", r"_{3,} ERROR collecting (?P<file>\S.*?) _{3,}$", repeats=False),
    _row(
        "pytest",
        r"_{3,} (?:ERROR at (?:setup|teardown) of )?(?P<path>[^\s_].*?|_\w.*?) _{3,}$",
        section=r"^(?:FAILURES|ERRORS)$",
        split=".",
        repeats=False,
    ),
    _row(
        "pytest",
        r"(?:FAILED|ERROR) (?P<file>[^\s:]+\.\w+)(?:::(?P<path>.+?))?(?: - (?P<message>.*))?$",
        split="::",
        block=False,
    ),
    _row(
        "pytest",
        r"(?P<file>[^\s:]+\.py)::(?P<path>\S.*?) (?:FAILED|ERROR)(?: +\[ *\d+%\])?$",
        split="::",
        block=False,
    ),
    _row(
        "pytest",
        r"\[gw\d+\] \[ *\d+%\] (?:FAILED|ERROR) (?P<file>[^\s:]+\.py)::(?P<path>\S.*?)$",
        split="::",
        block=False,
    ),
    _row(
        "unittest",
        r"(?:FAIL|ERROR): (?P<name>[^\s(]+) \((?P<cls>[\w.$<>]+)\)",
        after=r"^={30,}$",
        repeats=False,
    ),
    _row(
        "unittest",
        r"(?:FAIL|ERROR|[A-Z]\w+(?:Error|Exception|Failure)): (?P<name>\S.*)$",
        after=r"^={30,}$",
        repeats=False,
    ),
    _row("surefire", rf"{_JVM}\.(?P<name>[^.\s(\[][^.]*?|[^\s(\[]+[(\[].*?){_TIMED}"),
    _row("surefire", rf"(?P<name>\S.*?)(?<! )\({_JVM}\){_TIMED}"),
    _row("surefire", rf"(?P<name>(?!Tests run:)\S.*?){_TIMED}"),
    _row("surefire", r"Test (?P<name>[\w.$]+) FAILED(?: \(\w+\))?$", weak=True, block=False),
    _row(
        "surefire",
        r" *(?:(?P<cls>[\w$.]+)(?:>[\w$.]+)?)\.(?P<name>[\w$]+)(?::\d+(?:->\S+)*|(?= »))"
        r"(?:(?: »)? (?P<message>.*))?$",
        section=r"^(?:Failures|Errors|Failed tests|Tests in error) ?:",
        block=False,
        loose=True,
    ),
    _row(
        "surefire",
        rf"(?:Failed tests: |Tests in error: )? +(?P<name>[\w$]+)\({_JVM}\)(?:: (?P<message>.*))?$",
        section=r"^(?:Failed tests|Tests in error) ?:",
        block=False,
        loose=True,
    ),
    _row(
        "gradle",
        r"(?:Gradle Test Run \S+ > )?(?:Gradle Test Executor \d+ > )?"
        r"(?P<path>\w[^>]*(?: > .+?)+) FAILED(?: \([\d.]+m?s\))?$",
        split=" > ",
        repeats=False,
    ),
    _row("gradle", r" +Test (?P<name>\S.*?) FAILED(?: \([\d.]+m?s\))?$", weak=True),
    _row(
        "surefire",
        r"Testcase: (?P<name>[^\s(]+)(?:\((?P<cls>[\w.$]+)\))?:\s+(?:FAILED|Caused an ERROR)",
    ),
    _row("surefire", r"Testcase: (?P<name>\S+) took [\d.]+ sec$", repeats=False, pending=True),
    _row("sbt", rf"Test {_JVM}\.(?P<name>[^\s.]+) failed: (?P<message>.*?)(?:, took .*)?$"),
    _row("sbt", r"- (?P<name>\S.*?) \*\*\* FAILED \*\*\*"),
    _row("sbt", r"==> X (?P<cls>[\w.$]+)\.(?P<name>\S.*?) {2}[\d.]+s ?(?P<message>.*)$"),
    _row("sbt", r" *! (?P<name>\S+): (?:Falsified|Exception|Gave up)"),
    _row("sbt", r" +[x!] (?P<name>\S.*)$", weak=True),
    _row("go", r" *--- FAIL: (?P<name>\S+) \([\d.]+s\)$"),
    _row("go", r"=== FAIL: \S+ (?P<name>\S+) \([\d.]+s\)$"),
    _row("jest", r" {1,4}● (?P<path>\S.*? \u203a .*)$", split=" \u203a "),
    _row(
        "jest",
        r" *FAIL +(?:\S+ )?(?P<name>\S+\.\w+)(?: \([\d.]+ m?s\))?$",
        pending=True,
        whole=True,
    ),
    _row("jest", r" {2}● (?P<name>(?!Test suite failed|Console$)\S.*[^:])$", weak=True),
    _row(
        "vitest",
        r" *(?:FAIL|\u00d7) +(?:\|\S+\| )?(?P<file>\S+\.\w+) > (?P<path>\S.*?)(?: \d+m?s)?$",
        split=" > ",
    ),
    _row("vitest", r" *FAIL +(?:\|\S+\| )?(?P<name>\S+\.\w+) \[ .* \]$", whole=True),
    _row("mocha", r" +\d+\) (?P<name>\S.*?):$", section=r"^ *\d+ failing$"),
    _row("mocha", r" +\d+\) (?P<name>\S.*)$", section=r"^ *\d+ failing$", stacked=True),
    _row(
        "playwright",
        r" +\d+\) (?P<path>(?:\[[^\]]+\] \u203a )?\S+:\d+:\d+ \u203a .*?)(?: ─+)?$",
        split=" \u203a ",
    ),
    _row("rust", r"test (?P<name>\S+ - .* \(line \d+\)) \.\.\. FAILED$", block=False),
    _row("rust", r"---- (?P<name>\S+ - .* \(line \d+\)) stdout ----$"),
    _row("rust", r"test (?P<path>\S+)(?: - .*?)? \.\.\. FAILED$", split="::", block=False),
    _row("rust", r"---- (?P<path>\S+) stdout ----$", split="::"),
    _row(
        "rust",
        r" +(?:FAIL|TIMEOUT|ABORT|SIG[A-Z]+) \[ *[\d.]+s\] (?:\( *\d+/\d+\) )?\S+ (?P<path>\S+)$",
        split="::",
    ),
    _row("gtest", r"\[ +FAILED +\] (?P<path>\w[\w/]*\.[\w/]+)\b.*\(\d+ ms\)$", split="."),
    _row(
        "phpunit",
        r"\d+\) (?P<cls>[\w\\]+)::(?P<name>\w+.*)$",
        section=r"^There (?:was|were) \d+ ",
    ),
    _row(
        "surefire",
        r"\d+\) (?P<name>[\w$]+(?:\[.*\])?)\((?P<cls>[\w.$]+)\)$",
        section=r"^There (?:was|were) \d+ ",
    ),
    _row("examples", r"rspec (?P<file>\S+):\d+ # (?P<name>.*)$", block=False),
    _row(
        "minitest",
        r" *(?:\d+\) )?(?P<cls>[A-Z][\w:]*)#(?P<name>test\S*?(?: [^\[\]=]*?)?)"
        r"(?::$|$| \[(?P<file>[^\]:]+):\d+\]:?)",
        after=r" *(?:\d+\) )?(?:Failure|Error):$",
    ),
    _row("examples", r" +\d+\) test (?P<name>\S.*) \((?P<cls>[\w.]+)\)$"),
    _row(
        "ctest",
        r"\s+\d+ - (?P<name>\S+) \((?!Skipped|Disabled)[^)]+\)",
        section=r"^The following tests FAILED:",
        block=False,
    ),
    _row("tap", r"(?P<indent> *)#   Failed test '(?P<name>.+)'$"),
    _row(
        "tap",
        r"(?P<indent> *)not ok \d+ (?:- )?(?P<name>(?i:(?!.*# (?:todo|skip)))(?!.* \{$)\S.*?)"
        r"(?: # time=\S+)?$",
    ),
    _row("unittest", r"(?:Failure|Error) in (?P<path>(?:\w+\.){2,}\w+(?: \(.*\))?)$", split="."),
    _row("unittest", r" +(?P<name>test\w*) \.\.\. +\[(?:FAIL|ERROR)\]$", block=False),
    _row("stestr", r"\{\d+\} (?P<path>\S+) \[[\d.]+s\] \.\.\. FAILED$", split="."),
    _row("robot", r"(?P<name>\S.*?) +\| FAIL \|$", weak=True),
    _row(
        "scenarios",
        r" +(?P<file>\S+\.feature):\d+ +(?P<name>\S.*)$",
        section=r"^(?:Failing|Errored) scenarios",
        block=False,
    ),
    _row(
        "scenarios",
        r"cucumber (?:-\S+ \S+ )*(?P<file>\S+\.feature):\d+ # (?:Scenario: )?(?P<name>\S.*)$",
        block=False,
    ),
    _row("minitest", r"(?:Failure|Error): (?P<name>test\S*?)\((?P<cls>[\w:]+)\)"),
    _row("xunit", r"FAIL: (?P<name>[\w./-]+)$", block=False, weak=True),
    _row("dotnet", r" +(?:Failed|X) (?P<path>[\w.+]+(?:\(.*\))?) \[[<\d].*\]$", split="."),
    _row("dotnet", r" *(?:\[xUnit.*?\] +)?(?P<path>[\w.+]+(?:\(.*\))?) \[FAIL\]$", split="."),
    _row(
        "xctest",
        r"\S+\.\w+:\d+: error: -\[(?P<cls>\S+) (?P<name>\w+)\] : (?P<message>.*)$",
        block=False,
    ),
    _row(
        "xctest",
        r"\S+\.swift:\d+: error: (?P<cls>\w+)\.(?P<name>\w+) : (?P<message>.*)$",
        block=False,
    ),
    _row("xctest", r".*Test Case '-\[(?P<cls>\S+) (?P<name>\S+)\]' failed", block=False),
    _row("xctest", r".*Test Case '(?P<cls>[\w.]+)\.(?P<name>\w+)' failed", block=False),
    _row("nunit", r"\d+\) (?:Failed|Error|Invalid) : (?P<path>\S.*)$", split="."),
    _row("clojure", r"(?:FAIL|ERROR) in \((?P<name>[^)]+)\) \((?P<file>[^:)]+)(?::\d+)?\)$"),
    _row("karma", r"\w+ [\w.]+[\w. ]* \([^)]+\) (?P<name>\S.*?) FAILED$"),
    _row("tasty", r" +(?P<name>\S.*): +FAIL(?: \([\d.]+s\))?$", weak=True),
    _row("bazel", r"(?P<name>//\S+) +FAILED(?: in .*)?$", block=False),
    _row(
        "numbered",
        r" *\d+\) (?:Scenario: )?(?P<name>\S.*?)(?: # \S+:\d+)?$",
        section=r"^Failures:",
        weak=True,
    ),
    _row(
        "marked",
        rf" *[{MARKS}] (?:\[fail\]: )?(?P<name>\S.*?[^:])(?: \(FAILED\))?(?: \(?[\d.]+ ?m?s\)?)?$",
        weak=True,
    ),
)
_ANY_ROW = unite_patterns(row.line for row in ROWS)
WENT_WRONG = re.compile(r"\s*(?:FAILED|Caused an ERROR|● Test suite failed to run)$")
HEADING = re.compile(
    r"(?=.{60})={3,} (?P<title>\S.*?) ={3,}$"
    r"|(?P<line>(?:Results|Failed tests|Tests in error|Failures|Errors|Flakes|Pending"
    r"|(?:Failing|Errored) scenarios) ?:.*"
    r"|There (?:was|were) \d+ .*|The following tests .*:| *\d+ failing)$"
)
_HINT_WORDS = "FAIL ERROR ailed ● <<< #test :: Testcase: .feature:"
_HINTS = (*_HINT_WORDS.split(), "rror: ", "not ok", "==> X", "rspec ", "stdout ----", *MARKS)
_START = re.compile(
    r"_{3,} | *\d+\) | +[\w$.>]+[.(][\w$.]+(?::\d| »|\))|\s+\d+ - | *[x!] "
    r"|(?:Failure|Error)(?: in|:) "
)
"""Texts that a relevant line contains or begins with."""
_BETWEEN_WORDS = (" > ", " \u203a ")
_NESTED = re.compile(r"[A-Z][\w$]*$")


def may_name(line: str) -> bool:
    """Return True if a line is worth matching against the table."""
    return any(map(line.__contains__, _HINTS)) or _START.match(line) is not None


def read_name(line: str, before: str, section: str) -> tuple[NamePattern, NamedTest] | None:
    """Return the failing test that the bare `line` names, given the line before and the heading."""
    line = line[:4_000]
    if not may_name(line):
        return None
    first = find_first_row(_ANY_ROW, line)
    for row in ROWS[first:] if first is not None else ():
        if row.section and not row.section.search(section):
            continue
        if row.after and not row.after.match(before):
            continue
        if found := row.line.match(line):
            return row, _build_named(row, found)
    return None


def _build_named(row: NamePattern, found: re.Match[str]) -> NamedTest:
    parts = {name: value or "" for name, value in found.groupdict().items()}
    name, cls, file = parts.get("name", ""), parts.get("cls", ""), parts.get("file", "")
    if path := parts.get("path", ""):
        cls, name = split_path(path, row)
    if row.tool == "pytest" and not name:
        name = re.sub(r"\.\w+$", "", file).replace("\\", "/").replace("/", ".")
    if cls.endswith("." + name):
        cls = cls[: -len(name) - 1]
    return NamedTest(name, cls, file, parts.get("message", ""), len(parts.get("indent", "")))


def split_path(path: str, row: NamePattern) -> tuple[str, str]:
    """Split a path into class and name; dots in brackets do not count, nested classes belong to the
    class."""
    mark = row.split
    if row.tool == "gradle":
        first, *rest = path.split(mark)
        while len(rest) > 1 and _NESTED.match(rest[0]):
            first = f"{first}${rest.pop(0)}"
        return first, mark.join(rest)
    brackets = mark not in _BETWEEN_WORDS and re.search(r"[\[(]", path)
    at = path.rfind(mark, 0, brackets.start() if brackets else None)
    if at < 0:
        return "", path
    return path[:at], path[at + len(mark) :]
