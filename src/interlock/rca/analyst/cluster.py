"""Which failures of a set have one cause, and whether a failure has been seen before.

Both compare only failures that share a band, never all with all. Clustering joins pairs best first
while the families stay alike as wholes, so the order of the failures does not matter. Recall finds
the nearest in any index that gives candidates for bands.
"""

from array import array
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Protocol

import msgspec

from interlock.rca.analyst.similarity import (
    Traits,
    compare_failures,
    compute_bands,
    extract_traits,
    list_tokens,
    score_similarity,
)
from interlock.rca.records import Failure

JOIN_THRESHOLD = 0.5
"""Likeness from which two failures are of one family."""
GROUP_THRESHOLD = 0.35
"""Mean likeness two families must have to become one: a chain of neighbours is no family."""
MAX_SMALL_BLOCK = 60
"""Up to so many that share a band are compared all with all."""
NEIGHBOURS = 4
MAX_LEADERS = 20
MAX_SAMPLE = 3


def cluster_failures(failures: Sequence[Failure]) -> list[str]:
    """For each failure, the name of its family: the least id of its members."""
    names = [""] * len(failures)
    for members in find_families([extract_traits(failure) for failure in failures]):
        name = min(failures[member].id for member in members)
        for member in members:
            names[member] = name
    return names


def find_families(known: Sequence[Traits]) -> list[tuple[int, ...]]:
    """Groups of indexes, each in ascending order, in the order of their first members."""
    order = sorted(
        range(len(known)),
        key=lambda at: (
            known[at].text,
            known[at].class_name,
            known[at].test_name,
            known[at].message,
            known[at].lined,
        ),
    )
    ranked = [known[at] for at in order]
    twin_of = _find_twins(ranked)
    kept = [at for at in range(len(ranked)) if at not in twin_of]
    heads = _join_links([ranked[at] for at in kept])
    groups: dict[int, list[int]] = defaultdict(list)
    head_of = dict(zip(kept, heads, strict=True))
    for at in range(len(ranked)):
        groups[head_of[twin_of.get(at, at)]].append(order[at])
    return sorted(tuple(sorted(members)) for members in groups.values())


def _find_twins(known: Sequence[Traits]) -> dict[int, int]:
    """Of each failure beyond the first few with one message at one place, one of these few. What
    broke hundreds of times in the same way is one family; comparing all of it is much work."""
    twin_of: dict[int, int] = {}
    begin = 0
    while begin < len(known):
        end = begin + 1
        while end < len(known) and _are_twins(known[begin], known[end]):
            end += 1
        if end - begin > MAX_SMALL_BLOCK and len(known[begin].places) > 1:
            for at in range(begin + MAX_LEADERS, end):
                twin_of[at] = begin + at % MAX_LEADERS
        begin = end
    return twin_of


def _are_twins(one: Traits, other: Traits) -> bool:
    return (one.text, one.places) == (other.text, other.places)


def _join_links(known: Sequence[Traits]) -> list[int]:
    """For each its family's head. Links are taken best first, so no order of theirs matters."""
    heads = list(range(len(known)))
    members = {at: [at] for at in heads}
    for one, other in _sort_links(_find_links(known), len(known)):
        left, right = heads[one], heads[other]
        if left == right or not _are_alike_as_groups(known, members[left], members[right]):
            continue
        if len(members[left]) < len(members[right]):
            left, right = right, left
        for member in members[right]:
            heads[member] = left
        members[left] += members.pop(right)
    return heads


def _are_alike_as_groups(known: Sequence[Traits], left: list[int], right: list[int]) -> bool:
    if len(left) == len(right) == 1:
        return True
    left_sample, right_sample = _sample_members(left), _sample_members(right)
    total = sum(
        score_similarity(known[one], known[other]) for one in left_sample for other in right_sample
    )
    return total >= GROUP_THRESHOLD * len(left_sample) * len(right_sample)


