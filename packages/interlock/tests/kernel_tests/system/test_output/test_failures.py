"""Console logs: every framework's lines, what CI servers put around them, and hostile logs."""

import itertools
import textwrap

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock.system.test_output import TestCounts
from interlock.system.test_output.failures import TestLog, read_log

RULE = "=" * 70
DASHES = "-" * 70

PYTEST = f"""\
{" FAILURES ":=^80}
{" TestLid.test_open[a.b] ":_^80}

self = <box>

    def test_open(self):
>       assert lid == "open"
E       AssertionError: assert 'shut' == 'open'

tests/test_lid.py:12: AssertionError
{" test_shut ":_^80}
E   ValueError: no hinge
{" short test summary info ":=^80}
FAILED tests/test_lid.py::TestLid::test_open[a.b] - AssertionError: assert 'shut...
FAILED tests/test_box.py::test_shut - ValueError: no hinge
{" 2 failed, 5 passed, 3 skipped, 1 xfailed, 2 warnings in 1.23s ":=^80}
"""
COLLECTING = f"""\
{" ERRORS ":=^80}
{" ERROR collecting tests/test_lid.py ":_^80}
E   ModuleNotFoundError: No module named 'hinge'
{" short test summary info ":=^80}
ERROR tests/test_lid.py
!!!!!!!!!!!!!!!!!!!! Interrupted: 1 error during collection !!!!!!!!!!!!!!!!!!!!
{" 1 skipped, 1 error in 0.42s ":=^80}
"""
UNITTEST = f"""\
.F
{RULE}
FAIL: test_open (box.LidTest.test_open)
The lid opens.
{DASHES}
Traceback (most recent call last):
  File "/srv/box.py", line 3, in test_open
    self.fail("shut")
AssertionError: shut

{DASHES}
Ran 9 tests in 0.001s

FAILED (failures=1, skipped=2, expected failures=3)
"""
SUREFIRE = """\
[INFO] Running box.LidTest
[ERROR] Tests run: 3, Failures: 1, Errors: 0, Skipped: 1, Time elapsed: 0.1 s <<< FAILURE!
[ERROR] box.LidTest.open(int)[1]  Time elapsed: 0.01 s  <<< FAILURE!
java.lang.AssertionError: shut
\tat box.LidTest.open(LidTest.java:12)

[INFO] Results:
[INFO]
[ERROR] Failures:
[ERROR]   LidTest.open:12 shut
[ERROR] Errors:
[ERROR]   HingeTest>BoxTest.turn:7->push:3 » NullPointer
[INFO]
[ERROR] Tests run: 8, Failures: 1, Errors: 1, Skipped: 1
"""
NOSE = f"""\
{RULE}
ERROR: Failure: ModuleNotFoundError (No module named 'hinge')
{DASHES}
ModuleNotFoundError: No module named 'hinge'
{RULE}
FAIL: tests.test_lid.test_open(1, 2)
{DASHES}
AssertionError: shut

{DASHES}
Ran 9 tests in 0.001s

FAILED (SKIP=2, errors=1, failures=1)
"""
NOSED = "|tests.test_lid.test_open(1, 2)"
NO_CLASS = """\
[INFO] Running box.LidTest
[ERROR] Tests run: 3, Failures: 2, Errors: 0, Skipped: 0, Time elapsed: 0.1 s <<< FAILURE! - in x
[ERROR] open  Time elapsed: 0.023 s  <<< FAILURE!
org.opentest4j.AssertionFailedError: shut
[ERROR] the lid. It shuts (softly)  Time elapsed: 0.023 s  <<< FAILURE!
org.opentest4j.AssertionFailedError: loud
[ERROR] Tests run: 3, Failures: 2, Errors: 0, Skipped: 0
"""
ANT_CLASS = """\
    [junit] Running box.LidTest
    [junit] Tests run: 3, Failures: 1, Errors: 0, Time elapsed: 0.1 sec
    [junit] Test box.LidTest FAILED
"""
SPECS = """\
[info] Lid should
[info]   + shut
[error]   x open
[error]    'shut' != 'open' (LidSpec.scala:12)
[info] ! Hinge.turns: Falsified after 3 passed tests.
[error] Failed: Total 5, Failed 2, Errors 0, Passed 3
"""
WHOLE_CLASS = """\
[ERROR] Tests run: 1, Failures: 0, Errors: 1, Skipped: 0, Time elapsed: 0.1 s <<< FAILURE!
[ERROR] box.LidTest -- Time elapsed: 0.110 s <<< ERROR!
java.lang.RuntimeException: no hinge
[ERROR] Errors:
[ERROR]   LidTest.prepare:3 Runtime no hinge
[ERROR] Tests run: 1, Failures: 0, Errors: 1, Skipped: 0
"""
OLD_SUREFIRE = """\
Tests run: 3, Failures: 1, Errors: 0, Skipped: 0, Time elapsed: 0.1 sec <<< FAILURE!
open(box.LidTest)  Time elapsed: 0.01 sec  <<< FAILURE!
java.lang.AssertionError: shut

Results :

Failed tests:   open(box.LidTest): shut

Tests run: 3, Failures: 1, Errors: 0, Skipped: 0
"""
GRADLE = """\
LidTest > open() PASSED
LidTest > Inner > opens wide FAILED
    java.lang.AssertionError at LidTest.java:12
box.HingeTest > turn(int) > [1] 7 FAILED

11 tests completed, 2 failed, 1 skipped
> Task :test FAILED
"""
ANT = """\
    [junit] Testsuite: box.LidTest
    [junit] Tests run: 3, Failures: 1, Errors: 1, Skipped: 0, Time elapsed: 0.1 sec
    [junit] Testcase: open(box.LidTest):\tFAILED
    [junit] shut
    [junit] junit.framework.AssertionFailedError: shut
    [junit] Testcase: turn took 0.2 sec
    [junit] \tCaused an ERROR
    [junit] Testcase: fine took 0.1 sec
"""
SBT = """\
[error] Test box.LidTest.open failed: java.lang.AssertionError: shut, took 0.1s
[info] Test run finished: 1 failed, 0 ignored, 3 total, 0.2s
[info] HingeSpec:
[info] - should turn *** FAILED ***
[info]   1 did not equal 2
[error] Failed: Total 7, Failed 2, Errors 0, Passed 5
"""
GO = """\
=== RUN   TestLid
--- FAIL: TestLid (0.00s)
    --- FAIL: TestLid/open (0.00s)
        lid_test.go:12: shut
--- PASS: TestBox (0.01s)
--- SKIP: TestHinge (0.00s)
FAIL
"""
JEST = """\
FAIL tests/lid.test.js (5.2 s)
  ● Console

    console.warn creaks

  ● Lid \u203a opens

    expect(received).toBe(expected)

  ● shuts without a suite

    expect(received).toBe(expected)

FAIL tests/box.test.js
  ● Test suite failed to run

    Cannot find module './hinge'

Summary of all failing tests
FAIL tests/lid.test.js (5.2 s)
  ● Lid \u203a opens

    expect(received).toBe(expected)

  ● shuts without a suite

FAIL tests/box.test.js
  ● Test suite failed to run

Tests:       3 failed, 2 skipped, 5 passed, 10 total
"""
MOCHA = """\
  5 passing (20ms)
  2 failing

  1) lid
       when wet
         opens slowly:
     AssertionError [ERR_ASSERTION]: shut
      at Context.<anonymous> (test/lid.js:12:9)

  2) glows:
     Error: no wick
"""
RUST = """\
test lid::opens ... FAILED
test lid::shuts ... ok
---- lid::opens stdout ----
thread 'lid::opens' panicked at src/lid.rs:12:
test result: FAILED. 3 passed; 1 failed; 2 ignored; 0 measured; 0 filtered out
"""
GTEST = """\
[  FAILED  ] Lid.Opens (0 ms)
[==========] 10 tests from 3 test suites ran. (1 ms total)
[  PASSED  ] 9 tests.
[  FAILED  ] 1 test, listed below:
[  FAILED  ] Lid.Opens
"""
DOTNET = """\
  Failed Box.LidTest.Opens [12 ms]
  Error Message:
Failed!  - Failed:     1, Passed:     5, Skipped:     2, Total:     8, Duration: 1 s
"""
RSPEC = """\
10 examples, 1 failure, 2 pending
rspec ./spec/lid_spec.rb:12 # Lid opens
"""
MINITEST = """\
  1) Failure:
LidTest#test_open [test/lid_test.rb:12]:
10 runs, 20 assertions, 1 failures, 0 errors, 2 skips
"""
PHPUNIT = """\
There was 1 failure:

1) Box\\LidTest::testOpen
Failed asserting that false is true.

Tests: 10, Assertions: 20, Failures: 1, Skipped: 2.
"""
CTEST = """\
95% tests passed, 1 tests failed out of 20
The following tests FAILED:
\t  3 - lid_opens (Failed)
"""
TAP = """\
ok 1 - box
not ok 2 - lid opens
not ok 3 - hinge # TODO later
# tests 3
# pass 1
# fail 1
"""
VITEST = """\
 FAIL  src/lid.test.ts > lid > opens
AssertionError: expected 'shut' to be 'open'
 Tests  1 failed | 5 passed (6)
"""

