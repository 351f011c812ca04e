"""Bands: a few numbers of a failure such that failures alike share at least one of them.

What makes recall among a million symptoms a look-up: candidates are those that share a band, and
only they are compared. The same on every machine and in every process. Knows nothing of scores.
"""

from collections.abc import Iterator
from functools import lru_cache
from hashlib import blake2b

from interlock.rca.analyst.likeness import Traits, traits
from interlock.rca.failure import Failure

ROWS = 3
GROUPS = 8
_PRIME = (1 << 61) - 1
_MOST_TOKENS = 96


def bands(failure: Failure) -> tuple[int, ...]:
    """The bands of a failure, rising; none where it tells nothing."""
    return bands_of(traits(failure))


def bands_of(known: Traits) -> tuple[int, ...]:
    """The same for traits that are at hand."""
    if known.empty:
        return ()
    keys = list(_keys(known)) or [f"whole {known.text}"]
    found = {_number(key) for key in keys}
    found.update(_minhash(_tokens(known)))
    return tuple(sorted(found))


def _keys(known: Traits) -> Iterator[str]:
    """Signs that are enough for a look, each by itself."""
    if len(known.own_words) > 1:
        yield f"message {known.type} {' '.join(sorted(known.own_words))}"
    if known.class_name:
        yield f"class {known.class_name}"
    if known.test_name:
        yield f"test {known.test_name}"
    for place in known.places[:2]:
        yield f"place {place}"
    if known.innermost:
        yield f"place {known.innermost.rpartition(':')[0]}"


def _tokens(known: Traits) -> list[str]:
    tokens = {f"w {word}" for word in known.own_words}
    tokens.update(f"n {word}" for word in known.names if word not in ("test", "tests"))
    tokens.update(f"p {place}" for place in known.places[:12])
    return sorted(tokens)[:_MOST_TOKENS]


def _minhash(tokens: list[str]) -> Iterator[int]:
    """Groups of the least hashes under some orders of all tokens: equal for sets alike."""
    if len(tokens) < ROWS:
        return
    numbers = [_number(token) for token in tokens]
    least = [min([(a * number + b) % _PRIME for number in numbers]) for a, b in _ORDERS]
    for group in range(GROUPS):
        rows = least[group * ROWS : (group + 1) * ROWS]
        yield _number(f"least {group} {rows}")


@lru_cache(maxsize=65_536)
def _number(text: str) -> int:
    """63 bits: a database's signed integer holds it."""
    digest = blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return int.from_bytes(digest, "big") >> 1


_ORDERS = tuple((_number(f"a {n}") | 1, _number(f"b {n}")) for n in range(ROWS * GROUPS))
