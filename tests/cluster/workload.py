"""What the cluster works on: cases whose way depends on nothing but what they say.

The agent is a shell script that answers what its prompt tells it, after a while. Crashes, timeouts
and unreadable answers ask the same again: faults may cause them, and they change no case's way.
"""

import json
import os
import random
import shutil
from collections.abc import Iterator
from contextlib import chdir
from pathlib import Path

import msgspec

from interlock.api.project import Project
from interlock.api.start import begin, configure, go_on, read_request, work_here
from interlock.engine.circuit import FAILURES
from interlock.journal.connection import Connection
from interlock.journal.journal import decode_decision, read_blob

HERE = Path(__file__).parent
CIRCUIT = "ordeal"
CASES = 24
AGENT = "exec:./agent.sh"
ROLES = ("author", "critic")
_SCORES = (0.95, 0.7, 0.2)
"""To be approved by a person, good enough, never good enough."""

Way = tuple[tuple[str, str, str, str], ...]
"""What came back for a case, and where it went: step, signal, target, answer. Without the faults,
which ask the same again."""


def set_up_host(folder: Path) -> None:
    """What a host needs to work on the runs: the agent."""
    folder.mkdir(parents=True, exist_ok=True)
    shutil.copy2(HERE / "agent.sh", folder / "agent.sh")


def build_cases(run: int, seed: int) -> bytes:
    """The cases of one run, one JSON object per line; runs differ in their pauses only. In some the
    agents take longer than a take-over: one that stood still has answers for dispatches that are
    open with another."""
    chance = random.Random(f"{seed}/{run}")
    shortest, longest = (4.0, 9.0) if run % 4 in (2, 3) else (0.05, 1.5)
    rows = (
        {
            "id": f"C{number}",
            "run": run,
            "score": _SCORES[number % len(_SCORES)],
            "pause": f"{chance.uniform(shortest, longest):.2f}",
        }
        for number in range(CASES)
    )
    return "".join(f"{json.dumps(row)}\n" for row in rows).encode()


def begin_run(project: Project, run: int, seed: int, *, workers: bool) -> int:
    """Begin a run, or find it if it was begun already; its number. Where there are workers it is
    left to the cluster; every second run is answered on the coordinators' hosts all the same: its
    answers do not go through the database, so a coordinator that was away has some of its own."""
    agent = "worker" if workers and run % 2 else AGENT
    with chdir(project.path):  # where the agent is looked for
        circuit, changes = project.prepare_circuit(str(HERE / f"{CIRCUIT}.yaml"), {})
        request = read_request(circuit, changes, build_cases(run, seed), f"cases of {run}")
        config = configure(project, request)
        config = msgspec.structs.replace(config, agents={"": agent}, parallel=CASES)
        with project.write() as connection:
            opened = begin(project, connection, request, config)
            result = work_here(project, connection, opened, detach=not isinstance(project.db, Path))
    return result.run_id


def answer_gates(project: Project) -> int:
    """Say yes to everything that waits for a person; how many there were."""
    waiting = [each for each in project.inbox() if not each.answer_saved]
    for question in waiting:
        project.answer(question, "approve", by="ann")
    return len(waiting)


def compute_expected(folder: Path, seed: int) -> dict[str, Way]:
    """The way of each case in a run that nothing disturbs."""
    set_up_host(folder)
    os.environ["CLUSTER_QUICK"] = "1"
    try:
        with Project(folder) as project:
            run_id = begin_run(project, 0, seed, workers=False)
            while answer_gates(project):
                with chdir(folder), project.write() as connection:
                    opened = go_on(project, connection, run_id, lambda config: config)
                    work_here(project, connection, opened)
            with project.read() as connection:
                return dict(read_ways(connection, run_id))
    finally:
        del os.environ["CLUSTER_QUICK"]


def read_ways(connection: Connection, run_id: int) -> Iterator[tuple[str, Way]]:
    """The way of each case of a run, by the case's name."""
    raw = connection.raw
    rows = raw.execute(
        "select c.case_id, j.decision, j.answer from cases c"
        " join journal j on j.case_no = c.case_no where c.run_id = ?"
        " order by c.case_id, j.dispatch_id",
        (run_id,),
    ).fetchall()
    ways: dict[str, list[tuple[str, str, str, str]]] = {}
    answers: dict[int, str] = {}
    for case_id, text, blob in rows:
        decision = decode_decision(text)
        way = ways.setdefault(case_id, [])
        if decision.signal not in FAILURES:
            if blob not in answers:
                answers[blob] = read_blob(raw, blob).decode()
            way.append((decision.step, decision.signal, decision.to, answers[blob]))
    yield from ((case_id, tuple(way)) for case_id, way in ways.items())
