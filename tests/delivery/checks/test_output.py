"""What is kept of an output, and the numbers that runners print, each in its own words."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock.delivery.checks.run import OutputTail, Printed
from interlock.system.process_tree import OutputLine

RUNNERS = {
    "pytest": ("=== 2 failed, 10 passed, 3 skipped, 1 xfailed in 1.20s ===", 13, 2),
    "pytest, all well": ("12 passed in 0.30s", 12, 0),
    "unittest": ("Ran 12 tests in 0.003s\n\nFAILED (failures=1, errors=1, skipped=2)", 10, 2),
    "go": (
        "--- PASS: TestA (0.00s)\n--- FAIL: TestB (0.00s)\n--- SKIP: TestC (0.00s)",
        2,
        1,
    ),
    "jest": ("Tests:       1 failed, 2 skipped, 7 passed, 10 total", 8, 1),
    "cargo": (
        "test result: FAILED. 5 passed; 1 failed; 2 ignored; 0 measured; 0 filtered out",
        6,
        1,
    ),
    "cargo, two crates": (
        "\n".join(
            [
                "test result: ok. 5 passed; 0 failed; 0 ignored",
                "test result: ok. 2 passed; 0 failed; 0 ignored",
            ]
        ),
        7,
        0,
    ),
    "surefire": ("[ERROR] Tests run: 9, Failures: 1, Errors: 1, Skipped: 2", 7, 2),
    "mocha": ("  4 passing (12ms)\n  1 pending\n  2 failing", 6, 2),
    "nobody": ("all good", None, None),
    "nobody with numbers": ("10 files formatted, 3 left", None, None),
}


def printed(text: str, stderr: str = "") -> Printed:
    keeper = OutputTail()
    for line in text.encode().split(b"\n"):
        keeper.take(OutputLine(line))
    return keeper.printed(stderr.encode())


@pytest.mark.parametrize(("text", "tests", "failed"), RUNNERS.values(), ids=RUNNERS)
def test_runners(text: str, tests: int | None, failed: int | None) -> None:
    for found in (printed(text), printed("", text)):
        assert (found.test_count, found.failed_count) == (tests, failed)


def test_colours_do_not_hide_the_numbers() -> None:
    assert printed("\x1b[32m\x1b[1m12 passed\x1b[0m\x1b[32m in 0.30s\x1b[0m").test_count == 12


def test_failed_tests_are_named() -> None:
    text = "FAILED tests/test_a.py::test_one - assert 1 == 2\n1 failed, 2 passed in 0.1s"
    (name,) = printed(text).failed_tests
    assert "test_one" in name


def test_stderr_stands_after_stdout() -> None:
    keeper = OutputTail()
    keeper.take(OutputLine(b"half", half=True))
    assert keeper.printed(b"why").tail == "half\nwhy"


@given(st.lists(st.binary(max_size=30).map(lambda b: b.replace(b"\n", b"")), max_size=40))
def test_both_ends_are_kept_and_the_rest_is_counted(lines: list[bytes]) -> None:
    keeper = OutputTail(head=40, tail=60)
    for line in lines:
        keeper.take(OutputLine(line))
    found = keeper.printed(b"")
    size = sum(len(line) + 1 for line in lines)
    assert found.left_out == max(0, size - 100)
    whole = b"".join(line + b"\n" for line in lines)
    if not found.left_out:
        assert found.head == ""
    if whole.isascii() and not set(whole) & set(range(32)) - {9, 10} and 127 not in whole:
        assert whole.decode().endswith(found.tail)
        assert whole.decode().startswith(found.head)