VERBOSE_PYTEST = f"""\
tests/test_lid.py::TestLid::test_open[a] FAILED                          [ 50%]
tests/test_lid.py::test_shut PASSED                                      [100%]
{" FAILURES ":=^80}
{" TestLid.test_open[a] ":_^80}
E       AssertionError: assert 'shut' == 'open'
{" short test summary info ":=^80}
FAILED tests/test_lid.py::TestLid::test_open[a] - AssertionError: assert 'shut...
{" 1 failed, 1 passed in 1.23s ":=^80}
"""
GREEN = """\
Failure in box.LidTest.test_open
  File "/srv/box.py", line 3, in test_open
AssertionError: shut

Ran 8 tests in 0.283s using 2 processes

FAILED (errors=1, expected_failures=1, failures=4, passes=1, skips=1)
"""
STESTR = """\
{0} box.LidTest.test_open [0.000109s] ... FAILED
{1} box.LidTest.test_shut [0.000109s] ... ok
Ran: 2 tests in 0.0765 sec.
 - Passed: 1
 - Skipped: 0
 - Failed: 1
"""
JEST_TOP = """\
FAIL src/lid.test.js
  ● Console

    console.log lid

  ● opens

    TypeError: shut

FAIL src/hinge.test.js
  ● Test suite failed to run

    Cannot find module './nut'

Tests:       1 failed, 5 passed, 6 total
"""
VITEST_FILES = """\
 \u00d7 src/lid.test.ts > opens 38ms
 FAIL  src/hinge.test.ts [ src/hinge.test.ts ]
Error: Cannot find module './nut.js'
 FAIL  src/lid.test.ts > opens
AssertionError: expected 'shut' to be 'open'
 FAIL  src/lid.test.ts > lid (big) > deep > shuts
 Tests  2 failed | 5 passed (7)
"""
MOCHA_LIST = """\
    1) opens
  5 passing (20ms)
  2 failing

  1) Lid
       when shut
         opens:
     TypeError: shut

  2) turns:
     Error: stuck
"""
NODE_SPEC = """\
▶ Lid
  ✖ opens (6.2ms)
    TypeError [Error]: shut
  ✔ shuts (0.2ms)
✖ Lid (7.1ms)
\u2139 tests 2
\u2139 fail 1
\u2139 skipped 0

✖ failing tests:

✖ opens (6.2ms)
"""
AVA = """\
  ✘ [fail]: opens
  ✔ shuts
  ─
  1 test failed
  3 tests passed
"""
JASMINE = """\
Failures:
1) Lid opens
  Message:
    TypeError: shut

Pending:

1) Lid turns

4 specs, 1 failure, 1 pending spec
"""
CUCUMBER = """\
Failures:

1) Scenario: opens # features/lid.feature:2
   ✖ Then it is open # steps/lid.js:2
       AssertionError: shut

3 scenarios (1 failed, 2 passed)
4 steps (1 failed, 3 passed)
"""
BEHAVE = """\
Failing scenarios:
  features/lid.feature:2  opens

0 features passed, 1 failed, 0 skipped
3 scenarios passed, 1 failed, 0 skipped
"""
ROBOT = f"""\
Opens                                                                 | FAIL |
shut
{"-" * 78}
Lid                                                                   | FAIL |
4 tests, 2 passed, 1 failed, 1 skipped
{"=" * 78}
Box                                                                   | FAIL |
4 tests, 2 passed, 1 failed, 1 skipped
"""
PROVE = """\
    #   Failed test 'opens'
    #   at t/lid.t line 1.
#   Failed test 'lid'
t/lid.t (Wstat: 512 (exited 2) Tests: 5 Failed: 1)
Files=3, Tests=7,  1 wallclock secs ( 0.03 usr  0.00 sys)
Result: FAIL
"""
PLAIN_TAP = """\
1..4
    not ok 1 - opens # time=7.29ms
not ok 1 - lid
ok 2 - box
ok 3 - nut # SKIP
not ok 4 - hinge # TODO later
"""
NESTED_TAP = """\
not ok 1 - lid # time=1.03ms {
    not ok 1 - opens
    not ok 2 - inner {
        not ok 1 - deep
    }
    not ok 3 - shuts
}
# tests 3
# fail 3
"""
DOC_TEST = """\
test src/lid.rs - open (line 1) ... FAILED
test tests::must_panic - should panic ... FAILED
test result: FAILED. 0 passed; 2 failed; 0 ignored; 0 measured; 0 filtered out
"""
CTEST_CRASH = """\
33% tests passed, 2 tests failed out of 6
The following tests did not run:
\t  6 - skipped (Skipped)
The following tests FAILED:
\t  3 - lid (Subprocess aborted)
\t  5 - hinge (Not Run)
"""
GRADLE_RUN = """\
Gradle Test Run :test > Gradle Test Executor 1 > LidTest > opens() FAILED
The lid > shuts FAILED
Results: FAILURE (12 tests, 10 successes, 2 failures, 0 skipped)
12 tests completed, 2 failed
"""
UNKNOWN = """\
✗ opens
Suites: 1 failed, 2 passed
Test Count: 5, Passed: 3, Failed: 1, Skipped: 1
"""


