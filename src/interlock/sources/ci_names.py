"""The lines in which test frameworks name a test that failed.

A table: to know one more framework is one more row. A row says where in a log such a line may
stand, how its path falls into class and name, and whether the reason follows it.
"""

import re

import msgspec


class Row(msgspec.Struct, frozen=True, kw_only=True):
    """One form of line. Groups: name, cls, file, message, or path to be split."""

    tool: str
    line: re.Pattern[str]
    split: str = ""
    """What divides the parts of `path`."""
    section: re.Pattern[str] | None = None
    """Only below a heading like this."""
    after: re.Pattern[str] | None = None
    """Only below a line like this."""
    block: bool = True
    """The lines that follow say why."""
    repeats: bool = True
    """It may name a failure again that was told before; otherwise each line is one more."""
    loose: bool = False
    """It leaves parameters out."""
    pending: bool = False
    """The next line tells whether it failed: see `WENT_WRONG`."""
    spread: bool = False
    """The name goes on below, a part on each line, until one ends with a colon."""


class Named(msgspec.Struct, frozen=True):
    """A failing test, as one line names it."""

    name: str
    cls: str = ""
    file: str = ""
    message: str = ""

    @property
    def key(self) -> tuple[str, str]:
        """Short and long spellings of one test share it."""
        tail = re.split(r"[.$/\\:]", self.cls)[-1]
        return tail, self.name

    @property
    def loose_key(self) -> tuple[str, str]:
        """The same without parameters."""
        tail, name = self.key
        return tail, re.split(r"[\[({]", name)[0].strip()


def _row(
    tool: str,
    line: str,
    section: str = "",
    after: str = "",
    *,
    split: str = "",
    block: bool = True,
    repeats: bool = True,
    loose: bool = False,
    pending: bool = False,
    spread: bool = False,
) -> Row:
    return Row(
        tool=tool,
        line=re.compile(line),
        section=re.compile(section) if section else None,
        after=re.compile(after) if after else None,
        split=split,
        block=block,
        repeats=repeats,
        loose=loose,
        pending=pending,
        spread=spread,
    )


