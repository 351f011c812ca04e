"""Group failures by cause.

Only failures that share a band are compared, never all with all. Pairs are joined best first while
the families stay alike as wholes, so the order of the failures does not matter.
"""

from array import array
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence

from interlock_rca.analyst.similarity import (
    Traits,
    compute_bands,
    score_similarity,
)

JOIN_THRESHOLD = 0.5
"""The likeness from which two failures are in one family."""
GROUP_THRESHOLD = 0.35
"""The mean likeness at which two families merge: a chain of neighbours is no family."""
MAX_SMALL_BLOCK = 60
"""The most failures with a shared band that are all compared with each other."""
NEIGHBOURS = 4
MAX_LEADERS = 20
MAX_SAMPLE = 3


def find_families(known: Sequence[Traits]) -> list[tuple[int, ...]]:
    """Return groups of indexes, each in ascending order, in the order of their first members."""
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
    """Map each failure beyond the first few with the same message and place to one of these.
    Hundreds of equal failures are one family; comparing them all is wasted work."""
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
    """Return each failure's family head. Links are taken best first, so their order does not
    matter."""
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
    """Return a few of the members, spread over all of them."""
    count = min(len(members), MAX_SAMPLE)
    return [members[at * (len(members) - 1) // max(1, count - 1)] for at in range(count)]


_Links = defaultdict[int, "array[int]"]


def _sort_links(links: _Links, count: int) -> Iterator[tuple[int, int]]:
    """Yield the pairs, most alike first, without holding all at once."""
    for near in sorted(links):
        for link in sorted(set(links.pop(near))):
            yield divmod(link % count**2, count)


def _find_links(known: Sequence[Traits]) -> _Links:
    """Return sufficiently similar pairs among those that share a band; some come twice. Each is one
    number, as there may be millions: the distance from a score of 1, then both indexes. They are
    grouped by the first digits."""
    partners = [array("I") for _ in known]
    links: _Links = defaultdict(lambda: array("q"))  # up to four million failures

    def compare(one: int, other: int) -> bool:
        score = score_similarity(known[one], known[other], JOIN_THRESHOLD)
        if score:
            short = _WHOLE - round(score * _WHOLE)
            links[short // _GROUP].append(short * len(known) ** 2 + one * len(known) + other)
        return bool(score)

    for block in _find_blocks(known):
        # Sorted canonically, similar failures are near: in a large block, comparing neighbours is
        # enough.
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
    """Yield indexes that share a band; bands with the same members give one block."""
    sharing: dict[int, list[int]] = defaultdict(list)
    for at, traits in enumerate(known):
        for band in compute_bands(traits):
            sharing[band].append(at)
    return sorted({tuple(block) for block in sharing.values() if len(block) > 1})


def _link_to_leaders(block: Sequence[int], compare: Callable[[int, int], bool]) -> None:
    """Compare each member of a large block with the first of every kind met so far, up to a
    limit."""
    leaders: list[int] = []
    for other in block:
        if not any(compare(one, other) for one in leaders) and len(leaders) < MAX_LEADERS:
            leaders.append(other)
