"""What an epic costs while no session works: a restart, and a day of waiting for a human.

A restart is the time from the end of one session to the start of the next.
Sessions are a shell script that notes when it starts and ends, so the gap between the two is ours
alone: hearing the end, keeping the checkpoint, comparing git, two commits, the next start. Run as
`python -m bench.epic_restart [SESSIONS]`.
"""

import heapq
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from itertools import count
from pathlib import Path

from interlock.carriers.contract import Ask, Session
from interlock.carriers.human import HumanCarrier
from interlock.journal.mailbox import Mailbox

_SESSION = """#!/bin/sh
date +%s.%N >> starts
n=$(wc -l < starts)
if [ "$n" -gt {many} ]; then echo SAGE_SIGNAL:EPIC_COMPLETE:bench:success
else echo "SAGE_SIGNAL:CHECKPOINT:WRITE:bench:1-1:phase:$n"; fi
date +%s.%N >> ends
"""
_IGNORED = "starts\nends\n.interlock/\n.sage/\n"
TARGET = 0.2


def gaps(many: int) -> list[float]:
    """Seconds between the sessions of one epic."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "bench.md").write_text("# Epic bench: restarts\n## Story 1.1: one\n")
        (folder / ".gitignore").write_text(_IGNORED)
        script = folder / "session"
        script.write_text(_SESSION.format(many=many))
        script.chmod(0o755)
        who = ("-c", "user.name=bench", "-c", "user.email=bench@example.org")
        for words in (("init", "-q"), ("add", "-A"), (*who, "commit", "-q", "-m", "one")):
            subprocess.run(["git", *words], cwd=folder, check=True)
        command = [sys.executable, "-m", "interlock", "epic", "run", "bench.md"]
        command += ["--agent", f"exec:{script}", "--max-cycles", str(many + 1), "--json"]
        subprocess.run(command, cwd=folder, check=True, capture_output=True)
        starts, ends = (
            [float(line) for line in (folder / each).read_text().split()]
            for each in ("starts", "ends")
        )
    return [start - end for start, end in zip(starts[1:], ends, strict=False)]


class Leaping:
    """A clock whose time passes as fast as somebody looks."""

    def __init__(self) -> None:
        self.time = 0.0
        self._timers: list[tuple[float, int, Callable[[], None]]] = []
        self._numbers = count()

    def now(self) -> float:
        return self.time

    def call_at(self, when: float, callback: Callable[[], None]) -> Callable[[], None]:
        heapq.heappush(self._timers, (when, next(self._numbers), callback))
        return lambda: None

    def leap(self) -> None:
        self.time, _, callback = heapq.heappop(self._timers)
        callback()


def waiting(hours: float = 24.0) -> tuple[int, float]:
    """How often the inbox is looked at in that time, and the seconds of CPU it takes."""
    with tempfile.TemporaryDirectory() as name:
        clock = Leaping()
        desk = HumanCarrier(Mailbox(Path(name) / "interlock.db", "answers"), clock)
        desk.start(Session(lambda _reply: None))
        began, looks = time.process_time(), 0
        desk.send([Ask(1, 1, "bench", "REVIEW", 1, "human", "?")])
        while clock.time < hours * 3600:
            clock.leap()
            looks += 1
        return looks, time.process_time() - began


def main(many: int = 40) -> None:
    found = sorted(gaps(many))
    middle, worst = statistics.median(found), found[int(len(found) * 0.95) - 1]
    sys.stdout.write(
        f"restart of an epic's session: median {middle * 1000:.0f} ms, "
        f"95 % within {worst * 1000:.0f} ms, {len(found)} restarts; "
        f"target {TARGET * 1000:.0f} ms: {'held' if middle < TARGET else 'missed'}\n"
    )
    looks, cpu = waiting()
    sys.stdout.write(
        f"24 h of waiting for an answer in the inbox: {looks:,} looks, {cpu:.2f} s CPU; "
        f"target 1 s: {'held' if cpu < 1 else 'missed'}\n"
    )


if __name__ == "__main__":
    main(*(int(word) for word in sys.argv[1:2]))
