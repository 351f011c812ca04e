"""Stack traces of many languages as frames: where the program was, innermost first.

Knows how languages print a frame and how they chain causes. The table `SHAPES` is the reader: a
line that fits a row is a frame. Refuses to know whose code a frame is (`ownership` does).
"""

import re
from collections.abc import Iterator

import msgspec

MAX_LINES = 4_000
"""A trace that overflowed its stack repeats itself; its beginning and its end tell all."""
MAX_LINE = 500


class Frame(msgspec.Struct, frozen=True):
    """One place in the program. `scope` is the class, module or package, as far as it is told."""

    scope: str = ""
    function: str = ""
    file: str = ""
    line: int = 0

    @property
    def place(self) -> str:
        """The same wherever the code stands in its file, and wherever the file is checked out."""
        if self.scope:
            return f"{self.scope}.{self.function}"
        return f"{self.file.rsplit('/', 1)[-1]}:{self.function}"


class Trace(msgspec.Struct, frozen=True):
    """One error and its frames, innermost first. A root cause is the trace nothing else caused."""

    type: str = ""
    message: str = ""
    frames: tuple[Frame, ...] = ()


_SOURCES = (
    "py|java|kt|kts|scala|groovy|clj|go|[cm]?[jt]sx?|vue|svelte|cs|fs|vb|rb|rs|c|cc|cpp|cxx|h|hh|hpp"
    "|m|mm|swift|php|pl|pm|t|lua|ex|exs|erl|dart|hs|jl|r|sh|bash|feature|robot"
)
_FILE = r"(?P<file>(?:[A-Za-z]:)?[^\s():'\"<>|,;=]+\.(?:" + _SOURCES + r"))"
_JVM = (
    r"^\s*at (?:[\w.$@-]*/{1,2})*(?P<scope>[\w$.-]+)\.(?P<function>[\w$<>\u00a1-\uffff-]+)"
    r"\((?:(?P<file>[\w$.-]+\.\w+)(?::(?P<line>\d+))?|Native Method|Unknown Source)\)"
)
_PYTHON = r"^\s*File \"(?P<file>[^\"]+)\", line (?P<line>\d+)(?:, in (?P<function>\S+))?"
_JAVASCRIPT = (
    r"^\s*at (?:(?:async |new )*(?P<function>[^\s(]+)(?: \[as [^\]]+\])? )?\(?"
    r"(?:file://|webpack://[^/]*/)?(?P<file>[^\s()]+?):(?P<line>\d+)(?::\d+)?\)?\s*$"
)
_DOTNET = (
    r"^\s*at (?P<scope>[\w.`+<>\[\],]+)\.(?P<function>[\w<>`|\[\]]+)\s?\([^)]*\)"
    r"(?: in (?P<file>.+?):line (?P<line>\d+))?\s*$"
)
_RUBY = (
    r"^\s*(?:#\s+|from\s+|\d+:\s+from\s+)?" + _FILE + r":(?P<line>\d+):in "
    r"[`'](?:block (?:\(\d+ levels\) )?in |rescue in |ensure in )?(?P<function>[^'`]+)'"
)
_PHP = r"^\s*#\d+ (?P<file>[^\s(]+\.php)\((?P<line>\d+)\): (?P<function>[\w\\:>-]+)\("
_NATIVE = (
    r"^\s*#\d+\s+(?:0x[0-9a-fA-F]+ (?:in )?)?(?P<function>[^\s(]+)(?: ?\(.*\))?"
    r" (?:at )?(?P<file>(?:[A-Za-z]:)?[^\s():]+):(?P<line>\d+)(?::\d+)?\s*$"
)
_PLACE = (
    r"^\s*(?:Error Trace:\s*|#\s+|-->\s*)?" + _FILE + r"[:(](?P<line>\d+)(?:[:,]\d+)?\)?"
    r"(?::|\s*$)"
)
_PANIC = r"panicked at (?:'.*', )?(?P<file>[^\s':]+\.rs):(?P<line>\d+)"
SHAPES: tuple[tuple[str, str, re.Pattern[str]], ...] = (
    ("jvm", "(", re.compile(_JVM)),
    ("python", 'File "', re.compile(_PYTHON)),
    (
        "pytest",
        ": in ",
        re.compile(rf"^{_FILE}:(?P<line>\d+): in (?P<function>[\w.<>]+)\s*$"),
    ),
    (
        "pytest",
        ".py:",
        re.compile(r"^(?P<file>[^\s():'\"<>|,;=]+\.py):(?P<line>\d+): ?(?:[A-Z][\w.]*)?\s*$"),
    ),
    ("go", ".go:", re.compile(r"^\s+(?P<file>\S+\.go):(?P<line>\d+)(?: \+0x[0-9a-f]+)?\s*$")),
    ("rust", ".rs:", re.compile(r"^\s+at (?P<file>\S+\.rs):(?P<line>\d+)(?::\d+)?\s*$")),
    ("javascript", "at ", re.compile(_JAVASCRIPT)),
    ("dotnet", "at ", re.compile(_DOTNET)),
    (
        "gecko",
        "@",
        re.compile(r"^\s*(?P<function>[\w$./<]*)@(?P<file>[^\s@]+?):(?P<line>\d+):\d+\s*$"),
    ),
    ("ruby", ":in ", re.compile(_RUBY)),
    ("php", ".php(", re.compile(_PHP)),
    ("native", "#", re.compile(_NATIVE)),
    ("panic", "panicked at", re.compile(_PANIC)),
    ("place", ".", re.compile(_PLACE)),
)
"""How a frame is printed: a name, what must be there (quickly found), and the pattern."""

