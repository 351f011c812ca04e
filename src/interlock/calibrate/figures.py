"""Numbers as people read them in scorecards; what was not measured is a dash, never a number."""

from interlock.calibrate.metric_table import Bounds
from interlock.calibrate.statistics import Interval

DASH = "\N{EN DASH}"


def figure(value: float | None, digits: int = 3) -> str:
    """Large numbers whole, others with so many digits."""
    if value is None:
        return DASH
    return f"{value:,.0f}" if abs(value) >= 1_000 else f"{value:.{digits}f}"


def signed(value: float | None) -> str:
    return DASH if value is None else f"{value:+,.0f}" if abs(value) >= 1_000 else f"{value:+.3f}"


def around(found: Interval | None, digits: int = 2) -> str:
    """From where to where."""
    if found is None:
        return DASH
    return f"{figure(found.low, digits)}..{figure(found.high, digits)}"


def needed(bounds: Bounds) -> str:
    """What passes."""
    low, high = bounds
    if low is not None and high is not None:
        return f"{low:g} to {high:g}"
    return f"at least {low:g}" if low is not None else f"at most {high:,g}"


def share(part: float, whole: float) -> str:
    return f"{part:g} of {whole:g}" if whole else DASH
