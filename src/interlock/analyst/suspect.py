"""Suspects: which of some candidates is likeliest to be the culprit of a failure, and why.

Candidates are any strings: class names, paths, coordinates of artefacts. Each sign gives points to
some of them; `POINTS` says how many. Knows no version control: commits are ranked by their paths.
"""

import math
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence

import msgspec

from interlock.analyst.frames import Frame
from interlock.analyst.naming import COMMON_WORDS, name_words, tested, text_words
from interlock.analyst.ownership import is_library, is_test, looks_tested
from interlock.analyst.testimony import Testimony, testimony
from interlock.apps.rca.failure import Failure

POINTS = {
    "frame": 5.0,  # in the stack; the innermost of the product in full
    "log frame": 2.0,  # in a stack of the log
    "subject": 5.0,  # the failing test is named after it
    "alike": 3.0,  # words of the test's class
    "words": 2.0,  # words of the test's name and the message
    "mention": 1.5,  # named in the message, word for word
    "package": 0.7,  # beside the test
    "coordinate": 4.0,  # a build tool names it
    "archive": 3.0,  # its file is named
    "names": 2.0,  # names under its group
    "log words": 1.0,  # words of the complaints
    "depended": 1.0,  # fetched as a dependency of what was built
    "last": 1.0,  # and of the module that broke
    "managing": 3.0,  # chooses versions, where versions are the trouble
}
MOST_RANKED = 100
_SOFTNESS = 6.0
_IDENTIFIER = re.compile(r"[A-Za-z_$][\w$]{4,}")


class Ranked(msgspec.Struct, frozen=True):
    """A candidate with its score, from 0 to 1, and the reasons that weigh most."""

    candidate: str
    score: float
    why: str


class Candidate(msgspec.Struct, frozen=True):
    """A candidate taken apart."""

    text: str
    parts: tuple[str, ...]
    """What holds it: package, group or folders."""
    leaf: str
    coordinate: bool
    path: bool
    words: frozenset[str]
    name: frozenset[str]


def suspects(failure: Failure, candidates: Iterable[str]) -> list[Ranked]:
    """Candidates that something speaks against, likeliest first."""
    return rank(testimony(failure), candidates)


def rank_paths(failure: Failure, paths: Sequence[str]) -> list[Ranked]:
    """Paths of a repository, those a failure's frames, names and log point at first."""
    return rank(testimony(failure), paths)


def rank(said: Testimony, candidates: Iterable[str]) -> list[Ranked]:
    """The same for testimony that is at hand: one failure against many lists."""
    known = [_parsed(text) for text in dict.fromkeys(candidates)]
    points: dict[str, dict[str, float]] = defaultdict(lambda: defaultdict(float))
    for sign, text, share in _signs(said, known):
        points[text][sign] += POINTS[sign] * share
    ranked = [_ranked(text, found) for text, found in points.items()]
    ranked.sort(key=lambda one: (-one.score, one.candidate))
    return ranked[:MOST_RANKED]


def _ranked(text: str, found: dict[str, float]) -> Ranked:
    total = sum(found.values())
    if looks_tested(text):
        total *= 0.5
    strongest = sorted(found, key=lambda sign: (-found[sign], sign))[:3]
    score = 1 - math.exp(-max(0.0, total) / _SOFTNESS)
    return Ranked(text, round(score, 6), ", ".join(strongest))


def _parsed(text: str) -> Candidate:
    path = "/" in text or "\\" in text
    coordinate = not path and ":" in text
    if coordinate:
        group, leaf = text.split(":")[:2]
        parts = tuple(group.split("."))
    else:
        plain = text.replace("\\", "/")
        parts = tuple(part for part in plain.split("/" if path else ".") if part)
        leaf, parts = (parts[-1], parts[:-1]) if parts else (text, ())
        leaf = leaf.rpartition(".")[0] or leaf if path else leaf
    words = text_words(f"{leaf} {parts[-1] if parts and coordinate else ''}")
    return Candidate(
        text, parts, leaf, coordinate, path, frozenset(words), frozenset(name_words(leaf))
    )


