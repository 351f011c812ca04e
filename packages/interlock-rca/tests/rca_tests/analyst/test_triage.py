"""Triage: the table is sound, each kind is known by its signs, and silence is unknown.

Features: words, pairs, lines, type and frames; masked, so that runs read alike.
"""

import re

import pytest
from hypothesis import given

from interlock_rca.analyst.triage import (
    CATEGORIES,
    TriageRule,
    is_failed_check,
    load_rules,
    triage_failure,
)
from interlock_rca.records import Failure
from rca_tests.analyst.failing import FAILURES

PLACES = {"type", "message", "stack", "log", "attributes"}


@pytest.mark.parametrize("row", load_rules(), ids=lambda row: row[0].id)
def test_a_rule(row: tuple[TriageRule, re.Pattern[str]]) -> None:
    rule, pattern = row
    assert rule.category in CATEGORIES[:-1]
    assert 0 < rule.weight < 5
    assert set(rule.where) <= PLACES
    assert rule.why
    assert not pattern.search("the quick brown fox jumps over the lazy dog")


def test_every_rule_has_its_own_name() -> None:
    assert len({rule.id for rule, _ in load_rules()}) == len(load_rules())


TEST_ONLY = "\tat shop.CartTest.testTotal(CartTest.java:5)\n"
IN_PYTHON = "tests/test_lid.py:3: in test_lid\n    with pytest.raises(LidError):\n"
IN_PRODUCT = f"\tat shop.Cart.total(Cart.java:5)\n{TEST_ONLY}"


@pytest.mark.parametrize(
    ("failure", "category"),
    [
        (Failure(id="1", message="connect ECONNREFUSED 10.0.0.1:5432"), "infra"),
        (Failure(id="1", type="java.net.UnknownHostException", message="db.local"), "infra"),
        (Failure(id="1", message="write /tmp/x: no space left on device"), "infra"),
        (Failure(id="1", log="ERROR: worker 3 exited with code 137"), "infra"),
        (Failure(id="1", log="error: failed to pull image: received status code 503"), "infra"),
        (Failure(id="1", attributes={"rerun": "passed"}), "flake"),
        (Failure(id="1", message="element not visible; passed on rerun"), "flake"),
        (Failure(id="1", type="org.openqa.selenium.NoSuchElementException"), "automation"),
        (Failure(id="1", message="fixture 'box' not found"), "automation"),
        (Failure(id="1", type="KeyError", message="'total'", stack=IN_PRODUCT), "product"),
        (Failure(id="1", type="AssertionError", message="3 is not 4", stack=TEST_ONLY), "product"),
        (Failure(id="1", type="shop.OddException", message="odd", stack=TEST_ONLY), "automation"),
        (Failure(id="1", message="firmware did not answer after watchdog reset"), "firmware"),
        (Failure(id="1", message="failed on setup with OSError: connection refused"), "infra"),
        (Failure(id="1", message="expect(received).toBe(expected)"), "product"),
        (Failure(id="1", log="--- FAIL: TestLids\n    lid_test.go:3: got 3, want 5"), "product"),
        (Failure(id="1", message="have: 3", stack="    lid_test.go:3:\n  have:\n    3"), "product"),
        (Failure(id="1", type="Failed", message="DID NOT RAISE", stack=IN_PYTHON), "product"),
        (Failure(id="1", message="it did not work"), "unknown"),
        (Failure(id="1"), "unknown"),
    ],
    ids=lambda value: value if isinstance(value, str) else value.message[:20],
)
def test_a_kind(failure: Failure, category: str) -> None:
    found = triage_failure(failure)
    assert found.category == category, found
    assert found.reasons


