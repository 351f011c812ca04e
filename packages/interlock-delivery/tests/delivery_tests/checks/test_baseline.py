"""Test that the baseline is taken once, again for other commands, and continued after a crash."""

import asyncio
import os
import signal
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from delivery_tests.checks.test_run import site
from interlock.system.clock import SystemClock
from interlock.system.errors import SourceError
from interlock_delivery.checks.baseline import (
    Baseline,
    build_key,
    read_baseline,
    take_baseline,
    write_baseline,
)
from interlock_delivery.checks.records import (
    Check,
    CheckCell,
    CheckResult,
    Environment,
    build_matrix,
)
from tests.world.places import PYTHONPATH, ROOT

COMMIT = "a" * 40


def counting(name: str, exit_code: int = 0, timeout: float = 60.0) -> Check:
    """Return a check that leaves a line whenever it runs."""
    return Check(name, ("sh", "-c", "echo $0 >>runs", name), "", exit_code, timeout)


def runs(folder: Path) -> list[str]:
    file = folder / "runs"
    return sorted(file.read_text().split()) if file.exists() else []


async def take(folder: Path, *checks: Check, commit: str = COMMIT) -> tuple[CheckResult, ...]:
    cells = build_matrix(checks)
    return await take_baseline(folder / "home", commit, cells, site(folder), SystemClock())


async def test_it_is_taken_once(tmp_path: Path) -> None:
    first = await take(tmp_path, counting("a"), counting("b", exit_code=1))
    again = await take(tmp_path, counting("a"), counting("b", exit_code=1))
    assert runs(tmp_path) == ["a", "b"]
    assert first == again
    assert [each.passed for each in first] == [True, False]


async def test_a_changed_command_alone_is_taken_anew(tmp_path: Path) -> None:
    await take(tmp_path, counting("a"), counting("b"))
    changed = msgspec.structs.replace(counting("b"), command=("sh", "-c", "exit 5"))
    results = await take(tmp_path, counting("a"), changed)
    assert (runs(tmp_path), results[1].exit_code) == (["a", "b"], 5)


async def test_another_commit_is_taken_anew(tmp_path: Path) -> None:
    await take(tmp_path, counting("a"))
    await take(tmp_path, counting("a"), commit="b" * 40)
    assert runs(tmp_path) == ["a", "a"]


async def test_what_could_not_run_is_tried_again(tmp_path: Path) -> None:
    absent = Check("x", ("no-such-tool",))
    (first,) = await take(tmp_path, absent)
    assert first.unavailable
    assert read_baseline(tmp_path / "home", COMMIT).rows == ()


def test_all_that_matters_is_in_the_key() -> None:
    check = Check("a", ("x",), "", 0, 1.0)
    cells = [
        CheckCell(check, Environment("e")),
        CheckCell(check, Environment("f")),
        CheckCell(check, Environment("e", ("x",))),
        CheckCell(Check("b", ("x",), "", 0, 1.0), Environment("e")),
        CheckCell(Check("a", ("x", ""), "", 0, 1.0), Environment("e")),
        CheckCell(Check("a", ("x",), "", 1, 1.0), Environment("e")),
        CheckCell(Check("a", ("x",), "", 0, 2.0), Environment("e")),
    ]
    assert len({build_key(cell) for cell in cells}) == len(cells)


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{",
        b"\xff",
        b"[]",
        b'{"schema_version":2,"commit":"' + COMMIT.encode() + b'"}',
        b'{"schema_version":1,"commit":"b","rows":[]}',
        b"[" * 200_000,
    ],
)
async def test_a_file_that_cannot_be_understood_is_taken_for_none(
    content: bytes, tmp_path: Path
) -> None:
    home = tmp_path / "home"
    home.mkdir()
    (home / f"baseline-{COMMIT}.json").write_bytes(content)
    await take(tmp_path, counting("a"))
    assert runs(tmp_path) == ["a"]
    assert len(read_baseline(home, COMMIT).rows) == 1


@pytest.mark.parametrize("commit", ["", "../x", "HEAD~1", "a" * 65, "ä", "a\0"])
def test_a_commit_that_is_none_is_refused(commit: str, tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="not a commit"):
        read_baseline(tmp_path, commit)


def test_a_home_that_cannot_be_written_is_said(tmp_path: Path) -> None:
    (tmp_path / "home").write_text("a file")
    with pytest.raises(SourceError, match="cannot be written"):
        write_baseline(tmp_path / "home", Baseline(1, COMMIT))


CRASH = """
import asyncio, os, signal, sys
from pathlib import Path
from delivery_tests.checks.test_baseline import COMMIT, counting
from delivery_tests.checks.test_run import site
from interlock_delivery.checks.records import build_matrix
from interlock.system.clock import SystemClock
from interlock_delivery.checks.baseline import take_baseline

folder = Path(sys.argv[1])
die = lambda cell, result: result.check == "b" and os.kill(os.getpid(), signal.SIGKILL)
cells, clock = build_matrix([counting(name) for name in "abc"]), SystemClock()
asyncio.run(take_baseline(folder / "home", COMMIT, cells, site(folder), clock, on_result=die))
"""


def test_after_a_crash_it_goes_on_where_it_was(tmp_path: Path) -> None:
    root = ROOT
    environ = {**os.environ, "PYTHONPATH": PYTHONPATH}
    argv = [sys.executable, "-c", CRASH, str(tmp_path)]
    died = subprocess.run(argv, cwd=root, env=environ, check=False)
    assert died.returncode == -signal.SIGKILL
    assert runs(tmp_path) == ["a", "b"]
    asyncio.run(take(tmp_path, *(counting(name) for name in "abc")))
    assert runs(tmp_path) == ["a", "b", "c"]
    assert [each.name for each in (tmp_path / "home").iterdir()] == [f"baseline-{COMMIT}.json"]