_JVM = r"(?P<cls>(?:[\w$-]+\.)*[\w$]+)"
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
        r"(?P<file>[^\s:]+\.py)::(?P<path>\S.*?) (?:FAILED|ERROR) +(?:\[ *\d+%\])?$",
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
    _row("unittest", r"(?:FAIL|ERROR): (?P<name>\S.*)$", after=r"^={30,}$", repeats=False),
    _row("surefire", rf"{_JVM}\.(?P<name>[^.\s(\[][^.]*?|[^\s(\[]+[(\[].*?){_TIMED}"),
    _row("surefire", rf"(?P<name>\S.*?)\({_JVM}\){_TIMED}"),
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
    _row("gradle", r"(?P<path>[\w.$]+(?: > .+?)+) FAILED$", split=" > ", repeats=False),
    _row(
        "surefire",
        r"Testcase: (?P<name>[^\s(]+)(?:\((?P<cls>[\w.$]+)\))?:\s+(?:FAILED|Caused an ERROR)",
    ),
    _row("surefire", r"Testcase: (?P<name>\S+) took [\d.]+ sec$", repeats=False, pending=True),
    _row("sbt", rf"Test {_JVM}\.(?P<name>[^\s.]+) failed: (?P<message>.*?)(?:, took .*)?$"),
    _row("sbt", r"- (?P<name>\S.*?) \*\*\* FAILED \*\*\*"),
    _row("sbt", r"==> X (?P<cls>[\w.$]+)\.(?P<name>\S.*?) {2}[\d.]+s ?(?P<message>.*)$"),
    _row("go", r" *--- FAIL: (?P<name>\S+) \([\d.]+s\)$"),
    _row("jest", r" {1,4}● (?P<path>\S.*? \u203a .*)$", split=" \u203a "),
    _row("mocha", r"  \d+\) (?P<name>\S.*)$", r"\d failing$", repeats=False, spread=True),
    _row("jest", r"  ● (?P<name>(?!Console$|Cannot log|Deprecat|Valid)\S.*)$", "^FAIL "),
    _row("vitest", r" *(?:FAIL|\u00d7) +(?P<file>\S+\.\w+) > (?P<path>\S.*)$", split=" > "),
    _row(
        "playwright",
        r" +\d+\) (?P<path>(?:\[[^\]]+\] \u203a )?\S+:\d+:\d+ \u203a .*?)(?: ─+)?$",
        split=" \u203a ",
    ),
    _row("rust", r"test (?P<path>\S+)(?: - .*?)? \.\.\. FAILED$", split="::", block=False),
    _row("rust", r"---- (?P<path>\S+) stdout ----$", split="::"),
    _row("gtest", r"\[ +FAILED +\] (?P<path>\w[\w/]*\.[\w/]+)\b.*\(\d+ ms\)$", split="."),
    _row(
        "phpunit",
        r"\d+\) (?P<cls>[\w\\]+)::(?P<name>\w+.*)$",
        section=r"^There (?:was|were) \d+ ",
    ),
    _row("examples", r"rspec (?P<file>\S+):\d+ # (?P<name>.*)$", block=False),
    _row(
        "minitest",
        r" *(?:\d+\) )?(?P<cls>[A-Z][\w:]*)#(?P<name>test\S*)(?: \[(?P<file>[^\]:]+):\d+\]:?)?",
    ),
    _row("examples", r" +\d+\) test (?P<name>\S.*) \((?P<cls>[\w.]+)\)$"),
    _row(
        "ctest",
        r"\s+\d+ - (?P<name>\S+) \((?:Failed|Timeout|SEGFAULT|Not Run|.*Exception)\)",
        block=False,
    ),
    _row("tap", r" *not ok \d+ (?:- )?(?P<name>(?!.*# (?:TODO|SKIP))\S.*)$"),
    _row("dotnet", r" +(?:Failed|X) (?P<path>[\w.+]+(?:\(.*\))?) \[[<\d].*\]$", split="."),
    _row("dotnet", r" *(?:\[xUnit.*?\] +)?(?P<path>[\w.+]+(?:\(.*\))?) \[FAIL\]$", split="."),
    _row("xctest", r".*Test Case '-\[(?P<cls>\S+) (?P<name>\S+)\]' failed"),
    _row("bazel", r"(?P<name>//\S+) +FAILED(?: in .*)?$", block=False),
)
WENT_WRONG = re.compile(r"\s*(?:FAILED|Caused an ERROR)$")
HEADING = re.compile(
    r"(?=.{60})={3,} (?P<title>\S.*?) ={3,}$"
    r"|(?P<line>(?:Results|Failed tests|Tests in error|Failures|Errors) ?:.*"
    r"| +\d+ failing|FAIL \S+\.[cm]?[jt]sx?(?: .*)?|There (?:was|were) \d+ .*)$"
)
_HINT = re.compile(
    r"FAIL|ERROR|[Ff]ailed|●|\u00d7|not ok|<<<|#test|::\w|Testcase:|==> X|rspec |stdout ----"
    r"|^_{3,} |^ *\d+\) |^ +[\w$.>]+[.(][\w$.]+(?::\d| »|\))|\((?:Timeout|SEGFAULT|Not Run)"
)
_NESTED = re.compile(r"[A-Z][\w$]*$")


def read_name(line: str, before: str, section: str) -> tuple[Row, Named] | None:
    """The failing test that `line`, bare, names below the line `before` and that heading."""
    if len(line) > 4_000 or not _HINT.search(line):
        return None
    for row in ROWS:
        if row.section and not row.section.search(section):
            continue
        if row.after and not row.after.match(before):
            continue
        if found := row.line.match(line):
            return row, _named(row, found)
    return None


def _named(row: Row, found: re.Match[str]) -> Named:
    parts = {name: value or "" for name, value in found.groupdict().items()}
    name, cls, file = parts.get("name", ""), parts.get("cls", ""), parts.get("file", "")
    if path := parts.get("path", ""):
        cls, name = _divided(path, row.split)
    if row.tool == "pytest" and not name:
        name = re.sub(r"\.\w+$", "", file).replace("\\", "/").replace("/", ".")
    if cls.endswith("." + name):
        cls = cls[: -len(name) - 1]
    return Named(name, cls, file, parts.get("message", ""))


def grown(named: Named, part: str) -> Named:
    """The test, where a further line of its name says so; the last part is its own."""
    cls = f"{named.cls} {named.name}".strip()
    return msgspec.structs.replace(named, cls=cls, name=part)


def _divided(path: str, mark: str) -> tuple[str, str]:
    """Class and name. A mark in brackets divides nothing; nested classes belong to the class."""
    head = re.match(r"[^\[(]*", path)
    start = head.end() if head else 0
    if mark == " > ":
        first, *rest = path.split(mark)
        while len(rest) > 1 and _NESTED.match(rest[0]):
            first = f"{first}${rest.pop(0)}"
        return first, mark.join(rest)
    at = path.rfind(mark, 0, start if start < len(path) else None)
    if at < 0:
        return "", path
    return path[:at], path[at + len(mark) :]
