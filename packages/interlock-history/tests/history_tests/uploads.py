"""Uploads of results as a pipeline makes them, and a naive reference that judges them.

The reference keeps every try of every upload in plain dictionaries and knows nothing of segments,
columns or bits; it is slow and says what the memory must say.
"""

from collections import defaultdict
from collections.abc import Iterable
from typing import Any, NamedTuple

from interlock_history.segment import FailedTest, Segment, encode_duration, make_segment
from interlock_history.settings import HistorySettings
from interlock_rca.ci_run import CiRun

_BITS = {"P": 1, "F": 2, "S": 4}
DAY = 86_400.0


class Upload(NamedTuple):
    """What one job hands in: of each test, how its tries ended."""

    run: CiRun
    tries: dict[str, str]

    def to_segment(self) -> Segment:
        results = {
            test: (sum(_BITS[each] for each in set(tries)), encode_duration(0.1))
            for test, tries in self.tries.items()
        }
        failed = [
            FailedTest(test, tries, "f" * 16, "it broke")
            for test, tries in self.tries.items()
            if "F" in tries
        ]
        return make_segment(self.run, results, failed)


class Judged(NamedTuple):
    """What the reference says about one test in one lane."""

    state: str
    flips: int
    of: int
    strip: str
    failing_sources: int
    last_pass: str


def judge_naively(
    uploads: Iterable[Upload], settings: HistorySettings
) -> dict[tuple[Any, ...], dict[str, Judged]]:
    """Of every lane and test what its uploads mean."""
    lanes: dict[tuple[Any, ...], dict[str, list[Upload]]] = defaultdict(lambda: defaultdict(list))
    for upload in uploads:
        run = upload.run
        branch = run.branch if run.scope == "branch" else ""
        lanes[run.project, run.scope, branch, run.label][run.source].append(upload)
    return {lane: _judge_lane(sources, settings) for lane, sources in lanes.items()}


def _judge_lane(sources: dict[str, list[Upload]], settings: HistorySettings) -> dict[str, Judged]:
    seen: dict[str, list[tuple[float, str, str, str, str]]] = defaultdict(list)
    now = 0.0
    for source, uploads in sources.items():
        first: dict[str, float] = {}
        for upload in uploads:
            commit = upload.run.commit
            first[commit] = min(first.get(commit, upload.run.at), upload.run.at)
        at = max(first.values())
        now = max(now, at)
        pr = max(upload.run.pr for upload in uploads)
        for test, tries in _collect_tries(uploads, settings).items():
            ended = set(tries)
            status = "x" if {"P", "F"} <= ended else "F" if "F" in ended else "."
            if ended == {"S"}:
                status = "s"
            seen[test].append((at, source, status, max(first), pr))
    return {test: _judge_test(sorted(rows), settings, now) for test, rows in seen.items()}


def _collect_tries(uploads: list[Upload], settings: HistorySettings) -> dict[str, str]:
    attempts: dict[tuple[str, int], dict[str, str]] = defaultdict(lambda: defaultdict(str))
    for upload in uploads:
        for test, tries in upload.tries.items():
            attempts[upload.run.run, upload.run.attempt][test] += tries
    ran = {key: sum(set(t) != {"S"} for t in tests.values()) for key, tests in attempts.items()}
    found: dict[str, str] = defaultdict(str)
    for key, tests in attempts.items():
        red = sum("F" in t and "P" not in t for t in tests.values())
        is_repeat = 2 * ran[key] < max(ran.values())
        is_red = ran[key] >= settings.infrastructure_least
        is_red = is_red and red > settings.infrastructure_share * ran[key]
        if not (is_red and not is_repeat):
            for test, tries in tests.items():
                found[test] += tries
    return found


def _judge_test(
    rows: list[tuple[float, str, str, str, str]], settings: HistorySettings, now: float
) -> Judged:
    verdicts: list[tuple[float, str, str, str, str]] = []
    for row in rows:
        same = [at for at, each in enumerate(verdicts) if row[4] and each[4] == row[4]]
        if not same:
            verdicts.append(row)
        elif verdicts[same[0]][2] != "x" and row[2] != "s":
            verdicts[same[0]] = row
    counted = [row for row in verdicts if row[2] != "s"]
    window = [row for row in counted if row[0] >= now - settings.window_days * DAY]
    if len(window) < settings.window_verdicts:
        window = counted[-settings.window_verdicts :]
    signs = "".join(row[2] for row in counted)
    flips = sum(row[2] == "x" for row in window)
    failing = len(signs) - len(signs.rstrip("F"))
    if not counted:
        state = "skipped"
    elif (
        flips >= settings.flaky_flips
        and len(window) >= settings.least_verdicts
        and flips / len(window) >= settings.flaky_rate
    ):
        state = "flaky"
    elif flips:
        state = "suspected"
    elif failing:
        state = "broken" if failing >= settings.broken_after else "failing"
    else:
        state = "fixed" if signs[-2:] == "F." else "passing"
    passes = [row[3] for row in counted if row[2] == "."]
    strip = "".join(row[2] for row in verdicts[-20:])
    last_pass = passes[-1] if passes else ""
    return Judged(state, flips, len(window), strip, failing, last_pass)
