"""Whereabouts: frames and words are found in whichever part a tool wrote them."""

import pytest
from hypothesis import given
from tests.rca.analyst.test_likeness import FAILURES

from interlock.rca.analyst.similarity import likeness, traits
from interlock.rca.analyst.stack import frames_of, words_of
from interlock.rca.analyst.triage import triage
from interlock.rca.records import Failure

JAVA = (
    "a.OddError: lid is shut\n\tat box.Lid.open(Lid.java:3)\nCaused by: a.Rust: hinge\n\t... 2 more"
)


def test_frames_of_the_stack_or_else_of_the_message() -> None:
    of_stack = frames_of(Failure(id="1", stack=JAVA, message="at x (y.js:1:2)"))
    assert [frame.function for frame in of_stack] == ["open"]
    assert frames_of(Failure(id="1", message=JAVA)) == of_stack


@pytest.mark.parametrize(
    ("kind", "message", "stack", "words"),
    [
        ("a.OddError", "lid is shut", JAVA, "lid is shut\nCaused by: a.Rust: hinge"),
        ("a.OddError", "", "a.OddError\n\tat box.Lid.open(Lid.java:3)", ""),
        (
            "",
            "Failed",
            "=== RUN TestLid\n    lid_test.go:4: Lids() = 3, want 2",
            "Failed\nlid_test.go:4: Lids() = 3, want 2",
        ),
        (
            "",
            "lid.spec.ts:3:5 opens",
            "  Error: no lid\n   > 3 | open()\n  at lid.spec.ts:3:9",
            "lid.spec.ts:3:5 opens\nError: no lid",
        ),
        (
            "",
            "assert 3 == 2",
            "def test():\n>   assert f() == 2\nE   assert 3 == 2\nE    +  f()",
            "assert 3 == 2\n+  f()",
        ),
        ("Error", "lids", "Error: other lids\n    at open (lid.js:1:2)", "lids"),
    ],
    ids=["java", "bare", "go", "playwright", "pytest", "repeated"],
)
def test_words(kind: str, message: str, stack: str, words: str) -> None:
    assert words_of(Failure(id="1", type=kind, message=message, stack=stack)) == words


def browsed(test: str) -> Failure:
    """As browser tests report: the message says which test, the body what happened."""
    body = f"  [chrome] > {test}\n\n    Error: locator.click: Timeout 30000ms exceeded.\n"
    return Failure(
        id=test, test_name=test, message=f"{test}:1", stack=f"{body}    waiting for locator('#lid')"
    )


def test_a_message_that_names_only_the_test_hides_nothing() -> None:
    assert triage(browsed("a.spec.ts")).category == "automation"
    assert likeness(traits(browsed("a.spec.ts")), traits(browsed("b.spec.ts"))).score > 0.5


@given(FAILURES)
def test_any_failure(failure: Failure) -> None:
    assert words_of(failure).startswith(failure.message)
