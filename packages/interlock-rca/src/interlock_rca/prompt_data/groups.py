"""The groups of parameters that say what failed, where and when: one function each.

Every word from outside leaves as one harmless line, or as MISSING; longer texts are blocks. Clocks
are compared too: a launch's times may come from the CI executor, the test node and the system under
test, and `find_skew` looks for disagreement.
"""

import re
from collections import Counter
from collections.abc import Iterable
from datetime import timedelta
from functools import lru_cache
from typing import Any, Final

import msgspec

from interlock.runtime.fence import MISSING
from interlock.system.test_output import TestCounts
from interlock.system.time import format_duration, parse_time
from interlock_rca.prompt_data.subject import ClockLimits, PromptSubject
from interlock_rca.records import Failure, Job, Launch

CLOCK_PLANE_NOTE: Final = (
    "Times are of up to three clocks: the executor's (CI job), the test node's (launch, tests), "
    "and the tested system's (lines of its logs). They may differ; never order events of two "
    "clocks by their times alone."
)


class ClockSkew(msgspec.Struct, frozen=True):
    """The detected clock skew, and the detectors that lacked data."""

    signs: tuple[str, ...] = ()
    unchecked: tuple[str, ...] = ()

    @property
    def warning(self) -> str:
        return "; ".join(self.signs)


def measure_duration(start: str, end: str) -> timedelta | None:
    """Return the duration between two times; negative if the second is earlier."""
    first, second = parse_time(start), parse_time(end)
    return second - first if first and second else None


def measure_test_duration(failure: Failure) -> timedelta | None:
    """Return how long the test ran: by its times, or by the seconds in its report (`time`)."""
    found = measure_duration(failure.at, failure.ended_at)
    if found is not None:
        return found
    try:
        seconds = float(failure.attributes.get("time", "").replace(",", ""))
        return timedelta(seconds=seconds) if seconds >= 0 else None
    except (ValueError, OverflowError):
        return None


def count_days(start: str, end: str) -> int | None:
    """Return whole days between two times; None if either is unknown or they are reversed."""
    found = measure_duration(start, end)
    return found.days if found is not None and found >= timedelta(0) else None


def find_skew(failure: Failure, launch: Launch | None, limits: ClockLimits) -> ClockSkew:
    """Look for skew in three ways; a way without the needed times says so."""
    looks = (
        ("launch start against CI job start", _check_start(launch, limits)),
        ("duration of the test", _check_test(failure, limits)),
        ("launch duration against its jobs", _check_launch(launch, limits)),
    )
    return ClockSkew(
        tuple(sign for _, sign in looks if sign),
        tuple(name for name, sign in looks if sign is None),
    )


def _check_start(launch: Launch | None, limits: ClockLimits) -> str | None:
    apart = measure_duration(launch.ci_started_at, launch.started_at) if launch else None
    if apart is None:
        return None
    if abs(apart) <= timedelta(minutes=limits.start_minutes):
        return ""
    side = "after" if apart > timedelta(0) else "before"
    return f"the launch starts {format_duration(abs(apart))} {side} its CI job"


def _check_test(failure: Failure, limits: ClockLimits) -> str | None:
    ran = measure_test_duration(failure)
    if ran is None:
        return None
    if ran < timedelta(0):
        return f"the test ends {format_duration(-ran)} before it starts"
    if ran <= timedelta(hours=limits.step_hours):
        return ""
    return f"the test took {format_duration(ran)}, more than {limits.step_hours:g} h"


def _check_launch(launch: Launch | None, limits: ClockLimits) -> str | None:
    ran = measure_duration(launch.started_at, launch.ended_at) if launch else None
    # Sum only if there is something to compare: a report may have 50,000 jobs, and each failure
    # asks for this.
    jobs = _sum_durations(launch.jobs) if launch and ran is not None else None
    if ran is None or jobs is None:
        return None
    if ran < timedelta(0):
        return f"the launch ends {format_duration(-ran)} before it starts"
    # A launch of seconds may well take many times as long as its jobs: set-up, not skew.
    seconds = ran.total_seconds()
    if seconds <= jobs * limits.launch_factor or seconds - jobs <= limits.start_minutes * 60:
        return ""
    return (
        f"the launch took {format_duration(ran)}, its jobs together "
        f"{format_duration(timedelta(seconds=jobs))}"
    )


