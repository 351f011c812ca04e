"""Kinds of lines: complaints of many tools, and what only looks like one.

The lines that complain, with what stands under them, and the loudest of them.
"""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock_rca.analyst.line_kinds import (
    MAX_COMPLAINT_LENGTH,
    LineKind,
    classify_line,
    find_complaint_blocks,
    find_complaints,
    find_loudest,
)


@pytest.mark.parametrize(
    ("line", "kind"),
    [
        ("", LineKind.EMPTY),
        ("[INFO] -----------------", LineKind.QUIET),
        ("==================", LineKind.EMPTY),
        ("[ERROR] lid.java:[3,13] cannot find symbol", LineKind.ERROR),
        ("[ERROR]", LineKind.ERROR),
        ("[info] [error] lid is shut", LineKind.ERROR),
        ("##[error]Lid is shut.", LineKind.ERROR),
        ("2024-01-02T03:04:05.678Z ERROR lid is shut", LineKind.ERROR),
        ("2024-01-02 03:04:05,678 box.Lid ERROR lid is shut", LineKind.ERROR),
        ("\x1b[31mERROR\x1b[0m: lid is shut", LineKind.ERROR),
        ("src/lid.c:12:3: error: expected ';'", LineKind.ERROR),
        ("error[E0425]: cannot find value `lid`", LineKind.ERROR),
        ("lid.ts(3,5): error TS2345: no lid", LineKind.ERROR),
        ("E       AssertionError: assert 1 == 2", LineKind.ERROR),
        ("java.lang.IllegalStateException: shut", LineKind.ERROR),
        ("LidTest > opens() FAILED", LineKind.ERROR),
        ("--- FAIL: TestLid (0.00s)", LineKind.ERROR),
        ("Traceback (most recent call last):", LineKind.ERROR),
        ("fatal: not a git repository", LineKind.ERROR),
        ("Killed", LineKind.ERROR),
        ("lid/lid.go:12:5: undefined: hinge", LineKind.ERROR),
        ("npm ERR! Test failed.", LineKind.ERROR),
        ("src/lid.py:10:1: F401 'hinge' imported but unused", LineKind.ERROR),
        ("/srv/lid.py:7: UserWarning: the failure mode is old", LineKind.QUIET),
        ("E: Unable to locate package hinge", LineKind.ERROR),
        ("the command returned a non-zero code: 100", LineKind.WORD),
        ("FAIL", LineKind.HEADLINE),
        ("exit status 1", LineKind.HEADLINE),
        ("ok  \texample.com/box/hinge\t0.012s", LineKind.QUIET),
        ("lid: command not found", LineKind.WORD),
        ("could not open the lid", LineKind.WORD),
        ("Connection refused by box", LineKind.WORD),
        ("\tat box.Lid.open(Lid.java:12)", LineKind.FRAME),
        ('  File "/srv/lid.py", line 12, in open', LineKind.FRAME),
        ("Caused by: no hinge", LineKind.FRAME),
        ("... 12 more", LineKind.FRAME),
        ("[INFO] BUILD FAILURE", LineKind.HEADLINE),
        ("BUILD FAILED in 3s", LineKind.HEADLINE),
        ("##[error]Process completed with exit code 1.", LineKind.HEADLINE),
        ("[WARNING] could not reach the mirror", LineKind.QUIET),
        ("Tests run: 3, Failures: 0, Errors: 0, Skipped: 0", LineKind.QUIET),
        ("Found 0 errors", LineKind.QUIET),
        ("LidTest > failsWhenShut() PASSED", LineKind.QUIET),
        ("test lid::fails ... ok", LineKind.QUIET),
        ("gcc -Werror -c lid.c", LineKind.QUIET),
        ("fail-fast: true", LineKind.QUIET),
        ("Downloading error-box-1.0.jar", LineKind.QUIET),
        ("git fetch origin # timeout=10", LineKind.PLAIN),
        ("the lid is open", LineKind.PLAIN),
    ],
)
def test_kinds(line: str, kind: LineKind) -> None:
    assert classify_line(line) == kind


@given(st.text())
def test_every_line_has_a_kind(line: str) -> None:
    assert classify_line(line) in LineKind


@pytest.mark.parametrize(
    "piece", ["a ", "[", "error ", "at ", "0 ", "=", "\x1b[", "a.", "[info] ", "E   ", "^", "\0"]
)
def test_giant_lines(piece: str) -> None:
    assert classify_line(piece * (1_000_000 // len(piece))) in LineKind


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
    assert find_complaints(f"fine\n{line}\nfine") == [line]


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
    assert find_complaints(line) == []


def test_of_many_the_first_and_the_last() -> None:
    log = "\n".join(f"error {number}" for number in range(100))
    assert find_complaints(log, 4) == ["error 0", "error 1", "error 98", "error 99"]


def test_a_line_without_end_is_cut() -> None:
    assert [len(line) for line in find_complaints("ERROR " + "x" * 1_000_000)] == [
        MAX_COMPLAINT_LENGTH
    ]


def test_what_stands_under_a_complaint_is_told_with_it() -> None:
    log = "[INFO] fine\nERROR: shut\n\tat box.Lid.open(Lid.java:1)\n[INFO] fine\nnothing\n"
    assert find_complaint_blocks(log) == ["ERROR: shut", "\tat box.Lid.open(Lid.java:1)"]


def test_who_shouts_is_heard_first() -> None:
    log = "warning: lid is missing\nERROR: shut\nERROR: shut\n"
    assert find_loudest(log) == ["ERROR: shut"]
    assert find_loudest("warning: lid is missing\n") == ["warning: lid is missing"]


@given(st.text())
def test_any_log_is_read(log: str) -> None:
    assert len(find_complaints(log)) <= log.count("\n") + 1
    assert len(find_complaint_blocks(log)) <= log.count("\n") + 1
    assert set(find_loudest(log)) <= set(find_complaints(log, 2_000))
