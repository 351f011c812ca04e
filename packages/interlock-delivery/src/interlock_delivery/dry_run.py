"""Describe what a delivery would do, for `deliver --dry-run`.

Reads the plan, the repository and the user's options. Creates no database, clone or run, and starts
no agent.
"""

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

import msgspec

from interlock.api.project import Project
from interlock.runtime.settings import RunConfig
from interlock.system.errors import InterlockError
from interlock.system.text import align_columns, plural
from interlock_delivery.start import (
    DeliveryOptions,
    build_config,
    choose_slug,
    find_earlier_run_id,
)

if TYPE_CHECKING:
    from interlock.engine.circuit_file import CircuitSource
    from interlock_delivery.plan.plan import Plan, PlanFinding

_MOST_TASKS: Final = 60


class DryRunPart(msgspec.Struct, frozen=True):
    """A role, the agent that plays it, and what prevents that."""

    role: str
    agent: str
    problem: str = ""


class DryRunStep(msgspec.Struct, frozen=True):
    """A task, its earliest round, and its blockers."""

    task_id: str
    title: str
    round: int
    after: tuple[str, ...]


class Probe(msgspec.Struct, frozen=True):
    """A check as it would run."""

    check: str
    environment: str
    command: tuple[str, ...]
    exit_code: int


class DryRun(msgspec.Struct, frozen=True, kw_only=True):
    """Everything known about a delivery before it starts."""

    plan: str
    title: str
    goes_on_with: int | None
    branch: str
    base: str
    problems: tuple[str, ...]
    """Reasons that prevent the start, beside errors among the findings."""
    notes: tuple[str, ...]
    findings: "tuple[PlanFinding, ...]"
    tasks: tuple[DryRunStep, ...]
    startable: tuple[str, ...]
    at_once: int
    roles: tuple[DryRunPart, ...]
    checks: tuple[Probe, ...]
    most_per_task: int
    """The most dispatches per task, including our own programs and questions to humans."""
    most: int
    why_so_many: str
    budget: Mapping[str, Any]

    @property
    def can_start(self) -> bool:
        errors = any(finding.level == "error" for finding in self.findings)
        return not (errors or self.problems or any(part.problem for part in self.roles))


def plan_dry_run(
    options: DeliveryOptions, project: Project, source: "CircuitSource", run_config: RunConfig
) -> DryRun:
    from interlock.engine.verify import verify
    from interlock.runtime.agent_pool import PARALLEL
    from interlock_delivery.plan import plan as graph
    from interlock_delivery.plan import read_plan
    from interlock_delivery.plan.check import check_plan
    from interlock_delivery.plan.tables import add_project_checks

    slug = choose_slug(options, project.db)
    config = build_config(options, project.settings, project.db, slug)
    plan = add_project_checks(read_plan(options.plan), config.checks, config.environments)
    rounds = graph.compute_rounds(plan)
    tasks = graph.index_tasks(plan)
    worst = verify(source).worst_case
    base, notes, problems = _inspect_repository(options)
    checks, invalid = _list_checks(plan)
    return DryRun(
        plan=str(options.plan),
        title=plan.title,
        goes_on_with=find_earlier_run_id(project, options),
        branch=f"interlock/{slug}",
        base=base,
        problems=(*problems, *invalid),
        notes=notes,
        findings=check_plan(plan, allow_untestable=config.allow_untestable),
        tasks=tuple(
            DryRunStep(name, tasks[name].title, rounds[name], tasks[name].blocked_by)
            for name in graph.order_tasks(plan)
        ),
        startable=graph.find_startable(plan),
        at_once=run_config.parallel or PARALLEL,
        roles=tuple(_list_roles(source, run_config, project)),
        checks=checks,
        most_per_task=worst.dispatches,
        most=worst.dispatches * len(tasks),
        why_so_many=worst.reason,
        budget=run_config.budget,
    )


