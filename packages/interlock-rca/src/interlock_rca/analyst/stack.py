"""Stack traces of many languages as frames, innermost first, and whose code each frame is.

The table `SHAPES` is the reader: a line that fits a row is a frame. Frames are the product's, its
tests' or a library's, by where ecosystems put what they did not write and how tests are named. Also
finds a failure's frames and words wherever its report put them, and the files of a repository that
the frames lead to.
"""

import re
from collections.abc import Iterable, Iterator
from functools import lru_cache

import msgspec

from interlock_rca.analyst.names import detect_language
from interlock_rca.records import Failure
from interlock_rca.sources.git.repository import Repository

MAX_LINES = 4_000
"""A trace that overflowed its stack repeats itself; its beginning and its end are enough."""
MAX_LINE_LENGTH = 500


class Frame(msgspec.Struct, frozen=True):
    """One place in the program. `scope` is the class, module or package, as far as it is known."""

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
    """The frame in a line, if it is one."""
    found = _match_shape(line[:MAX_LINE_LENGTH])
    return found[1] if found else None


def read_traces(text: str) -> tuple[Trace, ...]:
    """The errors of a text, root cause first."""
    parts = [part for part in _split_errors(_clip_lines(text)) if part[1].frames or part[1].type]
    if parts and parts[-1][0] == "during" and parts[-1][1].type in _BREAKS:
        return tuple(trace for _, trace in reversed(parts))
    if any(link in ("handling", "during") for link, _ in parts):
        return tuple(trace for _, trace in parts)
    return tuple(trace for _, trace in reversed(parts))


@lru_cache(maxsize=32)
def read_frames(text: str) -> tuple[Frame, ...]:
    """All frames, each once: those of the root cause first, of each error the innermost first."""
    return tuple(dict.fromkeys(frame for trace in read_traces(text) for frame in trace.frames))


