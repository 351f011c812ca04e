"""Families: which failures of a set have one cause, by likeness.

Pairs are found by shared bands, never by comparing all with all, and joined best first while the
families stay alike as wholes. The order of the failures does not matter. Knows nothing of history.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence

from interlock.rca.analyst.bands import bands_of
from interlock.rca.analyst.likeness import Traits, score, traits
from interlock.rca.failure import Failure

JOINED = 0.5
"""Likeness from which two failures are of one family."""
AS_WHOLES = 0.35
"""Mean likeness two families must have to become one: a chain of neighbours is no family."""
SMALL_BLOCK = 60
"""Up to so many that share a band are compared all with all."""
NEIGHBOURS = 4
LEADERS = 20
SPOKESMEN = 3


def cluster(failures: Sequence[Failure]) -> list[str]:
    """For each failure, the name of its family: the least id of its members."""
    names = [""] * len(failures)
    for members in families([traits(failure) for failure in failures]):
        name = min(failures[member].id for member in members)
        for member in members:
            names[member] = name
    return names


def families(known: Sequence[Traits]) -> list[tuple[int, ...]]:
    """Groups of indexes, each rising, in the order of their first members."""
    order = sorted(range(len(known)), key=lambda at: _canon(known[at]))
    ranked = [known[at] for at in order]
    groups: dict[int, list[int]] = defaultdict(list)
    for at, head in enumerate(_joined(ranked)):
        groups[head].append(order[at])
    return sorted(tuple(sorted(members)) for members in groups.values())


def _canon(known: Traits) -> tuple[str, str, str, str, tuple[str, ...]]:
    return known.text, known.class_name, known.test_name, known.message, known.lined


def _joined(known: Sequence[Traits]) -> list[int]:
    """For each its family's head. Links are taken best first, so no order of theirs matters."""
    links = sorted((-score, one, other) for one, other, score in _links(known))
    heads = list(range(len(known)))
    members = {at: [at] for at in heads}
    for _, one, other in links:
        left, right = heads[one], heads[other]
        if left == right or not _as_wholes(known, members[left], members[right]):
            continue
        if len(members[left]) < len(members[right]):
            left, right = right, left
        for member in members[right]:
            heads[member] = left
        members[left] += members.pop(right)
    return heads


def _as_wholes(known: Sequence[Traits], left: list[int], right: list[int]) -> bool:
    if len(left) == len(right) == 1:
        return True
    some, others = _spokesmen(left), _spokesmen(right)
    total = sum(score(known[one], known[other]) for one in some for other in others)
    return total >= AS_WHOLES * len(some) * len(others)


def _spokesmen(members: list[int]) -> list[int]:
    """A few of the members, spread over them all."""
    count = min(len(members), SPOKESMEN)
    return [members[at * (len(members) - 1) // max(1, count - 1)] for at in range(count)]


def _links(known: Sequence[Traits]) -> Iterator[tuple[int, int, float]]:
    """Pairs that are alike enough, each once, among those that share a band."""
    seen: set[tuple[int, int]] = set()
    for block in _blocks(known):
        pairs = _small(block) if len(block) <= SMALL_BLOCK else _near(block)
        for one, other in pairs:
            if (one, other) in seen:
                continue
            seen.add((one, other))
            found = score(known[one], known[other])
            if found >= JOINED:
                yield one, other, found
        if len(block) > SMALL_BLOCK:
            yield from _led(block, known)


def _blocks(known: Sequence[Traits]) -> Iterable[tuple[int, ...]]:
    """Indexes that share a band. Bands with the same members are one block."""
    sharing: dict[int, list[int]] = defaultdict(list)
    for at, each in enumerate(known):
        for band in bands_of(each):
            sharing[band].append(at)
    return sorted({tuple(block) for block in sharing.values() if len(block) > 1})


def _small(block: Sequence[int]) -> Iterator[tuple[int, int]]:
    for place, one in enumerate(block):
        for other in block[place + 1 :]:
            yield one, other


def _near(block: Sequence[int]) -> Iterator[tuple[int, int]]:
    """In canonical order what is alike stands near."""
    for place, one in enumerate(block):
        for other in block[place + 1 : place + 1 + NEIGHBOURS]:
            yield one, other


def _led(block: Sequence[int], known: Sequence[Traits]) -> Iterator[tuple[int, int, float]]:
    """Of a large block each is compared with the first of every kind met so far, within reason."""
    leaders: list[int] = []
    for other in block:
        for one in leaders:
            found = score(known[one], known[other])
            if found >= JOINED:
                yield one, other, found
                break
        else:
            if len(leaders) < LEADERS:
                leaders.append(other)