def _signs(said: Testimony, known: Sequence[Candidate]) -> Iterator[tuple[str, str, float]]:
    """(sign, candidate, share of its points) for all that speaks against somebody."""
    if any(each.coordinate for each in known):
        coordinates = [each for each in known if each.coordinate]
        yield from _named_outright(said, coordinates)
        yield from _named_by_group(said, coordinates)
        yield from _worded(said, coordinates)
        yield from _fetched(said, coordinates)
    if plain := [each for each in known if not each.coordinate]:
        yield from _framed("frame", said.frames, said, plain)
        yield from _framed("log frame", said.other_frames, said, plain)
        yield from _named_like(said, plain)
        yield from _mentioned(said, plain)


def _framed(
    sign: str, frames: Sequence[Frame], said: Testimony, known: Sequence[Candidate]
) -> Iterator[tuple[str, str, float]]:
    """The product's frames, the innermost first; a test's only where no product's is near."""
    by_leaf: dict[str, list[Candidate]] = defaultdict(list)
    for each in known:
        by_leaf[each.leaf].append(each)
    seen: set[str] = set()
    own = [frame for frame in frames if not is_library(frame, said.class_name)]
    for frame in sorted(own, key=is_test):
        meant = [each.text for each in _meant(frame, by_leaf)]
        fresh = [text for text in meant if text not in seen]
        for text in fresh:
            yield sign, text, 1 / (1 + len(seen)) ** 0.7 / len(meant)
        seen.update(fresh)


def _meant(frame: Frame, by_leaf: dict[str, list[Candidate]]) -> list[Candidate]:
    """The candidates a frame may mean: its class, outer classes of it, or its file."""
    scope = frame.scope
    while scope:
        folders, _, leaf = scope.rpartition(".")
        around = tuple(folders.split(".")) if folders else ()
        fitting = [each for each in by_leaf.get(leaf, ()) if _holds(each, around)]
        if fitting:
            return fitting
        scope = scope.rpartition("$")[0]
    folders, _, file = frame.file.rpartition("/")
    stem = file.rpartition(".")[0] or file
    around = tuple(part for part in folders.split("/") if part not in ("", "."))
    return _nearest(by_leaf.get(stem, ()), around) if frame.file else []


def _holds(candidate: Candidate, around: tuple[str, ...]) -> bool:
    """A class is where its package is; a file of it is in folders that end like the package."""
    if not candidate.path:
        return candidate.parts == around
    return candidate.parts[-len(around) :] == around if around else True


def _nearest(known: Sequence[Candidate], around: tuple[str, ...]) -> list[Candidate]:
    """Those whose folders agree longest with where the frame's file lay."""
    shares = [_common_end(each.parts, around) for each in known if each.path]
    most = max(shares, default=0)
    return [each for each in known if each.path and _common_end(each.parts, around) == most]


def _common_end(one: tuple[str, ...], other: tuple[str, ...]) -> int:
    count = 0
    for left, right in zip(reversed(one), reversed(other), strict=False):
        if left != right:
            break
        count += 1
    return count


def _named_like(said: Testimony, known: Sequence[Candidate]) -> Iterator[tuple[str, str, float]]:
    """Tests are named after what they test, and stand beside it."""
    rare = _rarity(each.name for each in known)
    subject = tested(said.class_name).lower()
    class_words = name_words(said.class_name) - COMMON_WORDS
    package = tuple(said.class_name.split(".")[:-1])
    told = (name_words(said.test_name) | text_words(said.message[:1_000])) - COMMON_WORDS
    for each in known:
        if subject and tested(each.leaf).lower() == subject:
            yield "subject", each.text, 1.0
        if shared := class_words & each.name:
            whole = sum(map(rare, each.name)) + 0.5 * len(class_words - each.name)
            yield "alike", each.text, sum(map(rare, shared)) / max(whole, 0.1)
        if shared := told & each.name:
            whole = sum(map(rare, each.name)) * (2 if len(each.name) == 1 else 1)
            yield "words", each.text, sum(map(rare, shared)) / max(whole, 0.1)
        if package and each.parts[-len(package) :] == package:
            yield "package", each.text, 1.0


