"""What a delivery of 200 tasks costs its coordinator: 16 slots, agents that answer in 0.1 s.

The agents are coroutines of this process that wait and write one file: what is measured is
Interlock, its git commands and its checks. `python -m bench.delivery` prints the numbers. CPU is
that of this process alone; git and the checks are its children, and counted apart.
"""

import asyncio
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import msgspec

from interlock.carriers.contract import Ask, Carrier, Reply
from interlock.carriers.function import AsyncHandler
from interlock.carriers.human import HumanCarrier
from interlock.engine.circuit import HUMAN
from interlock.journal.connection import Connection
from interlock.journal.database import open_writer
from interlock.journal.journal import Journal
from interlock.journal.mailbox import Mailbox
from interlock.journal.runs import NewRun, begin_run, find_run
from interlock.runtime.circuits import find_circuit
from interlock.runtime.loop import RunLoop
from interlock.runtime.session import RunSession
from interlock.runtime.terms import RunTerms
from interlock.system.clock import SystemClock
from interlock_delivery.application import Delivery
from interlock_delivery.config import DeliveryConfig
from interlock_delivery.plan.watch import build_cases, load_usable_plan
from interlock_delivery.steps import PROGRAMS

TASKS = 200
SLOTS = 16
ANSWERS_IN = 0.1
_LOOK = 0.01
"""Seconds between two looks at the slots."""
_TASK = """\
#### Task t{number}: Write file {number}

**Work**: Write a file called t{number}.txt that holds the word done and nothing else.

**Acceptance Criteria**:
- [ ] `cat t{number}.txt` prints `done`

**Blocked By**: none

**Required Reading**: README.md

"""
_HEAD = """\
# Files

## Verification Commands

| Check | Environment | Command | Exit Code | Purpose |
|---|---|---|---|---|
| There | ALL | `true` | 0 | it can be run |

### Phase 1: All

"""


class Looks(msgspec.Struct):
    """What was seen of the slots, look by look, until no new work waits for one."""

    busy: list[int] = []
    waiting: list[int] = []
    """Agents' work that waited for a slot at that moment."""


def measure(folder: Path, tasks: int, slots: int, answers_in: float) -> dict[str, float]:
    terms = _begin(folder, tasks)
    with open_writer(folder / "interlock.db") as connection:
        return asyncio.run(_worked(connection, folder, terms, slots, answers_in))


def _begin(folder: Path, tasks: int) -> DeliveryConfig:
    repo, plan = folder / "repo", folder / "plan.md"
    repo.mkdir()
    (repo / "README.md").write_text("Files.\n")
    who = ("-c", "user.name=ann", "-c", "user.email=ann@example.org")
    for words in (("init", "-q"), ("add", "-A"), (*who, "commit", "-q", "-m", "first")):
        subprocess.run(["git", *words], cwd=repo, check=True)
    plan.write_text(_HEAD + "".join(_TASK.format(number=number) for number in range(tasks)))
    terms = DeliveryConfig(
        plan=str(plan),
        source=str(repo),
        home=str(folder / "home"),
        slug="bench",
        secret="bench",
        workspace=f"bench{os.getpid()}",
    )
    bundle = find_circuit("delivery", folder)
    with open_writer(folder / "interlock.db") as connection:
        new = NewRun(
            circuit=bundle.open().circuit,
            text=bundle.encode(),
            source=str(plan),
            fingerprint="bench",
            options={"terms": msgspec.to_builtins(terms)},
            at=time.time(),
        )
        begin_run(connection, new, build_cases(load_usable_plan(terms)))
    return terms


async def _worked(
    connection: Connection, folder: Path, terms: DeliveryConfig, slots: int, answers_in: float
) -> dict[str, float]:
    async def answer(ask: Ask) -> Reply:
        await asyncio.sleep(answers_in)
        return Reply(ask.dispatch_id, _said(ask).encode())

    circuit = find_circuit("delivery", folder).open().circuit
    carriers: dict[str, Carrier] = dict.fromkeys(circuit.roles, AsyncHandler(answer))
    carriers[HUMAN] = HumanCarrier(Mailbox(folder / "interlock.db", "answers"), SystemClock())
    run = find_run(connection)
    config = msgspec.to_builtins(terms)
    ours = Delivery("delivery").set_up_run(
        connection, run, circuit, carriers, config, clock=SystemClock()
    )
    session = RunSession(
        RunLoop(
            Journal(connection, run.run_id),
            RunTerms(
                circuit=ours.circuit,
                parallel=slots,
                hooks=ours.hooks,
                unplaced=ours.unplaced,
            ),
            ours.carriers,
            SystemClock(),
        ),
        connection,
    )
    looks = Looks()
    watching = asyncio.create_task(_watch(session, looks))
    started, cpu = time.monotonic(), time.process_time()
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    status = await session.run()
    seconds, own = time.monotonic() - started, time.process_time() - cpu
    watching.cancel()
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if status != "done":
        raise ValueError(f"the delivery ended as {status}")
    theirs = after.ru_utime + after.ru_stime - children.ru_utime - children.ru_stime
    return {
        "seconds": seconds,
        "own_cpu_s": own,
        "own_percent": own / seconds * 100,
        "children_cpu_s": theirs,
        **_told(looks, slots),
    }


def _said(ask: Ask) -> str:
    name = ask.case_id
    if ask.role == "developer":
        (Path(ask.execution.folder) / f"{name}.txt").write_text("done\n")
        return f"READY_FOR_REVIEW: {name}\n\nFiles Modified:\n- {name}.txt: new\n"
    if ask.role == "critic":
        return f"REVIEW_PASSED: {name}\n\nFiles Reviewed:\n- {name}.txt\n"
    return f"AUDIT_PASSED: {name}\n\nVerification Results:\n- it: VERIFIED - seen\n"


async def _watch(session: RunSession, looks: Looks) -> None:
    schedule = session._loop._schedule  # noqa: SLF001 - measured, not used
    while True:
        agents = [queue for role, queue in schedule.waiting.items() if role not in PROGRAMS]
        looks.busy.append(schedule.taken)
        looks.waiting.append(sum(map(len, agents)))
        await asyncio.sleep(_LOOK)


def _told(looks: Looks, slots: int) -> dict[str, float]:
    """How busy the slots were: at all, and while an agent's work waited for one."""
    wanted = [
        busy for busy, waits in zip(looks.busy, looks.waiting, strict=True) if busy + waits >= slots
    ]
    return {
        "busy_percent": sum(looks.busy) / len(looks.busy) / slots * 100,
        "busy_when_wanted_percent": sum(wanted) / max(1, len(wanted)) / slots * 100,
        "wanted_part_percent": len(wanted) / len(looks.busy) * 100,
    }


def main(words: list[str]) -> None:
    tasks, slots = (int(words[0]), int(words[1])) if len(words) > 1 else (TASKS, SLOTS)
    answers_in = float(words[2]) if len(words) > 2 else ANSWERS_IN
    with tempfile.TemporaryDirectory() as folder:
        found = measure(Path(folder), tasks, slots, answers_in)
    print(f"{tasks} tasks, {slots} slots, agents answer in {answers_in:g} s")
    for name, value in found.items():
        print(f"{name:26} {value:10.2f}")


if __name__ == "__main__":
    main(sys.argv[1:])