@pytest.mark.parametrize(
    ("text", "names", "tally"),
    [
        (VERBOSE_PYTEST, ["TestLid|test_open[a]"], (2, 1, 0)),
        (GREEN, ["box.LidTest|test_open"], (8, 5, 1)),
        (STESTR, ["box.LidTest|test_open"], (2, 1, 0)),
        (JEST_TOP, ["|opens", "|src/hinge.test.js"], (6, 1, 0)),
        (VITEST_FILES, ["|opens", "|src/hinge.test.ts", "lid (big) > deep|shuts"], (7, 2, 0)),
        (MOCHA_LIST, ["Lid when shut|opens", "|turns"], (7, 2, 0)),
        (NODE_SPEC, ["|opens"], (2, 1, 0)),
        (AVA, ["|opens"], (4, 1, 0)),
        (JASMINE, ["|Lid opens"], (4, 1, 1)),
        (CUCUMBER, ["|opens"], (3, 1, 0)),
        (BEHAVE, ["|opens"], (4, 1, 0)),
        (ROBOT, ["|Opens"], (4, 1, 1)),
        (PROVE, ["|opens"], (7, 1, 0)),
        (PLAIN_TAP, ["|opens"], (4, 1, 1)),
        (NESTED_TAP, ["|opens", "|deep", "|shuts"], (3, 3, 0)),
        (DOC_TEST, ["|src/lid.rs - open (line 1)", "tests|must_panic"], (2, 2, 0)),
        (CTEST_CRASH, ["|lid", "|hinge"], (6, 2, 0)),
        (GRADLE_RUN, ["LidTest|opens()", "The lid|shuts"], (12, 2, 0)),
        (UNKNOWN, ["|opens"], (5, 1, 1)),
        (PYTEST, ["TestLid|test_open[a.b]", "|test_shut"], (8, 2, 3)),
        (COLLECTING, ["|tests.test_lid"], (1, 1, 1)),
        (UNITTEST, ["box.LidTest|test_open"], (9, 1, 2)),
        (SUREFIRE, ["box.LidTest|open(int)[1]", "HingeTest|turn"], (8, 2, 1)),
        (NOSE, ["|Failure: ModuleNotFoundError (No module named 'hinge')", NOSED], (9, 2, 2)),
        (NO_CLASS, ["box.LidTest|open", "box.LidTest|the lid. It shuts (softly)"], (3, 2, 0)),
        (ANT_CLASS, ["|box.LidTest"], (3, 1, 0)),
        (SPECS, ["|open", "|Hinge.turns"], (5, 2, 0)),
        (WHOLE_CLASS, ["box|LidTest"], (1, 1, 0)),
        (OLD_SUREFIRE, ["box.LidTest|open"], (3, 1, 0)),
        (GRADLE, ["LidTest$Inner|opens wide", "box.HingeTest|turn(int) > [1] 7"], (11, 2, 1)),
        (ANT, ["box.LidTest|open", "box.LidTest|turn"], (3, 2, 0)),
        (SBT, ["box.LidTest|open", "HingeSpec|should turn"], (7, 2, 0)),
        (GO, ["|TestLid/open"], (4, 2, 1)),
        (
            JEST,
            ["Lid|opens", "|shuts without a suite", "|tests/box.test.js"],
            (10, 3, 2),
        ),
        (MOCHA, ["lid when wet|opens slowly", "|glows"], (7, 2, 0)),
        (RUST, ["lid|opens"], (4, 1, 2)),
        (GTEST, ["Lid|Opens"], (10, 1, 0)),
        (DOTNET, ["Box.LidTest|Opens"], (8, 1, 2)),
        (RSPEC, ["|Lid opens"], (10, 1, 2)),
        (MINITEST, ["LidTest|test_open"], (10, 1, 2)),
        (PHPUNIT, ["Box\\LidTest|testOpen"], (10, 1, 2)),
        (CTEST, ["|lid_opens"], (20, 1, 0)),
        (TAP, ["|lid opens"], (3, 1, 0)),
        (VITEST, ["lid|opens"], (6, 1, 0)),
    ],
)
def test_frameworks(text: str, names: list[str], tally: tuple[int, int, int]) -> None:
    log = read_log(text.split("\n"))
    tests, failed, skipped = tally
    assert log.tally == TestCounts(tests=tests, failed=failed, skipped=skipped)
    result = [
        f"{each.class_name.removeprefix('tests.test_lid').removeprefix('tests.test_box').lstrip('.')}"
        f"|{each.test_name}"
        for each in log.failures
    ]
    assert result == names


