"""Interlock with the carrier `file` and one-step cases: `latency` and `idle`.

latency: works until every case is answered by another process, then prints when each decision was
committed, by dispatch. idle: lets all cases wait and prints how much CPU that took.
"""

import argparse
import asyncio
import json
import sys
import time
from pathlib import Path

from interlock.carriers.files.file import FileCarrier
from interlock.engine.circuit_file import read_circuit
from interlock.journal.database import open_writer
from interlock.journal.journal import Journal, TurnWrites
from interlock.journal.runs import NewCase, NewRun, begin_run
from interlock.runtime.loop import RunLoop
from interlock.runtime.terms import RunTerms
from interlock.system.clock import SystemClock

CIRCUIT = """\
circuit: one
start: work
ends: {done: healthy, failed: unhealthy}
steps:
  work: {role: worker, timeout: 10m}
rules:
  - {id: worked, at: work, to: done}
otherwise: failed
"""
SETTLE_S = 2.0


class TimedJournal(Journal):
    """Notes the moment at which each decision is safe."""

    committed: dict[int, float]

    def commit(self, batch: TurnWrites) -> None:
        super().commit(batch)
        now = time.monotonic()
        self.committed.update(dict.fromkeys((entry.dispatch_id for entry in batch.entries), now))


async def idle(loop: RunLoop, seconds: float) -> float:
    """CPU in per cent of one core while nothing but waiting is done."""
    working = asyncio.create_task(loop.run())
    await asyncio.sleep(SETTLE_S)
    cpu, wall = time.process_time(), time.monotonic()
    await asyncio.sleep(seconds)
    share = (time.process_time() - cpu) / (time.monotonic() - wall)
    loop.stop()
    loop.stop()
    await working
    return share * 100


async def work(arguments: argparse.Namespace) -> object:
    circuit = read_circuit(CIRCUIT, "one.yaml").circuit
    clock = SystemClock()
    cases = [NewCase(f"C{number}", {}) for number in range(arguments.cases)]
    with open_writer(arguments.folder / "interlock.db") as connection:
        new = NewRun(
            circuit=circuit,
            text=CIRCUIT,
            source="bench",
            fingerprint="bench",
            options={},
            at=clock.now(),
        )
        run_id = begin_run(connection, new, cases)
        journal = TimedJournal(connection, run_id)
        journal.committed = {}
        desk = FileCarrier(arguments.folder / "runs", clock, mode=arguments.watch)
        loop = RunLoop(journal, RunTerms(circuit=circuit), {"worker": desk}, clock)
        loop.restore(connection)
        if arguments.job == "idle":
            return {"cpu_percent": await idle(loop, arguments.seconds)}
        await loop.run()
        return journal.committed


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("job", choices=("latency", "idle"))
    parser.add_argument("folder", type=Path)
    parser.add_argument("--watch", choices=("inotify", "poll"), required=True)
    parser.add_argument("--cases", type=int, required=True)
    parser.add_argument("--seconds", type=float, default=10.0)
    json.dump(asyncio.run(work(parser.parse_args())), sys.stdout)


if __name__ == "__main__":
    main()
