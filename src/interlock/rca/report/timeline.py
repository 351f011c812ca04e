"""The timeline: where on a strip each failure is drawn, lane by lane, one lane per cause.

Works in shares of a width (x is in percent), so that the page can make the strip as wide as the
reader's screen. Long silences (days between two launches) are folded, cases without a time are
counted and said, and ten thousand failures become a few hundred dots.
"""

from collections import Counter
from collections.abc import Sequence
from datetime import datetime, timedelta
from itertools import pairwise

import msgspec

from interlock.rca.records import CaseFinding
from interlock.rca.report.outline import Cause, Outline
from interlock.system.text import format_line, plural
from interlock.system.time import format_duration, parse_time

_LANES = 10
_BINS = 130
_CROWD = 40
_LEFT, _RIGHT = 2.0, 98.0
_FOLD = timedelta(hours=6)
_FOLD_WIDTH = 4.0
_DATED, _CLOCKED = 42, 25
"""The room that a tick's text takes, in percent."""
EDGE_PERCENT = 21
"""Nearer to an end of the strip than this, a text cannot stand in the middle over its tick."""


class TimelineDot(msgspec.Struct, frozen=True):
    """Failures close together in one lane."""

    x: float
    number: int
    text: str
    first: bool = False


class Lane(msgspec.Struct, frozen=True):
    """One cause, or all that got no lane of their own."""

    number: int
    """Of the cause; 0 for the rest."""
    kind: str
    shade: int
    label: str
    size: int
    dots: tuple[TimelineDot, ...]
    cause: Cause | None
    """None for the rest."""

    @property
    def crowded(self) -> bool:
        """Too many dots to tell apart: better drawn as bars."""
        return len(self.dots) > _CROWD


class Tick(msgspec.Struct, frozen=True):
    x: float
    text: str


class Timeline(msgspec.Struct, frozen=True):
    """Everything to be drawn: lanes always, dots only where cases have times."""

    lanes: tuple[Lane, ...]
    spread: bool = False
    """Whether the times differ, so that a strip says something."""
    ticks: tuple[Tick, ...] = ()
    folds: tuple[Tick, ...] = ()
    first_x: float = 0.0
    first_text: str = ""
    first_at: str = ""
    most: int = 0
    """Failures in the fullest dot."""
    timed: int = 0
    untimed: int = 0


class _Scale(msgspec.Struct, frozen=True):
    """Stretches of time, each with its place on the strip."""

    stretches: tuple[tuple[datetime, datetime, float, float], ...]

    def to_percent(self, at: datetime) -> float:
        for begin, end, left, right in self.stretches:
            if at <= end:
                length = (end - begin) / timedelta(seconds=1)
                part = (at - begin) / timedelta(seconds=1) / length if length else 0.5
                return round(left + part * (right - left), 2)
        return _RIGHT


def build_timeline(outline: Outline) -> Timeline:
    """The strip for all causes; empty lanes are kept, so that their size is still seen."""
    times = [(at, case) for case in outline.findings.cases if (at := parse_time(case.at))]
    if not times:
        return Timeline(_build_lanes(outline.causes), untimed=outline.total)
    scale = _build_scale(sorted({at for at, _ in times}))
    first_at, first = min(times, key=lambda each: (each[0], each[1].case_no, each[1].case_id))
    lanes = _build_lanes(outline.causes, scale, first_at)
    return Timeline(
        lanes=lanes,
        spread=len({at for at, _ in times}) > 1,
        ticks=_build_ticks(scale),
        folds=_build_folds(scale),
        first_x=scale.to_percent(first_at),
        first_text=_shorten_name(first),
        first_at=f"{first_at:%Y-%m-%d %H:%M:%S} UTC",
        most=max(dot.number for lane in lanes for dot in lane.dots),
        timed=len(times),
        untimed=outline.total - len(times),
    )


def assign_shades(causes: Sequence[Cause]) -> dict[int, int]:
    """Causes of one kind get different shades of its colour: number of the cause -> shade."""
    met: Counter[str] = Counter()
    found = {}
    for cause in causes:
        found[cause.number] = met[cause.kind] % 4
        met[cause.kind] += 1
    return found


