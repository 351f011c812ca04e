"""Stack frames: the functions and files that a stack trace names, most languages alike.

Knows how traces are written and which frames belong to a language or a test framework rather
than to the code under test. Reads text only: whether a file exists is for others to ask.
"""

import re

import msgspec


class Frame(msgspec.Struct, frozen=True):
    """One line of a trace. `function` is as the trace writes it; unknown parts are empty or 0."""

    function: str
    file: str
    line: int = 0
    own: bool = True
    """Not a frame of the language, its library or a test framework."""


_AT = r":(?P<line>\d{1,9})"
_FORMS = tuple(
    re.compile(form)
    for form in (
        r'^\s*File "(?P<file>[^"]{1,1000})", line (?P<line>\d{1,9})(?:, in (?P<name>\S{1,500}))?',
        rf"^\s*at (?P<name>[^\s(]{{1,500}})\((?P<file>[^():]{{1,300}})(?:{_AT})?\)",
        r"^\s*at (?P<name>\S.{0,500}?) in (?P<file>\S.{0,500}?):line (?P<line>\d{1,9})",
        (
            rf"^\s*at (?:async )?(?P<name>[^\s(]{{1,300}})[^(]{{0,200}} "
            rf"\((?P<file>[^()]{{1,500}}?){_AT}(?::\d{{1,9}})?\)"
        ),
        rf"^\s*at (?P<name>)(?P<file>[^\s()]{{1,500}}?){_AT}:\d{{1,9}}$",
        rf"^\s*(?:from )?(?P<file>[^\s:]{{1,500}}){_AT}:in [`'](?P<name>[^'`]{{1,300}})'",
        rf"^\s*(?P<name>)(?P<file>\S{{1,500}}\.go){_AT}(?: \+0x[0-9a-f]+)?$",
        (
            rf"^\s*#\d{{1,4}}\s+(?:0x[0-9a-f]+ in )?(?P<name>\S{{1,300}}) .{{0,300}}? at "
            rf"(?P<file>[^\s:]{{1,500}}){_AT}"
        ),
        (
            rf"^(?P<name>)(?P<file>[\w./\\-]{{1,500}}\.\w{{1,5}}){_AT}: ?"
            r"(?:\w*(?:Error|Exception)|in \w+)?$"
        ),
    )
)
_FOREIGN = re.compile(
    r"^(?:java|javax|jdk|sun|com\.sun|kotlin|kotlinx|scala|groovy|clojure|jakarta)[./]"
    r"|^(?:org\.(?:junit|testng|hamcrest|mockito|assertj|easymock|opentest4j|gradle|codehaus"
    r"|scalatest|spockframework|apache\.(?:maven|tools\.ant))|junit|mockit|sbt|System|Microsoft"
    r"|NUnit|Xunit|xunit)\."
    r"|site-packages|dist-packages|[/\\]lib(?:64)?[/\\]python\d|<frozen |node_modules"
    r"|^node:|internal/"
    r"|[/\\]go[/\\]src[/\\]|[/\\]gems[/\\]|^(?:unittest|_pytest|pytest|pluggy|nose)\b|^<",
)
_HINT = re.compile(r"[:(\"]")
_LINE_LIMIT = 2_000
"""A longer line is no frame."""


def frames(stack: str, most: int = 500) -> list[Frame]:
    """The frames of a trace in their order, at most so many."""
    found: list[Frame] = []
    for line in stack.split("\n"):
        if len(found) == most:
            break
        if frame := _read(line.rstrip()):
            found.append(frame)
    return found


def own_frames(stack: str, most: int = 500) -> list[Frame]:
    """The frames of a trace that are neither a language's nor a framework's."""
    return [frame for frame in frames(stack, most) if frame.own]


def _read(line: str) -> Frame | None:
    if len(line) > _LINE_LIMIT or not _HINT.search(line):
        return None
    for form in _FORMS:
        if found := form.match(line):
            name, file = found["name"] or "", found["file"].strip()
            own = not (_FOREIGN.search(name) or _FOREIGN.search(file))
            return Frame(name, file, int(found["line"] or 0), own)
    return None
