"""Test checks as real processes, misbehaving ones among them, and their kept output."""

import asyncio
import os
import resource
import sys
from collections.abc import Mapping
from itertools import count
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock.carriers.cli.ownership import TAGS, ProcessTag
from interlock.system.clock import Clock, SystemClock
from interlock.system.errors import SourceError
from interlock.system.process_table import list_processes
from interlock.system.process_tree import OutputLine
from interlock_delivery.checks.records import (
    NATIVE,
    Check,
    CheckCell,
    CheckResult,
    Environment,
    build_matrix,
)
from interlock_delivery.checks.run import (
    CheckEnvironment,
    CheckLimits,
    CheckOutput,
    OutputTail,
    run_checks,
)
from tests.world.carrier_bench import appears
from tests.world.leaping_clock import LeapClock
from tests.world.rogue import WORKSPACE

_NUMBERS = count(1)
ENVIRON = {"PATH": os.environ["PATH"], "HOME": "/none"}
QUICK = CheckLimits(grace=0.05)


def site(folder: Path, environ: Mapping[str, str] = ENVIRON) -> CheckEnvironment:
    return CheckEnvironment(
        folder, environ, ProcessTag(WORKSPACE, "checks", str(next(_NUMBERS)), f"n{os.getpid()}")
    )


def cell(*command: str, timeout: float = 60.0, expected: int = 0) -> CheckCell:
    return CheckCell(Check("c", command, "", expected, timeout), NATIVE)


def shell(text: str, timeout: float = 60.0) -> CheckCell:
    return cell("sh", "-c", text, timeout=timeout)


def left_of(where: CheckEnvironment) -> list[str]:
    mark = f"{where.tag}."
    return [
        seen.name
        for seen in list_processes(TAGS).values()
        if any(tag.startswith(mark) for tag in seen.tags) and seen.alive
    ]


async def one(
    what: CheckCell, folder: Path, bounds: CheckLimits = QUICK, clock: Clock | None = None
) -> CheckResult:
    where = site(folder)
    (result,) = await run_checks([what], where, clock or SystemClock(), limits=bounds)
    assert left_of(where) == []
    return result


async def test_it_passes_with_its_own_exit_code(tmp_path: Path) -> None:
    result = await one(shell("echo out; echo err >&2; pwd; exit 0"), tmp_path)
    assert (result.passed, result.exit_code, result.note) == (True, 0, "")
    assert result.output_tail == f"out\n{tmp_path}\nerr\n"
    assert (result.output_head, result.left_out) == ("", 0)
    result = await one(cell("sh", "-c", "exit 3", expected=3), tmp_path)
    assert (result.passed, result.exit_code) == (True, 3)
    result = await one(cell("true", expected=3), tmp_path)
    assert (result.passed, result.exit_code) == (False, 0)


async def test_it_sees_the_environment_it_was_given(tmp_path: Path) -> None:
    where = site(tmp_path, {**ENVIRON, "PORT": "4100"})
    (result,) = await run_checks([shell("echo $PORT $PWD $USER")], where, SystemClock())
    assert result.output_tail == f"4100 {tmp_path}\n"


async def test_the_folder_it_is_told_is_the_one_it_is_in(tmp_path: Path) -> None:
    where = site(tmp_path, {**ENVIRON, "PWD": "/elsewhere"})
    (result,) = await run_checks([cell("env")], where, SystemClock())
    assert f"PWD={tmp_path}" in result.output_tail.split("\n")


async def test_what_it_says_when_it_is_ended_does_not_count(tmp_path: Path) -> None:
    text = "trap 'echo 3 passed in 0.1s; exit 0' TERM; echo on; while :; do sleep 0.01; done"
    result = await one(shell(text, timeout=0.3), tmp_path, CheckLimits(grace=5.0))
    assert (result.output_tail, result.test_count) == ("on\n", None)


async def test_one_that_hangs_is_ended_and_told(tmp_path: Path) -> None:
    result = await one(shell("echo begun; exec sleep 300", timeout=0.3), tmp_path)
    assert (result.passed, result.timed_out, result.unavailable) == (False, True, False)
    assert result.output_tail == "begun\n"
    assert result.note == "it was stopped after 0.3 s"


async def test_one_that_exits_well_when_it_is_ended_did_not_pass(tmp_path: Path) -> None:
    result = await one(
        shell("trap 'exit 0' TERM; while :; do sleep 0.01; done", timeout=0.3), tmp_path
    )
    assert (result.passed, result.timed_out) == (False, True)


@pytest.mark.parametrize(
    "text",
    [
        "trap '' TERM; while :; do sleep 300; done",
        "(trap '' TERM; sleep 300) & sleep 300",
        "exec >&- 2>&-; sleep 300",
    ],
    ids=["ignores TERM", "has a child that ignores TERM", "closes its pipes"],
)
async def test_one_that_will_not_end_is_killed_as_a_tree(text: str, tmp_path: Path) -> None:
    result = await one(shell(text, timeout=0.3), tmp_path)
    assert (result.passed, result.timed_out) == (False, True)


