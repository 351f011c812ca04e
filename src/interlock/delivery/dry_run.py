"""What a delivery would do, told before anything is done: deliver --dry-run.

Reads the plan, the repository and the words of the user. Makes no database, no clone and no run,
and starts nobody.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import msgspec

from interlock.api.project import Project
from interlock.delivery.delivering import DeliveryOptions, agreed, free_slug
from interlock.runtime.settings import RunConfig
from interlock.system.errors import InterlockError
from interlock.system.text import align_columns, counted

if TYPE_CHECKING:
    from interlock.delivery.plan.plan import Plan, PlanFinding
    from interlock.delivery.terms import DeliveryConfig
    from interlock.engine.circuit_file import CircuitSource

_SHOWN: Final = 60


class DryRunPart(msgspec.Struct, frozen=True):
    """Who plays a role; or what is in the way."""

    role: str
    agent: str
    problem: str = ""


class DryRunStep(msgspec.Struct, frozen=True):
    """One task, when it can start at the earliest, and after whom."""

    task_id: str
    title: str
    round: int
    after: tuple[str, ...]


class Probe(msgspec.Struct, frozen=True):
    """A check as it would be run."""

    check: str
    environment: str
    command: tuple[str, ...]
    exit_code: int


class DryRun(msgspec.Struct, frozen=True, kw_only=True):
    """All that can be said beforehand."""

    plan: str
    title: str
    goes_on_with: int | None
    branch: str
    base: str
    problems: tuple[str, ...]
    """What would stop it, beside the errors among the findings."""
    notes: tuple[str, ...]
    findings: "tuple[PlanFinding, ...]"
    tasks: tuple[DryRunStep, ...]
    startable: tuple[str, ...]
    at_once: int
    roles: tuple[DryRunPart, ...]
    checks: tuple[Probe, ...]
    most_per_task: int
    """Dispatches, those of our own programs and the questions to humans among them."""
    most: int
    why_so_many: str
    budget: Mapping[str, Any]

    @property
    def can_go(self) -> bool:
        errors = any(each.level == "error" for each in self.findings)
        return not (errors or self.problems or any(part.problem for part in self.roles))


def rehearse(
    wishes: DeliveryOptions, project: Project, written: "CircuitSource", options: RunConfig
) -> DryRun:
    from interlock.delivery.plan import plan as graph
    from interlock.delivery.plan import read_plan
    from interlock.delivery.plan.check import check_plan
    from interlock.delivery.plan.yaml import with_project
    from interlock.engine.verify import verify
    from interlock.runtime.agent_pool import PARALLEL

    db = project.db
    terms = agreed(wishes, project.settings, db, free_slug(wishes, db))
    plan = with_project(read_plan(wishes.plan), terms.checks, terms.environments)
    depth = graph.rounds(plan)
    tasks = graph.task_named(plan)
    worst = verify(written).worst_case
    base, notes, problems = _ground(wishes, terms)
    checks, unfit = _checks(plan)
    return DryRun(
        plan=str(wishes.plan),
        title=plan.title,
        goes_on_with=None if not db.exists() else _earlier(wishes, db),
        branch=f"interlock/{terms.slug}",
        base=base,
        problems=(*problems, *unfit),
        notes=notes,
        findings=check_plan(plan, allow_untestable=terms.allow_untestable),
        tasks=tuple(
            DryRunStep(name, tasks[name].title, depth[name], tasks[name].blocked_by)
            for name in graph.order(plan)
        ),
        startable=graph.startable(plan),
        at_once=options.parallel or PARALLEL,
        roles=tuple(_parts(written, options, project)),
        checks=checks,
        most_per_task=worst.dispatches,
        most=worst.dispatches * len(tasks),
        why_so_many=worst.reason,
        budget=options.budget,
    )


def _ground(
    wishes: DeliveryOptions, terms: "DeliveryConfig"
) -> tuple[str, tuple[str, ...], tuple[str, ...]]:
    """Where the work would begin, what there is to say, and what is in the way."""
    from interlock.delivery.worktrees.source import look

    try:
        found = look(wishes.repo, terms.base)
    except InterlockError as error:
        return "", (), (str(error),)
    return found.base, found.notes, ()


def _earlier(wishes: DeliveryOptions, db: Path) -> int | None:
    from interlock.journal.database import reading
    from interlock.journal.runs import newest_run

    with reading(db) as connection:
        return newest_run(connection, wishes.mark)


def _parts(written: "CircuitSource", options: RunConfig, project: Project) -> Iterator[DryRunPart]:
    """Each role that an agent plays, the agent's words, and whether it is there."""
    from interlock.engine.circuit import HUMAN
    from interlock.runtime.application import find_application

    circuit = written.circuit
    ours = {HUMAN, *find_application(circuit.name).own_roles}
    for role in sorted({step.role for step in circuit.steps.values()} - ours):
        spec = options.agents.get(role) or options.agents.get("", "")
        problem = "" if spec else f"nobody plays it; say --agent {role}=AGENT"
        try:
            if spec:
                project.check_agent(circuit, spec, role)
        except InterlockError as error:
            problem = str(error)
        yield DryRunPart(role, spec, problem)


