"""Several jobs write into one memory at once, and some of them are killed."""

import signal
import subprocess
import sys
from pathlib import Path

from interlock_history.memory import History
from interlock_history.store import FolderStore

WRITER = """
import sys
from pathlib import Path
from interlock_rca.ci_run import CiRun
from interlock_history.segment import make_segment
from interlock_history.store import FolderStore

store, who = FolderStore(Path(sys.argv[1])), sys.argv[2]
for number in range(int(sys.argv[3])):
    run = CiRun(run=str(number), shard=f"{who}/9", commit=f"{number:040x}", at=float(number))
    names = {f"part{who}::test_{n}": (1, 30) for n in range(200)}
    store.add(make_segment(run, names))
    print(number, flush=True)
"""


def start(folder: Path, who: str, number: int) -> "subprocess.Popen[bytes]":
    command = [sys.executable, "-c", WRITER, str(folder), who, str(number)]
    return subprocess.Popen(command, stdout=subprocess.PIPE)


def test_two_writers_at_once_and_one_that_is_killed(tmp_path: Path) -> None:
    first, second = start(tmp_path, "1", 12), start(tmp_path, "2", 12)
    victim = start(tmp_path, "3", 10_000)
    assert victim.stdout is not None
    for _ in range(3):
        victim.stdout.readline()
    victim.send_signal(signal.SIGKILL)
    output = sum(1 for _ in victim.stdout) + 3
    victim.wait()
    assert (first.wait(), second.wait()) == (0, 0)
    for each in (first, second, victim):
        assert each.stdout is not None
        each.stdout.close()
    memory = History(FolderStore(tmp_path))
    assert not memory.problems
    [lane] = memory.index.list_lanes()
    rows = dict(memory.iterate_rows(lane))
    for who in "12":
        row = rows[f"part{who}::test_7"]
        assert row[:12] == b"\x01" * 12
    # Everything that it said it had written is there.
    assert rows["part3::test_7"].count(1) >= output
    # What it had staged is removed by whoever writes next.
    start(tmp_path, "4", 1).communicate()
    assert not list(tmp_path.rglob("*.new"))
