"""Judge the results of one test: verdicts, flakiness with its uncertainty, how long it fails.

A verdict is about one source: retries, attempts and runs on the same tree are one verdict. Passing
and failing on the same source is a flip, in either order, and is never shown as passed. Pure:
statuses and times in, words and numbers out. The newest source is the present; no clock is read.
"""

from collections.abc import Iterable, Sequence
from statistics import median
from typing import Final, Literal

import msgspec

from interlock.system.statistics import Interval, quantile, wilson_interval
from interlock_history.index import Column
from interlock_history.segment import FAIL, FLIP, PASS, SKIP, decode_duration
from interlock_history.settings import HistorySettings

Status = Literal["pass", "fail", "flaky", "skip"]
State = Literal["flaky", "suspected", "broken", "failing", "fixed", "passing", "skipped", "unknown"]
STRIP_SIGNS: Final[dict[Status, str]] = {"pass": ".", "fail": "F", "flaky": "x", "skip": "s"}
STATE_MEANINGS: Final[dict[State, str]] = {
    "flaky": "it passed and failed on the same source, on several sources",
    "suspected": "it passed and failed on the same source, too rarely to say more",
    "broken": "it has failed on several sources in a row, and never passed on them",
    "failing": "it failed on the newest source",
    "fixed": "it passed on the newest source and failed on the one before",
    "passing": "it passed on the newest source",
    "skipped": "it was only ever skipped",
    "unknown": "no run that counts has it",
}
STRIP: Final = 20
_DAY: Final = 86_400.0
_RECENT, _BEFORE = 7 * _DAY, 28 * _DAY
_LEAST_DURATIONS: Final = 5


class Verdict(msgspec.Struct, frozen=True):
    """A test's result on one source."""

    status: Status
    column: Column


class Rate(msgspec.Struct, frozen=True):
    """A share, with the 95 % interval of its true value."""

    count: int
    of: int
    low: float
    high: float

    @property
    def text(self) -> str:
        if not self.of:
            return "0/0"
        return f"{self.count}/{self.of}, {100 * self.low:.1f}-{100 * self.high:.1f} %"


class Moment(msgspec.Struct, frozen=True):
    """A source in the history of a test."""

    commit: str
    at: float
    sources: int = 0
    """The number of sources since it, or of the sources that are meant from it on."""


class TestSummary(msgspec.Struct, frozen=True, kw_only=True):
    """A test's history in one lane."""

    __test__ = False

    test: str
    label: str
    state: State
    is_new: bool
    """True if it has too few verdicts to be called flaky."""
    flips: Rate
    """Flips among the verdicts in the window."""
    failures: int
    """Verdicts in the window that are pure failures."""
    verdicts: int
    """All known verdicts except skips."""
    strip: str
    """The newest twenty verdicts, in time order."""
    last: Status | None
    failing_since: Moment | None
    """The first source of the failures that last until now."""
    last_pass: Moment | None
    """The newest source on which it passed and did not fail."""
    passes_since_flip: int | None
    """None if it never flipped."""
    days_since_flip: float | None
    trend: Literal["", "worse", "better"] = ""
    """Set if flips of the last week differ significantly from those of the three weeks before."""


def judge(bits: int) -> Status | None:
    """Return the verdict on the united tries of one source; None if the test did not run."""
    if bits & FLIP == FLIP:
        return "flaky"
    if bits & FAIL:
        return "fail"
    if bits & PASS:
        return "pass"
    return "skip" if bits & SKIP else None


_STATUSES: Final = [judge(bits) or "skip" for bits in range(8)]


def list_verdicts(row: bytes, columns: Sequence[Column]) -> list[Verdict]:
    """Return the verdicts in time order. A pull request counts once, however often it was pushed
    to: as flaky if any of its sources flipped, else with its newest source."""
    found: list[Verdict] = []
    place: dict[str, int] = {}
    for bits, column in zip(row, columns, strict=True):
        if not bits:
            continue
        verdict = Verdict(status := _STATUSES[bits & 7], column)
        if not column.pr:
            found.append(verdict)
            continue
        at = place.setdefault(column.pr, len(found))
        if at == len(found):
            found.append(verdict)
        elif found[at].status != "flaky" and status != "skip":
            found[at] = verdict
    return found