def _sample_members(members: list[int]) -> list[int]:
    """A few of the members, spread over them all."""
    count = min(len(members), MAX_SAMPLE)
    return [members[at * (len(members) - 1) // max(1, count - 1)] for at in range(count)]


_Links = defaultdict[int, "array[int]"]


def _sort_links(links: _Links, count: int) -> Iterator[tuple[int, int]]:
    """The pairs, those that are most alike first; all at once are much to hold."""
    for near in sorted(links):
        for link in sorted(set(links.pop(near))):
            yield divmod(link % count**2, count)


def _find_links(known: Sequence[Traits]) -> _Links:
    """Pairs that are alike enough, among those that share a band; some come twice. Each is one
    number, for there may be millions: by how much it falls short of a score of 1, then the one,
    then the other. They are grouped by the first digits."""
    partners = [array("I") for _ in known]
    links: _Links = defaultdict(lambda: array("q"))  # up to four million failures

    def compare(one: int, other: int) -> bool:
        score = score_similarity(known[one], known[other], JOIN_THRESHOLD)
        if score:
            short = _WHOLE - round(score * _WHOLE)
            links[short // _GROUP].append(short * len(known) ** 2 + one * len(known) + other)
        return bool(score)

    for block in _find_blocks(known):
        # In canonical order what is alike stands near: of a large block neighbours are enough.
        reach = len(block) if len(block) <= MAX_SMALL_BLOCK else 1 + NEIGHBOURS
        for place, one in enumerate(block):
            partners[one].extend(block[place + 1 : place + reach])
        if len(block) > MAX_SMALL_BLOCK:
            _link_to_leaders(block, compare)
    for one, others in enumerate(partners):
        for other in set(others):
            compare(one, other)
    return links


_WHOLE = 1_000_000
"""Scores have six digits."""
_GROUP = 1_000


def _find_blocks(known: Sequence[Traits]) -> Iterable[tuple[int, ...]]:
    """Indexes that share a band. Bands with the same members are one block."""
    sharing: dict[int, list[int]] = defaultdict(list)
    for at, traits in enumerate(known):
        for band in compute_bands(traits):
            sharing[band].append(at)
    return sorted({tuple(block) for block in sharing.values() if len(block) > 1})


def _link_to_leaders(block: Sequence[int], compare: Callable[[int, int], bool]) -> None:
    """Of a large block each is compared with the first of every kind met so far, within reason."""
    leaders: list[int] = []
    for other in block:
        if not any(compare(one, other) for one in leaders) and len(leaders) < MAX_LEADERS:
            leaders.append(other)


MATCH_THRESHOLD = 0.7
"""Likeness from which it is the same."""
UNSURE_THRESHOLD = 0.35
"""Likeness below which it is new."""
CERTAIN_THRESHOLD = 0.999
"""Likeness from which no nearer one is looked for: the likeliest are compared first."""
MAX_CANDIDATES = 200
"""No more are compared: those that share most bands, then the newest."""
MAX_OTHERS = 50
LEAST_SCORE = 0.001
"""Two strangers have less in common."""
OTHERS_DOUBT = 2.0
"""By how much the odds fall of one that shares no band."""


class KnownFailure(msgspec.Struct, frozen=True):
    """Something remembered: its name in the index, and what is compared."""

    known_id: str
    traits: Traits


class FailureIndex(Protocol):
    """Where known failures are kept by their bands."""

    def find_candidates(self, bands: Sequence[int]) -> Iterable[KnownFailure]:
        """Those that share a band, the likeliest first; as many as are worth comparing."""


class RecallResult(msgspec.Struct, frozen=True):
    """The nearest known failure, if any came near at all, and what follows from how near."""

    verdict: str
    """match, new or unsure."""
    match_id: str | None
    score: float
    why: str


def recall_failure(asked: Traits, index: FailureIndex) -> RecallResult:
    """The nearest of what the index knows. Of equals the first the index gives."""
    return _find_nearest(asked, index.find_candidates(compute_bands(asked)))


def _find_nearest(
    asked: Traits, candidates: Iterable[KnownFailure], others: Iterable[KnownFailure] = ()
) -> RecallResult:
    """Of the candidates and of others, which share no band and are doubted a little for it."""
    nearest, best = None, 0.0
    for known in candidates:
        found = score_similarity(asked, known.traits)
        if found > best:
            nearest, best = known, found
        if best >= CERTAIN_THRESHOLD:
            break
    for known in others if best < MATCH_THRESHOLD else ():
        found = score_similarity(asked, known.traits)
        found = round(found / (found + (1 - found) * OTHERS_DOUBT), 6)
        if found > max(best, LEAST_SCORE):
            nearest, best = known, found
    if nearest is None:
        return RecallResult("new", None, 0.0, "nothing known is like it")
    why = compare_failures(asked, nearest.traits).why
    return RecallResult(_judge_score(best), nearest.known_id, best, why)


def _judge_score(found: float) -> str:
    if found >= MATCH_THRESHOLD:
        return "match"
    return "unsure" if found >= UNSURE_THRESHOLD else "new"


class FailureMemory:
    """An index in memory, for a stream: what was added can be recalled."""

    def __init__(self) -> None:
        self._known: list[KnownFailure] = []
        self._by_band: dict[int, list[int]] = defaultdict(list)
        self._by_token: dict[str, list[int]] = defaultdict(list)

    def add(self, known_id: str, known: Traits, bands: Sequence[int]) -> None:
        for band in bands:
            self._by_band[band].append(len(self._known))
        for token in list_tokens(known):
            self._by_token[token].append(len(self._known))
        self._known.append(KnownFailure(known_id, known))

    def find_candidates(self, bands: Sequence[int]) -> Iterable[KnownFailure]:
        """Of a band that many share only the newest are looked at."""
        shared = Counter(
            at for band in bands for at in self._by_band.get(band, ())[-MAX_CANDIDATES:]
        )
        likely = sorted(shared, key=lambda at: (-shared[at], -at))[:MAX_CANDIDATES]
        return [self._known[at] for at in likely]

    def find_others(self, asked: Traits, bands: Sequence[int]) -> Iterable[KnownFailure]:
        """What shares no band: all while there is little, then what shares the rarest words."""
        if asked.is_empty:
            return []
        near = {at for band in bands for at in self._by_band.get(band, ())[-MAX_CANDIDATES:]}
        if len(self._known) <= MAX_CANDIDATES:
            return [self._known[at] for at in range(len(self._known)) if at not in near]
        shared: dict[int, float] = defaultdict(float)
        for token in list_tokens(asked):
            holders = self._by_token.get(token, ())
            for at in holders[-MAX_OTHERS:]:
                shared[at] += 1 / len(holders)
        likely = sorted(shared.keys() - near, key=lambda at: (-shared[at], -at))[:MAX_OTHERS]
        return [self._known[at] for at in likely]


def recall_stream(failures: Iterable[Failure]) -> Iterator[tuple[str, RecallResult]]:
    """Each failure against those before it, in their order."""
    memory = FailureMemory()
    for failure in failures:
        asked = extract_traits(failure)
        bands = compute_bands(asked)
        yield (
            failure.id,
            _find_nearest(asked, memory.find_candidates(bands), memory.find_others(asked, bands)),
        )
        memory.add(failure.id, asked, bands)