def _checks(plan: "Plan") -> tuple[tuple[Probe, ...], tuple[str, ...]]:
    from interlock.delivery.checks.records import matrix

    try:
        cells = matrix(plan.checks, plan.environments)
    except InterlockError as error:
        return (), (str(error),)
    return tuple(
        Probe(each.check.name, each.environment.name, each.argv, each.check.exit_code)
        for each in cells
    ), ()


def format_dry_run(told: DryRun) -> Iterator[str]:
    tasks = counted(len(told.tasks), "task", "tasks")
    yield f"{told.title or told.plan}: {tasks} would be worked on"
    if told.goes_on_with:
        yield f"run {told.goes_on_with} of this plan would be gone on with (--new begins another)"
    elif told.base:
        yield f"from {told.base[:12]}, merged to a new branch {told.branch}"
    yield from (f"note: {note}" for note in told.notes)
    yield from (f"problem: {problem}" for problem in told.problems)
    for finding in told.findings:
        place = f"{told.plan}:{finding.line}" if finding.line else told.plan
        yield f"{place}: {finding.level} {finding.code}: {finding.sentence}"
    yield from _tasks(told)
    yield ""
    rows = [(part.role, part.agent or "-", part.problem or "ready") for part in told.roles]
    yield from align_columns(("ROLE", "AGENT", "IS"), rows)
    if told.checks:
        yield ""
    yield from align_columns(
        ("CHECK", "ENVIRONMENT", "EXIT", "COMMAND"),
        [
            (each.check, each.environment, each.exit_code, " ".join(each.command))
            for each in told.checks
        ],
    )
    yield from _cost(told)
    yield "nothing was touched" if told.can_go else "it cannot begin like this; nothing was touched"


def _tasks(told: DryRun) -> Iterator[str]:
    yield ""
    rows = [(each.task_id, each.title, each.round, ", ".join(each.after)) for each in told.tasks]
    yield from align_columns(("TASK", "TITLE", "ROUND", "AFTER"), rows[:_SHOWN])
    if len(rows) > _SHOWN:
        yield f"… and {len(rows) - _SHOWN} more; --json lists all"
    started = ", ".join(told.startable[:_SHOWN]) or "nothing"
    yield f"can start now: {started}; {told.at_once} agents at once at most"


def _cost(told: DryRun) -> Iterator[str]:
    yield ""
    yield f"at most {told.most_per_task:,} dispatches per task, {told.most:,} in all"
    if told.why_so_many:
        yield f"  {told.why_so_many}"
    if told.budget:
        said = ", ".join(f"{name}={value}" for name, value in sorted(told.budget.items()))
        yield f"the budget stops it before: {said}"
    else:
        yield "there is no budget; --budget money=X or dispatches=N sets one"
