"""What looking for a culprit costs in a long history: `python -m bench.long_repository DIR`.

A repository of 60,000 commits, of which 300 came after the last green run; one failing test whose
stack leads into it. Measured is the CPU of `interlock analyze` and the git it starts, the first
time and again.
"""

import json
import os
import resource
import subprocess
import sys
from pathlib import Path

from bench.history import make

COMMITS = 60_000
NEW_COMMITS = 300
TIMEOUT_S = 600.0
_REPORT = """<testsuite name="night"><testcase classname="tests.test_part" name="test_value">
<failure type="AssertionError" message="assert 7 == {value}">Traceback (most recent call last):
  File "tests/test_part.py", line 9, in test_value
    check()
  File "{path}", line 8, in check
    assert value_7 == {value}
AssertionError: assert 7 == {value}</failure></testcase></testsuite>
"""


def measure(workdir: Path, commits: int = COMMITS) -> dict[str, float]:
    """CPU seconds of a first and a second analysis, each of a new suite."""
    repository = workdir / "long.git"
    if not repository.exists():
        make(repository, commits)
    git = ["git", "-C", str(repository)]
    named = [*git, "log", "-1", "--name-only", "--format=", "HEAD~100"]
    path = subprocess.run(named, check=True, stdout=subprocess.PIPE).stdout.decode().split()[0]
    (workdir / "night.xml").write_text(_REPORT.format(path=path, value=commits - 100))
    return {name: _analyse(workdir, repository) for name in ("first_s", "again_s")}


def _analyse(workdir: Path, repository: Path) -> float:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    words = ["analyze", "night.xml", "--new", "--json", "--repo", f"long={repository.name}"]
    done = subprocess.run(
        [sys.executable, "-m", "interlock", *words, "--last-green", f"HEAD~{NEW_COMMITS}"],
        cwd=workdir,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        stdout=subprocess.PIPE,
        timeout=TIMEOUT_S,
        check=False,
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if json.loads(done.stdout)["summary"]["failures"] != 1:
        raise ValueError("the failure was not analysed")
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


if __name__ == "__main__":
    print(json.dumps(measure(Path(sys.argv[1]))))
