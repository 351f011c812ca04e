"""Clocks: durations, and the signs that two clocks disagree.

A launch's times may come from three planes: the executor that ran the CI job, the node the tests
ran on, and the system under test. Knows no clock of its own: every time is given.
"""

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import Final

import msgspec

from interlock.rca.records import Failure, Job, Launch

CLOCK_PLANE_NOTE: Final = (
    "Times are of up to three clocks: the executor's (CI job), the test node's (launch, tests), "
    "and the tested system's (lines of its logs). They may differ; never order events of two "
    "clocks by their times alone."
)


class ClockLimits(msgspec.Struct, frozen=True, kw_only=True):
    """From where on a difference is a sign of skew."""

    start_minutes: float = 5
    """Between the start of the launch and of its CI job."""
    step_hours: float = 2
    """The duration of one test."""
    launch_factor: float = 3
    """How many times longer the launch is than all its jobs together."""


class Skew(msgspec.Struct, frozen=True):
    """What the detectors found, and which could not look."""

    signs: tuple[str, ...] = ()
    unchecked: tuple[str, ...] = ()

    @property
    def warning(self) -> str:
        return "; ".join(self.signs)


def moment(text: str) -> datetime | None:
    """A time in RFC 3339; without an offset it counts as UTC. None if it is none."""
    if len(text) > 64:
        return None
    try:
        found = datetime.fromisoformat(text.strip())
        found = found if found.tzinfo else found.replace(tzinfo=UTC)
        return found.astimezone(UTC)
    except (ValueError, OverflowError):
        return None


def between(start: str, end: str) -> timedelta | None:
    """From one time to the other; negative if the second is earlier."""
    first, second = moment(start), moment(end)
    return second - first if first and second else None


def took(failure: Failure) -> timedelta | None:
    """How long the test ran: by its times, or by the seconds its report counted (`time`)."""
    found = between(failure.at, failure.ended_at)
    if found is not None:
        return found
    try:
        seconds = float(failure.attributes.get("time", "").replace(",", ""))
        return timedelta(seconds=seconds) if seconds >= 0 else None
    except (ValueError, OverflowError):
        return None


def days_between(start: str, end: str) -> int | None:
    """Whole days from one time to the other; None if either is unknown or they are turned round."""
    found = between(start, end)
    return found.days if found is not None and found >= timedelta(0) else None


def spell(duration: timedelta | None) -> str:
    """A duration in words: `2 h 5 min`; empty if unknown."""
    if duration is None:
        return ""
    if duration < timedelta(0):
        return f"minus {spell(-duration)}"
    if duration < timedelta(minutes=1):
        return f"{duration.total_seconds():g} s"
    days, rest = divmod(int(duration.total_seconds()), 86_400)
    parts = (days, "d"), (rest // 3_600, "h"), (rest % 3_600 // 60, "min"), (rest % 60, "s")
    return " ".join(f"{count} {unit}" for count, unit in parts if count)


def find_skew(failure: Failure, launch: Launch | None, limits: ClockLimits) -> Skew:
    """Look for skew in three ways; each that lacks its times says so."""
    looks = (
        ("launch start against CI job start", _start_skew(launch, limits)),
        ("duration of the test", _step_skew(failure, limits)),
        ("launch duration against its jobs", _launch_skew(launch, limits)),
    )
    return Skew(
        tuple(sign for _, sign in looks if sign),
        tuple(name for name, sign in looks if sign is None),
    )


def _start_skew(launch: Launch | None, limits: ClockLimits) -> str | None:
    apart = between(launch.ci_started_at, launch.started_at) if launch else None
    if apart is None:
        return None
    if abs(apart) <= timedelta(minutes=limits.start_minutes):
        return ""
    side = "after" if apart > timedelta(0) else "before"
    return f"the launch starts {spell(abs(apart))} {side} its CI job"


def _step_skew(failure: Failure, limits: ClockLimits) -> str | None:
    ran = took(failure)
    if ran is None:
        return None
    if ran < timedelta(0):
        return f"the test ends {spell(-ran)} before it starts"
    if ran <= timedelta(hours=limits.step_hours):
        return ""
    return f"the test took {spell(ran)}, more than {limits.step_hours:g} h"


def _launch_skew(launch: Launch | None, limits: ClockLimits) -> str | None:
    ran = between(launch.started_at, launch.ended_at) if launch else None
    jobs = _sum(launch.jobs) if launch else None
    if ran is None or jobs is None:
        return None
    if ran < timedelta(0):
        return f"the launch ends {spell(-ran)} before it starts"
    # A launch of seconds may well be many times its jobs: that is set-up, not skew.
    seconds = ran.total_seconds()
    if seconds <= jobs * limits.launch_factor or seconds - jobs <= limits.start_minutes * 60:
        return ""
    return f"the launch took {spell(ran)}, its jobs together {spell(timedelta(seconds=jobs))}"


def _sum(jobs: Iterable[Job]) -> float | None:
    """The seconds of all jobs together; None unless each is known."""
    found = [between(job.started_at, job.ended_at) for job in jobs]
    known = [each.total_seconds() for each in found if each is not None and each >= timedelta(0)]
    return sum(known) if known and len(known) == len(found) else None
