"""Test an agent's table of results in all its layouts, read by the real parser."""

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock.signals.reading import Accepted
from interlock.signals.text import read_message
from interlock_delivery.checks.claims import (
    AgentClaim,
    ClaimComparison,
    ClaimRow,
    compare_claims,
    compare_file_claims,
    count_claims,
    read_claim_rows,
)
from interlock_delivery.checks.records import Check, CheckResult

TABLE = """
| Check          | Environment   | Exit Code | Result |
|----------------|:-------------:|----------:|--------|
| Unit tests     | Mac           | 0         | PASS   |
| type check     | Dev container | -1        | FAIL   |
"""
NO_RULER = """
| Check | Environment | Exit Code | Result |
| Unit tests | Mac | 0 | PASS |
| type check | Dev container | -1 | FAIL |
"""
AFTER = "\n- Unit tests: PASS (Mac)\n- type check: FAIL (Dev container) - exit code -1\n"
BEFORE = "\n- Unit tests (Mac): PASS\n- **type check** (Dev container): FAIL, exit code -1\n"
SIGNS = """
| Check | Environment | Exit Code | Result |
|---|---|---|---|
| `Unit tests` | Mac | 0 | ✅ PASS |
| type check | Dev container | -1 | ❌ |
"""


def fields(body: str, role: str = "developer", signal: str = "READY_FOR_REVIEW") -> Accepted:
    reading = read_message(f"{signal}: t1\n\n{body}", role=role, task_id="t1")
    assert isinstance(reading, Accepted), reading
    return reading


@pytest.mark.parametrize("layout", [TABLE, NO_RULER, AFTER, BEFORE, SIGNS])
def test_every_layout_says_the_same(layout: str) -> None:
    found = fields(f"Verification Results (self-verified):\n{layout}\nSummary: done\n")
    rows = read_claim_rows(found.signal, found.fields)
    assert [(each.check, each.environment, each.said) for each in rows] == [
        ("Unit tests", "Mac", "pass"),
        ("type check", "Dev container", "fail"),
    ]
    assert rows[1].exit_code in (-1, None)


def test_the_journal_gives_the_same_rows() -> None:
    found = fields(f"Verification Results:\n{TABLE}")
    stored = msgspec.json.decode(msgspec.json.encode(found.fields))
    assert read_claim_rows(found.signal, stored) == read_claim_rows(found.signal, found.fields)


def test_an_audit_has_criteria_and_commands() -> None:
    body = (
        "Verification Results:\n- the login works: VERIFIED - saw it\n"
        "- `pytest -q` exits 0: VERIFIED - 12 passed\n\n"
        "Commands Executed:\n- Unit tests (Mac): PASS\n\nSummary: fine\n"
    )
    found = fields(body, "auditor", "AUDIT_PASSED")
    checks = [Check("Unit tests", ("pytest", "-q"))]
    claims = compare_claims(read_claim_rows(found.signal, found.fields), [result()], checks)
    assert [(each.check, each.found) for each in claims] == [
        ("the login works", "unchecked"),
        ("Unit tests", "verified"),
        ("Unit tests", "verified"),
    ]


HEALTHY = """HEALTH_AUDIT: HEALTHY

Verification Results:
- Unit tests (Mac): PASS

All checks pass in all environments.
"""
UNHEALTHY = """HEALTH_AUDIT: UNHEALTHY

Failed Checks:
- Unit tests (Mac): FAIL
  Exit: 1
"""
REPAIRED = """REMEDIATION_COMPLETE

Issues Fixed:
- x: y

Verification Results:
- Unit tests: PASS

All infrastructure issues resolved.
"""


@pytest.mark.parametrize(
    ("message", "role", "signal"),
    [
        (HEALTHY, "health-auditor", "HEALTH_AUDIT: HEALTHY"),
        (UNHEALTHY, "health-auditor", "HEALTH_AUDIT: UNHEALTHY"),
        (REPAIRED, "remediation", "REMEDIATION_COMPLETE"),
    ],
)
def test_other_signals(message: str, role: str, signal: str) -> None:
    reading = read_message(message, role=role, task_id=None)
    assert isinstance(reading, Accepted), reading
    assert reading.signal == signal
    (row,) = read_claim_rows(reading.signal, reading.fields)
    assert row.check == "Unit tests"
    assert row.said == ("fail" if "UN" in signal else "pass")


def result(passed: bool = True, environment: str = "Mac", **more: Any) -> CheckResult:
    return CheckResult(
        check="Unit tests",
        environment=environment,
        exit_code=0 if passed else 1,
        expected=0,
        passed=passed,
        **more,
    )


