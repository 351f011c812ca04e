"""Triage by labelled examples, measured beside the rules.

A logistic regression, and a check that neighbours are near: where no example is near, it predicts
only what is clear, and nothing where none resembles what it is asked. A label it never saw is not
guessed. The same examples give the same result in any order.
"""

import math
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from hashlib import blake2b
from itertools import pairwise

import msgspec

from interlock_rca.analyst.line_kinds import find_loudest
from interlock_rca.analyst.masking import mask_line
from interlock_rca.analyst.stack import extract_message, find_frames, find_owner
from interlock_rca.analyst.triage import UNKNOWN, TriageResult
from interlock_rca.records import Failure

NEAR = 0.2
"""Likeness to the nearest example from which the likeliest label is given."""
MIN_NEAREST = 0.1
"""Below `NEAR` a label must be clear; below this nothing supports an answer."""
MIN_CHANCE = 0.3
CLEAR_CHANCE = 0.85
MAX_VISITS = 24_000
"""How many examples are looked at in all while learning."""
TRAINING_ROUNDS = (4, 60)
LABEL_WORD_BONUS = 2.0
"""What a kind gains where a failure uses its label's words."""
_DECAY = 1e-3
_RATE = 4.0
_LEAST_STEP = 1e-4
_STEM = 6
_LABEL_WORD = re.compile(r"[A-Z]?[a-z]{4,}|[A-Z]{4,}(?![a-z])")

Vector = list[tuple[int, float]]


class Prediction(msgspec.Struct, frozen=True):
    """The likeliest label, or none; how sure; and the words that spoke for it."""

    label: str
    """Empty where nothing supports an answer."""
    confidence: float
    reasons: tuple[str, ...]


