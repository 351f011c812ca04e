"""The names that a failure mentions, weighted by how they are mentioned.

Reads message, stack and log once, for whoever looks for a culprit: what is missing, what conflicts,
what was asked for, and (of Maven-like builds) what was downloaded for which module. Who the
candidates are is not known here.
"""

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping

import msgspec

from interlock.rca.analyst.line_kinds import find_complaint_blocks
from interlock.rca.analyst.names import extract_words
from interlock.rca.analyst.stack import LIBRARY_SCOPES, Frame, find_frames, read_frame, read_frames
from interlock.rca.records import Failure

_FETCHED = re.compile(r"Downloaded.*?/([\w.-]+)/([\w.-]+)/[\w.-]+\.(pom|jar|aar|war)\b")
_STEP = re.compile(r"^(?:\[INFO\] )?--- \S+.* ---$")
_MODULE = re.compile(r"^(?:\[INFO\] )?(?:-+< .* >-+|-+\[ \S+ \]-+|Building \S)")
_NEW_MODULE = re.compile(r"^(?:\[INFO\] )?(?:-+< .* >-+|Building \S)")
_LONGEST_DOWNLOAD_LINE = 600
_CONTESTED = 3
_MANAGING = re.compile(r"(?:^|-)(?:bom|dependencies|platform)(?:-|$)")


class Downloads(msgspec.Struct, frozen=True):
    """Names of artefacts, without groups and versions."""

    dependencies: frozenset[str] = frozenset()
    """A module depends on them."""
    last_dependencies: frozenset[str] = frozenset()
    """The module that came last, the one that broke, depends on them."""
    version_managers: frozenset[str] = frozenset()
    """They choose the versions of others: fetched to build the model, and named for it."""
    order: Mapping[str, int] = {}
    """Who was asked about when: what a build names itself comes before what that needs."""
    contested: frozenset[str] = frozenset()
    """Of these at least three versions were asked for: somebody chose another than others want."""


def read_downloads(log: str) -> Downloads:
    """What the log says of downloads; nothing for logs of other tools."""
    if "Downloaded" not in log:
        return Downloads()
    depended: dict[str, int] = {}
    managing: set[str] = set()
    versions: dict[str, set[str]] = defaultdict(set)
    waiting: list[str] = []
    in_step, module = False, 0
    for line in log.split("\n"):
        if "ownload" in line:
            name, version, kind = _parse_download(line)
            if kind == "pom":
                versions[name].add(version)
            if kind == "pom" and not module and _MANAGING.search(name):
                managing.add(name)
            elif kind not in ("", "pom") and not in_step:
                waiting.append(name)
        elif _STEP.match(line):
            depended.update(dict.fromkeys(waiting, module))
            waiting, in_step = [], True
        elif _MODULE.match(line):
            module += bool(_NEW_MODULE.match(line))
            in_step = False
    newest = frozenset(name for name, at in depended.items() if at == module)
    return Downloads(
        dependencies=frozenset(depended),
        last_dependencies=newest,
        version_managers=frozenset(managing),
        order={name: at for at, name in enumerate(versions)},
        contested=frozenset(name for name in versions if len(versions[name]) >= _CONTESTED),
    )


def _parse_download(line: str) -> tuple[str, str, str]:
    found = _FETCHED.search(line[:_LONGEST_DOWNLOAD_LINE])
    return (found[1], found[2], found[3]) if found else ("", "", "")


LANGUAGE_SCOPES = ("java.", "sun.", "jdk.", "System.", "std.", "core.")
ACCUSED_WEIGHT = 3.0
"""How much more a name weighs in a line that says what is missing or does not fit."""

_ACCUSING = re.compile(
    r"does not exist|[Cc]annot (?:access|find|be|import|resolve)|NoClassDef|NoSuch|ClassNotFound"
    r"|IncompatibleClass|wrong version|[Uu]nrecognized|incompatible|AbstractMethod|UnsupportedClass"
    r"|ExceptionInInit|InvalidClass|ModuleNotFound|ImportError|has no attribute|undefined reference"
    r"|unresolved import|no required module|[Mm]issing"
)
_NAME = re.compile(r"[A-Za-z_][\w$-]*(?:[./\\][A-Za-z_$][\w$-]*){2,}")
_COORDINATE = re.compile(r"([A-Za-z][\w.-]*\w):([A-Za-z][\w.-]*)")
_ARCHIVE = re.compile(
    r"[/\\]([A-Za-z][\w.-]*?)-\d[\w.]*(?:-[\w.]+)*\.(?:jar|war|aar|whl|tgz|gem)\b"
)
_RUNNER = re.compile(r"execute goal \S+|Task :?\S+")
_VICTIM = re.compile(r"(?:onvergence|upper bound).* error for ([\w.-]+:[\w.-]+)")
_BRANCH = re.compile(r"^(?:\[\w+\]\s*)?([ |]*)[+\\]- ?")
_OWN_FILE = re.compile(r"src/(?:main|test|it)\w*/\w+/((?:\w+/)+)\w+\.\w+")
_OWN_TEST = re.compile(r"(?:Running|in) ([a-z]\w*(?:\.\w+){2,})")
_CHECKOUT = re.compile(r"/\S+?/src/")
_VERSIONED = re.compile(
    r"requires \S+ \d|onvergence|upper bound|or higher|is missing|differ|could not be resolved"
    r"|[Vv]ersion (?:conflict|mismatch|solving)|No matching version|unable to resolve dependency"
)
_LONGEST = 1_200
_TAIL = 200_000
"""How much of a log's end is searched for the names of the tests that ran."""


