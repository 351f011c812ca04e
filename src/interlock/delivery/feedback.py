"""The open points of all judges as one text: the newest first, and what has no room is counted.

Knows points and room. Refuses to know which points are open, and who is told.
"""

from collections.abc import Sequence
from typing import Final

import msgspec

from interlock.delivery.brief import Point
from interlock.runtime.fence import clean, shorten

LONGEST_POINT: Final = 4_000
_ROOM_TO_SAY: Final = 60


class FeedbackText(msgspec.Struct, frozen=True):
    """The text, how many points of all are in it, and how many characters are not."""

    text: str = ""
    shown: int = 0
    total: int = 0
    cut: int = 0


def tell(points: Sequence[Point], most: int) -> FeedbackText:
    """The points in at most that many characters; a newer one is never left out for an older."""
    parts: list[str] = []
    room, cut = most - _ROOM_TO_SAY, 0
    for point in reversed(points):
        piece = shorten(point.text, LONGEST_POINT)
        part = f"[{clean(point.by)}, look {point.attempt}]\n{piece.text}"
        if parts and len(part) + 2 > room:
            break
        parts.append(part)
        room -= len(part) + 2
        cut += piece.cut
    older = points[: len(points) - len(parts)]
    cut += sum(len(point.text) for point in older)
    if older:
        parts.append(f"[... {len(older):,} older points are not shown ...]")
    return FeedbackText("\n\n".join(parts), len(points) - len(older), len(points), cut)
