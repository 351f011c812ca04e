"""How similar two failures are, from 0 to 1, and why: read as the chance that their cause is one.

A sum of a few features, each with a weight that is a row of `WEIGHTS`. Bands (MinHash) decide which
pairs are worth comparing: a few numbers of each failure, such that similar failures share at least
one. They make recall among a million symptoms a look-up, and are the same in every process.
"""

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache, lru_cache
from hashlib import blake2b
from operator import mul
from typing import TypeVar

import msgspec
from rapidfuzz.distance import Indel

from interlock_rca.analyst.line_kinds import find_complaints
from interlock_rca.analyst.masking import mask_text
from interlock_rca.analyst.names import split_name
from interlock_rca.analyst.stack import (
    Frame,
    extract_message,
    filter_own_frames,
    find_frames,
    is_test_frame,
)
from interlock_rca.records import Failure

WEIGHTS = {
    "start": -9.1,  # two failures drawn at random
    "text": 7.0,  # type, masked message and own frames, by edit ratio
    "signature": 2.5,  # and these are the same to the letter, a frame among them
    "names": 6.0,  # words of test and class
    "innermost": 4.5,  # the innermost frame of the product, at the same line
    "lines": 2.7,  # own frames at the same lines, the innermost counting most
    "message": 1.5,  # one message, word for word
    "specific": 1.5,  # one masked message that says something of its own
    "alone": 1.5,  # and there are no frames: it is all there is to compare
    "elsewhere": -1.0,  # both broke in the product, and in different functions or ways
}
"""Logistic: what each feature adds to the log-odds."""

MIN_SAME_SCORE = 0.9
"""The least score of two failures that say the same, however little that is."""
MAX_FRAMES = 15
MAX_MESSAGE_LENGTH = 500
MAX_NAME_LENGTH = 300
_ENOUGH_WORDS = 6
_SOME_WORDS = 4
_WORD = re.compile(r"[^\W\d_]{2,}")
"""Of any script."""
_UNSPACED = re.compile("[\u3040-\u30ff\u3400-\u9fff]")
_PLAIN_TEXT = """the an is to of in and or at on for by no not but was were be been have has had it
its that this with from as expected actual got equal equals same null none nil true false undefined
assert assertion error exception failed failure fail should value values"""
_PLAIN = frozenset(_PLAIN_TEXT.split())
"""Words any message may use: they make it no one's own."""


Shared = TypeVar("Shared", str, tuple[str, ...], frozenset[str])


class Traits(msgspec.Struct, frozen=True):
    """What of a failure is compared. Made once, compared often."""

    type: str
    message: str
    """As said."""
    masked: str
    """The same, masked."""
    text: str
    """Type, masked message and own frames without lines: what the edit ratio sees."""
    names: frozenset[str]
    places: tuple[str, ...]
    """Own frames, innermost first."""
    lined: tuple[str, ...]
    """The same with their lines."""
    innermost: str
    """The innermost frame of the product, with its line."""
    class_name: str
    test_name: str
    own_words: frozenset[str]
    """Words of the message that not any message uses."""

    @property
    def is_empty(self) -> bool:
        """Only the name of the test is known: comparable to nothing."""
        return not self.text


_decode = msgspec.json.Decoder(Traits).decode


class Similarity(msgspec.Struct, frozen=True):
    """A score from 0 to 1 and the features it comes from, strongest first."""

    score: float
    why: str


def extract_traits(failure: Failure) -> Traits:
    """What of this failure is compared with others."""
    class_name, test_name = (
        failure.class_name[:MAX_NAME_LENGTH],
        failure.test_name[:MAX_NAME_LENGTH],
    )
    own = filter_own_frames(find_frames(failure), failure.class_name)[: 4 * MAX_FRAMES]
    words = extract_message(failure)
    # Where a failure has neither message nor stack, its log's complaints stand in for it.
    message = words if words or own else "\n".join(dict.fromkeys(find_complaints(failure.log)[:12]))
    masked_text = " ".join(mask_text(message[: 4 * MAX_MESSAGE_LENGTH]).split())[
        :MAX_MESSAGE_LENGTH
    ]
    places = _share(tuple(dict.fromkeys(_share(frame.place) for frame in own)))
    kind = failure.type[:MAX_NAME_LENGTH].strip()
    text = " ".join((kind, masked_text, *places[:MAX_FRAMES])).strip()
    return Traits(
        type=kind,
        message=message[: 4 * MAX_MESSAGE_LENGTH].strip(),
        masked=_share(masked_text),
        text=_share(text),
        names=_share(frozenset(split_name(class_name) | split_name(test_name))),
        places=places,
        lined=_share(tuple(dict.fromkeys(map(_format_lined_frame, own)))),
        innermost=next(
            (_format_lined_frame(frame) for frame in own if not is_test_frame(frame)), ""
        ),
        class_name=class_name,
        test_name=test_name,
        own_words=_share(frozenset(_list_words(masked_text)) - _PLAIN),
    )