def _mentioned(said: Testimony, known: Sequence[Candidate]) -> Iterator[tuple[str, str, float]]:
    named = set(_IDENTIFIER.findall(f"{said.message[:2_000]} {said.test_name}"))
    for each in known:
        if each.leaf in named:
            yield "mention", each.text, 1.0


def _named_outright(
    said: Testimony, known: Sequence[Candidate]
) -> Iterator[tuple[str, str, float]]:
    for each in known:
        if weight := said.coordinates.get(":".join(each.text.split(":")[:2])):
            yield "coordinate", each.text, math.log1p(weight)
        if weight := said.archives.get(each.leaf):
            yield "archive", each.text, math.log1p(weight)


def _named_by_group(
    said: Testimony, known: Sequence[Candidate]
) -> Iterator[tuple[str, str, float]]:
    """Packages are called like the group of the artefact they come in, and like its name."""
    by_head: dict[tuple[str, ...], list[Candidate]] = defaultdict(list)
    for each in known:
        by_head[each.parts[:2]].append(each)
    found: Counter[str] = Counter()
    for name, weight in said.names.items():
        segments = tuple(name.split("."))
        words = text_words(name) | {segment.lower() for segment in segments}
        fits = [(_fit(each, segments, words), each) for each in by_head.get(segments[:2], ())]
        best = max((fit for fit, _ in fits), default=0.0)
        if best >= 0.3:
            chosen = [each.text for fit, each in fits if fit >= 0.95 * best]
            for text in chosen:
                found[text] += math.log1p(weight) * best / math.sqrt(len(chosen))
    for text, weight in found.items():
        yield "names", text, math.log1p(weight)


def _fit(candidate: Candidate, segments: tuple[str, ...], words: set[str]) -> float:
    common = 0
    for left, right in zip(candidate.parts, segments, strict=False):
        if left != right:
            break
        common += 1
    own = {part for part in re.split(r"[^a-z0-9]+", candidate.leaf.lower()) if part}
    covered = len(own & words) / len(own) if own else 0.0
    return common / len(candidate.parts) * (0.3 + 0.7 * covered)


def _worded(said: Testimony, known: Sequence[Candidate]) -> Iterator[tuple[str, str, float]]:
    """Complaints speak of a thing in its own words."""
    rare = _rarity(each.words for each in known)
    inside = {word: said.words[word] for word in said.words if len(word) > 3}
    for each in known:
        total = 0.0
        for word in each.words:
            heard = said.words.get(word, 0.0)
            if not heard and len(word) > 6:
                heard = 0.5 * max((inside[part] for part in inside if part in word), default=0.0)
            total += math.log1p(heard) * rare(word)
        if total:
            yield "log words", each.text, total / (1 + 0.15 * len(each.words))


def _fetched(said: Testimony, known: Sequence[Candidate]) -> Iterator[tuple[str, str, float]]:
    for each in known:
        if each.leaf in said.fetched.depended:
            yield "depended", each.text, 1.0
        if each.leaf in said.fetched.last:
            yield "last", each.text, 1.0
        if said.about_versions and each.leaf in said.fetched.managing:
            yield "managing", each.text, 1.0


def _rarity(bags: Iterable[frozenset[str]]) -> Callable[[str], float]:
    """How rare a word is among the candidates: 1 for one of many, 0 for one of all."""
    count: Counter[str] = Counter()
    total = 0
    for bag in bags:
        count.update(bag)
        total += 1

    def rare(word: str) -> float:
        if total < 2 or not count[word]:
            return 1.0
        return math.log((total + 1) / count[word]) / math.log(total + 1)

    return rare
