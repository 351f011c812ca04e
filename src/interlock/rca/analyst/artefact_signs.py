"""Signs against artefacts: what build tools name, ask for, miss, and fetched for whom.

Each function gives (sign, candidate, share). Knows that packages are called like their artefacts.
"""

import math
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence

from interlock.rca.analyst.candidate import CulpritCandidate, Sign, rarity
from interlock.rca.analyst.naming import text_words
from interlock.rca.analyst.testimony import Mentions

Points = Mapping[str, Mapping[str, float]]
"""Of each candidate and sign, the points so far; none for others."""
_SPOKEN_OF = 2.0
"""From so many points on an artefact is clearly spoken of."""
_BEFORE = 1.02


def named_outright(said: Mentions, known: Sequence[CulpritCandidate]) -> Iterator[Sign]:
    for each in known:
        if weight := said.coordinates.get(":".join(each.text.split(":")[:2])):
            yield "coordinate", each.text, math.log1p(weight)
        if weight := said.archives.get(each.leaf):
            yield "archive", each.text, math.log1p(weight)


def named_by_group(said: Mentions, known: Sequence[CulpritCandidate]) -> Iterator[Sign]:
    """Packages are called like the group of the artefact they come in, and like its name."""
    by_head: dict[tuple[str, ...], list[CulpritCandidate]] = defaultdict(list)
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


def _fit(candidate: CulpritCandidate, segments: tuple[str, ...], words: set[str]) -> float:
    common = 0
    for left, right in zip(candidate.parts, segments, strict=False):
        if left != right:
            break
        common += 1
    own = {part for part in re.split(r"[^a-z0-9]+", candidate.leaf.lower()) if part}
    covered = len(own & words) / len(own) if own else 0.0
    return common / len(candidate.parts) * (0.3 + 0.7 * covered)


def worded(said: Mentions, known: Sequence[CulpritCandidate]) -> Iterator[Sign]:
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


def fetched_for_it(said: Mentions, known: Sequence[CulpritCandidate]) -> Iterator[Sign]:
    for each in known:
        if each.leaf in said.fetched.depended:
            yield "depended", each.text, 1.0
        if each.leaf in said.fetched.last:
            yield "last", each.text, 1.0
        if said.about_versions and each.leaf in said.fetched.managing:
            yield "managing", each.text, 1.0


def contested(said: Mentions, known: Sequence[CulpritCandidate], points: Points) -> Iterator[Sign]:
    """What is spoken of is likelier if the build asked for several versions of it."""
    for each in known:
        if each.leaf in said.fetched.depended & said.fetched.contested:
            yield "contested", each.text, min(1.0, _heard(points[each.text]) / _SPOKEN_OF)


def brought_others(
    said: Mentions, known: Sequence[CulpritCandidate], points: Points
) -> Iterator[Sign]:
    """Of artefacts of one group the one that was asked about first brought the others along: it
    stands before them, if it is spoken of at least half as much."""
    order = said.fetched.order
    groups: dict[tuple[str, ...], list[CulpritCandidate]] = defaultdict(list)
    for each in known:
        if each.leaf in said.fetched.depended and each.leaf in order:
            groups[each.parts].append(each)
    for group in groups.values():
        first = min(group, key=lambda each: order[each.leaf]).text
        most = max(_heard(points[each.text]) for each in group)
        if len(group) > 1 and _heard(points[first]) >= most / 2 > 0:
            best = max(sum(points[each.text].values()) for each in group)
            yield "first", first, max(0.0, _BEFORE * best - sum(points[first].values()))


def _heard(found: Mapping[str, float]) -> float:
    """The points of what was said; who was fetched for whom is not said."""
    return sum(found[sign] for sign in ("coordinate", "archive", "names", "log words"))