def _inspect_repository(options: DeliveryOptions) -> tuple[str, tuple[str, ...], tuple[str, ...]]:
    """Return the base commit, notes about the repository, and what prevents the start."""
    from interlock_delivery.worktrees.clone import inspect_repository

    try:
        found = inspect_repository(options.repo, options.base)
    except InterlockError as error:
        return "", (), (str(error),)
    return found.base, found.notes, ()


def _list_roles(
    source: "CircuitSource", run_config: RunConfig, project: Project
) -> Iterator[DryRunPart]:
    """Yield each role that an agent plays, with the agent's name and any problem."""
    from interlock.engine.circuit import HUMAN
    from interlock.runtime.application import find_application

    circuit = source.circuit
    own = {HUMAN, *find_application(circuit.name).own_roles}
    for role in sorted({step.role for step in circuit.steps.values()} - own):
        agent = run_config.agents.get(role) or run_config.agents.get("", "")
        problem = "" if agent else f"nobody plays it; use --agent {role}=AGENT"
        try:
            if agent:
                project.check_agent(circuit, agent, role)
        except InterlockError as error:
            problem = str(error)
        yield DryRunPart(role, agent, problem)


def _list_checks(plan: "Plan") -> tuple[tuple[Probe, ...], tuple[str, ...]]:
    from interlock_delivery.checks.records import build_matrix

    try:
        cells = build_matrix(plan.checks, plan.environments)
    except InterlockError as error:
        return (), (str(error),)
    return tuple(
        Probe(cell.check.name, cell.environment.name, cell.argv, cell.check.exit_code)
        for cell in cells
    ), ()


def format_dry_run(dry_run: DryRun) -> Iterator[str]:
    tasks = plural(len(dry_run.tasks), "task", "tasks")
    yield f"{dry_run.title or dry_run.plan}: {tasks} would be worked on"
    if dry_run.goes_on_with:
        yield f"run {dry_run.goes_on_with} of this plan would be resumed (--new starts another)"
    elif dry_run.base:
        yield f"from {dry_run.base[:12]}, merged to a new branch {dry_run.branch}"
    yield from (f"note: {note}" for note in dry_run.notes)
    yield from (f"problem: {problem}" for problem in dry_run.problems)
    for finding in dry_run.findings:
        place = f"{dry_run.plan}:{finding.line}" if finding.line else dry_run.plan
        yield f"{place}: {finding.level} {finding.code}: {finding.sentence}"
    yield ""
    yield from _format_tasks(dry_run)
    yield ""
    rows = [(part.role, part.agent or "-", part.problem or "ready") for part in dry_run.roles]
    yield from align_columns(("ROLE", "AGENT", "IS"), rows)
    if dry_run.checks:
        yield ""
    yield from align_columns(
        ("CHECK", "ENVIRONMENT", "EXIT", "COMMAND"),
        [
            (probe.check, probe.environment, probe.exit_code, " ".join(probe.command))
            for probe in dry_run.checks
        ],
    )
    yield ""
    yield f"at most {dry_run.most_per_task:,} dispatches per task, {dry_run.most:,} in all"
    if dry_run.why_so_many:
        yield f"  {dry_run.why_so_many}"
    if dry_run.budget:
        limits = ", ".join(f"{name}={value}" for name, value in sorted(dry_run.budget.items()))
        yield f"the budget stops it earlier: {limits}"
    else:
        yield "there is no budget; --budget money=X or dispatches=N sets one"
    start = "" if dry_run.can_start else "it cannot start like this; "
    yield f"{start}nothing was touched"


def _format_tasks(dry_run: DryRun) -> Iterator[str]:
    rows = [(task.task_id, task.title, task.round, ", ".join(task.after)) for task in dry_run.tasks]
    yield from align_columns(("TASK", "TITLE", "ROUND", "AFTER"), rows[:_MOST_TASKS])
    if len(rows) > _MOST_TASKS:
        yield f"… and {len(rows) - _MOST_TASKS} more; --json lists all"
    names = ", ".join(dry_run.startable[:_MOST_TASKS]) or "nothing"
    yield f"can start now: {names}; at most {dry_run.at_once} agents at a time"