ROWS = [
    (ClaimRow("unit_tests", "mac", "pass"), [result()], "verified"),
    (ClaimRow("unit tests", "Mac", "pass"), [result(False)], "refuted"),
    (ClaimRow("unit tests", "Mac", "fail"), [result(False)], "verified"),
    (ClaimRow("unit tests", "Mac", "fail"), [result()], "refuted"),
    (ClaimRow("unit tests", "Mac", "unclear"), [result()], "unchecked"),
    (ClaimRow("unit tests", "Mac", "unclear", 0), [result()], "verified"),
    (ClaimRow("unit tests", "Mac", "unclear", 0), [result(False)], "refuted"),
    (ClaimRow("unit tests", "Mac", "unclear", 2), [result(False)], "verified"),
    (ClaimRow("unit tests", "Mac", "pass"), [result(False, timed_out=True)], "refuted"),
    (ClaimRow("unit tests", "Mac", "pass"), [result(False, unavailable=True)], "unchecked"),
    (ClaimRow("unit tests", "Linux", "pass"), [result()], "unchecked"),
    (ClaimRow("lint", "Mac", "pass"), [result()], "unchecked"),
    (ClaimRow("unit tests", "", "pass"), [result(), result(False, "Box")], "refuted"),
    (ClaimRow("unit tests", "", "pass"), [result(), result(True, "Box")], "verified"),
    (ClaimRow("unit tests", "All", "pass"), [result(), result(False, "Box")], "refuted"),
    (ClaimRow("unit tests", "Mac, Box", "pass"), [result(), result(False, "Box")], "refuted"),
    (ClaimRow("unit tests", "Mac", "pass"), [result(), result(False, "Box")], "verified"),
    (ClaimRow("pytest -q", "Mac", "pass"), [result()], "verified"),
    (ClaimRow("`pytest -q` exits 0", "Mac", "pass"), [result(False)], "refuted"),
]


@pytest.mark.parametrize(("row", "results", "found"), ROWS)
def test_found(row: ClaimRow, results: list[CheckResult], found: str) -> None:
    (claim,) = compare_claims([row], results, [Check("Unit tests", ("pytest", "-q"))])
    assert claim.found == found
    assert claim.sentence


CHANGED = ["src/auth/login.py", "tests/test_login.py", "README.md"]
FILES = """Files Modified:
- `src/auth/login.py`: added it
- ./README.md: words
- src/auth/logout.py:12: lies
- login.py (new): the end of a path
- /somewhere/tree/tests/test_login.py - whole path
- src/auth/: the folder
- None
- the login form: prose

Tests Written:
- tests/test_login.py: logs in
"""


def test_files_are_looked_up_in_the_change() -> None:
    found = fields(FILES)
    claims = compare_file_claims(found.fields, CHANGED, "/somewhere/tree")
    assert [(each.check, each.found) for each in claims] == [
        ("src/auth/login.py", "verified"),
        ("README.md", "verified"),
        ("src/auth/logout.py", "refuted"),
        ("login.py", "verified"),
        ("tests/test_login.py", "verified"),
        ("src/auth/", "verified"),
        ("the login form", "unchecked"),
    ]


@pytest.mark.parametrize("value", [None, "text", 3, [1], [{"x": 1}], {"name": "a"}])
def test_fields_of_another_shape_are_no_claims(value: object) -> None:
    assert read_claim_rows("READY_FOR_REVIEW", {"verification_results": value}) == ()
    assert compare_file_claims({"files_modified": value}, CHANGED) == ()
    assert read_claim_rows("NO_SUCH_SIGNAL", {"verification_results": [{"name": "a"}]}) == ()


CLAIMS = st.tuples(
    st.sampled_from(["claude", "codex"]),
    st.sampled_from(["developer", "auditor"]),
    st.builds(
        AgentClaim,
        st.just("c"),
        st.just("e"),
        st.just("pass"),
        st.sampled_from(["verified", "refuted", "unchecked"]),
    ),
)


@given(st.lists(CLAIMS))
def test_totals_lose_nothing(claims: list[tuple[str, str, AgentClaim]]) -> None:
    accounts = count_claims(claims)
    assert sum(each.claimed for each in accounts) == len(claims)
    for each in accounts:
        assert each.claimed == each.verified + each.refuted + each.unchecked
        own = [c for agent, role, c in claims if (agent, role) == (each.agent, each.role)]
        assert each.refuted == sum(c.found == "refuted" for c in own)
    assert list(accounts) == sorted(accounts, key=lambda each: (each.agent, each.role))


def test_totals_of_nothing() -> None:
    assert count_claims([]) == ()
    assert count_claims([("a", "b", AgentClaim("c", "", "pass", "refuted"))]) == (
        ClaimComparison("a", "b", 1, 0, 1, 0),
    )
