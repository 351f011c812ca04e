"""Triage: the kind of a failure, its confidence, and the reason.

Judged by the table in `rules.yaml` and by the owners of the stack's frames. Unsupported answers are
`unknown`.
"""

import math
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping
from functools import lru_cache
from importlib.resources import files

import msgspec

from interlock.system.text import strip_colours
from interlock_rca.analyst.line_kinds import find_complaint_blocks, find_loudest
from interlock_rca.analyst.stack import extract_message, find_frames, find_owner
from interlock_rca.records import Failure

CATEGORIES = ("product", "automation", "infra", "flake", "firmware", "unknown")
UNKNOWN = "unknown"
MIN_CHANCE = 0.45
"""The chance from which a category is given."""
LOG_WEIGHT = 0.6
"""A log contains many harmless lines, so they count less than the message."""
_DOUBT = 1.0
"""The log-odds of `unknown`, which a category must exceed."""
_LOOKED_AT = 20_000
_SHORT_LOG = 200
_STRUCTURE = {
    "product-inside": ("product", 1.2, "the innermost frame is the product's"),
    "failed-check": ("product", 1.2, "a check of the test failed"),
    "tests-only": ("automation", 1.5, "it broke in the test's own code, and not by an assertion"),
}
_OUTSIDE = ("infra", "flake", "firmware")
"""Kinds that a test's own code may meet without being to blame."""
_ASSERTING = re.compile(
    r"^(?:[\w.]+\.)?Failed\b|assert|(?<!un)expect|comparison|mismatch|should|\bwant \S"
    r"|_test\.go:\d+: \S|\bdiffer|not equal|\bdid not (?:raise|throw)",
    re.IGNORECASE,
)


_REPORTED = re.compile(r"(?:=== .*\n)*\s*[\w.-]+_test\.go:\d+:(?!.*\bpanic)")
"""Go has no exceptions: a test's own report begins with its line."""


class TriageRule(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One row of the table."""

    id: str
    category: str
    weight: float
    where: tuple[str, ...]
    why: str
    patterns: tuple[str, ...]


class TriageResult(msgspec.Struct, frozen=True):
    """A category, its chance, and the reasons."""

    category: str
    confidence: float
    reasons: tuple[str, ...]


@lru_cache(maxsize=1)
def load_rules() -> tuple[tuple[TriageRule, re.Pattern[str]], ...]:
    """Return the table, each row with its patterns joined."""
    text = files("interlock_rca.analyst").joinpath("rules.yaml").read_text(encoding="utf-8")
    rows = msgspec.yaml.decode(text, type=tuple[TriageRule, ...])
    return tuple(
        (row, re.compile("|".join(f"(?:{pattern})" for pattern in row.patterns), re.IGNORECASE))
        for row in rows
    )


def triage_failure(failure: Failure) -> TriageResult:
    """Return the kind of a failure by the rules."""
    odds: dict[str, float] = defaultdict(float)
    reasons: list[tuple[float, str, str]] = []
    for name, category, weight, why in _match_rules(failure):
        odds[category] += weight
        reasons.append((-weight, category, f"{name}: {why}"))
    if not odds:
        return TriageResult(UNKNOWN, 0.0, ("no rule knows it",))
    grown = {category: math.exp(weight) for category, weight in odds.items()}
    total = sum(grown.values()) + math.exp(_DOUBT)
    best = min(grown, key=lambda category: (-grown[category], category))
    chance = round(grown[best] / total, 4)
    supporting = tuple(text for _, category, text in sorted(reasons) if category == best)
    if chance < MIN_CHANCE:
        return TriageResult(UNKNOWN, chance, supporting)
    return TriageResult(best, chance, supporting)


def _match_rules(failure: Failure) -> Iterable[tuple[str, str, float, str]]:
    """Yield (rule, category, weight, why) of each matching rule."""
    texts = _collect_texts(failure)
    known = outside = False
    for rule, pattern in load_rules():
        weights = [
            rule.weight * (LOG_WEIGHT if place == "log" else 1.0)
            for place in rule.where
            if texts.get(place) and pattern.search(texts[place])
        ]
        if weights:
            known = True
            outside = outside or rule.category in _OUTSIDE
            yield rule.id, rule.category, max(weights), rule.why
    structure = _judge_frames(failure)
    if not known and not structure and is_failed_check(failure):
        structure = "failed-check"
    if structure and not (outside and structure == "tests-only"):
        category, weight, why = _STRUCTURE[structure]
        yield structure, category, weight, why


def _collect_texts(failure: Failure) -> Mapping[str, str]:
    # In a test's own short log every complaint counts with its details; in a long one, the loudest.
    is_short = failure.log.count("\n") < _SHORT_LOG
    lines = find_complaint_blocks(failure.log) if is_short else find_loudest(failure.log)
    return {
        "type": failure.type[:1_000],
        "message": strip_colours(extract_message(failure)[:_LOOKED_AT]),
        "stack": strip_colours(failure.stack[:_LOOKED_AT]),
        "log": "\n".join(lines),
        "attributes": " ".join(f"{key}={failure.attributes[key]}" for key in failure.attributes),
    }


def _judge_frames(failure: Failure) -> str:
    owners = [find_owner(frame, failure.class_name) for frame in find_frames(failure)]
    own = [owner for owner in owners if owner != "library"]
    if not own:
        return ""
    if own[0] == "product":
        return "product-inside"
    return "" if is_failed_check(failure) or "product" in own else "tests-only"


def is_failed_check(failure: Failure) -> bool:
    """Return True if a check of the test failed, and nothing else broke."""
    if _REPORTED.match(failure.stack):
        return True
    return bool(_ASSERTING.search(f"{failure.type} {extract_message(failure)[:_LOOKED_AT]}"))