class Mentions(msgspec.Struct, frozen=True):
    """What a failure mentions, with weights."""

    frames: tuple[Frame, ...]
    """Of the stack, root cause first."""
    other_frames: tuple[Frame, ...]
    """Of the log."""
    names: Mapping[str, float]
    """Dotted names that are not the failing code's own."""
    coordinates: Mapping[str, float]
    """`group:artifact`, as build tools say it."""
    archives: Mapping[str, float]
    words: Mapping[str, float]
    downloads: Downloads
    about_versions: bool
    class_name: str
    test_name: str
    message: str


def collect_mentions(failure: Failure) -> Mentions:
    """Everything this failure says that may point at a culprit."""
    lines = find_complaint_blocks(failure.log) if failure.log else []
    collector = _MentionCollector(_find_own_packages(failure, lines))
    for line in dict.fromkeys([*failure.message[:20_000].split("\n"), *lines]):
        collector.add_line(line[:_LONGEST])
    return Mentions(
        frames=find_frames(failure),
        other_frames=read_frames("\n".join(lines)),
        names=collector.names,
        coordinates=collector.coordinates,
        archives=collector.archives,
        words=collector.words,
        downloads=read_downloads(failure.log),
        about_versions=any(_VERSIONED.search(line) for line in lines),
        class_name=failure.class_name,
        test_name=failure.test_name,
        message=failure.message[:20_000],
    )


def _find_own_packages(failure: Failure, lines: Iterable[str]) -> tuple[str, ...]:
    """The packages of the code that was built or tested: it is not its own dependency."""
    found = {
        _shorten_package(path.replace("/", "."))
        for line in lines
        for path in _OWN_FILE.findall(line)
    }
    found.update(map(_shorten_package, _OWN_TEST.findall(failure.log[-_TAIL:])))
    if failure.class_name.count(".") > 1:
        found.add(_shorten_package(failure.class_name))
    return tuple(sorted(found))


def _shorten_package(name: str) -> str:
    return ".".join(name.split(".")[:3])


class _MentionCollector:
    def __init__(self, own: tuple[str, ...]) -> None:
        self.names: dict[str, float] = defaultdict(float)
        self.coordinates: dict[str, float] = defaultdict(float)
        self.archives: dict[str, float] = defaultdict(float)
        self.words: dict[str, float] = defaultdict(float)
        self._own = own
        self._victim = ""
        self._depth = 0

    def add_line(self, line: str) -> None:
        line = _RUNNER.sub("", line)
        weight = ACCUSED_WEIGHT if _ACCUSING.search(line) else 1.0
        in_trace = line.lstrip().startswith("at ") or read_frame(line) is not None
        self._depth = self._depth + 1 if in_trace else 0
        self._collect_coordinates(line, weight)
        for archive in _ARCHIVE.findall(line):
            self.archives[archive] += weight
        self._collect_names(line, weight, in_trace)
        if not in_trace:
            for word in extract_words(_CHECKOUT.sub("/", line)):
                self.words[word] += weight

    def _collect_coordinates(self, line: str, weight: float) -> None:
        if victim := _VICTIM.search(line):
            self._victim = victim[1]
            return
        branch = _BRANCH.match(line)
        for group, artifact in _COORDINATE.findall(line):
            coordinate = f"{group}:{artifact}"
            if branch:
                weight = 3.0 if 0 < len(branch[1]) <= 3 else 0.3
            if coordinate != self._victim:
                self.coordinates[coordinate] += weight if branch else 2 * weight

    def _collect_names(self, line: str, weight: float, in_trace: bool) -> None:
        for found in _NAME.findall(line):
            name = found.replace("/", ".").replace("\\", ".")
            common_scopes = LIBRARY_SCOPES if in_trace else LANGUAGE_SCOPES
            if not name.startswith(common_scopes) and not name.startswith(self._own):
                self.names[name] += weight / (1 + self._depth)