async def test_a_daemon_is_ended_with_a_check_that_passed(tmp_path: Path) -> None:
    result = await one(shell("setsid sleep 300 >/dev/null 2>&1 & echo ok"), tmp_path)
    assert result.passed
    assert result.note.startswith("it left 1 running, stopped with it: s")


async def test_closing_stdout_is_no_fault(tmp_path: Path) -> None:
    assert (await one(shell("exec >&-; exit 0"), tmp_path)).passed


async def test_one_that_wants_to_read_gets_the_end_at_once(tmp_path: Path) -> None:
    result = await one(shell("read line || echo end"), tmp_path)
    assert (result.passed, result.output_tail) == (True, "end\n")


async def test_a_flood_is_bounded_and_its_end_is_kept(tmp_path: Path) -> None:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    text = "echo first; head -c 1000000000 /dev/zero; echo; echo '7 passed in 0.1s'"
    bounds = CheckLimits(most_output=2_000_000_000)
    result = await one(shell(text, timeout=120.0), tmp_path, bounds)
    assert result.passed
    assert result.output_head.startswith("first\n")
    assert result.output_tail.endswith("7 passed in 0.1s\n")
    assert result.test_count == 7
    assert len(result.output_head) + len(result.output_tail) < 200_000
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 60_000


async def test_a_flood_past_the_bound_ends_it(tmp_path: Path) -> None:
    bounds = CheckLimits(most_output=1_000_000, grace=0.05)
    result = await one(shell("yes 0123456789"), tmp_path, bounds)
    assert (result.passed, result.timed_out) == (False, False)
    assert result.note == "it was stopped after printing more than 1,000,000 bytes"
    assert result.left_out > 0


async def test_a_flood_on_stderr_is_bounded(tmp_path: Path) -> None:
    result = await one(shell("head -c 50000000 /dev/zero >&2; echo why >&2; exit 1"), tmp_path)
    assert result.output_tail.endswith("why\n")
    assert len(result.output_tail) < 70_000


async def test_bytes_that_are_no_text_become_text(tmp_path: Path) -> None:
    result = await one(shell(r"printf '\377\376\000a\033[31mred\033[0m\r\n'"), tmp_path)
    assert result.output_tail == "\ufffd\ufffd\ufffdared\n"


async def test_a_command_that_is_not_there_is_unavailable(tmp_path: Path) -> None:
    result = await one(cell("no-such-tool-here"), tmp_path)
    assert (result.passed, result.unavailable, result.exit_code) == (False, True, None)
    assert "cannot be started" in result.note
    result = await one(shell("no-such-tool-here"), tmp_path)
    assert (result.unavailable, result.exit_code) == (True, 127)


async def test_a_script_of_the_work_that_is_not_there_is_a_failure(tmp_path: Path) -> None:
    result = await one(cell("./run-tests"), tmp_path)
    assert (result.passed, result.unavailable, result.exit_code) == (False, False, 127)
    result = await one(cell("bash", "tools/run.sh"), tmp_path)
    assert (result.unavailable, result.note) == (False, "tools/run.sh is missing from the work")
    (tmp_path / "run-tests").write_text("#!/bin/sh\n")
    result = await one(cell("./run-tests"), tmp_path)
    assert (result.unavailable, result.exit_code) == (False, 126)


async def test_a_script_whose_interpreter_is_not_there_is_unavailable(tmp_path: Path) -> None:
    script = tmp_path / "run-tests"
    script.write_text("#!/no/such/interpreter\n")
    script.chmod(0o755)
    assert (await one(cell("./run-tests"), tmp_path)).unavailable


async def test_a_command_expected_not_to_be_found_passes(tmp_path: Path) -> None:
    assert (await one(cell("sh", "-c", "no-such-tool", expected=127), tmp_path)).passed


def _in(prefix: tuple[str, ...], *command: str) -> CheckCell:
    return CheckCell(Check("c", command), Environment("box", prefix))


async def test_an_environment_that_does_not_answer_is_unavailable(tmp_path: Path) -> None:
    result = await one(_in(("no-such-docker", "exec", "app"), "true"), tmp_path)
    assert result.unavailable
    broken = ("sh", "-c", "echo no such container >&2; exit 1", "box")
    result = await one(_in(broken, "pytest"), tmp_path)
    assert (result.unavailable, result.note) == (True, "the environment box does not respond")
    assert "no such container" in result.output_tail


async def test_a_failure_in_an_environment_that_answers_is_a_failure(tmp_path: Path) -> None:
    result = await one(_in(("env", "LEVEL=3"), "sh", "-c", "exit $LEVEL"), tmp_path)
    assert (result.unavailable, result.exit_code) == (False, 3)


