"""Test that the next process finishes a run that was killed at any step."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

from delivery_tests.world import kill_delivery
from delivery_tests.world.workspace_bench import Workbench
from interlock.system.git import ignore_step
from tests.world.places import PYTHONPATH


def facts(folder: Path) -> list[str]:
    """Return everything about the user's repository afterwards, down to the hashes."""
    words = [("for-each-ref",), ("status", "--porcelain"), ("log", "--format=%H", "interlock/plan")]
    return [
        subprocess.run(
            ["git", *asked], cwd=folder / "shop", capture_output=True, text=True, check=True
        ).stdout
        for asked in words
    ]


def test_killed_at_many_steps(tmp_path: Path) -> None:
    """Test every seventeenth step, since all of them take minutes."""
    bench = Workbench(tmp_path)
    bench.source.write({".env": "x\n"})
    whole = tmp_path / "whole"
    shutil.copytree(bench.source.folder, whole / "shop")
    kill_delivery.run(whole, ignore_step)
    ran = subprocess.run(
        [sys.executable, kill_delivery.__file__, str(tmp_path), "5", "17"],
        env={**os.environ, "PYTHONPATH": PYTHONPATH},
        capture_output=True,
        text=True,
        check=True,
        timeout=500,
    )
    rows = [json.loads(line) for line in ran.stdout.splitlines()]
    assert len(rows) > 5
    assert [died for _, died, _ in rows] == [-9] * (len(rows) - 1) + [0], ran.stderr
    assert [(number, ended) for number, _, ended in rows if ended] == [], ran.stderr
    wrong = [number for number, _, _ in rows if facts(tmp_path / f"run-{number}") != facts(whole)]
    assert wrong == []
