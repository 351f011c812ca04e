"""Suspect artefacts: which dependency of a build, by its coordinate, broke it.

Reads from a build's log what is missing, what conflicts, what was asked for and what was
downloaded for which module. No analysis needs this: it is measured for itself.
"""

import math
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence

import msgspec

from interlock_rca.analyst.line_kinds import find_complaint_blocks
from interlock_rca.analyst.names import Clue, extract_words, measure_rarity
from interlock_rca.analyst.stack import LIBRARY_SCOPES, is_test_name, read_frame
from interlock_rca.analyst.suspects import MAX_RANKED, RankedSuspect
from interlock_rca.records import Failure
from interlock_rca.sources.git.stack_paths import count_shared

POINTS = {
    "coordinate": 4.0,  # a build tool names it
    "archive": 3.0,  # its file is named
    "names": 2.0,  # names under its group
    "log words": 1.0,  # words of the complaints
    "depended": 1.0,  # fetched as a dependency of what was built
    "last": 1.0,  # and of the module that broke
    "contested": 2.0,  # and the build asked for several versions of it
    "first": 1.0,  # and it was asked for before others of its group
    "managing": 3.0,  # chooses versions, where versions are the trouble
}
_SOFTNESS = 6.0


class Artefact(msgspec.Struct, frozen=True):
    """A coordinate taken apart."""

    text: str
    parts: tuple[str, ...]
    """Of its group."""
    leaf: str
    words: frozenset[str]


def is_coordinate(text: str) -> bool:
    """Return whether that is `group:artifact`, and no path or name."""
    return ":" in text and "/" not in text and "\\" not in text


def parse_artefact(text: str) -> Artefact:
    """Return the parts of a coordinate."""
    group, leaf = text.split(":")[:2]
    parts = tuple(group.split("."))
    return Artefact(text, parts, leaf, frozenset(extract_words(f"{leaf} {parts[-1]}")))


def rank_artefacts(failure: Failure, coordinates: Sequence[str]) -> list[RankedSuspect]:
    """Return the coordinates against which there is a clue, likeliest first."""
    known = [parse_artefact(text) for text in dict.fromkeys(coordinates)]
    if not known:
        return []
    said = read_build_words(failure)
    points: dict[str, dict[str, float]] = defaultdict(lambda: defaultdict(float))
    for look in (_find_coordinate_clues, _find_group_clues, _find_word_clues, _find_download_clues):
        for clue, text, share in look(said, known):
            points[text][clue] += POINTS[clue] * share
    for look_again in (_find_contested_clues, _find_first_clues):
        for clue, text, share in list(look_again(said, known, points)):
            points[text][clue] += POINTS[clue] * share
    ranked = [_score(text, found) for text, found in points.items() if any(found.values())]
    return sorted(ranked, key=lambda one: (-one.score, one.candidate))[:MAX_RANKED]


def _score(text: str, found: Mapping[str, float]) -> RankedSuspect:
    total = sum(found.values()) * (0.5 if is_test_name(text) else 1.0)
    strongest = sorted(filter(found.get, found), key=lambda clue: (-found[clue], clue))[:3]
    score = 1 - math.exp(-max(0.0, total) / _SOFTNESS)
    return RankedSuspect(text, round(score, 6), ", ".join(strongest))


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


class BuildWords(msgspec.Struct, frozen=True):
    """What a build's message and log mention, with weights."""

    names: Mapping[str, float]
    """Dotted names that are not the failing code's own."""
    coordinates: Mapping[str, float]
    """`group:artifact`, as build tools say it."""
    archives: Mapping[str, float]
    words: Mapping[str, float]
    downloads: Downloads
    about_versions: bool