def test_a_failure_brings_its_reason() -> None:
    opened, shut = read_log(PYTEST.split("\n")).failures
    assert (opened.type, opened.message) == ("AssertionError", "assert 'shut' == 'open'")
    assert (opened.file, opened.class_name) == ("tests/test_lid.py", "tests.test_lid.TestLid")
    assert (shut.type, shut.message, shut.file) == ("ValueError", "no hinge", "tests/test_box.py")
    plain = [each.message for each in read_log(JEST.split("\n")).failures]
    assert plain == [*["expect(received).toBe(expected)"] * 2, "Cannot find module './hinge'"]
    (node,) = read_log(NODE_SPEC.split("\n")).failures
    assert (node.type, node.message) == ("TypeError", "shut")
    (rust,) = read_log([*RUST.split("\n")[:4], "lid is shut", *RUST.split("\n")[4:]]).failures
    assert rust.message == "lid is shut"
    (java, _) = read_log(SUREFIRE.split("\n")).failures
    assert (java.type, java.message) == ("java.lang.AssertionError", "shut")
    assert java.stack.endswith("\tat box.LidTest.open(LidTest.java:12)")
    (slow, glows) = read_log(MOCHA.split("\n")).failures
    assert slow.stack.endswith("at Context.<anonymous> (test/lid.js:12:9)")
    assert glows.message == "no wick"


