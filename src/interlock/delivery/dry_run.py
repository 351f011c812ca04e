"""What a delivery would do, printed before anything is done: `deliver --dry-run`.

Reads the plan, the repository and the user's options. Creates no database, no clone and no run, and
starts no agent.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import msgspec

from interlock.api.project import Project
from interlock.delivery.delivering import DeliveryOptions, agreed, free_slug
from interlock.runtime.settings import RunConfig
from interlock.system.errors import InterlockError
from interlock.system.text import align_columns, plural

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
    def can_start(self) -> bool:
        errors = any(each.level == "error" for each in self.findings)
        return not (errors or self.problems or any(part.problem for part in self.roles))


def plan_dry_run(
    wanted: DeliveryOptions, project: Project, written: "CircuitSource", options: RunConfig
) -> DryRun:
    from interlock.delivery.plan import plan as graph
    from interlock.delivery.plan import read_plan
    from interlock.delivery.plan.check import check_plan
    from interlock.delivery.plan.yaml import add_project_checks
    from interlock.engine.verify import verify
    from interlock.runtime.agent_pool import PARALLEL

    db = project.db
    terms = agreed(wanted, project.settings, db, free_slug(wanted, db))
    plan = add_project_checks(read_plan(wanted.plan), terms.checks, terms.environments)
    depth = graph.compute_rounds(plan)
    tasks = graph.index_tasks(plan)
    worst = verify(written).worst_case
    base, notes, problems = _inspect_repository(wanted, terms)
    checks, unfit = _list_checks(plan)
    return DryRun(
        plan=str(wanted.plan),
        title=plan.title,
        goes_on_with=None if not db.exists() else _find_earlier_run(wanted, db),
        branch=f"interlock/{terms.slug}",
        base=base,
        problems=(*problems, *unfit),
        notes=notes,
        findings=check_plan(plan, allow_untestable=terms.allow_untestable),
        tasks=tuple(
            DryRunStep(name, tasks[name].title, depth[name], tasks[name].blocked_by)
            for name in graph.order_tasks(plan)
        ),
        startable=graph.find_startable(plan),
        at_once=options.parallel or PARALLEL,
        roles=tuple(_list_roles(written, options, project)),
        checks=checks,
        most_per_task=worst.dispatches,
        most=worst.dispatches * len(tasks),
        why_so_many=worst.reason,
        budget=options.budget,
    )


def _inspect_repository(
    wanted: DeliveryOptions, terms: "DeliveryConfig"
) -> tuple[str, tuple[str, ...], tuple[str, ...]]:
    """Where the work would begin, what there is to say, and what is in the way."""
    from interlock.delivery.worktrees.clone import inspect_repository

    try:
        found = inspect_repository(wanted.repo, terms.base)
    except InterlockError as error:
        return "", (), (str(error),)
    return found.base, found.notes, ()


def _find_earlier_run(wanted: DeliveryOptions, db: Path) -> int | None:
    from interlock.journal.database import open_reader
    from interlock.journal.runs import find_newest_run

    with open_reader(db) as connection:
        return find_newest_run(connection, wanted.mark)


def _list_roles(
    written: "CircuitSource", options: RunConfig, project: Project
) -> Iterator[DryRunPart]:
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


def _list_checks(plan: "Plan") -> tuple[tuple[Probe, ...], tuple[str, ...]]:
    from interlock.delivery.checks.records import build_matrix

    try:
        cells = build_matrix(plan.checks, plan.environments)
    except InterlockError as error:
        return (), (str(error),)
    return tuple(
        Probe(each.check.name, each.environment.name, each.argv, each.check.exit_code)
        for each in cells
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
    yield from _format_tasks(dry_run)
    yield ""
    rows = [(part.role, part.agent or "-", part.problem or "ready") for part in dry_run.roles]
    yield from align_columns(("ROLE", "AGENT", "IS"), rows)
    if dry_run.checks:
        yield ""
    yield from align_columns(
        ("CHECK", "ENVIRONMENT", "EXIT", "COMMAND"),
        [
            (each.check, each.environment, each.exit_code, " ".join(each.command))
            for each in dry_run.checks
        ],
    )
    yield from _format_cost(dry_run)
    yield (
        "nothing was touched"
        if dry_run.can_start
        else "it cannot start like this; nothing was touched"
    )


def _format_tasks(dry_run: DryRun) -> Iterator[str]:
    yield ""
    rows = [(each.task_id, each.title, each.round, ", ".join(each.after)) for each in dry_run.tasks]
    yield from align_columns(("TASK", "TITLE", "ROUND", "AFTER"), rows[:_SHOWN])
    if len(rows) > _SHOWN:
        yield f"… and {len(rows) - _SHOWN} more; --json lists all"
    started = ", ".join(dry_run.startable[:_SHOWN]) or "nothing"
    yield f"can start now: {started}; {dry_run.at_once} agents at once at most"


def _format_cost(dry_run: DryRun) -> Iterator[str]:
    yield ""
    yield f"at most {dry_run.most_per_task:,} dispatches per task, {dry_run.most:,} in all"
    if dry_run.why_so_many:
        yield f"  {dry_run.why_so_many}"
    if dry_run.budget:
        said = ", ".join(f"{name}={value}" for name, value in sorted(dry_run.budget.items()))
        yield f"the budget stops it before: {said}"
    else:
        yield "there is no budget; --budget money=X or dispatches=N sets one"