class Classifier:
    """What was learnt from examples: (features, label)."""

    def __init__(self, examples: Sequence[tuple[frozenset[str], str]]) -> None:
        ordered = sorted(examples, key=_hash_example)
        self._labels = [label for _, label in ordered]
        self._kinds = sorted(set(self._labels))
        self._rarity = _compute_rarities([bag for bag, _ in ordered])
        self._numbers = {word: at for at, word in enumerate(sorted(self._rarity))}
        self._words = list(self._numbers)
        self._stems = _stem_labels(self._kinds)
        self._examples = [self._vectorize(bag) for bag, _ in ordered]
        self._label_scores = [self._score_label_words(bag) for bag, _ in ordered]
        self._inverted_index = _build_inverted_index(self._examples)
        self._weights = [[0.0] * len(self._words) for _ in self._kinds]
        self._bias = [0.0] * len(self._kinds)
        if len(self._kinds) > 1:
            self._train()

    def predict(self, bag: frozenset[str]) -> Prediction:
        """What the features of a failure make it."""
        vector = self._vectorize(bag)
        near = self._measure_nearest(vector)
        least = NEAR if len(self._kinds) == 1 else MIN_NEAREST
        if not self._kinds or near < least:
            return Prediction("", 0.0, ("nothing like it was taught",))
        if len(self._kinds) == 1:
            return Prediction(self._kinds[0], round(near, 4), self._find_reasons(vector, 0))
        chances = self._compute_chances(vector, self._score_label_words(bag))
        best = max(range(len(chances)), key=lambda kind: (chances[kind], -kind))
        if near < NEAR and chances[best] < CLEAR_CHANCE:
            return Prediction("", round(chances[best], 4), ("too little like it was taught",))
        if chances[best] < MIN_CHANCE:
            return Prediction("", round(chances[best], 4), ("the examples do not agree",))
        return Prediction(
            self._kinds[best], round(chances[best], 4), self._find_reasons(vector, best)
        )

    def _vectorize(self, bag: frozenset[str]) -> Vector:
        known = sorted(self._numbers[word] for word in bag if word in self._numbers)
        weights = [self._rarity[self._words[number]] for number in known]
        length = math.sqrt(sum(weight * weight for weight in weights)) or 1.0
        return [(number, weight / length) for number, weight in zip(known, weights, strict=True)]

    def _measure_nearest(self, vector: Vector) -> float:
        """Cosine with the nearest example."""
        scores: dict[int, float] = defaultdict(float)
        for number, weight in vector:
            for example, other in self._inverted_index.get(number, ()):
                scores[example] += weight * other
        return max(scores.values(), default=0.0)

    def _score_label_words(self, bag: frozenset[str]) -> list[float]:
        """Of each kind, how many of its label's words the features use."""
        used_stems = {word[1 : 1 + _STEM] for word in bag if word.startswith("~")}
        return [
            LABEL_WORD_BONUS * len(stems & used_stems) / max(1, len(stems)) for stems in self._stems
        ]

    def _compute_chances(self, vector: Vector, called: Sequence[float]) -> list[float]:
        raw = [
            bias + call + sum(weights[number] * weight for number, weight in vector)
            for weights, bias, call in zip(self._weights, self._bias, called, strict=True)
        ]
        most = max(raw)
        grown = [math.exp(score - most) for score in raw]
        total = sum(grown)
        return [score / total for score in grown]

    def _find_reasons(self, vector: Vector, kind: int) -> tuple[str, ...]:
        weights = self._weights[kind]
        ranked = sorted(vector, key=lambda part: (-weights[part[0]] * part[1], part[0]))
        only = len(self._kinds) == 1
        reasons = [self._words[number] for number, _ in ranked if only or weights[number] > 0]
        return tuple(reasons[:3])

    def _train(self) -> None:
        counts = Counter(self._labels)
        fair = len(self._labels) / len(self._kinds)
        worth = {label: math.sqrt(fair / count) for label, count in counts.items()}
        rounds = max(
            TRAINING_ROUNDS[0], min(TRAINING_ROUNDS[1], MAX_VISITS // max(1, len(self._labels)))
        )
        order = list(range(len(self._labels)))
        for turn in range(rounds):
            rate = _RATE / (1 + 0.3 * turn)
            for example in order if turn % 2 else reversed(order):
                self._train_on_example(example, rate * worth[self._labels[example]])
            keep = 1 - _DECAY * rate
            for kind, weights in enumerate(self._weights):
                self._weights[kind] = [weight * keep for weight in weights]

    def _train_on_example(self, example: int, rate: float) -> None:
        vector, label = self._examples[example], self._labels[example]
        for kind, chance in enumerate(self._compute_chances(vector, self._label_scores[example])):
            step = rate * (chance - (self._kinds[kind] == label))
            if abs(step) < _LEAST_STEP:
                continue
            weights = self._weights[kind]
            for number, weight in vector:
                weights[number] -= step * weight
            self._bias[kind] -= 0.1 * step


def _hash_example(example: tuple[frozenset[str], str]) -> bytes:
    """An order that has nothing to do with how the examples came, and is always the same."""
    bag, label = example
    text = "\n".join([label, *sorted(bag)])
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()


def _stem_labels(kinds: Sequence[str]) -> list[frozenset[str]]:
    """The beginnings of the words of each label, without those that most labels have."""
    words = [{part.lower()[:_STEM] for part in _LABEL_WORD.findall(kind)} for kind in kinds]
    count = Counter(stem for stems in words for stem in stems)
    return [frozenset(stem for stem in stems if 2 * count[stem] <= len(kinds)) for stems in words]


def _compute_rarities(bags: Sequence[frozenset[str]]) -> dict[str, float]:
    """Of words that more than one example holds, how few hold them; of few examples, all words."""
    count: Counter[str] = Counter()
    for bag in bags:
        count.update(bag)
    least = 2 if len(bags) >= 20 else 1
    total = len(bags) + 1
    return {word: math.log(total / (held - 0.5)) for word, held in count.items() if held >= least}


def _build_inverted_index(vectors: Sequence[Vector]) -> dict[int, list[tuple[int, float]]]:
    holding: dict[int, list[tuple[int, float]]] = defaultdict(list)
    for example, vector in enumerate(vectors):
        for number, weight in vector:
            holding[number].append((example, weight))
    return holding


class TrainedTriage:
    """Triage by what labelled examples teach."""

    def __init__(self, examples: Iterable[tuple[Failure, str]]) -> None:
        self._classifier = Classifier(
            [(extract_features(failure), label) for failure, label in examples]
        )

    def triage(self, failure: Failure) -> TriageResult:
        """The kind of a failure, in the words of the examples; else `unknown`."""
        prediction = self._classifier.predict(extract_features(failure))
        return TriageResult(prediction.label or UNKNOWN, prediction.confidence, prediction.reasons)


_WORD = re.compile(r"[^\W\d_][\w.-]*[^\W_]|<\w+>|-[A-Z]\w+")
_PART = re.compile(r"[A-Z]?[a-z]{4,}|[A-Z]{4,}(?![a-z])")
_SHORT_LINE = 120
_LONGEST_LINE = 300
_MOST_LINES = 200


def extract_features(failure: Failure) -> frozenset[str]:
    """What can be learnt from this failure; empty where it says nothing."""
    lines = extract_message(failure)[:20_000].split("\n")[:50]
    if failure.log:
        lines += find_loudest(failure.log)
    found: set[str] = set()
    for line in list(dict.fromkeys(lines))[:_MOST_LINES]:
        _add_line(found, mask_line(line)[:_LONGEST_LINE])
    if failure.type:
        found.add(f"type {failure.type.rsplit('.', 1)[-1].lower()}")
    _add_frames(found, failure)
    return frozenset(found)


def _add_line(found: set[str], line: str) -> None:
    words = _WORD.findall(line)
    lower = [word.lower() for word in words]
    found.update(lower)
    found.update(f"{one} {other}" for one, other in pairwise(lower))
    found.update(f"~{part.lower()}" for word in words for part in _PART.findall(word))
    if line and len(line) < _SHORT_LINE:
        found.add(f"= {line}")


def _add_frames(found: set[str], failure: Failure) -> None:
    frames = find_frames(failure)[:30]
    owners = [find_owner(frame, failure.class_name) for frame in frames]
    if frames:
        found.add(f"innermost {owners[0]}")
        found.add(f"frames {' '.join(sorted(set(owners)))}")
    found.update(f"in {frame.place}" for frame in frames[:8])
