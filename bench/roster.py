"""Who takes part, with how many cases, in which order: the plan of one interleaved run.

Knows the programs and the measures, not how they are run. Every round runs every program once
for each measure and starts with another one, so that a slow minute of the machine hits all alike.
"""

from collections.abc import Iterator
from pathlib import Path

import msgspec

PROGRAMS_DIR = Path(__file__).parent / "programs"
OPEN_SIZES = (100, 1_000, 10_000)


class Program(msgspec.Struct, frozen=True):
    name: str
    file: str
    arguments: tuple[str, ...] = ()
    many: int = 0  # cases of one throughput run with 64 in flight; 0: does not take part
    single: int = 0  # cases of one run one at a time
    resumes: bool = False
    opens: bool = False
    is_peer: bool = False

    @property
    def path(self) -> Path:
        return PROGRAMS_DIR / self.file


PROGRAMS = (
    Program("ceiling", "ceiling.py", ("--group", "64"), many=3000, resumes=True, opens=True),
    Program("ceiling, single commits", "ceiling.py", ("--group", "1"), many=800, single=800),
    Program("interlock", "on_interlock.py", many=3000, single=600, resumes=True, opens=True),
    Program("burr", "on_burr.py", many=1000, single=600, resumes=True, is_peer=True),
    Program("burr, threads", "on_burr.py", ("--style", "threads"), many=500, is_peer=True),
    Program("langgraph", "on_langgraph.py", many=200, single=200, resumes=True, is_peer=True),
    Program("dbos", "on_dbos.py", many=200, single=200, resumes=True, is_peer=True),
)


class Task(msgspec.Struct, frozen=True):
    program: Program
    measure: str
    round: int
    cases: int
    inflight: int


class Scale(msgspec.Struct, frozen=True):
    """How much of everything: the full run, or the smoke run."""

    rounds: int
    resume_rounds: int
    divisor: int
    resume_cases: int
    limit_s: float
    file_rounds: int = 0
    idle_s: float = 10.0
    history_rounds: int = 0


FULL = Scale(
    rounds=5,
    resume_rounds=3,
    divisor=1,
    resume_cases=1000,
    limit_s=0.5,
    file_rounds=3,
    history_rounds=3,
)
QUICK = Scale(rounds=1, resume_rounds=1, divisor=10, resume_cases=100, limit_s=0.1)


def warm_up(programs: tuple[Program, ...]) -> list[Task]:
    """Without cases: the size of an empty database, and everything compiled and cached."""
    return [Task(program, "empty", 0, 0, 64) for program in programs]


def one_round(programs: tuple[Program, ...], number: int, scale: Scale) -> Iterator[Task]:
    first = (number - 1) % max(len(programs), 1)
    order = programs[first:] + programs[:first]
    for program in order:
        if program.many:
            yield Task(program, "many", number, program.many // scale.divisor, 64)
    for program in order:
        if program.single:
            yield Task(program, "single", number, program.single // scale.divisor, 1)
    if number <= scale.resume_rounds:
        yield from _long_tasks(order, number, scale)


def _long_tasks(order: tuple[Program, ...], number: int, scale: Scale) -> Iterator[Task]:
    for program in order:
        if program.resumes:
            yield Task(program, "resume", number, scale.resume_cases, 64)
    for size in OPEN_SIZES:
        for program in order:
            if program.opens:
                # As many cases for each size: the database grows alike, only the open ones differ.
                cases = max(size, max(OPEN_SIZES) // scale.divisor)
                yield Task(program, f"open-{size}", number, cases, size)