def _clip_lines(text: str) -> list[str]:
    lines = text.split("\n")
    if len(lines) > MAX_LINES:
        lines = lines[: MAX_LINES // 2] + lines[-MAX_LINES // 2 :]
    return [line[:MAX_LINE_LENGTH] for line in lines]


def _split_errors(lines: list[str]) -> Iterator[tuple[str, Trace]]:
    """Each error of the text, with how the text came to it."""
    link, python = "", False
    head, frames, above, function = Trace(), list[Frame](), "", ""
    for line in lines:
        caused, handling = _CAUSED.match(line), _HANDLING.match(line)
        if caused or handling:
            yield link, _build_trace(head, frames, python)
            link = "caused" if caused else "during" if line.startswith("During") else "handling"
            head, frames, python = (
                _read_error_head(caused.group(1)) if caused else Trace(),
                [],
                False,
            )
        elif found := _match_shape(line):
            name, frame = found
            python |= name in ("python", "pytest")
            frame = _add_function(name, frame, above)
            if name == "pytest" and not frame.function:
                frame = msgspec.structs.replace(frame, function=function)
            frames.append(frame)
            function = ""
        elif not function and (definition := _DEF.match(line)):
            function = definition[1]
        elif (not head.type or (python and not line.startswith((" ", "\t")))) and (
            found_head := _read_error_head(line)
        ).type:
            head = found_head
        above = line
    yield link, _build_trace(head, frames, python)


def _build_trace(head: Trace, frames: list[Frame], outermost_first: bool) -> Trace:
    ordered = tuple(reversed(frames)) if outermost_first else tuple(frames)
    return msgspec.structs.replace(head, frames=ordered)


def _read_error_head(line: str) -> Trace:
    found = _HEAD.match(line.strip())
    return Trace(found["type"], found["message"] or "") if found else Trace()


@lru_cache(maxsize=8_192)
def _match_shape(line: str) -> tuple[str, Frame] | None:
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


def _add_function(shape: str, frame: Frame, above: str) -> Frame:
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


_LIBRARY_SCOPE_TEXT = """
java. javax. jdk. sun. com.sun. jakarta. kotlin. kotlinx. scala. groovy. org.codehaus.groovy.
org.apache.groovy. clojure. android. androidx. junit. org.junit. org.testng. org.hamcrest.
org.assertj. org.mockito. org.easymock. org.powermock. org.spockframework. org.scalatest.
io.kotest. org.apache.tools.ant. org.apache.maven. org.gradle. worker.org.gradle. sbt.
com.intellij.rt. org.eclipse.jdt.internal. org.jacoco. net.bytebuddy. System. Microsoft. NUnit.
Xunit. Moq. FluentAssertions. std. core. alloc. runtime. testing. reflect. testing/ net/http.
github.com/stretchr/testify/
"""
LIBRARY_SCOPES = tuple(_LIBRARY_SCOPE_TEXT.split())
"""Packages of the languages themselves, of test frameworks, and of build tools."""

_LIBRARY_FILE = re.compile(
    r"(?:^|/)(?:site-packages|dist-packages|node_modules|bower_components|vendor|third_party)/"
    r"|(?:^|/)lib(?:64)?/python\d|(?:^|/)python\d\.\d+/|/gems/|/rubygems/|/ruby/\d|\.cargo/registry/"
    r"|^/rustc/|/go/pkg/mod/|/usr/local/go/src/|^/usr/(?:lib|include|share)/|^node:|^internal/"
    r"|^<(?:frozen|string|anonymous|stdin)|\.m2/repository/|(?:^|/)_pytest/|(?:^|/)unittest/(?:case|mock)"
)
_TEST_SCOPE = re.compile(
    r"(?:^|[._$/])(?:Abstract|Base)?(?:Test|IT|Spec)(?:[A-Z_]\w*)?(?:$|[.$_])"
    r"|\w(?:Test|Tests|TestCase|TestBase|ITCase|IT|Spec|Specs|Suite|Steps|StepDefs)(?:$|[.$])"
    r"|(?:^|[.$/])(?:tests?|specs?|testing|e2e|fixtures?|conftest|mocks?)(?:$|[.$/])"
)
_TEST_FILE = re.compile(
    r"(?:^|/)(?:tests?|specs?|__tests__|testing|e2e|fixtures?|features|cypress|integration)/"
    r"|(?:^|/)(?:test_|conftest|Test)[^/]*$|[_.-](?:test|tests|spec|e2e|cy)\.[a-z]+$"
    r"|(?:Test|Tests|Spec|TestCase)\.\w+$"
)


def find_owner(frame: Frame, class_name: str = "") -> str:
    """`product`, `test` or `library`, in the eyes of a failing test of that class."""
    if is_library(frame, class_name):
        return "library"
    return "test" if is_test_frame(frame) else "product"


@lru_cache(maxsize=8_192)
def is_library(frame: Frame, class_name: str = "") -> bool:
    """The makers of a library test it too: what their test's class is named after is theirs."""
    if _LIBRARY_FILE.search(frame.file):
        return True
    scope = f"{frame.scope}."
    if not scope.startswith(LIBRARY_SCOPES):
        return False
    listed = next(prefix for prefix in LIBRARY_SCOPES if scope.startswith(prefix))
    return not class_name.startswith(listed.rstrip("./"))


@lru_cache(maxsize=8_192)
def is_test_frame(frame: Frame) -> bool:
    return bool(_TEST_SCOPE.search(frame.scope) or _TEST_FILE.search(frame.file))


def is_test_name(name: str) -> bool:
    """Whether a class or path is a test's by its name."""
    if "/" in name or detect_language(name):
        return bool(_TEST_FILE.search(name))
    return bool(_TEST_SCOPE.search(name))


def filter_own_frames(frames: Iterable[Frame], class_name: str = "") -> tuple[Frame, ...]:
    """The frames that are the product's or its tests', in their order."""
    return tuple(frame for frame in frames if not is_library(frame, class_name))


_LOOKED_AT = 20_000
_MOST_LINES = 40
_LEAST = 4
"""A shorter line is no line of its own wherever it occurs."""
_MARKED_ERROR = re.compile(r"^E {2,}")
_CODE = re.compile(r"^\s*(?:>?\s*\d+ ?\||>  |\||\^|~+\s*$)|Traceback \(|^_{3,}|^[-=*]{3,}")
"""Source that is shown around a place, and rulers."""
_CAUSE_LINE = re.compile(r"^\s*(?:Caused by|---> |\[cause\])")


def find_frames(failure: Failure) -> tuple[Frame, ...]:
    """The frames of its stack; where there are none, those of its message."""
    return read_frames(failure.stack) or read_frames(failure.message[:_LOOKED_AT])


def extract_message(failure: Failure) -> str:
    """Its message, and what its stack says beyond that."""
    message = failure.message[:_LOOKED_AT]
    known = [line.strip() for line in message.split("\n")]
    more: list[str] = []
    for error_line in _find_error_lines(failure.stack[:_LOOKED_AT]):
        line = error_line.removeprefix(failure.type).lstrip(": ")
        if line and not any(
            line in other or (len(other) >= _LEAST and other in line) for other in (*known, *more)
        ):
            more.append(line)
    return "\n".join([message, *more] if message else more)


def _find_error_lines(stack: str) -> list[str]:
    """Lines of a stack that are no frames: those marked as the error's own, or else those above
    the first frame and the causes."""
    lines = stack.split("\n")
    marked = [_MARKED_ERROR.sub("", line).strip() for line in lines if _MARKED_ERROR.match(line)]
    if marked:
        return [line for line in marked if line][:_MOST_LINES]
    found: list[str] = []
    above = True
    for line in lines:
        if read_frame(line) is not None and not _has_message(line):
            above = False
        elif line.strip() and (above or _CAUSE_LINE.match(line)) and not _CODE.search(line):
            found.append(line.strip())
    return found[:_MOST_LINES]


def _has_message(line: str) -> bool:
    """A place with a message behind it, as Go and compilers print it."""
    return bool(re.match(r"^\s*[\w./\\-]+:\d+(?::\d+)?: \S", line)) and ": in " not in line


class StackLocation(msgspec.Struct, frozen=True):
    """A place of a failure's stack that is there in a repository."""

    path: str
    line: int
    function: str
    is_test: bool
    depth: int = 0
    """How many frames of the stack are further inside."""
    shared: int = 1
    """How many names of the path agree: the more, the surer it is this file."""


def locate_frames(failure: Failure, repository: Repository, rev: str = "") -> list[StackLocation]:
    """The places of the stack in that repository, the product's before the tests', innermost
    first."""
    if not repository.is_readable:
        return []
    found: dict[tuple[str, int], StackLocation] = {}
    for depth, frame in enumerate(_find_own_frames(failure)):
        word = frame.file if "/" in frame.file else frame.scope or frame.file
        for match in repository.find_files(word, rev)[:1]:
            if (
                match.shared == 1
                and "/" in word
                and not _has_line(repository, match.path, frame, rev)
            ):
                continue  # it is only called alike
            spot = StackLocation(
                path=match.path,
                line=frame.line,
                function=frame.function,
                is_test=is_test_frame(frame),
                depth=depth,
                shared=match.shared,
            )
            found.setdefault((spot.path, spot.line), spot)
    return sorted(found.values(), key=lambda spot: spot.is_test)


def _has_line(repository: Repository, path: str, frame: Frame, rev: str) -> bool:
    """Whether a file is as long as a frame says."""
    entry = repository.read_entry(path, rev)
    content = entry.content if entry else None
    return content is None or frame.line <= content.count(b"\n") + 1


def _find_own_frames(failure: Failure) -> Iterable[Frame]:
    frames = read_frames(failure.stack) or read_frames(failure.message) or read_frames(failure.log)
    return (frame for frame in frames if frame.file and not is_library(frame, failure.class_name))