def _sum_durations(jobs: Iterable[Job]) -> float | None:
    """Return the total seconds of all jobs; None unless each is known."""
    total: float | None = None
    for job in jobs:
        ran = measure_duration(job.started_at, job.ended_at)
        if ran is None or ran < timedelta(0):
            return None
        total = (total or 0.0) + ran.total_seconds()
    return total


_NO_LAUNCH: Final = Launch(launch_id="")
_CIRCUIT: Final = ("circuitid", "circuit", "pipelineid", "pipeline", "buildtag")
_ITEM_TYPE: Final = ("itemtype",)
_STATUS: Final = ("status",)
_LEAF: Final = re.compile(r"::|[./#> ]")
_ADDRESS: Final = re.compile(r"https?://[^\s<>\"'`|\\]+", re.IGNORECASE)


def build_identity(subject: PromptSubject) -> dict[str, Any]:
    launch = subject.launch or _NO_LAUNCH
    circuit = _find_attribute(subject, _CIRCUIT)
    if not circuit and launch.name:
        circuit = f"{launch.name} #{launch.number}" if launch.number else launch.name
    return {
        **subject.format_lines(
            {
                "launch_id": launch.launch_id or subject.failure.launch,
                "case_id": subject.case.case_id,
                "job_id": subject.failure.job,
                "circuit_id": circuit,
            }
        ),
        "item_id": subject.failure.item_id or MISSING,
        "family": subject.family.short,
    }


def build_envelope(subject: PromptSubject) -> dict[str, str]:
    launch = subject.launch or _NO_LAUNCH
    return subject.format_lines(
        {
            "name": launch.name,
            "number": launch.number or None,
            "status": launch.status,
            "start": launch.started_at,
            "end": launch.ended_at,
            "duration": format_duration(measure_duration(launch.started_at, launch.ended_at)),
            "version": launch.version,
            "stats": _format_counts(launch.tally),
            "defect_stats": _format_defect_counts(subject),
        }
    )


def build_environment(subject: PromptSubject) -> dict[str, Any]:
    """Return the attributes of launch and test."""
    pairs = _list_attributes(subject)
    return {
        "attributes": [
            {"key": subject.format_line(key), "value": subject.format_line(value), "of": of}
            for key, value, of in pairs[: subject.limits.attributes]
        ],
        "total": len(pairs),
    }


def build_git(subject: PromptSubject) -> dict[str, str]:
    launch = subject.launch or _NO_LAUNCH
    return subject.format_lines(
        {"branch": launch.branch, "commit": launch.commit, "remote": launch.remote}
    )


def build_failure(subject: PromptSubject) -> dict[str, Any]:
    """Return everything about the failed test except its texts."""
    it = subject.failure
    job = subject.job
    parts = [part for part in re.split(r" ?> ?|/|\|", it.path) if part.strip()]
    return {
        **subject.format_lines(
            {
                "id": it.id,
                "name": it.test_name,
                "short_name": shorten_name(it.test_name),
                "class_name": it.class_name,
                "type": it.type,
                "item_type": _find_attribute(subject, _ITEM_TYPE),
                "status": _find_attribute(subject, _STATUS) or "failed",
                "parent_path": it.path or it.class_name,
                "parent_name": parts[-1] if parts else it.class_name,
                "start": it.at,
                "end": it.ended_at,
                "duration": format_duration(measure_test_duration(it)),
                "file": f"{it.file}:{it.line}" if it.file and it.line else it.file,
                "code_ref": it.code_ref,
                "stats": _format_counts(job.tally) if job else "",
                "issue_type": it.issue_type,
                "issue_comment": it.issue_comment,
            }
        ),
        "log_truncated": it.log_truncated,
        "auto_analyzed": it.auto_analyzed,
        "tickets": [
            {
                "ticket_id": subject.format_line(each.ticket_id),
                "url": _check_address(subject, each.url),
            }
            for each in it.tickets[: subject.limits.rcas]
        ],
    }