@pytest.mark.parametrize(
    ("kind", "message", "category"),
    [
        ("ModuleNotFoundError", "No module named 'tins'", "unknown"),
        ("java.util.NoSuchElementException", "No value present", "product"),
        ("", "expected 429 lids but found 430", "product"),
        ("", "FileAccess of the tin is closed", "unknown"),
        ("", "SystemFile has no lid", "unknown"),
        ("TimeoutError", "the oven did not answer", "unknown"),
        ("", "Timed out retrying: expected 'lid' to have text '3', but it was '2'", "product"),
        ("", "Timed out retrying after 40ms: Expected to find element: `.lid`", "automation"),
        ("", "the list has no element at 3, expected 4 of them", "product"),
    ],
)
def test_what_only_looks_like_a_sign(kind: str, message: str, category: str) -> None:
    assert triage_failure(Failure(id="1", type=kind, message=message)).category == category


@pytest.mark.parametrize(
    ("message", "category"),
    [
        ("Expected: 3\nActual:   4", "product"),
        ("expected: 3\n     got: 4", "product"),
        ("tins left: -1 after 2 orders, expected 0", "product"),
        ("Lids(2) = 5, want 4", "product"),
        ("Assertion failed: (lids > 0), function open, file tin.c, line 3.", "product"),
        ("assertion failed: lids.len() == 3", "product"),
        ("the lid should close", "product"),
        ("[ERROR]   Run 1: TinTest.open:3\n[INFO]   Run 2: PASS", "flake"),
        ("retry #1 passed", "flake"),
        ("try 3 passwords", "unknown"),
        ("Failed asserting that 4 matches expected 3.", "product"),
        ("REQUIRE( lids == 3 ) with expansion: 4 == 3", "product"),
        ("AddressSanitizer: heap-use-after-free on address 0x60", "product"),
        ('column "lid" of relation "tins" does not exist', "product"),
        ("UNIQUE constraint failed: tins.name", "product"),
        ("page.goto: net::ERR_CONNECTION_REFUSED at http://tins.example/", "infra"),
        ("Could not find a valid Docker environment", "infra"),
        ("0/3 nodes are available: 3 Insufficient memory.", "infra"),
        ("dial tcp 10.0.0.5:5432: i/o timeout", "infra"),
        ('Unable to find button "Open the tin"', "automation"),
        ("getByText('Lid') resolved to 2 elements", "automation"),
    ],
)
def test_what_tools_of_many_languages_say(message: str, category: str) -> None:
    assert triage_failure(Failure(id="1", message=message)).category == category


def test_a_test_is_not_blamed_for_what_it_only_meets() -> None:
    met = triage_failure(Failure(id="1", message="503 Service Unavailable", stack=TEST_ONLY))
    assert (met.category, met.confidence) == (
        "infra",
        triage_failure(Failure(id="1", message="503 Service Unavailable")).confidence,
    )


def test_what_a_program_did_not_expect_is_no_check_of_a_test() -> None:
    said = {"expected 3, got 4": True, "got an unexpected keyword argument 'lid'": False}
    for message, is_check in said.items():
        assert is_failed_check(Failure(id="1", message=message)) is is_check, message


def test_frames_in_the_message_count_too() -> None:
    trace = f"odd thing\n{IN_PRODUCT}"
    assert triage_failure(Failure(id="1", message=trace)).category == "product"
    assert (
        triage_failure(Failure(id="1", message=f"odd thing\n{TEST_ONLY}")).category == "automation"
    )


def test_signs_that_disagree_make_it_less_sure() -> None:
    sure = triage_failure(Failure(id="1", message="connection refused"))
    torn = triage_failure(
        Failure(id="1", message="connection refused", type="NullPointerException")
    )
    assert torn.confidence < sure.confidence


def test_a_message_counts_more_than_a_log() -> None:
    result = triage_failure(Failure(id="1", message="connection refused"))
    logged = triage_failure(Failure(id="1", log="ERROR connection refused"))
    assert logged.confidence < result.confidence


@given(FAILURES)
def test_any_failure_has_an_answer(failure: Failure) -> None:
    found = triage_failure(failure)
    assert found.category in CATEGORIES
    assert 0 <= found.confidence <= 1