def _shorten_name(case: CaseFinding) -> str:
    return format_line(case.test_name, 60) or "a test without a name"


def _build_scale(times: Sequence[datetime]) -> _Scale:
    """Silences of hours that take a quarter of all are folded to a mark."""
    span = times[-1] - times[0]
    cuts = [
        n for n, (one, next_) in enumerate(pairwise(times), 1) if next_ - one > max(_FOLD, span / 4)
    ]
    pieces = [
        times[a:b] for a, b in zip([0, *cuts], [*cuts, len(times)], strict=True) if times[a:b]
    ]
    lengths = [max(piece[-1] - piece[0], span / 50) / timedelta(seconds=1) for piece in pieces]
    room = _RIGHT - _LEFT - _FOLD_WIDTH * (len(pieces) - 1)
    total = sum(lengths) or 1.0
    stretches, left = [], _LEFT
    for piece, length in zip(pieces, lengths, strict=True):
        right = left + room * (length / total if sum(lengths) else 1.0)
        stretches.append((piece[0], piece[-1], left, right))
        left = right + _FOLD_WIDTH
    return _Scale(tuple(stretches))


def _build_lanes(
    causes: Sequence[Cause], scale: _Scale | None = None, first_at: datetime | None = None
) -> tuple[Lane, ...]:
    own = causes if len(causes) <= _LANES else causes[: _LANES - 1]
    rest = causes[len(own) :]
    colours = assign_shades(causes)
    rows = [(c.number, c.kind, colours[c.number], c.title, c.cases) for c in own]
    if rest:
        cases = tuple(case for cause in rest for case in cause.cases)
        rows.append((0, "unknown", 0, plural(len(rest), "more cause"), cases))
    return tuple(
        Lane(
            number=number,
            kind=kind,
            shade=shade,
            label=format_line(title, 160),
            size=len(cases),
            dots=_build_dots(cases, scale, first_at) if scale else (),
            cause=causes[number - 1] if number else None,
        )
        for number, kind, shade, title, cases in rows
    )


def _build_dots(
    cases: Sequence[CaseFinding], scale: _Scale, first_at: datetime | None
) -> tuple[TimelineDot, ...]:
    width = 100 / _BINS
    bins: dict[int, list[datetime]] = {}
    for case in cases:
        if at := parse_time(case.at):
            bins.setdefault(int(scale.to_percent(at) // width), []).append(at)
    return tuple(
        TimelineDot(
            scale.to_percent(min(times)),
            len(times),
            f"{plural(len(times), 'failure')}, {min(times):%Y-%m-%d %H:%M:%S} UTC",
            first_at in times,
        )
        for _, times in sorted(bins.items())
    )


def _build_ticks(scale: _Scale) -> tuple[Tick, ...]:
    """Where each stretch begins and ends, as far as the texts have room beside each other."""
    years = {at.year for begin, end, *_ in scale.stretches for at in (begin, end)}
    date = "%d %b " if len(years) == 1 else "%d %b %Y "
    found, free, last = [], 0.0, ("", "")
    for begin, end, *_ in scale.stretches:
        clock = "%H:%M" if end - begin > timedelta(minutes=5) else "%H:%M:%S"
        for at in dict.fromkeys((begin, end)):
            x, today, hour = scale.to_percent(at), at.strftime(date), at.strftime(clock)
            dated = today != last[0]
            left, right = _find_extent(x, _DATED if dated else _CLOCKED)
            if left >= free and (dated or hour != last[1]):
                found.append(Tick(x, f"{today if dated else ''}{hour}"))
                free, last = right, (today, hour)
    return tuple(found)


def _find_extent(x: float, width: float) -> tuple[float, float]:
    """From where to where a text reaches; near an end of the strip it stays inside."""
    if x < EDGE_PERCENT:
        return x, x + width
    if x > 100 - EDGE_PERCENT:
        return x - width, x
    return x - width / 2, x + width / 2


def _build_folds(scale: _Scale) -> tuple[Tick, ...]:
    return tuple(
        Tick(
            round(one[3] + _FOLD_WIDTH / 2, 2),
            f"{format_duration(two[0] - one[1])} without failures",
        )
        for one, two in pairwise(scale.stretches)
    )
