"""Test the whole way: a baseline, a developer's change, our own checks, the verdict, the claims."""

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from delivery_tests.checks.test_run import site
from interlock.system.clock import SystemClock
from interlock_delivery.checks.baseline import take_baseline
from interlock_delivery.checks.claims import ClaimRow, compare_claims
from interlock_delivery.checks.records import Check, CheckResult, build_matrix
from interlock_delivery.checks.run import run_checks
from interlock_delivery.checks.verdict import CheckVerdict, compare_with_baseline

TESTS = """import unittest
from calc import add

class Calc(unittest.TestCase):
    def test_small(self): self.assertEqual(add(1, 2), 3)
    def test_none(self): self.assertEqual(add(0, 0), 0)
    def test_broken_before(self): self.assertEqual(add(1, 1), 3)
"""
CHECKS = (
    Check("unit tests", (sys.executable, "-m", "unittest", "test_calc")),
    Check("build", ("sh", "build.sh")),
)


def work(folder: Path) -> None:
    (folder / "calc.py").write_text("def add(a, b):\n    return a + b\n")
    (folder / "test_calc.py").write_text(TESTS)
    (folder / "build.sh").write_text("echo built\n")


def honest(folder: Path) -> None:
    (folder / "calc.py").write_text("def add(a, b):\n    return b + a\n")


def breaks_another(folder: Path) -> None:
    (folder / "calc.py").write_text("def add(a, b):\n    return a + b or 1\n")


def repairs_one_and_breaks_another(folder: Path) -> None:
    (folder / "calc.py").write_text("def add(a, b):\n    return 3\n")


def deletes_what_fails(folder: Path) -> None:
    lines = TESTS.split("\n")
    (folder / "test_calc.py").write_text("\n".join(line for line in lines if "broken" not in line))


def skips_what_fails(folder: Path) -> None:
    marked = TESTS.replace("    def test_broken", "    @unittest.skip('x')\n    def test_broken")
    (folder / "test_calc.py").write_text(marked)


def hollows_out_the_tests(folder: Path) -> None:
    (folder / "test_calc.py").write_text("print('all is well')\n")


def deletes_the_build(folder: Path) -> None:
    (folder / "build.sh").unlink()


def breaks_the_build(folder: Path) -> None:
    (folder / "build.sh").write_text("exit 2\n")


async def _judged(
    folder: Path, change: Callable[[Path], None]
) -> tuple[CheckVerdict, tuple[CheckResult, ...]]:
    work(folder)
    cells, where = build_matrix(CHECKS), site(folder)
    before = await take_baseline(folder / "home", "a" * 40, cells, where, SystemClock())
    change(folder)
    now = await run_checks(cells, site(folder), SystemClock())
    return compare_with_baseline(now, before), now


@pytest.mark.parametrize(
    ("change", "kinds"),
    [
        (honest, ("old_failure", "passing")),
        (breaks_another, ("new_failure", "passing")),
        (repairs_one_and_breaks_another, ("new_failure", "passing")),
        (deletes_what_fails, ("fewer_tests", "passing")),
        (skips_what_fails, ("fewer_tests", "passing")),
        (hollows_out_the_tests, ("fewer_tests", "passing")),
        (deletes_the_build, ("old_failure", "new_failure")),
        (breaks_the_build, ("old_failure", "new_failure")),
    ],
)
async def test_changes(
    change: Callable[[Path], None], kinds: tuple[str, ...], tmp_path: Path
) -> None:
    verdict, now = await _judged(tmp_path, change)
    assert tuple(row.kind for row in verdict.rows) == kinds
    assert verdict.ok == (change is honest)
    result = [ClaimRow("unit_tests", "native", "pass"), ClaimRow("Build", "", "pass")]
    found = [claim.found for claim in compare_claims(result, now, CHECKS)]
    assert found == ["verified" if each.passed else "refuted" for each in now]
