"""Set-up failures: what fails before the test begins, in the words of many frameworks."""

import pytest

from interlock.rca.builtin_answers import fails_in_set_up
from interlock.rca.records import Failure


@pytest.mark.parametrize(
    "text",
    [
        "in setUpClass",
        "at com.yard.HullTest.setUp(HullTest.java:12)",
        "yard/conftest.py:9: in setup_module",
        '"before each" hook: beforeEach',
        "at Suite.BeforeAll",
        "OneTimeSetUp: crane is missing",
        "hull_test.go:12 SetupSuite",
        "fixture 'crane' not found",
        "initializationError",
    ],
)
def test_the_set_up_is_known_by_its_names(text: str) -> None:
    assert fails_in_set_up(Failure(id="a", stack=text))
    assert fails_in_set_up(Failure(id="a", message=text))
    assert fails_in_set_up(Failure(id="a", test_name=text))


@pytest.mark.parametrize("text", ["", "test_setup_fee_is_added", "the hull leaks", "setuptools"])
def test_other_words_are_no_set_up(text: str) -> None:
    assert not fails_in_set_up(Failure(id="a", test_name=text, message=text, stack=text))


def test_a_log_and_the_depth_of_a_huge_stack_say_nothing() -> None:
    assert not fails_in_set_up(Failure(id="a", log="setUpClass"))
    assert not fails_in_set_up(Failure(id="a", stack="x" * 2_000_000 + " setUpClass"))
