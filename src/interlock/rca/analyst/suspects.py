"""Suspects: which of some candidates is likeliest to be the culprit of a failure, and why.

Candidates are any strings: class names, paths, artefact coordinates. Each function named `…_clues`
gives (clue, candidate, share); `POINTS` says how many points a clue is worth. Commits are ranked
elsewhere, by the paths they changed.
"""

import math
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence

import msgspec

from interlock.rca.analyst.mentions import Mentions, collect_mentions
from interlock.rca.analyst.names import (
    COMMON_WORDS,
    Clue,
    CulpritCandidate,
    detect_language,
    extract_words,
    find_subject,
    measure_rarity,
    parse_candidate,
    split_name,
)
from interlock.rca.analyst.stack import Frame, is_library, is_test_frame, is_test_name
from interlock.rca.records import Failure
from interlock.rca.sources.git.stack_paths import count_shared

_TEST_MARK = re.compile(r"[._-](?:tests?|spec|e2e|cy)$")
_IDENTIFIER = re.compile(r"[A-Za-z_$][\w$]{4,}")


def find_frame_clues(
    clue: str, frames: Sequence[Frame], mentions: Mentions, known: Sequence[CulpritCandidate]
) -> Iterator[Clue]:
    """The product's frames, the innermost first; a test's only where no product's is near."""
    by_leaf: dict[str, list[CulpritCandidate]] = defaultdict(list)
    for candidate in known:
        by_leaf[candidate.leaf].append(candidate)
    seen: set[str] = set()
    own = [frame for frame in frames if not is_library(frame, mentions.class_name)]
    for frame in sorted(own, key=is_test_frame):
        meant = [candidate.text for candidate in _match_frame(frame, by_leaf)]
        fresh = [text for text in meant if text not in seen]
        for text in fresh:
            yield clue, text, 1 / (1 + len(seen)) ** 0.7 / len(meant)
        seen.update(fresh)


def _match_frame(
    frame: Frame, by_leaf: dict[str, list[CulpritCandidate]]
) -> list[CulpritCandidate]:
    """The candidates a frame may mean: its class, outer classes of it, or its file."""
    scope = frame.scope
    while scope:
        folders, _, leaf = scope.rpartition(".")
        around = tuple(folders.split(".")) if folders else ()
        fitting = [
            candidate for candidate in by_leaf.get(leaf, ()) if _is_in_package(candidate, around)
        ]
        if fitting:
            return fitting
        scope = scope.rpartition("$")[0]
    folders, _, file = frame.file.rpartition("/")
    stem = file.rpartition(".")[0] or file
    around = tuple(part for part in folders.split("/") if part not in ("", "."))
    written = [
        candidate
        for candidate in by_leaf.get(stem, ())
        if detect_language(candidate.text) == detect_language(file)
    ]
    return _find_nearest(written, around) if frame.file else []


def _is_in_package(candidate: CulpritCandidate, around: tuple[str, ...]) -> bool:
    """A class is where its package is; a file of it is in folders that end like the package."""
    if not candidate.path:
        return candidate.parts == around
    return candidate.parts[-len(around) :] == around if around else True


def _find_nearest(
    known: Sequence[CulpritCandidate], around: tuple[str, ...]
) -> list[CulpritCandidate]:
    """Those whose folders agree longest with where the frame's file lay."""
    shares = {
        candidate: count_shared(reversed(candidate.parts), reversed(around))
        for candidate in known
        if candidate.path
    }
    most = max(shares.values(), default=0)
    return [candidate for candidate, share in shares.items() if share == most]


def find_name_clues(mentions: Mentions, known: Sequence[CulpritCandidate]) -> Iterator[Clue]:
    """Tests are named after what they test, and stand beside it."""
    rare = measure_rarity(candidate.name for candidate in known)
    subjects = _find_subjects(mentions.class_name) | _find_file_subjects(mentions)
    class_words = split_name(mentions.class_name) - COMMON_WORDS
    package = tuple(mentions.class_name.split(".")[:-1])
    words = (
        split_name(mentions.test_name) | extract_words(mentions.message[:1_000])
    ) - COMMON_WORDS
    meant = [candidate for candidate in known if find_subject(candidate.title).lower() in subjects]
    beside = [
        candidate for candidate in meant if package and candidate.parts[-len(package) :] == package
    ]
    for candidate in meant:
        yield "subject", candidate.text, 1.0 if candidate in beside or not beside else 0.4
    for candidate in known:
        if shared := class_words & candidate.name:
            total = sum(map(rare, candidate.name)) + 0.5 * len(class_words - candidate.name)
            yield "alike", candidate.text, sum(map(rare, shared)) / max(total, 0.1)
        if shared := words & candidate.name:
            total = sum(map(rare, candidate.name)) * (2 if len(candidate.name) == 1 else 1)
            yield "words", candidate.text, sum(map(rare, shared)) / max(total, 0.1)
        if package and candidate.parts[-len(package) :] == package:
            yield "package", candidate.text, 1.0
        elif package[:-1] and candidate.parts == package[:-1]:
            yield "package", candidate.text, 0.4


