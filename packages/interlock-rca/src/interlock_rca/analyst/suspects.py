"""Suspects: which of some candidates is likeliest to be the culprit of a failure, and why.

Candidates are class names or paths. Each function named `…_clues`
gives (clue, candidate, share); `POINTS` says how many points a clue is worth. Commits are ranked
elsewhere, by the paths they changed.
"""

import math
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence

import msgspec

from interlock_rca.analyst.mentions import Mentions
from interlock_rca.analyst.names import (
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
from interlock_rca.analyst.stack import Frame, is_library, is_test_frame, is_test_name
from interlock_rca.sources.git.stack_paths import count_shared

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


POINTS = {
    "frame": 9.0,  # in the stack; the innermost of the product in full
    "log frame": 3.0,  # in a stack of the log
    "subject": 5.0,  # the failing test is named after it
    "alike": 2.5,  # words of the test's class
    "words": 2.0,  # words of the test's name and the message
    "mention": 1.5,  # named in the message, word for word
    "package": 0.7,  # beside the test
}
MAX_RANKED = 100
_SOFTNESS = 6.0


class RankedSuspect(msgspec.Struct, frozen=True):
    """A candidate with its score, from 0 to 1, and the reasons that weigh most."""

    candidate: str
    score: float
    why: str


def rank_candidates(mentions: Mentions, candidates: Iterable[str]) -> list[RankedSuspect]:
    """Return the candidates against which there is a clue, likeliest first."""
    known = [parse_candidate(text) for text in dict.fromkeys(candidates)]
    points: dict[str, dict[str, float]] = defaultdict(lambda: defaultdict(float))
    for clue, text, share in _find_clues(mentions, known):
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
    """Yield (clue, candidate, share of its points) of every clue."""
    yield from find_frame_clues("frame", mentions.frames, mentions, known)
    yield from find_frame_clues("log frame", mentions.other_frames, mentions, known)
    yield from find_name_clues(mentions, known)
    yield from find_mention_clues(mentions, known)