def read_build_words(failure: Failure) -> BuildWords:
    """Return everything this failure says that may point at an artefact."""
    lines = find_complaint_blocks(failure.log) if failure.log else []
    collector = _WordCollector(_find_own_packages(failure, lines))
    for line in dict.fromkeys([*failure.message[:20_000].split("\n"), *lines]):
        collector.add_line(line[:_LONGEST])
    return BuildWords(
        names=collector.names,
        coordinates=collector.coordinates,
        archives=collector.archives,
        words=collector.words,
        downloads=read_downloads(failure.log),
        about_versions=any(_VERSIONED.search(line) for line in lines),
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


class _WordCollector:
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


Points = Mapping[str, Mapping[str, float]]
"""Of each artefact and clue, the points so far; none for others."""
_MENTIONED = 2.0
"""Points from which an artefact is clearly mentioned."""
_BEFORE = 1.02


def _find_coordinate_clues(said: BuildWords, known: Sequence[Artefact]) -> Iterator[Clue]:
    for artefact in known:
        if weight := said.coordinates.get(":".join(artefact.text.split(":")[:2])):
            yield "coordinate", artefact.text, math.log1p(weight)
        if weight := said.archives.get(artefact.leaf):
            yield "archive", artefact.text, math.log1p(weight)


def _find_group_clues(said: BuildWords, known: Sequence[Artefact]) -> Iterator[Clue]:
    """Packages are called like the group of the artefact they come in, and like its name."""
    by_head: dict[tuple[str, ...], list[Artefact]] = defaultdict(list)
    for artefact in known:
        by_head[artefact.parts[:2]].append(artefact)
    found: dict[str, float] = defaultdict(float)
    for name, weight in said.names.items():
        segments = tuple(name.split("."))
        words = extract_words(name) | {segment.lower() for segment in segments}
        fits = [
            (_score_fit(artefact, segments, words), artefact)
            for artefact in by_head.get(segments[:2], ())
        ]
        best = max((fit for fit, _ in fits), default=0.0)
        if best >= 0.3:
            chosen = [artefact.text for fit, artefact in fits if fit >= 0.95 * best]
            for text in chosen:
                found[text] += math.log1p(weight) * best / math.sqrt(len(chosen))
    for text, weight in found.items():
        yield "names", text, math.log1p(weight)


def _score_fit(artefact: Artefact, segments: tuple[str, ...], words: set[str]) -> float:
    common = count_shared(artefact.parts, segments)
    own = {part for part in re.split(r"[^a-z0-9]+", artefact.leaf.lower()) if part}
    covered = len(own & words) / len(own) if own else 0.0
    return common / len(artefact.parts) * (0.3 + 0.7 * covered)


def _find_word_clues(said: BuildWords, known: Sequence[Artefact]) -> Iterator[Clue]:
    """Complaints name a thing in its own words."""
    rare = measure_rarity(artefact.words for artefact in known)
    inside = {word: said.words[word] for word in said.words if len(word) > 3}
    for artefact in known:
        total = 0.0
        for word in artefact.words:
            weight = said.words.get(word, 0.0)
            if not weight and len(word) > 6:
                weight = 0.5 * max((inside[part] for part in inside if part in word), default=0.0)
            total += math.log1p(weight) * rare(word)
        if total:
            yield "log words", artefact.text, total / (1 + 0.15 * len(artefact.words))


def _find_download_clues(said: BuildWords, known: Sequence[Artefact]) -> Iterator[Clue]:
    for artefact in known:
        if artefact.leaf in said.downloads.dependencies:
            yield "depended", artefact.text, 1.0
        if artefact.leaf in said.downloads.last_dependencies:
            yield "last", artefact.text, 1.0
        if said.about_versions and artefact.leaf in said.downloads.version_managers:
            yield "managing", artefact.text, 1.0


def _find_contested_clues(
    said: BuildWords, known: Sequence[Artefact], points: Points
) -> Iterator[Clue]:
    """What is mentioned is likelier if the build asked for several versions of it."""
    for artefact in known:
        if artefact.leaf in said.downloads.dependencies & said.downloads.contested:
            yield (
                "contested",
                artefact.text,
                min(1.0, _sum_mention_points(points[artefact.text]) / _MENTIONED),
            )


def _find_first_clues(
    said: BuildWords, known: Sequence[Artefact], points: Points
) -> Iterator[Clue]:
    """Of artefacts of one group the one that was asked about first brought the others along: it
    stands before them, if it is mentioned at least half as much."""
    order = said.downloads.order
    groups: dict[tuple[str, ...], list[Artefact]] = defaultdict(list)
    for artefact in known:
        if artefact.leaf in said.downloads.dependencies and artefact.leaf in order:
            groups[artefact.parts].append(artefact)
    for group in groups.values():
        first = min(group, key=lambda artefact: order[artefact.leaf]).text
        most = max(_sum_mention_points(points[artefact.text]) for artefact in group)
        if len(group) > 1 and _sum_mention_points(points[first]) >= most / 2 > 0:
            best = max(sum(points[artefact.text].values()) for artefact in group)
            yield "first", first, max(0.0, _BEFORE * best - sum(points[first].values()))


def _sum_mention_points(found: Mapping[str, float]) -> float:
    """The points of mentions; what was fetched for what is none."""
    return sum(found[clue] for clue in ("coordinate", "archive", "names", "log words"))
