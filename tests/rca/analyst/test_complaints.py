"""The lines that complain, with what stands under them, and the loudest of them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock.rca.analyst.line_kinds import LONGEST, complaints, loudest, told


@pytest.mark.parametrize(
    "line",
    [
        "ERROR: lid is lost",
        "java.io.IOException: no",
        "E   assert 1 == 2",
        "Tests run: 3, Failures: 1, Errors: 0",
        "read timed out",
        "connection refused",
        "cannot find symbol",
        "oven: command not found",
    ],
)
def test_a_complaint(line: str) -> None:
    assert complaints(f"fine\n{line}\nfine") == [line]


@pytest.mark.parametrize(
    "line",
    [
        "fine",
        "[DEBUG] error handler set",
        "Tests run: 3, Failures: 0, Errors: 0",
        "0 failures",
        "Downloading lib-error.jar",
    ],
)
def test_no_complaint(line: str) -> None:
    assert complaints(line) == []


def test_of_many_the_first_and_the_last() -> None:
    log = "\n".join(f"error {number}" for number in range(100))
    assert complaints(log, 4) == ["error 0", "error 1", "error 98", "error 99"]


def test_a_line_without_end_is_cut() -> None:
    assert [len(line) for line in complaints("ERROR " + "x" * 1_000_000)] == [LONGEST]


def test_what_stands_under_a_complaint_is_told_with_it() -> None:
    log = "[INFO] fine\nERROR: shut\n\tat box.Lid.open(Lid.java:1)\n[INFO] fine\nnothing\n"
    assert told(log) == ["ERROR: shut", "\tat box.Lid.open(Lid.java:1)"]


def test_who_shouts_is_heard_first() -> None:
    log = "warning: lid is missing\nERROR: shut\nERROR: shut\n"
    assert loudest(log) == ["ERROR: shut"]
    assert loudest("warning: lid is missing\n") == ["warning: lid is missing"]


@given(st.text())
def test_any_log_is_read(log: str) -> None:
    assert len(complaints(log)) <= log.count("\n") + 1
    assert len(told(log)) <= log.count("\n") + 1
    assert set(loudest(log)) <= set(complaints(log, 2_000))