_CAUSED = re.compile(
    r"^\s*(?:Caused by|Wrapped by|Suppressed|Cause|--->|---> |\[cause\]):?\s*(.*)$"
)
_BREAKS = ("NameError", "UnboundLocalError", "AttributeError", "TypeError", "ImportError")
"""Errors of the code itself: raised while another is handled, it is the handler that broke."""
_DEF = re.compile(r"^\s*(?:async )?def (\w+)\(")
"""Where a function begins in the source that pytest shows above a place."""
_HANDLING = re.compile(
    r"^(?:During handling of the above exception|The above exception was the direct cause)"
)
_GO_CALL = re.compile(
    r"^(?:created by )?(?P<call>[\w./*()\-]+\.[\w.*()\-]+?)(?:\(.*\))?(?: in .*)?$"
)
_RUST_CALL = re.compile(r"^\s*\d+:\s+(?:0x[0-9a-f]+ - )?(?P<call>[\w:<>{}#,& ]+?)\s*$")
_HEAD = re.compile(
    r"^(?:E\s+|\[\w+\]\s+|Exception in thread \"[^\"]*\" |Unhandled exception\. |Uncaught )?"
    r"(?P<type>(?:[A-Za-z_$][\w$]*[.:]{1,2})*[A-Z_a-z$][\w$]*"
    r"(?:Error|Exception|Failure|Failed|Timeout|Interrupt|Exit|Violation|Throwable|Refused|Warning))"
    r"(?:\s*\([^)]*\))?(?::\s*(?P<message>.*))?\s*$"
)


def read_frame(line: str) -> Frame | None:
    """The frame a line tells, if it is one."""
    found = _shaped(line[:MAX_LINE])
    return found[1] if found else None


def read_traces(text: str) -> tuple[Trace, ...]:
    """The errors of a text, root cause first."""
    parts = [part for part in _parts(_bounded(text)) if part[1].frames or part[1].type]
    if parts and parts[-1][0] == "during" and parts[-1][1].type in _BREAKS:
        return tuple(trace for _, trace in reversed(parts))
    if any(link in ("handling", "during") for link, _ in parts):
        return tuple(trace for _, trace in parts)
    return tuple(trace for _, trace in reversed(parts))


def read_frames(text: str) -> tuple[Frame, ...]:
    """All frames, each once: those of the root cause first, of each error the innermost first."""
    return tuple(dict.fromkeys(frame for trace in read_traces(text) for frame in trace.frames))


def _bounded(text: str) -> list[str]:
    lines = text.split("\n")
    if len(lines) > MAX_LINES:
        lines = lines[: MAX_LINES // 2] + lines[-MAX_LINES // 2 :]
    return [line[:MAX_LINE] for line in lines]


def _parts(lines: list[str]) -> Iterator[tuple[str, Trace]]:
    """Each error of the text, with how the text came to it."""
    link, python = "", False
    head, frames, above, shown = Trace(), list[Frame](), "", ""
    for line in lines:
        caused, handling = _CAUSED.match(line), _HANDLING.match(line)
        if caused or handling:
            yield link, _closed(head, frames, python)
            link = "caused" if caused else "during" if line.startswith("During") else "handling"
            head, frames, python = _headed(caused.group(1)) if caused else Trace(), [], False
        elif found := _shaped(line):
            name, frame = found
            python |= name in ("python", "pytest")
            frame = _named(name, frame, above)
            if name == "pytest" and not frame.function:
                frame = msgspec.structs.replace(frame, function=shown)
            frames.append(frame)
            shown = ""
        elif not shown and (begun := _DEF.match(line)):
            shown = begun[1]
        elif (not head.type or (python and not line.startswith((" ", "\t")))) and (
            said := _headed(line)
        ).type:
            head = said
        above = line
    yield link, _closed(head, frames, python)


def _closed(head: Trace, frames: list[Frame], outermost_first: bool) -> Trace:
    ordered = tuple(reversed(frames)) if outermost_first else tuple(frames)
    return msgspec.structs.replace(head, frames=ordered)


def _headed(line: str) -> Trace:
    found = _HEAD.match(line.strip())
    return Trace(found["type"], found["message"] or "") if found else Trace()


def _shaped(line: str) -> tuple[str, Frame] | None:
    for name, hint, pattern in SHAPES:
        if hint in line and (found := pattern.search(line)):
            parts = found.groupdict()
            return name, Frame(
                parts.get("scope") or "",
                parts.get("function") or "",
                (parts.get("file") or "").replace("\\", "/"),
                int((parts.get("line") or "0")[:9]),
            )
    return None


def _named(shape: str, frame: Frame, above: str) -> Frame:
    """Go and Rust print the function on the line before its place."""
    found = None
    if shape == "go":
        found = _GO_CALL.match(above)
    elif shape == "rust":
        found = _RUST_CALL.match(above)
    if found is None:
        return frame
    scope, _, function = found["call"].replace("::", ".").rpartition(".")
    return msgspec.structs.replace(frame, scope=scope, function=function)
