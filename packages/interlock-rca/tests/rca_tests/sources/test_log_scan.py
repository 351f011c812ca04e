"""A log read quickly says what it says line by line."""

import io
import random
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from interlock.system.test_output.counts import LINE_LIMIT, read_lines
from interlock.system.test_output.failures import read_log
from interlock_rca.sources.log_scan import LogScan, scan_log
from kernel_tests.system.test_output import test_failures as tools
from rca_tests.worlds.job_logs import GREEN_TESTS, JOBS, judge_job

FAILED_JOBS = Path(__file__).parents[1] / "analyst" / "failed_jobs.txt"
LOGS = [
    *(log for *_, log in JOBS),
    *GREEN_TESTS.values(),
    *(text for text in vars(tools).values() if isinstance(text, str) and text.count("\n") > 2),
    *FAILED_JOBS.read_text(encoding="utf-8").replace("\n\u00bb", "\n").split("\n@@ "),
]
LINES = sorted({line for log in LOGS for line in log.split("\n")})
WORDS = [
    "cart",
    "Price",
    "QUEUE",
    "a/b.py",
    "of",
    "12",
    "failed,",
    "the",
    "at",
    "x",
    "\x1b[31m",
    "::",
]
NOISE = st.lists(st.sampled_from(WORDS), max_size=8).map(" ".join)
CLOCKS = ["", "2026-03-02T10:11:12.1234567Z ", "[10:11:12] ", "[INFO] "]


def read_slowly(raw: bytes) -> LogScan:
    lines = list(read_lines(io.BytesIO(raw)))
    return LogScan(read_log(lines), judge_job(lines))


def test_logs_of_many_tools_say_the_same() -> None:
    chance = random.Random(4)
    filler = [f"{chance.random()} {word} went by" for word in WORDS * 3]
    for log in LOGS:
        for clock in CLOCKS:
            lines = [*filler, *log.split("\n"), *filler, *log.split("\n")]
            raw = "\n".join(clock + line for line in lines).encode()
            assert scan_log(io.BytesIO(raw)) == read_slowly(raw), log


@given(st.lists(st.sampled_from(LINES) | NOISE, max_size=40), st.sampled_from(CLOCKS))
def test_any_lines_say_the_same(lines: list[str], clock: str) -> None:
    raw = "\n".join(clock + line for line in lines * 2).encode()
    assert scan_log(io.BytesIO(raw)) == read_slowly(raw)


@given(st.lists(st.binary(max_size=30), max_size=20))
def test_any_bytes_say_the_same(lines: list[bytes]) -> None:
    raw = b"\n".join([*lines, b"1 failed in 2s", *lines, b"make: *** [all] Error 1\r"])
    assert scan_log(io.BytesIO(raw)) == read_slowly(raw)


GO_NAMES = ["TestCart", "TestCart/of", "TestError", "TestExit", "Test/build/exit1", "T...Failed"]
GO_NAMES += ["Test/step/failed3", "Test[1]:", "Failed!x", "TestPr\u00e9", "Test/a|b", "of_1=2"]
GO_LINES = [
    *("=== RUN   {}", "=== PAUSE {}", "=== CONT  {}", "=== NAME  {}", "--- PASS: {} (0.01s)"),
    *("    --- PASS: {} (0.00s)", "--- SKIP: {} (0.00s)", "--- FAIL: {} (1.20s)", "--- PASS: {}"),
    *("10:11:12 === RUN   {}", "    a_test.go:7: the {}", "    a_test.go:7: E123 {}", "PASS"),
    *(
        "    a.go:7: | b.py:3: E501 {}",
        "a.go:7:1: {}",
        "    a_test.go:7: Cart:",
        "FAIL\ta/{}\t0.2s",
    ),
    *("ok  \ta/{}\t0.2s", "BUILD SUCCESSFUL", "    --- FAIL: {} (0.10s)", "  the cart at 12", ""),
]
GO_TEST = st.tuples(st.sampled_from(GO_NAMES), st.sampled_from(["", "of 12", *GO_LINES])).map(
    lambda it: f"=== RUN   {it[0]}\n{it[1].format('x')}\n--- PASS: {it[0]} (0.01s)"
)
GO_LINE = st.builds(str.format, st.sampled_from(GO_LINES), st.sampled_from(GO_NAMES))


@given(st.lists(st.one_of(GO_TEST, GO_LINE, st.sampled_from(LINES)), max_size=40))
def test_tests_of_go_say_the_same(lines: list[str]) -> None:
    raw = "\n".join(lines * 2).encode()
    assert scan_log(io.BytesIO(raw)) == read_slowly(raw)


def test_a_group_named_inside_of_a_passing_test_is_heard() -> None:
    raw = b"=== RUN   TestA\nCart:\n--- PASS: TestA (0.01s)\n[info] - adds *** FAILED ***\n"
    (failed,) = scan_log(io.BytesIO(raw)).tests.failures
    assert (failed.class_name, failed.test_name) == ("Cart", "adds")


def test_lines_without_end_are_cut() -> None:
    raw = b"x" * (4 * LINE_LIMIT) + b" failed\nmake: *** [all] Error 1\n" + b"y" * (9 * LINE_LIMIT)
    assert scan_log(io.BytesIO(raw)) == read_slowly(raw)


def test_a_line_that_counts_nothing_hides_no_later_one_with_other_numbers() -> None:
    for green, red in (("0 tests failed", "3 tests failed"), ("# fail 0", "# fail 2")):
        raw = f"{green}\nlid 1 is shut\n{red}\nlid 2 is shut\n".encode()
        assert scan_log(io.BytesIO(raw)).verdict.status == "failed", red
