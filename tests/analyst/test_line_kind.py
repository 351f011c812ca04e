"""Kinds of lines: complaints of many tools, and what only looks like one."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock.rca.analyst.line_kind import Kind, kind_of


@pytest.mark.parametrize(
    ("line", "kind"),
    [
        ("", Kind.EMPTY),
        ("[INFO] -----------------", Kind.QUIET),
        ("==================", Kind.EMPTY),
        ("[ERROR] lid.java:[3,13] cannot find symbol", Kind.ERROR),
        ("[ERROR]", Kind.ERROR),
        ("[info] [error] lid is shut", Kind.ERROR),
        ("##[error]Lid is shut.", Kind.ERROR),
        ("2024-01-02T03:04:05.678Z ERROR lid is shut", Kind.ERROR),
        ("2024-01-02 03:04:05,678 box.Lid ERROR lid is shut", Kind.ERROR),
        ("\x1b[31mERROR\x1b[0m: lid is shut", Kind.ERROR),
        ("src/lid.c:12:3: error: expected ';'", Kind.ERROR),
        ("error[E0425]: cannot find value `lid`", Kind.ERROR),
        ("lid.ts(3,5): error TS2345: no lid", Kind.ERROR),
        ("E       AssertionError: assert 1 == 2", Kind.ERROR),
        ("java.lang.IllegalStateException: shut", Kind.ERROR),
        ("LidTest > opens() FAILED", Kind.ERROR),
        ("--- FAIL: TestLid (0.00s)", Kind.ERROR),
        ("Traceback (most recent call last):", Kind.ERROR),
        ("fatal: not a git repository", Kind.ERROR),
        ("Killed", Kind.ERROR),
        ("lid/lid.go:12:5: undefined: hinge", Kind.ERROR),
        ("npm ERR! Test failed.", Kind.ERROR),
        ("src/lid.py:10:1: F401 'hinge' imported but unused", Kind.ERROR),
        ("/srv/lid.py:7: UserWarning: the failure mode is old", Kind.QUIET),
        ("E: Unable to locate package hinge", Kind.ERROR),
        ("the command returned a non-zero code: 100", Kind.WORD),
        ("FAIL", Kind.HEADLINE),
        ("exit status 1", Kind.HEADLINE),
        ("ok  \texample.com/box/hinge\t0.012s", Kind.QUIET),
        ("lid: command not found", Kind.WORD),
        ("could not open the lid", Kind.WORD),
        ("Connection refused by box", Kind.WORD),
        ("\tat box.Lid.open(Lid.java:12)", Kind.FRAME),
        ('  File "/srv/lid.py", line 12, in open', Kind.FRAME),
        ("Caused by: no hinge", Kind.FRAME),
        ("... 12 more", Kind.FRAME),
        ("[INFO] BUILD FAILURE", Kind.HEADLINE),
        ("BUILD FAILED in 3s", Kind.HEADLINE),
        ("##[error]Process completed with exit code 1.", Kind.HEADLINE),
        ("[WARNING] could not reach the mirror", Kind.QUIET),
        ("Tests run: 3, Failures: 0, Errors: 0, Skipped: 0", Kind.QUIET),
        ("Found 0 errors", Kind.QUIET),
        ("LidTest > failsWhenShut() PASSED", Kind.QUIET),
        ("test lid::fails ... ok", Kind.QUIET),
        ("gcc -Werror -c lid.c", Kind.QUIET),
        ("fail-fast: true", Kind.QUIET),
        ("Downloading error-box-1.0.jar", Kind.QUIET),
        ("git fetch origin # timeout=10", Kind.PLAIN),
        ("the lid is open", Kind.PLAIN),
    ],
)
def test_kinds(line: str, kind: Kind) -> None:
    assert kind_of(line) == kind


@given(st.text())
def test_every_line_has_a_kind(line: str) -> None:
    assert kind_of(line) in Kind


@pytest.mark.parametrize(
    "piece", ["a ", "[", "error ", "at ", "0 ", "=", "\x1b[", "a.", "[info] ", "E   ", "^", "\0"]
)
def test_giant_lines(piece: str) -> None:
    assert kind_of(piece * (1_000_000 // len(piece))) in Kind
