"""Death at every moment: before and after every commit, ask, settling and reply."""

import json
import subprocess
import sys
from pathlib import Path

from tests.world.places import ROOT


def test_a_run_that_dies_at_any_moment_comes_to_the_same_end(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tests.world.kill_run", str(tmp_path)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert report["wrong"] == []
    assert report["expected"][1:] == [[], 0]
    assert report["moments"] > 100
    assert report["deaths"] > 5