@pytest.mark.parametrize(
    "around",
    [
        "2024-01-02T03:04:05.1234567Z {}",
        "\ufeff2024-01-02T03:04:05Z {}",
        "[2024-01-02T03:04:05.123Z] {}",
        "build\tRun tests\t2024-01-02T03:04:05.1234567Z {}",
        "12:30:45  {}",
        "\x1b[31m{}\x1b[0m",
        "{}\r",
    ],
)
@pytest.mark.parametrize(
    "text", [PYTEST, UNITTEST, SUREFIRE, GRADLE, ANT, SBT, JEST, MOCHA_LIST, NODE_SPEC, NESTED_TAP]
)
def test_what_ci_servers_put_around_lines(text: str, around: str) -> None:
    lines = text.split("\n")
    assert read_log(around.format(line) for line in lines) == read_log(lines)


def test_runs_add_up_and_a_test_may_fail_in_each() -> None:
    log = read_log((GRADLE + GRADLE + UNITTEST).split("\n"))
    assert log.tally == TestCounts(tests=31, failed=5, skipped=4)
    assert len(log.failures) == 5
    assert len({each.id for each in log.failures}) == 5


@pytest.mark.parametrize(
    "text",
    [
        "",
        "> Task :compile FAILED\nBUILD FAILED in 3s",
        "ERROR: could not install box\nERROR: no such lid",
        "[ERROR] Failed to execute goal on project lid: 3 errors",
        "FAILED to fetch https://box.example/lid.tar",
        "error: 2 failed attempts, 3 passed by",
        "✖ 3 problems (2 errors, 1 warning)",
        "Suites: 3 passed, 1 failed",
        "  1) check the lid\n● Validation Warning:",
    ],
)
def test_a_broken_build_has_no_failing_tests(text: str) -> None:
    assert read_log(text.split("\n")) == TestLog([], TestCounts())


