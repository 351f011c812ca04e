"""A brief: what is known about a task when somebody is asked about it.

Knows the records that a prompt is made of, as they come from the plan, the worktree, the checks and
earlier rounds. Refuses to know how they were found, and how a prompt shows them: that is params'.
"""

from typing import Protocol

import msgspec


class TaskDescription(Protocol):
    """A task as a plan has it. Any record with these fields will do."""

    @property
    def id(self) -> str: ...
    @property
    def title(self) -> str: ...
    @property
    def work(self) -> str: ...
    @property
    def criteria(self) -> tuple[str, ...]: ...
    @property
    def blocked_by(self) -> tuple[str, ...]: ...
    @property
    def reading(self) -> tuple[str, ...]: ...
    @property
    def environment(self) -> str: ...
    @property
    def target_files(self) -> tuple[str, ...]: ...


class Point(msgspec.Struct, frozen=True):
    """What one judge held against the work: `by` is critic, auditor, checks or merge, `attempt` the
    how-manieth look of that judge it comes from."""

    by: str
    attempt: int
    text: str


class Expert(msgspec.Struct, frozen=True):
    """An expert that can be asked, and what for."""

    name: str
    domain: str = ""
    ask_when: str = ""


class CheckLocation(msgspec.Struct, frozen=True):
    """An environment in which checks run, and how a command is run there."""

    name: str
    description: str = ""
    how: str = ""


class CheckCommand(msgspec.Struct, frozen=True):
    """A check that must hold: what is run, where, and which exit code it must have."""

    check: str
    command: str
    environment: str = ""
    exit_code: int = 0


class TaskContext(msgspec.Struct, frozen=True, kw_only=True):
    """All that a prompt can be made of beside the case itself. `fence` is 8 to 64 hexadecimal
    digits of chance, new for each prompt; the rest is in the order of the work."""

    task: TaskDescription
    fence: str
    plan: str = ""
    """An excerpt of the plan around the task."""
    commands: tuple[CheckCommand, ...] = ()
    places: tuple[CheckLocation, ...] = ()
    experts: tuple[Expert, ...] = ()
    guidance: tuple[str, ...] = ()
    """What humans said about this task, oldest first."""
    feedback: tuple[Point, ...] = ()
    """What judges hold against the work and is still open, oldest first."""
    changed: tuple[str, ...] = ()
    diff: str = ""
    checks: tuple[str, ...] = ()
    """One line for each check in each environment, as we saw it."""
    tells: tuple[str, ...] = ()
    claims: tuple[str, ...] = ()
    """One line for each claim of an agent, with what we found."""
    expert: str = ""
    """The text that makes the asked expert one."""
    expert_file: str = ""
    """Where a new expert's text belongs."""
    request_id: str = ""
    nonce: str = ""
    """What an answer must repeat, where signals are strict."""