def _find_subjects(class_name: str) -> frozenset[str]:
    """What a test's class, or the module it is in, is named after."""
    *modules, name = class_name.split(".")
    tests = [module for module in modules if find_subject(module) != module]
    named = [find_subject(name_part) for name_part in (name, *tests)]
    return frozenset(name_part.lower() for name_part in named if name_part)


def _find_file_subjects(mentions: Mentions) -> frozenset[str]:
    """What the file of the failing test is named after, where the stack never leaves the tests."""
    own = [
        frame
        for frame in mentions.frames
        if frame.file and not is_library(frame, mentions.class_name)
    ]
    files = (
        [frame.file for frame in own if "/" in frame.file] if all(map(is_test_frame, own)) else []
    )
    stem = files[-1].rpartition("/")[2].rpartition(".")[0] if files else ""
    named = _TEST_MARK.sub("", stem)
    return frozenset({find_subject(named).lower()}) - {"", stem.lower()}


def find_mention_clues(mentions: Mentions, known: Sequence[CulpritCandidate]) -> Iterator[Clue]:
    said = f"{mentions.message[:2_000]} {mentions.test_name}"
    named = set(_IDENTIFIER.findall(said))
    for candidate in known:
        if candidate.title not in named:
            continue
        # Of what stands for its folder, `folder.thing` names the thing.
        is_whole = candidate.title == candidate.leaf or re.search(
            rf"(?<![\w$]){re.escape(candidate.title)}(?![\w$]|\.\w)", said
        )
        if is_whole:
            yield "mention", candidate.text, 1.0


Points = Mapping[str, Mapping[str, float]]
"""Of each candidate and clue, the points so far; none for others."""
_MENTIONED = 2.0
"""Points from which an artefact is clearly mentioned."""
_BEFORE = 1.02


def find_coordinate_clues(mentions: Mentions, known: Sequence[CulpritCandidate]) -> Iterator[Clue]:
    for candidate in known:
        if weight := mentions.coordinates.get(":".join(candidate.text.split(":")[:2])):
            yield "coordinate", candidate.text, math.log1p(weight)
        if weight := mentions.archives.get(candidate.leaf):
            yield "archive", candidate.text, math.log1p(weight)


def find_group_clues(mentions: Mentions, known: Sequence[CulpritCandidate]) -> Iterator[Clue]:
    """Packages are called like the group of the artefact they come in, and like its name."""
    by_head: dict[tuple[str, ...], list[CulpritCandidate]] = defaultdict(list)
    for candidate in known:
        by_head[candidate.parts[:2]].append(candidate)
    found: dict[str, float] = defaultdict(float)
    for name, weight in mentions.names.items():
        segments = tuple(name.split("."))
        words = extract_words(name) | {segment.lower() for segment in segments}
        fits = [
            (_score_fit(candidate, segments, words), candidate)
            for candidate in by_head.get(segments[:2], ())
        ]
        best = max((fit for fit, _ in fits), default=0.0)
        if best >= 0.3:
            chosen = [candidate.text for fit, candidate in fits if fit >= 0.95 * best]
            for text in chosen:
                found[text] += math.log1p(weight) * best / math.sqrt(len(chosen))
    for text, weight in found.items():
        yield "names", text, math.log1p(weight)


def _score_fit(candidate: CulpritCandidate, segments: tuple[str, ...], words: set[str]) -> float:
    common = count_shared(candidate.parts, segments)
    own = {part for part in re.split(r"[^a-z0-9]+", candidate.leaf.lower()) if part}
    covered = len(own & words) / len(own) if own else 0.0
    return common / len(candidate.parts) * (0.3 + 0.7 * covered)


def find_word_clues(mentions: Mentions, known: Sequence[CulpritCandidate]) -> Iterator[Clue]:
    """Complaints name a thing in its own words."""
    rare = measure_rarity(candidate.words for candidate in known)
    inside = {word: mentions.words[word] for word in mentions.words if len(word) > 3}
    for candidate in known:
        total = 0.0
        for word in candidate.words:
            weight = mentions.words.get(word, 0.0)
            if not weight and len(word) > 6:
                weight = 0.5 * max((inside[part] for part in inside if part in word), default=0.0)
            total += math.log1p(weight) * rare(word)
        if total:
            yield "log words", candidate.text, total / (1 + 0.15 * len(candidate.words))


def find_download_clues(mentions: Mentions, known: Sequence[CulpritCandidate]) -> Iterator[Clue]:
    for candidate in known:
        if candidate.leaf in mentions.downloads.dependencies:
            yield "depended", candidate.text, 1.0
        if candidate.leaf in mentions.downloads.last_dependencies:
            yield "last", candidate.text, 1.0
        if mentions.about_versions and candidate.leaf in mentions.downloads.version_managers:
            yield "managing", candidate.text, 1.0


