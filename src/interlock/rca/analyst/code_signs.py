"""Signs against code: classes and files that a failure's frames, names and message point at.

Each function gives (sign, candidate, share). Knows stacks and how tests are named.
"""

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence

from interlock.rca.analyst.candidate import CulpritCandidate, Sign, language, rarity
from interlock.rca.analyst.frames import Frame
from interlock.rca.analyst.naming import COMMON_WORDS, name_words, subject_of, text_words
from interlock.rca.analyst.ownership import is_library, is_test
from interlock.rca.analyst.testimony import Mentions

_TEST_MARK = re.compile(r"[._-](?:tests?|spec|e2e|cy)$")
_IDENTIFIER = re.compile(r"[A-Za-z_$][\w$]{4,}")


def framed(
    sign: str, frames: Sequence[Frame], said: Mentions, known: Sequence[CulpritCandidate]
) -> Iterator[Sign]:
    """The product's frames, the innermost first; a test's only where no product's is near."""
    by_leaf: dict[str, list[CulpritCandidate]] = defaultdict(list)
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


def _meant(frame: Frame, by_leaf: dict[str, list[CulpritCandidate]]) -> list[CulpritCandidate]:
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
    written = [each for each in by_leaf.get(stem, ()) if language(each.text) == language(file)]
    return _nearest(written, around) if frame.file else []


def _holds(candidate: CulpritCandidate, around: tuple[str, ...]) -> bool:
    """A class is where its package is; a file of it is in folders that end like the package."""
    if not candidate.path:
        return candidate.parts == around
    return candidate.parts[-len(around) :] == around if around else True


def _nearest(known: Sequence[CulpritCandidate], around: tuple[str, ...]) -> list[CulpritCandidate]:
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


def named_like(said: Mentions, known: Sequence[CulpritCandidate]) -> Iterator[Sign]:
    """Tests are named after what they test, and stand beside it."""
    rare = rarity(each.name for each in known)
    subjects = _subjects(said.class_name) | _filed(said)
    class_words = name_words(said.class_name) - COMMON_WORDS
    package = tuple(said.class_name.split(".")[:-1])
    told = (name_words(said.test_name) | text_words(said.message[:1_000])) - COMMON_WORDS
    meant = [each for each in known if subject_of(each.title).lower() in subjects]
    beside = [each for each in meant if package and each.parts[-len(package) :] == package]
    for each in meant:
        yield "subject", each.text, 1.0 if each in beside or not beside else 0.4
    for each in known:
        if shared := class_words & each.name:
            whole = sum(map(rare, each.name)) + 0.5 * len(class_words - each.name)
            yield "alike", each.text, sum(map(rare, shared)) / max(whole, 0.1)
        if shared := told & each.name:
            whole = sum(map(rare, each.name)) * (2 if len(each.name) == 1 else 1)
            yield "words", each.text, sum(map(rare, shared)) / max(whole, 0.1)
        if package and each.parts[-len(package) :] == package:
            yield "package", each.text, 1.0
        elif package[:-1] and each.parts == package[:-1]:
            yield "package", each.text, 0.4


def _subjects(class_name: str) -> frozenset[str]:
    """What a test's class, or the module it is in, is named after."""
    *modules, name = class_name.split(".")
    tests = [module for module in modules if subject_of(module) != module]
    named = [subject_of(each) for each in (name, *tests)]
    return frozenset(each.lower() for each in named if each)


def _filed(said: Mentions) -> frozenset[str]:
    """What the file of the failing test is named after, where the stack never leaves the tests."""
    own = [each for each in said.frames if each.file and not is_library(each, said.class_name)]
    files = [frame.file for frame in own if "/" in frame.file] if all(map(is_test, own)) else []
    stem = files[-1].rpartition("/")[2].rpartition(".")[0] if files else ""
    named = _TEST_MARK.sub("", stem)
    return frozenset({subject_of(named).lower()}) - {"", stem.lower()}


def mentioned(said: Mentions, known: Sequence[CulpritCandidate]) -> Iterator[Sign]:
    named = set(_IDENTIFIER.findall(f"{said.message[:2_000]} {said.test_name}"))
    for each in known:
        if each.title in named:
            yield "mention", each.text, 1.0
