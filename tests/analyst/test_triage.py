"""Triage: the table is sound, each kind is known by its signs, and silence is unknown."""

import re

import pytest
from hypothesis import given
from tests.analyst.failing import shut
from tests.analyst.test_likeness import FAILURES

from interlock.analyst.triage import CATEGORIES, Rule, Teacher, rules, triage
from interlock.apps.rca.failure import Failure

PLACES = {"type", "message", "stack", "log", "attributes"}


@pytest.mark.parametrize("row", rules(), ids=lambda row: row[0].id)
def test_a_rule(row: tuple[Rule, re.Pattern[str]]) -> None:
    rule, pattern = row
    assert rule.category in CATEGORIES[:-1]
    assert 0 < rule.weight < 5
    assert set(rule.where) <= PLACES
    assert rule.why
    assert not pattern.search("the quick brown fox jumps over the lazy dog")


def test_every_rule_has_its_own_name() -> None:
    assert len({rule.id for rule, _ in rules()}) == len(rules())


TEST_ONLY = "\tat shop.CartTest.testTotal(CartTest.java:5)\n"
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
        (Failure(id="1", type="NoSuchElementException", message="unable to find it"), "automation"),
        (Failure(id="1", message="fixture 'box' not found"), "automation"),
        (Failure(id="1", type="KeyError", message="'total'", stack=IN_PRODUCT), "product"),
        (Failure(id="1", type="AssertionError", message="3 is not 4", stack=TEST_ONLY), "product"),
        (Failure(id="1", type="shop.OddException", message="odd", stack=TEST_ONLY), "automation"),
        (Failure(id="1", message="firmware did not answer after watchdog reset"), "firmware"),
        (Failure(id="1", message="failed on setup with OSError: connection refused"), "infra"),
        (Failure(id="1", message="expect(received).toBe(expected)"), "product"),
        (Failure(id="1", log="--- FAIL: TestLids\n    lid_test.go:3: got 3, want 5"), "product"),
        (Failure(id="1", message="it did not work"), "unknown"),
        (Failure(id="1"), "unknown"),
    ],
    ids=lambda value: value if isinstance(value, str) else value.message[:20],
)  # fmt: skip
def test_a_kind(failure: Failure, category: str) -> None:
    found = triage(failure)
    assert found.category == category, found
    assert found.reasons


def test_signs_that_disagree_make_it_less_sure() -> None:
    sure = triage(Failure(id="1", message="connection refused"))
    torn = triage(Failure(id="1", message="connection refused", type="NullPointerException"))
    assert torn.confidence < sure.confidence


def test_a_message_counts_more_than_a_log() -> None:
    said = triage(Failure(id="1", message="connection refused"))
    logged = triage(Failure(id="1", log="ERROR connection refused"))
    assert logged.confidence < said.confidence


@given(FAILURES)
def test_any_failure_has_an_answer(failure: Failure) -> None:
    found = triage(failure)
    assert found.category in CATEGORIES
    assert 0 <= found.confidence <= 1


def test_what_was_taught_is_said_in_the_words_of_the_examples() -> None:
    cold = [Failure(id=f"{n}", message=f"oven {n} is cold, valve stuck") for n in range(4)]
    teacher = Teacher(
        [*((each, "HEATING") for each in cold), *((shut(n), "LIDS") for n in range(4))]
    )
    assert teacher.triage(shut(9, lid=4)).category == "LIDS"
    assert teacher.triage(Failure(id="1", message="valve of the oven stuck")).category == "HEATING"
    assert teacher.triage(Failure(id="1", message="parcel lost")).category == "unknown"
