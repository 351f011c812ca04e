"""Features: a failure as a set of short strings, for learning what kind it is.

Words, pairs of words and whole lines of what was said loudest, masked; the type; whose frames they
are. Knows nothing of labels.
"""

import re
from itertools import pairwise

from interlock.rca.analyst.complaints import loudest
from interlock.rca.analyst.masking import masked_line
from interlock.rca.analyst.ownership import owner
from interlock.rca.analyst.whereabouts import frames_of, words_of
from interlock.rca.failure import Failure

_WORD = re.compile(r"[A-Za-z][\w.-]*[A-Za-z0-9]|<\w+>|-[A-Z]\w+")
_PART = re.compile(r"[A-Z]?[a-z]{4,}|[A-Z]{4,}(?![a-z])")
_SHORT_LINE = 120
_LONGEST = 300
_MOST_LINES = 200


def features(failure: Failure) -> frozenset[str]:
    """What can be learnt from this failure; empty where it tells nothing."""
    lines = words_of(failure)[:20_000].split("\n")[:50]
    if failure.log:
        lines += loudest(failure.log)
    found: set[str] = set()
    for line in list(dict.fromkeys(lines))[:_MOST_LINES]:
        _add_line(found, masked_line(line)[:_LONGEST])
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
    frames = frames_of(failure)[:30]
    owners = [owner(frame, failure.class_name) for frame in frames]
    if frames:
        found.add(f"innermost {owners[0]}")
        found.add(f"frames {' '.join(sorted(set(owners)))}")
    found.update(f"in {frame.place}" for frame in frames[:8])
