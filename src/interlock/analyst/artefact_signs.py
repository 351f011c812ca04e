"""Signs against artefacts: what build tools name, ask for, miss, and fetched for whom.

Each function gives (sign, candidate, share). Knows that packages are called like their artefacts.
"""

import math
import re
from collections import defaultdict
from collections.abc import Iterator, Sequence

from interlock.analyst.candidate import Candidate, Sign, rarity
from interlock.analyst.naming import text_words
from interlock.analyst.testimony import Testimony


def named_outright(said: Testimony, known: Sequence[Candidate]) -> Iterator[Sign]:
    for each in known:
        if weight := said.coordinates.get(":".join(each.text.split(":")[:2])):
            yield "coordinate", each.text, math.log1p(weight)
        if weight := said.archives.get(each.leaf):
            yield "archive", each.text, math.log1p(weight)


def named_by_group(said: Testimony, known: Sequence[Candidate]) -> Iterator[Sign]:
    """Packages are called like the group of the artefact they come in, and like its name."""
    by_head: dict[tuple[str, ...], list[Candidate]] = defaultdict(list)
    for each in known:
        by_head[each.parts[:2]].append(each)
    found: dict[str, float] = defaultdict(float)
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


def worded(said: Testimony, known: Sequence[Candidate]) -> Iterator[Sign]:
    """Complaints speak of a thing in its own words."""
    rare = rarity(each.words for each in known)
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


def fetched_for_it(said: Testimony, known: Sequence[Candidate]) -> Iterator[Sign]:
    for each in known:
        if each.leaf in said.fetched.depended:
            yield "depended", each.text, 1.0
        if each.leaf in said.fetched.last:
            yield "last", each.text, 1.0
        if said.about_versions and each.leaf in said.fetched.managing:
            yield "managing", each.text, 1.0
