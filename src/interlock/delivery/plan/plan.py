"""A plan as records: its phases and tasks, how its work is checked, and where checks run.

Knows what a plan is once it is read, whatever form it was written in, and what can be said about
one. Refuses to know Markdown, YAML and files; judging a plan is plan_check's.
"""

import re
from typing import Final, Literal

import msgspec

from interlock.delivery.checks.records import Check, Environment
from interlock.signals.grammar import ID, LONGEST_ID

Form = Literal["markdown", "yaml"]
Level = Literal["error", "warning"]
ID_RULE: Final = (
    f"letters, digits and . _ / # -, at most {LONGEST_ID}, starting with a letter or digit"
)
_LEGAL_ID: Final = re.compile(ID)


class PlanFinding(msgspec.Struct, frozen=True):
    """One thing about a plan that is wrong, or worth a look, and what to do about it.

    A cycle carries its `path`: each task waits for the next, the last for the first.
    """

    level: Level
    code: str
    sentence: str
    task_id: str = ""
    line: int = 0
    path: tuple[str, ...] = ()


class Phase(msgspec.Struct, frozen=True):
    """A stretch of the plan. It orders nothing: only `blocked_by` does."""

    id: str
    name: str = ""
    overview: str = ""
    line: int = 0

    @property
    def label(self) -> str:
        return f"Phase {self.id}: {self.name}" if self.name else f"Phase {self.id}"


class Task(msgspec.Struct, frozen=True):
    """One piece of work. `phase` is a phase's id, `blocked_by` are the tasks it waits for."""

    id: str
    title: str = ""
    phase: str = ""
    work: str = ""
    criteria: tuple[str, ...] = ()
    blocked_by: tuple[str, ...] = ()
    reading: tuple[str, ...] = ()
    environment: str = ""
    target_files: tuple[str, ...] = ()
    line: int = 0


class Plan(msgspec.Struct, frozen=True):
    """A plan as it was read. `remarks` are findings that only its text could show."""

    title: str = ""
    overview: str = ""
    phases: tuple[Phase, ...] = ()
    tasks: tuple[Task, ...] = ()
    checks: tuple[Check, ...] = ()
    environments: tuple[Environment, ...] = ()
    source_form: Form = "markdown"
    remarks: tuple[PlanFinding, ...] = ()


def legal_id(name: str) -> bool:
    """Whether a task may have this id: the same grammar that signals have."""
    return _LEGAL_ID.fullmatch(name) is not None


def contents(plan: Plan) -> Plan:
    """What a plan says, without where and in which form it was said."""
    return msgspec.structs.replace(
        plan,
        phases=tuple(msgspec.structs.replace(each, line=0) for each in plan.phases),
        tasks=tuple(msgspec.structs.replace(each, line=0) for each in plan.tasks),
        checks=tuple(msgspec.structs.replace(each, line=0) for each in plan.checks),
        environments=tuple(msgspec.structs.replace(each, line=0) for each in plan.environments),
        source_form="markdown",
        remarks=(),
    )
