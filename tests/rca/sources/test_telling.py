"""The telling line: what a tool says about a failure, where its message is only a name."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock.rca.sources.junit_elements import telling

GO = "=== RUN   TestLid\n    lid_test.go:4: Lids() = 3, want 2\n--- FAIL: TestLid (0.00s)"
BROWSER = (
    "  [chrome] > lid.spec.ts:3:5 > opens a lid ---\n\n    Error: no lid\n    at lid.spec.ts:3:9"
)
COLLECTED = "tests/lids.py:5: in open_lid\n    lid(shut=1)\nE   TypeError: lid() takes no 'shut'"


@pytest.mark.parametrize(
    ("message", "body", "test_name", "said"),
    [
        ("Failed", GO, "TestLid", "lid_test.go:4: Lids() = 3, want 2"),
        ("lid.spec.ts:3:5 opens a lid", BROWSER, "opens a lid", "Error: no lid"),
        ("", "LidTest::testOpen\nthe lid is shut", "testOpen", "the lid is shut"),
        ("", "the lid is shut\nsecond", "testOpen", "the lid is shut"),
        ("add returned 3", "another line", "add", "add returned 3"),
        ("the lid is shut", GO, "TestLid", "the lid is shut"),
        ("Failed", "", "TestLid", "Failed"),
        ("collection failure", COLLECTED, "", "TypeError: lid() takes no 'shut'"),
        ("the lid is shut", COLLECTED, "", "the lid is shut"),
        ("", "", "", ""),
    ],
)
def test_the_telling_line(message: str, body: str, test_name: str, said: str) -> None:
    assert telling(message, body, test_name) == said


@given(st.text(), st.text(), st.text())
def test_nothing_is_made_up(message: str, body: str, test_name: str) -> None:
    said = telling(message, body, test_name)
    assert said in message or said in body