def test_a_run_that_broke_off_counts_what_it_named() -> None:
    log = read_log(["tests/test_lid.py::test_open FAILED", "Killed"])
    assert log.tally == TestCounts(tests=1, failed=1)
    assert log.failures[0].test_name == "test_open"


def test_a_long_reason_keeps_its_beginning_and_its_end() -> None:
    reason = [f"    line {number}" for number in range(5_000)]
    text = [f"{' FAILURES ':=^80}", f"{' test_open ':_^80}", *reason, "E   KeyError: 'lid'"]
    (failure,) = read_log(text).failures
    assert failure.type == "KeyError"
    assert failure.stack.startswith("    line 0\n")
    assert "\n... 4901 lines ...\n" in failure.stack


def test_a_failure_is_named_however_long_its_line_is() -> None:
    (failure,) = read_log(
        [f"FAILED tests/test_lid.py::test_open - KeyError: {'x' * 60_000}"]
    ).failures
    assert (failure.test_name, failure.type) == ("test_open", "KeyError")


def test_endless_failures_are_bounded() -> None:
    lines = (f"test lid::no{number} ... FAILED" for number in range(30_000))
    assert len(read_log(lines).failures) == 10_000


@pytest.mark.parametrize("piece", ["_", "= ", "1 a, ", "a.", "a > ", "::", "[info] ", "a(b", "\0"])
def test_giant_lines(piece: str) -> None:
    line = piece * (60_000 // len(piece))
    assert read_log(itertools.repeat(line, 50)).failures == []
    for size in (999, 3_999):
        read_log(itertools.repeat(line[:size], 50))


@given(st.lists(st.text()), st.sampled_from([PYTEST, SUREFIRE, GRADLE, UNITTEST]))
def test_noise_before_changes_nothing(noise: list[str], text: str) -> None:
    lines = [textwrap.shorten(f"| {line}", 200) for line in noise]
    assert read_log([*lines, "", *text.split("\n")]).tally == read_log(text.split("\n")).tally


def test_go_prints_messages_before_or_after_the_line_that_names_the_test() -> None:
    verbose = (
        "=== RUN   TestLid\n=== PAUSE TestLid\n=== RUN   TestBox\n    box_test.go:3: fine\n"
        "--- PASS: TestBox (0.00s)\n=== CONT  TestLid\n    lid_test.go:12: got 1, want 2\n"
        "--- FAIL: TestLid (0.00s)\n=== RUN   TestHinge\n=== RUN   TestHinge/left\n"
        "    hinge_test.go:7: creaks\n--- FAIL: TestHinge (0.00s)\n"
        "    --- FAIL: TestHinge/left (0.00s)\nFAIL\nFAIL\texample.org/box\t0.01s\n"
    )
    plain = (
        "--- FAIL: TestLid (0.00s)\n    lid_test.go:12: got 1, want 2\n"
        "--- FAIL: TestHinge (0.00s)\n    --- FAIL: TestHinge/left (0.00s)\n"
        "        hinge_test.go:7: creaks\nFAIL\nFAIL\texample.org/box\t0.01s\n"
    )
    for log in (verbose, plain):
        found = [
            (failure.test_name, failure.message, failure.stack.strip())
            for failure in read_log(log.split("\n")).failures
        ]
        assert found == [
            ("TestLid", "got 1, want 2", "lid_test.go:12: got 1, want 2"),
            ("TestHinge/left", "creaks", "hinge_test.go:7: creaks"),
        ]


def test_what_failed_only_through_its_parts_is_told_from_what_has_no_name() -> None:
    log = (
        "--- FAIL: TestLid (0.00s)\n    --- FAIL: TestLid/big (0.00s)\n"
        "        --- FAIL: TestLid/big/red (0.00s)\n            lid_test.go:7: creaks\n"
        "--- FAIL: TestHinge (0.00s)\n    lid_test.go:9: squeaks\nFAIL\n"
    )
    found = read_log(log.split("\n"))
    assert [failure.test_name for failure in found.failures] == ["TestLid/big/red", "TestHinge"]
    assert (found.tally.failed, found.parents) == (4, 2)


@pytest.mark.parametrize(
    ("text", "named", "message"),
    [
        (
            """\
            === RUN   TestLid
                lid_test.go:9:
                    have:
                        colour = "red"
                        shape = "round"
                    want:
                        colour = "blue"
            --- FAIL: TestLid (0.00s)
            FAIL""",
            "TestLid",
            'have: colour = "red", want: colour = "blue"',
        ),
        (
            """\
            === RUN   TestLid
                lid_test.go:9: got shut, want open
            --- FAIL: TestLid (0.00s)
            FAIL""",
            "TestLid",
            "got shut, want open",
        ),
        (
            """\
            {"Action":"output","Test":"TestLid","Output":"=== RUN   TestLid\\n"}
            {"Action":"output","Test":"TestHinge","Output":"=== RUN   TestHinge\\n"}
            {"Action":"output","Test":"TestLid","Output":"    l_test.go:9: shut\\n"}
            {"Action":"output","Test":"TestHinge","Output":"--- PASS: TestHinge (0.00s)\\n"}
            {"Action":"output","Test":"TestLid","Output":"--- FAIL: TestLid (0.00s)\\n"}
            {"Action":"fail","Package":"box","Test":"TestLid","Elapsed":0}
            {"Action":"broken""",
            "TestLid",
            "shut",
        ),
        (
            """\
            [ RUN      ] Lid.Opens
            lid_test.cc:9: Failure
            Value of: lid.open
            [  FAILED  ] Lid.Opens (0 ms)
            [ RUN      ] Lid.Shuts""",
            "Lid.Opens",
            "Value of: lid.open",
        ),
        (
            """\
            [ERROR] Failures:
            [ERROR]   LidTest.opens:9
            expected: open
             but was: shut
            [ERROR] Tests run: 7, Failures: 1, Errors: 0, Skipped: 0""",
            "LidTest.opens",
            "expected: open, but was: shut",
        ),
        (
            """\
            1) Failed : Box.LidTest.Opens
              Expected: open
              But was:  shut
            Test Count: 3, Passed: 2, Failed: 1, Warnings: 0, Inconclusive: 0, Skipped: 0""",
            "Box.LidTest.Opens",
            "Expected: open, But was:  shut",
        ),
        (
            """\
            FAIL in (opens) (lid_test.clj:9)
            expected: open
              actual: shut
            Ran 2 tests containing 3 assertions.
            1 failures, 0 errors.""",
            "opens",
            "expected: open, actual: shut",
        ),
        (
            """\
            /srv/LidTests.swift:9: error: -[BoxTests.LidTests testOpens] : it is shut
            Test Case '-[BoxTests.LidTests testOpens]' failed (0.010 seconds).
            Test Suite 'All tests' failed at 2020-01-01 10:00:00.""",
            "BoxTests.LidTests.testOpens",
            "it is shut",
        ),
        (
            """\
            Chrome Headless 90 (Linux x86_64) Lid opens FAILED
            \tExpected lid to be open.
            Chrome Headless 90 (Linux x86_64): Executed 2 of 2 (1 FAILED) (0.2 secs / 0.1 secs)""",
            "Lid opens",
            "Expected lid to be open.",
        ),
    ],
)
def test_messages_before_below_and_after_empty_lines(text: str, named: str, message: str) -> None:
    (failure,) = read_log(textwrap.dedent(text).split("\n")).failures
    assert (".".join(filter(None, (failure.class_name, failure.test_name)))) == named
    assert failure.message == message


def test_a_test_that_passed_when_it_was_tried_again_did_not_fail() -> None:
    surefire = """\
        [ERROR] box.LidTest.opens  Time elapsed: 0.01 s  <<< FAILURE!
        java.lang.AssertionError: shut
        [ERROR] box.LidTest.shuts  Time elapsed: 0.01 s  <<< FAILURE!
        java.lang.AssertionError: open
        [WARNING] Flakes:
        [WARNING] box.LidTest.opens
        [ERROR]   Run 1: LidTest.opens:9 shut
        [INFO]   Run 2: PASS
        [ERROR] Tests run: 2, Failures: 1, Errors: 0, Skipped: 0, Flakes: 1"""
    read = read_log(textwrap.dedent(surefire).split("\n"))
    assert ([one.test_name for one in read.failures], read.tally.failed) == (["shuts"], 1)
    gradle = [
        "LidTest > opens() FAILED",
        "    java.lang.AssertionError",
        "LidTest > opens() PASSED",
    ]
    assert read_log(gradle).failures == []


@pytest.mark.parametrize("word", ["end", "done", "failed", "errors"])
def test_no_name_is_invented_to_fill_a_count(word: str) -> None:
    read = read_log([f"  x {word}", f"    1) {word}", "2 tests, 1 failures, 0 errors"])
    assert (read.failures, read.tally.failed) == ([], 1)


def test_a_message_may_begin_with_an_empty_line() -> None:
    log = (
        "org.acme.BoxTest.opens -- Time elapsed: 0.01 s <<< FAILURE!\n"
        "org.opentest4j.AssertionFailedError: \n\nexpected: 1\n but was: 2\n"
        "\tat org.acme.BoxTest.opens(BoxTest.java:9)\n\n"
        "Tests run: 4, Failures: 1, Errors: 0, Skipped: 1\n"
    )
    (failure,) = read_log(log.split("\n")).failures
    assert failure.message == "expected: 1, but was: 2"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            """\
            LidTest#test_opens = 0.00 s = .
            LidTest#test_shuts = 0.00 s = F
            LidTest#test_later = 0.00 s = S

              1) Skipped:
            LidTest#test_later [lid.rb:6]:
            Skipped, no message given

              2) Failure:
            LidTest#test_0001_shuts the lid [lid.rb:4]:
            Expected: 1
              Actual: 2

            3 runs, 2 assertions, 1 failures, 0 errors, 1 skips""",
            ["LidTest.test_0001_shuts the lid"],
        ),
        (
            """\
                    FAIL [   0.356s] (3847/5457) box lid::tests::opens
                stdout \u2500\u2500\u2500
                thread 'lid::tests::opens' (45399) panicked at src/lid.rs:36:9:
                it is shut
                 Summary [ 113.222s] 5457 tests run: 5456 passed, 1 failed, 35 skipped
                    FAIL [   0.356s] (3847/5457) box lid::tests::opens""",
            ["lid.tests.opens"],
        ),
        (
            """\
            There were 2 failures:
            1) opens(box.LidTest)
            java.lang.AssertionError: expected:<3> but was:<4>
            \tat box.LidTest.opens(LidTest.java:2)
            2) shuts[0](box.LidTest)
            java.lang.IllegalStateException: no hinge

            FAILURES!!!
            Tests run: 3,  Failures: 2""",
            ["box.LidTest.opens", "box.LidTest.shuts[0]"],
        ),
        (
            f"""\
            {RULE}
            MarkupError: lid "opens"
            {DASHES}
            MarkupError: it is shut""",
            ['lid "opens"'],
        ),
    ],
)
def test_only_failed_tests_are_named(text: str, expected: list[str]) -> None:
    failures = read_log(textwrap.dedent(text).split("\n")).failures
    assert [".".join(filter(None, (one.class_name, one.test_name))) for one in failures] == expected