@lru_cache(maxsize=16_384)
def _share(value: Shared) -> Shared:
    """The same value, and the same object each time: failures of one family have much in common,
    and there may be very many of them."""
    return value


def _list_words(text: str) -> Iterator[str]:
    """In small letters. Scripts without blanks between words are read in pairs of signs."""
    for word in _WORD.findall(text):
        if _UNSPACED.search(word):
            yield from (word[at : at + 2] for at in range(len(word) - 1))
        else:
            yield word.lower()


def encode_traits(known: Traits) -> str:
    """Traits as text for a table: the same text for the same traits."""
    return msgspec.json.encode(known, order="deterministic").decode()


def decode_traits(text: str) -> Traits:
    """The traits of a text that `encode_traits` made."""
    return _decode(text)


def compare_failures(one: Traits, other: Traits) -> Similarity:
    """Return how alike the two are, and why. Symmetric; 0 where either says nothing."""
    if one.is_empty or other.is_empty:
        return Similarity(0.0, "one of them tells nothing")
    if one == other:
        return Similarity(score_similarity(one, other), "all that is told")
    shares = _compute_shares(one, other)
    found = dict(zip(_FEATURES, shares, strict=True))
    strongest = sorted(found, key=lambda name: (-WEIGHTS[name] * found[name], name))
    why = ", ".join(
        f"{_FEATURE_TEXT[name]} {found[name]:.2f}" for name in strongest if found[name] > 0.3
    )
    return Similarity(_compute_chance(shares), why or "little in common")


def score_similarity(one: Traits, other: Traits, least: float = 0.0) -> float:
    """Return the score without the reasons; 0 where it is less than `least`, which is often seen
    before all is compared."""
    if one.is_empty or other.is_empty:
        return 0.0
    if one == other:
        return max(_compute_chance(_compute_shares(one, other)), MIN_SAME_SCORE)
    shares = _compute_shares(one, other, least)
    found = _compute_chance(shares) if shares else 0.0
    return found if found >= least else 0.0


_START, *_FEATURE_WEIGHTS = WEIGHTS.values()
_, *_FEATURES = WEIGHTS
_TEXT, _LINES = _FEATURES.index("text"), _FEATURES.index("lines")


def _compute_shares(one: Traits, other: Traits, least: float = 0.0) -> Sequence[float]:
    """Return what the two have in common, each feature from 0 to 1, in the order of `WEIGHTS`;
    nothing as soon as it is plain that the score is less than `least`."""
    own_words = _compare_words(one, other)
    shares = [
        0.0,
        1.0 if one.places and one.text == other.text else 0.0,
        1.0 if _is_same_test(one, other) else _compute_overlap(one.names, other.names),
        1.0 if one.innermost and one.innermost == other.innermost else 0.0,
        0.0,
        1.0 if one.message and one.message == other.message else 0.0,
        own_words,
        0.0 if one.places or other.places else own_words,
        1.0 if _broke_elsewhere(one, other) else 0.0,
    ]
    weight = _weigh_text(one, other)
    most = _FEATURE_WEIGHTS[_TEXT] * weight
    # What text and lines must give together; a little less, for the rounding of sums and chances.
    missing = _find_least_sum(least) - sum(map(mul, _FEATURE_WEIGHTS, shares))
    if most + _FEATURE_WEIGHTS[_LINES] < missing:
        return ()
    shares[_LINES] = _compute_weighted_overlap(one.lined, other.lined)
    cut = max(0.0, (missing - _FEATURE_WEIGHTS[_LINES] * shares[_LINES]) / most)
    if cut > 1:
        return ()
    shares[_TEXT] = weight * Indel.normalized_similarity(one.text, other.text, score_cutoff=cut)
    return shares


@lru_cache(maxsize=16)
def _find_least_sum(least: float) -> float:
    """Return what the features must add up to for that score, or a little less."""
    return math.log(least / (1 - least)) - _START - 0.001 if 0 < least < 1 else -math.inf


def _compute_chance(shares: Sequence[float]) -> float:
    total = _START + sum(map(mul, _FEATURE_WEIGHTS, shares))
    return round(1 / (1 + math.exp(-total)), 6)


def _compare_words(one: Traits, other: Traits) -> float:
    """Return how much two messages that are one when masked say of their own."""
    if one.masked and one.masked == other.masked:
        return min(1.0, len(one.own_words) / _ENOUGH_WORDS)
    return 0.0


