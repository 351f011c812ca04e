"""Recall: has this failure been seen before? The nearest of the known, how near, and a verdict.

Works on any index that gives candidates for bands: a stream's own memory here, a table elsewhere.
Knows nothing of root causes; what a match means for a case is decided by the circuit.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import Protocol

import msgspec

from interlock.rca.analyst.bands import bands_of
from interlock.rca.analyst.likeness import Traits, likeness, score, traits
from interlock.rca.failure import Failure

MATCH = 0.7
"""Likeness from which it is the same."""
UNSURE = 0.35
"""Likeness below which it is new."""
CERTAIN = 0.999
"""Likeness from which no nearer one is looked for: the likeliest are compared first."""
CANDIDATES = 200
"""No more are compared: those that share most bands, then the newest."""


class KnownFailure(msgspec.Struct, frozen=True):
    """Something remembered: its name in the index, and what is compared."""

    known_id: str
    traits: Traits


class Index(Protocol):
    """Where known failures are kept by their bands."""

    def candidates(self, bands: Sequence[int]) -> Iterable[KnownFailure]:
        """Those that share a band, the likeliest first; as many as are worth comparing."""


class RecallResult(msgspec.Struct, frozen=True):
    """The nearest known failure, if any came near at all, and what follows from how near."""

    verdict: str
    """match, new or unsure."""
    match_id: str | None
    score: float
    why: str


def recall(asked: Traits, index: Index) -> RecallResult:
    """The nearest of what the index knows. Of equals the first the index gives."""
    return _nearest(asked, index.candidates(bands_of(asked)))


def _nearest(asked: Traits, candidates: Iterable[KnownFailure]) -> RecallResult:
    nearest, best = None, 0.0
    for known in candidates:
        found = score(asked, known.traits)
        if found > best:
            nearest, best = known, found
        if best >= CERTAIN:
            break
    if nearest is None:
        return RecallResult("new", None, 0.0, "nothing known is like it")
    why = likeness(asked, nearest.traits).why
    return RecallResult(_verdict(best), nearest.known_id, best, why)


def _verdict(found: float) -> str:
    if found >= MATCH:
        return "match"
    return "unsure" if found >= UNSURE else "new"


class FailureMemory:
    """An index in memory, for a stream: what was added can be recalled."""

    def __init__(self) -> None:
        self._known: list[KnownFailure] = []
        self._by_band: dict[int, list[int]] = defaultdict(list)

    def add(self, known_id: str, known: Traits, bands: Sequence[int]) -> None:
        for band in bands:
            self._by_band[band].append(len(self._known))
        self._known.append(KnownFailure(known_id, known))

    def candidates(self, bands: Sequence[int]) -> Iterable[KnownFailure]:
        """Of a band that many share only the newest are looked at."""
        shared = Counter(at for band in bands for at in self._by_band.get(band, ())[-CANDIDATES:])
        likely = sorted(shared, key=lambda at: (-shared[at], -at))[:CANDIDATES]
        return [self._known[at] for at in likely]


def recall_stream(failures: Iterable[Failure]) -> Iterator[tuple[str, RecallResult]]:
    """Each failure against those before it, in their order."""
    memory = FailureMemory()
    for failure in failures:
        asked = traits(failure)
        bands = bands_of(asked)
        yield failure.id, _nearest(asked, memory.candidates(bands))
        memory.add(failure.id, asked, bands)
