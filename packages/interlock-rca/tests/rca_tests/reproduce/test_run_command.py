"""Runs of real commands: what they printed, how they ended, and what they leave behind."""

import time
from pathlib import Path

import psutil
import pytest

from interlock_rca.records import CommandRun, PrintedFailure
from interlock_rca.reproduce.run_command import RunJudge, build_environment, run_command
from tests.world.command_line import until

TAG = "proof:1:0:a"


def run(script: str, folder: Path, timeout: float = 60.0) -> CommandRun:
    return run_command(
        script,
        folder,
        {"PATH": "/usr/bin:/bin"},
        TAG,
        commit="c1",
        command=script,
        timeout=timeout,
    )


def test_output_exit_code_and_counts_are_kept(tmp_path: Path) -> None:
    ran = run("echo one; echo '1 failed, 2 passed in 0.1s' >&2; echo last; exit 3", tmp_path)
    assert (ran.exit_code, ran.tests, ran.stopped) == (3, 3, "")
    assert ran.tail == "one\n1 failed, 2 passed in 0.1s\nlast"


def test_a_command_that_hangs_and_its_daemons_are_ended(tmp_path: Path) -> None:
    pids = tmp_path / "pids"
    script = f"setsid sleep 300 & echo $! > {pids}; sleep 300 & echo $! >> {pids}; wait"
    ran = run(script, tmp_path, timeout=0.5)
    assert (ran.timed_out, ran.exit_code) == (True, None)
    assert ran.stopped == "it was stopped after 0.5 s"
    left = [int(each) for each in pids.read_text().split()]
    assert len(left) == 2
    until(lambda: not any(psutil.pid_exists(each) for each in left), "the daemons' end")


def test_a_daemon_that_outlives_its_command_is_ended_with_it(tmp_path: Path) -> None:
    pids = tmp_path / "pids"
    before = time.monotonic()
    ran = run(f"setsid sleep 300 > /dev/null 2>&1 & echo $! > {pids}", tmp_path)
    assert (ran.exit_code, ran.stopped) == (0, "")
    until(lambda: not psutil.pid_exists(int(pids.read_text())), "the daemon's end")
    assert time.monotonic() - before < 200


def ran(
    code: int | None,
    tests: int | None = None,
    failed: str = "",
    kind: str = "",
    *,
    stopped: str = "",
    timed_out: bool = False,
) -> CommandRun:
    return CommandRun(
        commit="c1",
        command="x",
        at=0.0,
        exit_code=code,
        tests=tests,
        failed=(PrintedFailure(failed, kind),) if failed else (),
        stopped=stopped,
        timed_out=timed_out,
    )


FAILING = ran(1, 1, "test_a", "AssertionError")


@pytest.mark.parametrize(
    ("first", "then", "outcome", "why"),
    [
        (FAILING, ran(0, 1), "pass", ""),
        (FAILING, ran(1, 1, "test_a", "AssertionError"), "fail", ""),
        (FAILING, ran(125), "skip", "the command says so (exit code 125)"),
        (FAILING, ran(127), "skip", "the command could not be run (exit code 127)"),
        (FAILING, ran(4), "skip", "no test ran (exit code 4)"),
        (FAILING, ran(5, 0), "skip", "no test ran (exit code 5)"),
        (FAILING, ran(0, 0), "skip", "no test ran"),
        (
            FAILING,
            ran(1, 1, "test_a", "ImportError"),
            "skip",
            "it failed with ImportError, not with AssertionError",
        ),
        (FAILING, ran(None, stopped="the set-up failed with exit code 2"), "skip", None),
        (FAILING, ran(None, stopped="it was stopped", timed_out=True), "skip", "it was stopped"),
        # Nothing counted at the failing commit: then its exit code is all there is.
        (ran(2), ran(2), "fail", ""),
        (ran(2), ran(0), "pass", ""),
        # The failure is that it hangs.
        (
            ran(None, stopped="late", timed_out=True),
            ran(None, stopped="late", timed_out=True),
            "fail",
            "",
        ),
        (
            ran(None, stopped="late", timed_out=True),
            ran(1),
            "skip",
            "it did not hang, but failed (exit code 1)",
        ),
    ],
)
def test_a_run_is_judged_by_how_the_failure_looked_first(
    first: CommandRun, then: CommandRun, outcome: str, why: str | None
) -> None:
    judge = RunJudge("test_a")
    assert judge.judge(first)[0] == "fail"
    found = judge.judge(then)
    assert found[0] == outcome
    assert why is None or found[1] == why


def test_the_environment_does_not_lead_back_to_the_users_tree(tmp_path: Path) -> None:
    given = {
        "GIT_DIR": "/home/u/shop/.git",
        "PYTHONPATH": "/home/u/shop/src:/home/u/shop:/home/u/shopping:/opt",
        "HOME": "/home/u",
    }
    assert build_environment(given, "/home/u/shop", tmp_path) == {
        "PYTHONPATH": f"{tmp_path}/src:{tmp_path}:/home/u/shopping:/opt",
        "HOME": "/home/u",
        "PYTHONDONTWRITEBYTECODE": "1",
    }
