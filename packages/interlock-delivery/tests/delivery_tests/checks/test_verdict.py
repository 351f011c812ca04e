"""Test how results and a baseline become a verdict, by a table and laws."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock_delivery.checks.records import CheckResult
from interlock_delivery.checks.verdict import Policy, compare_with_baseline, find_deleted_tests


def result(passed: bool = True, **more: Any) -> CheckResult:
    facts = {"check": "tests", "environment": "native", "expected": 0, "passed": passed}
    return CheckResult(**{**facts, "exit_code": 0 if passed else 1, **more})


GONE = result(False, unavailable=True, exit_code=None, note="'x' cannot be started")
LATE = result(False, timed_out=True, exit_code=-15)
ENDED = result(False, exit_code=-15)

TABLE = [
    ("passing", result(), result(), True, True),
    ("passing", result(), None, True, True),
    ("passing", result(), GONE, True, True),
    ("fixed", result(), result(False), True, True),
    ("fixed", result(), LATE, True, True),
    ("old_failure", result(False), result(False), True, False),
    ("old_failure", LATE, LATE, True, False),
    ("new_failure", LATE, result(False), False, False),
    ("old_failure", result(False), LATE, True, False),
    ("new_failure", result(False), result(), False, False),
    ("new_failure", LATE, result(), False, False),
    ("not_in_baseline", result(False), None, False, False),
    ("not_in_baseline", result(False), GONE, False, False),
    ("unavailable", GONE, result(), False, False),
    ("unavailable", GONE, None, False, False),
    ("unavailable", GONE, GONE, False, False),
    ("fewer_tests", result(test_count=9), result(test_count=10), False, False),
    ("fewer_tests", result(test_count=0), result(test_count=10), False, False),
    ("fewer_tests", result(), result(test_count=10), False, False),
    ("fewer_tests", result(test_count=3), result(False, test_count=10), False, False),
    ("fewer_tests", result(False, test_count=3), result(False, test_count=10), False, False),
    ("fewer_tests", result(False), result(False, test_count=10), False, False),
    ("new_failure", result(False, exit_code=2), result(False), False, False),
    ("new_failure", result(False, failed_count=1), ENDED, False, False),
    ("old_failure", ENDED, ENDED, True, False),
    ("passing", result(test_count=11), result(test_count=10), True, True),
    ("passing", result(test_count=1), result(), True, True),
    ("new_failure", result(False), result(test_count=10), False, False),
    ("new_failure", result(False, test_count=3), result(test_count=10), False, False),
    (
        "new_failure",
        result(False, test_count=10, failed_count=2),
        result(False, test_count=10, failed_count=1),
        False,
        False,
    ),
    (
        "new_failure",
        result(False, failed_count=1, failed_tests=("b",)),
        result(False, failed_count=1, failed_tests=("a",)),
        False,
        False,
    ),
    (
        "old_failure",
        result(False, failed_count=1, failed_tests=("a",)),
        result(False, failed_count=2, failed_tests=("a", "b")),
        True,
        False,
    ),
    (
        "old_failure",
        result(False, failed_count=1, failed_tests=("a",)),
        result(False, failed_count=3, failed_tests=("b",)),
        True,
        False,
    ),
]


@pytest.mark.parametrize(("kind", "now", "before", "ok", "strict"), TABLE)
def test_kinds(
    kind: str, now: CheckResult, before: CheckResult | None, ok: bool, strict: bool
) -> None:
    baseline = [before] if before else []
    verdict = compare_with_baseline([now], baseline)
    assert verdict.rows[0].kind == kind
    assert verdict.rows[0].sentence.startswith("tests (native): ")
    assert (verdict.ok, bool(verdict.reasons)) == (ok, not ok)
    assert compare_with_baseline([now], baseline, policy="strict").ok == strict


def test_nothing_run_is_nothing_proved() -> None:
    assert compare_with_baseline([]).reasons == (
        "no check ran: name at least one verification command",
    )


def test_the_same_check_elsewhere_is_another_one() -> None:
    verdict = compare_with_baseline([result(False, environment="box")], [result(False)])
    assert verdict.rows[0].kind == "not_in_baseline"
    assert verdict.list_names("not_in_baseline") == ("tests (box)",)


def test_fewer_tests_can_be_allowed() -> None:
    now, before = [result(test_count=1)], [result(test_count=2)]
    verdict = compare_with_baseline(now, before, allow_fewer_tests=True)
    assert verdict.ok
    assert verdict.notes == ("tests (native): 1 tests ran; before there were 2",)


def test_deleted_tests_hold_back_unless_tests_are_counted() -> None:
    gone = ["tests/test_a.py"]
    verdict = compare_with_baseline([result()], [result()], deleted=gone)
    assert verdict.reasons == ("files with tests were deleted: tests/test_a.py",)
    counted = [result(test_count=3)]
    verdict = compare_with_baseline(counted, counted, deleted=gone)
    assert (verdict.ok, verdict.notes) == (True, verdict.notes)
    assert verdict.notes == ("files with tests were deleted: tests/test_a.py",)
    assert compare_with_baseline(
        [result()], [result()], deleted=gone, added=["tests/unit/test_a.py"]
    ).ok


def test_what_counts_as_a_deleted_test() -> None:
    gone = ["src/a.py", "tests/data.json", "a_test.go", "web/a.spec.ts", "tests/conftest.py"]
    assert find_deleted_tests(gone) == ("a_test.go", "web/a.spec.ts")
    assert find_deleted_tests([f"tests/test_{n}.py" for n in range(9)])[0] == "tests/test_0.py"


RESULTS = st.builds(
    lambda check, passed, unavailable, timed_out, tests: CheckResult(
        check=check,
        environment="e",
        exit_code=0,
        expected=0,
        passed=passed and not unavailable and not timed_out,
        unavailable=unavailable,
        timed_out=timed_out and not unavailable,
        test_count=tests,
    ),
    st.sampled_from("ab"),
    st.booleans(),
    st.booleans(),
    st.booleans(),
    st.none() | st.integers(0, 3),
)
LISTS = st.lists(RESULTS, max_size=2, unique_by=lambda each: each.check)


@given(LISTS, LISTS, st.sampled_from(["baseline", "strict"]))
def test_laws(now: list[CheckResult], before: list[CheckResult], policy: Policy) -> None:
    verdict = compare_with_baseline(now, before, policy=policy)
    assert verdict.ok == (not verdict.reasons)
    assert [row.check for row in verdict.rows] == [each.check for each in now]
    failed_before = {each.check for each in before if not each.passed and not each.unavailable}
    if verdict.ok:
        assert now
        assert all(each.passed or each.check in failed_before for each in now)
    if compare_with_baseline(now, before, policy="strict").ok:
        assert verdict.ok
        assert all(each.passed for each in now)
