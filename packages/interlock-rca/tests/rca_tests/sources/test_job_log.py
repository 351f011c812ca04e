"""How a job ended: a corpus of logs in the formats of many tools, and laws about all of them."""

import io
import itertools
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock_rca.sources.job_log import (
    FAILED,
    SUCCEEDED,
    UNKNOWN,
    JobVerdict,
    select_evidence,
)
from rca_tests.worlds.job_logs import GREEN_TESTS, JOBS, judge_job, read_failed_builds


def judge(log: str) -> JobVerdict:
    return judge_job(log.split("\n"))


def test_corpus() -> None:
    wrong = []
    for name, status, kind, log in JOBS:
        verdict = judge(log)
        found = verdict.cause.kind if verdict.cause else ""
        if (verdict.status, found) != (status, kind):
            by = verdict.decisive.text if verdict.decisive else "nothing"
            wrong.append(f"{name}: {verdict.status} {found}, not {status} {kind}: by {by}")
    assert not wrong, f"{len(wrong)} of {len(JOBS)}:\n" + "\n".join(wrong)


def test_failed_builds_of_many_tools_are_called_failed() -> None:
    builds = read_failed_builds()
    wrong = [
        f"{build.name}: {verdict.status}"
        for build in builds
        if (verdict := judge_job(build.lines)).status != FAILED or not verdict.cause
    ]
    assert not wrong, f"{len(wrong)} of {len(builds)}: {wrong}"


def test_an_error_in_the_middle_leaves_open_how_the_job_ended() -> None:
    error = ["KeyError: 'version'"]
    assert judge_job(["reading", *error]).status == FAILED
    assert judge_job(["reading", *error, *["going on"] * 20]).status == UNKNOWN
    assert judge_job([*error, "3 passed in 0.2s"]).status == UNKNOWN


@pytest.mark.parametrize(
    "line",
    [
        "Tests:       3 failed, 1 skipped, 3 passed, 7 total",
        "      Tests  2 failed | 1 passed (3)",
        "5 examples, 3 failures, 1 pending",
        "# fail 1",
        "\u2139 fail 3",
        "FAILED (failures=2, errors=1, skipped=1)",
        "4 runs, 2 assertions, 1 failures, 1 errors, 1 skips",
    ],
)
def test_a_run_that_counts_failed_tests_failed_if_nothing_else_is_said(line: str) -> None:
    verdict = judge_job(["opening the lid", line, "bye"])
    assert verdict.status == FAILED
    assert verdict.cause is not None
    assert (verdict.cause.kind, verdict.cause.is_count) == ("test", True)
    assert judge_job(["opening the lid", line, "Finished: SUCCESS"]).status == SUCCEEDED
    assert judge_job([line, "Tests:       7 passed, 7 total"]).status == UNKNOWN
    told = judge_job(["lid.c:3:1: error: no hinge", line, 'The command "x" exited with 1.'])
    assert told.cause is not None
    assert told.cause.kind == "compile"


def test_who_stopped_a_job_is_no_crash() -> None:
    cause = judge("+ make soak\nAborted by Ana\nFinished: ABORTED\n").cause
    assert cause is not None
    assert cause.kind == "cancelled"


def test_green_tests_do_not_hide_what_their_tool_complains_of() -> None:
    log = "FAIL Required test coverage of 80% not reached. Total coverage: 50%\n21 passed in 3.3s\n"
    cause = judge(log + "Error: Process completed with exit code 1.\n").cause
    assert cause is not None
    assert cause.kind == "coverage"


def test_the_corpus_is_balanced() -> None:
    statuses = Counter(status for _, status, _, _ in JOBS)
    assert set(statuses) == {FAILED, SUCCEEDED, UNKNOWN}
    assert 0.4 < statuses[FAILED] / len(JOBS) < 0.6


def test_green_tests_alone_prove_nothing() -> None:
    assert {name: judge(log).status for name, log in GREEN_TESTS.items()} == dict.fromkeys(
        GREEN_TESTS, UNKNOWN
    )


RED = [log for _, status, _, log in JOBS if status == FAILED]
GREEN = st.lists(st.sampled_from(sorted(GREEN_TESTS.values())), min_size=1, max_size=3)


@given(st.sampled_from(RED), GREEN)
def test_green_tests_after_it_never_make_a_failed_job_green(red: str, green: list[str]) -> None:
    assert judge(red + "".join(green)).status != SUCCEEDED


@given(st.sampled_from(RED), GREEN)
def test_green_tests_before_it_change_nothing(red: str, green: list[str]) -> None:
    assert judge("".join(green) + red).status == judge(red).status


@given(st.lists(st.sampled_from([line for *_, log in JOBS for line in log.split("\n")])))
def test_a_failure_has_a_cause_and_evidence_and_nothing_else_does(lines: list[str]) -> None:
    verdict = judge_job(lines)
    evidence = select_evidence(io.BytesIO("\n".join(lines).encode()), verdict)
    assert bool(verdict.cause) == (verdict.status == FAILED) == bool(evidence)
    assert (verdict.decisive is None) == (verdict.status == UNKNOWN)


@pytest.mark.parametrize("text", ["a", "a:", "error: ", "##[error]", "make: *** ", "\r", "1:1: "])
def test_endless_lines_are_only_long(text: str) -> None:
    assert judge(text * 100_000).status in (FAILED, UNKNOWN)
    assert judge("\n".join(itertools.repeat(text, 20_000))).status in (FAILED, UNKNOWN)
