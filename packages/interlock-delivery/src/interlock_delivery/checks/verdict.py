"""Compare check results with the baseline, and describe the differences. Pure.

A check that did not run proves nothing; one that is not in the baseline proves nothing by failing;
one that passes with fewer tests is not believed. The findings are plain values and text, for the
journal and for agents.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, Literal

import msgspec

from interlock.system.file_kinds import has_tests
from interlock_delivery.checks.records import CheckResult
from interlock_delivery.worktrees.merge_branch import Conflict
from interlock_delivery.worktrees.names import Violation

Kind = Literal[
    "passing",
    "fixed",
    "old_failure",
    "new_failure",
    "unavailable",
    "fewer_tests",
    "not_in_baseline",
]
Policy = Literal["baseline", "strict"]
_HOLDS: Final[dict[Policy, frozenset[Kind]]] = {
    "baseline": frozenset(("new_failure", "unavailable", "fewer_tests", "not_in_baseline")),
    "strict": frozenset(
        ("old_failure", "new_failure", "unavailable", "fewer_tests", "not_in_baseline")
    ),
}
"""The kinds of results that hold work back."""
_MOST_NAMES = 5


class CheckComparison(msgspec.Struct, frozen=True):
    """One check in one environment, compared with the baseline."""

    check: str
    environment: str
    kind: Kind
    sentence: str


class CheckVerdict(msgspec.Struct, frozen=True):
    """The verdict on the work, with reasons."""

    ok: bool
    policy: Policy
    rows: tuple[CheckComparison, ...]
    reasons: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    """Remarks for reviewers that hold nothing back."""

    def list_names(self, *kinds: Kind) -> tuple[str, ...]:
        """Return `check (environment)` for all rows of these kinds."""
        return tuple(
            f"{each.check} ({each.environment})" for each in self.rows if each.kind in kinds
        )


def compare_with_baseline(
    results: Sequence[CheckResult],
    baseline: Sequence[CheckResult] = (),
    *,
    policy: Policy = "baseline",
    deleted: Iterable[str] = (),
    added: Iterable[str] = (),
    allow_fewer_tests: bool = False,
) -> CheckVerdict:
    """Judge the results; `deleted` and `added` are files of the change, without renamed ones."""
    before = {each.pair: each for each in baseline}
    rows = tuple(_build_comparison(each, before.get(each.pair)) for each in results)
    holds = _HOLDS[policy] - ({"fewer_tests"} if allow_fewer_tests else set())
    reasons = [each.sentence for each in rows if each.kind in holds]
    notes = [each.sentence for each in rows if each.kind not in holds and each.kind != "passing"]
    if not rows:
        reasons.append("no check ran: name at least one verification command")
    gone = find_deleted_tests(deleted, added)
    if gone:
        counted = allow_fewer_tests or _has_test_counts(results, before)
        (notes if counted else reasons).append(_describe_deleted_tests(gone))
    return CheckVerdict(not reasons, policy, rows, tuple(reasons), tuple(notes))


def find_deleted_tests(deleted: Iterable[str], added: Iterable[str] = ()) -> tuple[str, ...]:
    """Return the deleted files with tests, without those that were moved."""
    moved = {path.rpartition("/")[2] for path in added}
    return tuple(
        sorted(
            path
            for path in set(deleted)
            if has_tests(path) and path.rpartition("/")[2] not in moved
        )
    )


def _build_comparison(now: CheckResult, before: CheckResult | None) -> CheckComparison:
    kind, why = _compare_result(now, before)
    return CheckComparison(
        now.check, now.environment, kind, f"{now.check} ({now.environment}): {why}"
    )


def _compare_result(now: CheckResult, before: CheckResult | None) -> tuple[Kind, str]:
    if now.unavailable:
        return "unavailable", f"cannot run here: {now.note or 'its command was not found'}"
    known = before is not None and not before.unavailable
    if before is not None and known and (fewer := _describe_fewer_tests(now, before)):
        return "fewer_tests", fewer
    if now.passed:
        if before is None or not known or before.passed:
            return "passing", "passes"
        return "fixed", "failed before and passes now"
    how = _describe_failure(now)
    if before is None or not known:
        return "not_in_baseline", f"{how}; its earlier result is unknown"
    if before.passed:
        return "new_failure", f"{how}; it passed before"
    worse = _describe_worse(now, before)
    return ("new_failure", f"{how}; {worse}") if worse else ("old_failure", f"{how}, as before")


def _describe_failure(now: CheckResult) -> str:
    if now.timed_out:
        return "timed out"
    code = "no exit code" if now.exit_code is None else f"exit code {now.exit_code}"
    return f"{code} instead of {now.expected}" + (f" ({now.note})" if now.note else "")


def _describe_fewer_tests(now: CheckResult, before: CheckResult) -> str:
    """Describe a drop in the number of tests, unless a new failure may have stopped the runner."""
    new_failure = before.passed and not now.passed
    if before.test_count is None or new_failure or now.timed_out:
        return ""
    if now.test_count is None:
        return f"no tests were counted; before there were {before.test_count}"
    if now.test_count < before.test_count:
        return f"{now.test_count} tests ran; before there were {before.test_count}"
    return ""


def _describe_worse(now: CheckResult, before: CheckResult) -> str:
    new = sorted(set(now.failed_tests) - set(before.failed_tests))
    if new and _has_all_names(now) and _has_all_names(before):
        more = f" and {len(new) - _MOST_NAMES} more" if len(new) > _MOST_NAMES else ""
        return f"newly failing tests: {', '.join(new[:_MOST_NAMES])}{more}"
    if (now.failed_count or 0) > (before.failed_count or 0) and before.failed_count is not None:
        return f"{now.failed_count} tests failed; before there were {before.failed_count}"
    if now.timed_out and not before.timed_out:
        return "it finished before"
    timed = now.timed_out or before.timed_out
    if (before.exit_code or 0) < 0 and now.exit_code != before.exit_code and not timed:
        return f"it was killed by signal {-(before.exit_code or 0)} before, which proves nothing"
    if now.exit_code != before.exit_code and now.failed_count is None and not timed:
        return f"its exit code was {before.exit_code} before"
    return ""


def _has_all_names(result: CheckResult) -> bool:
    return result.failed_count == len(result.failed_tests)


def _has_test_counts(
    results: Sequence[CheckResult], before: Mapping[tuple[str, str], CheckResult]
) -> bool:
    """Return True if some check counted its tests both times, so that a deletion would show."""
    return any(
        each.test_count is not None
        and each.pair in before
        and before[each.pair].test_count is not None
        for each in results
    )


def _describe_deleted_tests(paths: tuple[str, ...]) -> str:
    more = f" and {len(paths) - _MOST_NAMES} more" if len(paths) > _MOST_NAMES else ""
    return f"files with tests were deleted: {', '.join(paths[:_MOST_NAMES])}{more}"


_MOST_OUTPUT: Final = 3_000


def build_result_row(result: CheckResult) -> dict[str, Any]:
    """Return a result as the journal stores it, with the end of its output."""
    return {
        "check": result.check,
        "environment": result.environment,
        "exit_code": result.exit_code,
        "passed": result.passed,
        "seconds": result.seconds,
        "tests": result.test_count,
        "note": result.note,
        "output": "" if result.passed else result.output_tail[-_MOST_OUTPUT:],
    }


def build_summary(
    verdict: CheckVerdict,
    results: Sequence[CheckResult],
    violations: Sequence[Violation] = (),
    *,
    empty: bool = False,
) -> str:
    """Return what a developer must know about an inspection of the work."""
    if violations:
        return "\n".join(each.sentence for each in violations)
    if empty:
        return "Nothing was changed in the tree."
    if verdict.ok:
        return f"{len(results)} checks pass"
    failed = [each for each in results if not each.passed]
    shown = [
        f"{each.check} ({each.environment}):\n{each.output_tail[-_MOST_OUTPUT:]}" for each in failed
    ]
    return "\n\n".join(("\n".join(verdict.reasons), *shown))


def build_conflict(found: Conflict) -> dict[str, Any]:
    files = ", ".join(found.files)
    return {
        "outcome": "conflict",
        "files": list(found.files),
        "summary": f"Other tasks changed the same places meanwhile: {files}\n\n{found.text}",
    }