def summarize(
    test: str, label: str, verdicts: Sequence[Verdict], settings: HistorySettings, now: float
) -> TestSummary:
    """Summarize the verdicts as of `now`."""
    counted = [each for each in verdicts if each.status != "skip"]
    window = choose_window(counted, settings, now)
    flips = measure_rate(window)
    failing = _count_last(counted, "fail")
    last_flip = max((at for at, v in enumerate(counted) if v.status == "flaky"), default=None)
    since = counted[last_flip + 1 :] if last_flip is not None else []
    passes = [at for at, v in enumerate(counted) if v.status == "pass"]
    return TestSummary(
        test=test,
        label=label,
        state=_decide_state(counted, flips, failing, settings, has_skips=bool(verdicts)),
        is_new=len(counted) < settings.least_verdicts,
        flips=flips,
        failures=sum(each.status == "fail" for each in window),
        verdicts=len(counted),
        strip="".join(STRIP_SIGNS[each.status] for each in verdicts[-STRIP:]),
        last=verdicts[-1].status if verdicts else None,
        failing_since=_make_moment(counted[-failing], failing) if failing else None,
        last_pass=_make_moment(counted[passes[-1]], len(counted) - 1 - passes[-1])
        if passes
        else None,
        passes_since_flip=None if last_flip is None else sum(v.status == "pass" for v in since),
        days_since_flip=None
        if last_flip is None
        else max(0.0, now - counted[last_flip].column.at) / _DAY,
        trend=_compare_weeks(counted, now),
    )


def choose_window(
    counted: Sequence[Verdict], settings: HistorySettings, now: float
) -> Sequence[Verdict]:
    """Return the verdicts of the last days, or at least the newest few."""
    start = now - settings.window_days * _DAY
    recent = [each for each in counted if each.column.at >= start]
    if len(recent) >= settings.window_verdicts:
        return recent
    return counted[-settings.window_verdicts :]


def measure_rate(verdicts: Iterable[Verdict]) -> Rate:
    """Return the share of flips."""
    statuses = [each.status for each in verdicts]
    count = statuses.count("flaky")
    found = wilson_interval(count, len(statuses)) or Interval(0.0, 1.0, "Wilson")
    return Rate(count, len(statuses), round(found.low, 6), round(found.high, 6))


def _decide_state(
    counted: Sequence[Verdict],
    flips: Rate,
    failing: int,
    settings: HistorySettings,
    *,
    has_skips: bool,
) -> State:
    if not counted:
        return "skipped" if has_skips else "unknown"
    is_known = flips.count >= settings.flaky_flips and flips.of >= settings.least_verdicts
    if is_known and flips.count >= settings.flaky_rate * flips.of:
        return "flaky"
    if flips.count:
        return "suspected"
    if failing >= settings.broken_after:
        return "broken"
    if failing:
        return "failing"
    was_failing = len(counted) > 1 and counted[-2].status == "fail"
    return "fixed" if was_failing else "passing"


def _count_last(counted: Sequence[Verdict], status: Status) -> int:
    number = 0
    while number < len(counted) and counted[-1 - number].status == status:
        number += 1
    return number


def _make_moment(verdict: Verdict, sources: int) -> Moment:
    commits = verdict.column.commits
    return Moment(commits[-1] if commits else "", verdict.column.at, sources)


def _compare_weeks(counted: Sequence[Verdict], now: float) -> Literal["", "worse", "better"]:
    recent = measure_rate(v for v in counted if v.column.at > now - _RECENT)
    before = measure_rate(v for v in counted if now - _BEFORE < v.column.at <= now - _RECENT)
    if not recent.of or not before.of:
        return ""
    if recent.low > before.high:
        return "worse"
    return "better" if recent.high < before.low else ""


class DurationTrend(msgspec.Struct, frozen=True):
    """A test's duration now and before, in seconds."""

    recent: float
    before: float
    word: Literal["", "slower", "faster"]


def compare_durations(
    durations: Iterable[tuple[float, int]], settings: HistorySettings, now: float
) -> DurationTrend | None:
    """Compare the last week of (time, duration code) with the three weeks before. A change counts
    only if the middle halves do not overlap; return None if there are too few."""
    known = [(at, seconds) for at, code in durations if (seconds := decode_duration(code))]
    recent = sorted(seconds for at, seconds in known if at > now - _RECENT)
    before = sorted(seconds for at, seconds in known if now - _BEFORE < at <= now - _RECENT)
    if min(len(recent), len(before)) < _LEAST_DURATIONS:
        return None
    new, old = median(recent), median(before)
    word: Literal["", "slower", "faster"] = ""
    if new >= settings.slower * old and quantile(recent, 0.25) > quantile(before, 0.75):
        word = "slower"
    elif old >= settings.slower * new and quantile(recent, 0.75) < quantile(before, 0.25):
        word = "faster"
    return DurationTrend(round(new, 3), round(old, 3), word)