def build_timestamps(subject: PromptSubject) -> dict[str, Any]:
    launch = subject.launch or _NO_LAUNCH
    it = subject.failure
    skew = find_skew(it, subject.launch, subject.limits.clocks)
    return {
        **subject.format_lines(
            {
                "launch_start": launch.started_at,
                "launch_end": launch.ended_at,
                "launch_duration": format_duration(
                    measure_duration(launch.started_at, launch.ended_at)
                ),
                "failure_start": it.at,
                "failure_end": it.ended_at,
                "failure_duration": format_duration(measure_test_duration(it)),
                "ci_job_start": launch.ci_started_at,
                "ci_job_end": launch.ci_ended_at,
                "job_clock": subject.job.clock if subject.job else "",
            }
        ),
        "clock_skew_warning": skew.warning,
        "clock_skew_unchecked": list(skew.unchecked),
        "clock_plane_note": CLOCK_PLANE_NOTE,
    }


def build_siblings(subject: PromptSubject) -> dict[str, Any]:
    rows = [
        {
            **subject.format_lines(
                {
                    "id": each.id,
                    "name": each.name,
                    "parent_name": each.parent_name,
                    "status": each.status,
                    "at": each.at,
                    "error": each.error,
                }
            ),
            "rca_id": each.rca_id or MISSING,
        }
        for each in subject.siblings[: subject.limits.siblings]
    ]
    total = subject.siblings_total
    return {"list": rows, "total": total, "shown": len(rows), "left_out": total - len(rows)}


def build_workspace(subject: PromptSubject) -> dict[str, Any]:
    rows = [
        {
            **subject.format_lines(
                {
                    "name": it.name,
                    "path": it.path,
                    "purpose": it.purpose,
                    "branch": it.branch,
                    "commit": it.commit,
                    "last_green": it.last_green,
                }
            ),
            "url": _check_address(subject, it.url),
        }
        for it in subject.repos[: subject.limits.repos]
    ]
    return {"repos": rows, "total": len(subject.repos)}


def build_urls(subject: PromptSubject) -> dict[str, Any]:
    launch = subject.launch or _NO_LAUNCH
    item = subject.failure.url
    log = item if item.rstrip("/").endswith("/log") else f"{item.rstrip('/')}/log"
    return {
        "rp_launch": _check_address(subject, launch.url),
        "rp_item": _check_address(subject, item),
        "rp_item_log": _check_address(subject, log if item and subject.failure.item_id else ""),
        "ci_job": _check_address(subject, launch.ci_url),
        "repos_browse": [
            {"name": subject.format_line(it.name), "url": _check_address(subject, it.url)}
            for it in subject.repos[: subject.limits.repos]
            if it.url
        ],
    }


def shorten_name(name: str) -> str:
    """Return the last part of a test's name, with its parameters."""
    stem, bracket, rest = name.partition("[")
    parts = [part for part in _LEAF.split(stem) if part]
    # A sentence is a complete name: only code names have an outer and an inner part.
    leaf = stem.strip() if " " in stem.strip() else parts[-1] if parts else stem
    return f"{leaf}{bracket}{rest}"


def _list_attributes(subject: PromptSubject) -> list[tuple[str, str, str]]:
    launch = subject.launch or _NO_LAUNCH
    found = [(key, value, "launch") for key, value in sorted(launch.attributes.items())]
    return found + [
        (key, value, "test") for key, value in sorted(subject.failure.attributes.items())
    ]


def _find_attribute(subject: PromptSubject, names: tuple[str, ...]) -> str:
    """Return the first attribute with one of the names; the test's own come first."""
    meant = {
        _normalize_key(key): value for key, value, _ in _list_attributes(subject) if value.strip()
    }
    return next((meant[name] for name in names if name in meant), "")


@lru_cache(maxsize=1_024)
def _normalize_key(text: str) -> str:
    return "".join(letter for letter in text.lower() if letter.isalnum())


def _check_address(subject: PromptSubject, url: str) -> str:
    found = _ADDRESS.fullmatch(url.strip()) if len(url) < 2_000 else None
    return subject.format_line(found[0]) if found else MISSING


def _format_counts(tally: TestCounts) -> str:
    if not tally.tests:
        return ""
    passed = max(0, tally.tests - tally.failed - tally.skipped)
    return f"{tally.tests} tests, {tally.failed} failed, {tally.skipped} skipped, {passed} passed"


def _format_defect_counts(subject: PromptSubject) -> str:
    """Count the earlier defect codes of the failures known here."""
    types = [subject.failure.issue_type, *(each.issue_type for each in subject.siblings)]
    counts = Counter(subject.format_line(each).lower() for each in types if each)
    return ", ".join(f"{count} {name}" for name, count in sorted(counts.items()))