_FEATURE_TEXT = {
    "text": "type, message and frames",
    "signature": "one signature",
    "names": "test names",
    "innermost": "innermost product frame",
    "lines": "own lines",
    "message": "message",
    "specific": "words of its own",
    "alone": "nothing but the message",
    "elsewhere": "another place in the product",
}


def _broke_elsewhere(one: Traits, other: Traits) -> bool:
    """Whether both broke in the product, in two functions, or at two lines with other types."""
    if not one.innermost or not other.innermost or one.innermost == other.innermost:
        return False
    return (
        one.type != other.type
        or one.innermost.rpartition(":")[0] != other.innermost.rpartition(":")[0]
    )


def _weigh_text(one: Traits, other: Traits) -> float:
    """Without frames, a message of plain words only is half a feature: any failure may say it."""
    if one.places and other.places:
        return 1.0
    return 0.5 + 0.5 * min(1.0, min(len(one.own_words), len(other.own_words)) / _SOME_WORDS)


def _format_lined_frame(frame: Frame) -> str:
    place: str = _share(f"{frame.place}:{frame.line}")
    return place


def _is_same_test(one: Traits, other: Traits) -> bool:
    named = bool(one.test_name) and one.test_name == other.test_name
    return named and one.class_name == other.class_name


def _compute_overlap(one: frozenset[str], other: frozenset[str]) -> float:
    """Numbers and single letters tell tests apart; sharing them relates nothing."""
    both = len(_drop_numbers(one) & other)
    return both / len(one | other) if both else 0.0


@lru_cache(maxsize=16_384)
def _drop_numbers(words: frozenset[str]) -> frozenset[str]:
    return frozenset(word for word in words if len(word) > 1 and not word.isdigit())


def _compute_weighted_overlap(one: tuple[str, ...], other: tuple[str, ...]) -> float:
    """Overlap of two lists in which the first counts most: one, a half, a third…"""
    if not one or not other:
        return 0.0
    ranks = _rank_places(one)
    both = sum([1 / max(ranks[place], at) for at, place in enumerate(other, 1) if place in ranks])
    return both / (_sum_weights(len(one)) + _sum_weights(len(other)) - both)


@lru_cache(maxsize=1_024)
def _rank_places(places: tuple[str, ...]) -> Mapping[str, int]:
    return {place: at for at, place in enumerate(places, 1)}


@cache
def _sum_weights(count: int) -> float:
    return sum(1 / at for at in range(1, count + 1))


BAND_ROWS = 3
BAND_GROUPS = 8
_PRIME = (1 << 61) - 1
_MOST_TOKENS = 96


def compute_bands(known: Traits) -> tuple[int, ...]:
    """The bands of a failure with these traits, in ascending order; none where it says nothing."""
    if known.is_empty:
        return ()
    keys = list(_list_band_keys(known)) or [f"whole {known.text}"]
    found = {_hash_text(key) for key in keys}
    found.update(_compute_minhash(list_tokens(known)))
    return tuple(sorted(found))


def _list_band_keys(known: Traits) -> Iterator[str]:
    """Features each of which alone justifies a comparison."""
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


def list_tokens(known: Traits) -> list[str]:
    """The words and places by which failures are found that share no more than some of them."""
    tokens = {f"w {word}" for word in known.own_words}
    tokens.update(f"n {word}" for word in known.names if word not in ("test", "tests"))
    tokens.update(f"p {place}" for place in known.places[:12])
    return sorted(tokens)[:_MOST_TOKENS]


def _compute_minhash(tokens: list[str]) -> Iterator[int]:
    """Groups of the least hashes under some orders of all tokens: equal for sets alike."""
    if len(tokens) < BAND_ROWS:
        return
    least = [min(places) for places in zip(*map(_order_token, tokens), strict=True)]
    for group in range(BAND_GROUPS):
        rows = least[group * BAND_ROWS : (group + 1) * BAND_ROWS]
        yield _hash_text(f"least {group} {rows}")


@lru_cache(maxsize=16_384)
def _order_token(token: str) -> tuple[int, ...]:
    """Its place in each order."""
    number = _hash_text(token)
    return tuple([(a * number + b) % _PRIME for a, b in _ORDERS])


@lru_cache(maxsize=65_536)
def _hash_text(text: str) -> int:
    """63 bits: a database's signed integer holds it."""
    digest = blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return int.from_bytes(digest, "big") >> 1


_ORDERS = tuple(
    (_hash_text(f"a {n}") | 1, _hash_text(f"b {n}")) for n in range(BAND_ROWS * BAND_GROUPS)
)