async def test_an_environment_is_asked_once_in_a_round(tmp_path: Path) -> None:
    box = Environment("box", ("sh", "-c", "echo $1 >>asked; exit 9", "box"))
    cells = build_matrix([Check(name, ("probe-me", name)) for name in "abc"], [box])
    results = await run_checks(cells, site(tmp_path), SystemClock(), limits=CheckLimits(at_once=3))
    assert [each.unavailable for each in results] == [True] * 3
    assert sorted((tmp_path / "asked").read_text().split()) == ["probe-me"] * 3 + ["true"]


async def test_a_folder_that_is_not_there_is_said(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match=r"the folder .* does not exist"):
        await one(cell("true"), tmp_path / "none")
    (tmp_path / "file").write_text("")
    with pytest.raises(SourceError, match=r"the folder .* does not exist"):
        await one(cell("true"), tmp_path / "file")


async def test_a_folder_that_vanishes_ends_the_round(tmp_path: Path) -> None:
    folder = tmp_path / "work"
    folder.mkdir()
    cells = [shell("rmdir ../work"), cell("true")]
    with pytest.raises(SourceError, match="does not exist"):
        await run_checks(cells, site(folder), SystemClock())


async def test_a_nul_in_a_command_is_refused_without_a_process(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="cannot be started: embedded null byte"):
        await one(cell("echo", "a\0b"), tmp_path)


async def test_no_more_than_so_many_at_once_and_results_in_order(tmp_path: Path) -> None:
    text = "mkdir live.$0; set -- live.*; echo $#; sleep 0.05; rmdir live.$0"
    cells = [CheckCell(Check(str(n), ("sh", "-c", text, str(n))), NATIVE) for n in range(8)]
    received: list[str] = []
    where = site(tmp_path)
    results = await run_checks(
        cells,
        where,
        SystemClock(),
        limits=CheckLimits(at_once=2),
        on_result=lambda cell, result: received.append(result.check),
    )
    assert [each.check for each in results] == [str(n) for n in range(8)]
    assert sorted(received) == [str(n) for n in range(8)]
    assert max(int(each.output_tail) for each in results) <= 2
    with pytest.raises(SourceError, match="write 1 or more"):
        await run_checks(cells, where, SystemClock(), limits=CheckLimits(at_once=0))


async def test_cancelled_it_ends_all_its_checks_first(tmp_path: Path) -> None:
    where = site(tmp_path)
    cells = [shell(f"echo yes >begun{n}; exec sleep 300") for n in range(2)]
    work = run_checks(cells, where, SystemClock(), limits=CheckLimits(at_once=2, grace=0.05))
    task = asyncio.ensure_future(work)
    await appears(tmp_path / "begun0")
    await appears(tmp_path / "begun1")
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert left_of(where) == []


async def test_the_time_of_the_given_clock_counts(tmp_path: Path) -> None:
    clock = LeapClock()
    task = asyncio.ensure_future(
        one(shell("echo yes >begun; exec sleep 300", timeout=3_600.0), tmp_path, QUICK, clock)
    )
    await appears(tmp_path / "begun")
    clock.leap(3_601.0)
    result = await task
    assert (result.timed_out, result.seconds >= 3_600.0) == (True, True)


async def test_real_runners_are_counted(tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text(
        "import unittest\nclass T(unittest.TestCase):\n"
        "  def test_a(self): self.assertTrue(1)\n"
        "  def test_b(self): self.assertTrue(0)\n"
        "  @unittest.skip('later')\n  def test_c(self): pass\n"
    )
    result = await one(cell(sys.executable, "-m", "unittest"), tmp_path)
    assert (result.passed, result.test_count, result.failed_count) == (False, 2, 1)
    assert len(result.failed_tests) == 1
    command = (sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_it.py")
    result = await one(cell(*command), tmp_path)
    assert (result.passed, result.test_count, result.failed_count) == (False, 2, 1)
    assert "test_b" in result.failed_tests[0]


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


def printed(text: str, stderr: str = "") -> CheckOutput:
    keeper = OutputTail()
    for line in text.encode().split(b"\n"):
        keeper.take(OutputLine(line))
    return keeper.finish(stderr.encode())


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
    assert keeper.finish(b"why").tail == "half\nwhy"


@given(st.lists(st.binary(max_size=30).map(lambda b: b.replace(b"\n", b"")), max_size=40))
def test_both_ends_are_kept_and_the_rest_is_counted(lines: list[bytes]) -> None:
    keeper = OutputTail(head=40, tail=60)
    for line in lines:
        keeper.take(OutputLine(line))
    found = keeper.finish(b"")
    size = sum(len(line) + 1 for line in lines)
    assert found.left_out == max(0, size - 100)
    whole = b"".join(line + b"\n" for line in lines)
    if not found.left_out:
        assert found.head == ""
    if whole.isascii() and not set(whole) & set(range(32)) - {9, 10} and 127 not in whole:
        assert whole.decode().endswith(found.tail)
        assert whole.decode().startswith(found.head)
