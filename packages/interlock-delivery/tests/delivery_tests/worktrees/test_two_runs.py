"""Test that two runs on one repository do not affect each other."""

import os
import subprocess
import sys
from pathlib import Path

from delivery_tests.world.workspace_bench import Workbench
from tests.world.places import PYTHONPATH

_RUN = """
import sys
from pathlib import Path
from interlock_delivery.worktrees.merge_branch import TaskChange
from interlock_delivery.worktrees.workspace import DeliveryWorkspace
source, home, slug = sys.argv[1:]
opened = DeliveryWorkspace.create(Path(source), Path(home), slug, clock=lambda: 1_700_001_000)
with opened as workspace:
    print("ready", flush=True)
    sys.stdin.readline()
    for number in range(5):
        tree = workspace.open_tree(f"task-{number}")
        (tree.root / "a.txt").write_text(f"{slug} {number}\\n")
        taken = tree.snapshot("Work")
        assert taken.violations == (), taken.violations
        change = TaskChange(task_id=str(number), dispatch_id="1", sha=taken.sha, base=tree.base)
        workspace.merge_branch.accept(workspace.merge_branch.propose(change))
        said = workspace.merge_branch.publish()
        assert said.is_done, said.sentence
"""


def test_two_processes_do_not_disturb_each_other(tmp_path: Path) -> None:
    bench = Workbench(tmp_path)
    before = bench.facts()
    slugs = ("left", "right", "third")
    running = [
        subprocess.Popen(
            [sys.executable, "-c", _RUN, str(bench.source.folder), str(tmp_path / slug), slug],
            env={**os.environ, "PYTHONPATH": PYTHONPATH},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        for slug in slugs
    ]
    for child in running:
        assert child.stdout is not None
        assert child.stdout.readline() == b"ready\n"
    for child in running:
        assert child.stdin is not None
        child.stdin.write(b"go\n")
        child.stdin.flush()
    ends = [(child.communicate(timeout=120), child.returncode) for child in running]
    assert [code for _, code in ends] == [0, 0, 0], ends
    after = bench.facts()
    refs = [row for row in after.pop("REFS").split("\n") if "interlock" not in row]
    assert "\n".join(refs) == before.pop("REFS")
    assert after == before
    for slug in slugs:
        assert bench.source.git("show", f"interlock/{slug}:a.txt") == f"{slug} 4"
        assert bench.source.git("rev-list", "--count", f"interlock/{slug}") == "6"
    bench.source.git("fsck", "--strict")