def find_contested_clues(
    mentions: Mentions, known: Sequence[CulpritCandidate], points: Points
) -> Iterator[Clue]:
    """What is mentioned is likelier if the build asked for several versions of it."""
    for candidate in known:
        if candidate.leaf in mentions.downloads.dependencies & mentions.downloads.contested:
            yield (
                "contested",
                candidate.text,
                min(1.0, _sum_mention_points(points[candidate.text]) / _MENTIONED),
            )


def find_first_clues(
    mentions: Mentions, known: Sequence[CulpritCandidate], points: Points
) -> Iterator[Clue]:
    """Of artefacts of one group the one that was asked about first brought the others along: it
    stands before them, if it is mentioned at least half as much."""
    order = mentions.downloads.order
    groups: dict[tuple[str, ...], list[CulpritCandidate]] = defaultdict(list)
    for candidate in known:
        if candidate.leaf in mentions.downloads.dependencies and candidate.leaf in order:
            groups[candidate.parts].append(candidate)
    for group in groups.values():
        first = min(group, key=lambda candidate: order[candidate.leaf]).text
        most = max(_sum_mention_points(points[candidate.text]) for candidate in group)
        if len(group) > 1 and _sum_mention_points(points[first]) >= most / 2 > 0:
            best = max(sum(points[candidate.text].values()) for candidate in group)
            yield "first", first, max(0.0, _BEFORE * best - sum(points[first].values()))


def _sum_mention_points(found: Mapping[str, float]) -> float:
    """The points of mentions; what was fetched for what is none."""
    return sum(found[clue] for clue in ("coordinate", "archive", "names", "log words"))


POINTS = {
    "frame": 9.0,  # in the stack; the innermost of the product in full
    "log frame": 3.0,  # in a stack of the log
    "subject": 5.0,  # the failing test is named after it
    "alike": 2.5,  # words of the test's class
    "words": 2.0,  # words of the test's name and the message
    "mention": 1.5,  # named in the message, word for word
    "package": 0.7,  # beside the test
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
MAX_RANKED = 100
_SOFTNESS = 6.0


class RankedSuspect(msgspec.Struct, frozen=True):
    """A candidate with its score, from 0 to 1, and the reasons that weigh most."""

    candidate: str
    score: float
    why: str


def rank_suspects(failure: Failure, candidates: Iterable[str]) -> list[RankedSuspect]:
    """Candidates against which there is a clue, likeliest first."""
    return rank_candidates(collect_mentions(failure), candidates)


def rank_candidates(mentions: Mentions, candidates: Iterable[str]) -> list[RankedSuspect]:
    """The same for mentions already collected: one failure against many lists."""
    known = [parse_candidate(text) for text in dict.fromkeys(candidates)]
    points: dict[str, dict[str, float]] = defaultdict(lambda: defaultdict(float))
    for clue, text, share in _find_clues(mentions, known):
        points[text][clue] += POINTS[clue] * share
    coordinates = [candidate for candidate in known if candidate.coordinate]
    for look in (find_contested_clues, find_first_clues):
        for clue, text, share in list(look(mentions, coordinates, points)):
            points[text][clue] += POINTS[clue] * share
    languages = {
        detect_language(frame.file) for frame in (*mentions.frames, *mentions.other_frames)
    } - {""}
    ranked = [
        _score_candidate(text, found, languages)
        for text, found in points.items()
        if any(found.values())
    ]
    ranked.sort(key=lambda one: (-one.score, one.candidate))
    return ranked[:MAX_RANKED]


def _score_candidate(text: str, found: dict[str, float], languages: set[str]) -> RankedSuspect:
    total = sum(found.values())
    if is_test_name(text):
        total *= 0.5
    if "/" in text and languages and detect_language(text) not in {"", *languages}:
        total *= 0.5
    strongest = sorted(filter(found.get, found), key=lambda clue: (-found[clue], clue))[:3]
    score = 1 - math.exp(-max(0.0, total) / _SOFTNESS)
    return RankedSuspect(text, round(score, 6), ", ".join(strongest))


def _find_clues(mentions: Mentions, known: Sequence[CulpritCandidate]) -> Iterator[Clue]:
    """(clue, candidate, share of its points) for every clue."""
    if coordinates := [candidate for candidate in known if candidate.coordinate]:
        yield from find_coordinate_clues(mentions, coordinates)
        yield from find_group_clues(mentions, coordinates)
        yield from find_word_clues(mentions, coordinates)
        yield from find_download_clues(mentions, coordinates)
    if plain := [candidate for candidate in known if not candidate.coordinate]:
        yield from find_frame_clues("frame", mentions.frames, mentions, plain)
        yield from find_frame_clues("log frame", mentions.other_frames, mentions, plain)
        yield from find_name_clues(mentions, plain)
        yield from find_mention_clues(mentions, plain)
