"""Define the environment that tasks are worked on in, and inspect the work in a tree.

`TaskEnvironment` knows the workspace, the current plan, and the tree and checks of each step.
`TreeInspection` prepares a tree, runs the checks there and compares them with the baseline. Every
process it starts is tagged, so that none outlives us unseen.
"""

import asyncio
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from interlock.carriers.cli.ownership import ProcessTag, build_tag_variables
from interlock.carriers.cli.profiles import filter_environment
from interlock.carriers.contract import Ask
from interlock.system.clock import Clock
from interlock.system.errors import SourceError
from interlock.system.files import save_file
from interlock_delivery.checks.baseline import (
    Baseline,
    read_baseline,
    take_baseline,
    write_baseline,
)
from interlock_delivery.checks.records import CheckCell, CheckResult, build_matrix, normalize_name
from interlock_delivery.checks.run import CheckEnvironment, CheckLimits, run_checks
from interlock_delivery.checks.verdict import CheckVerdict, compare_with_baseline
from interlock_delivery.config import DeliveryConfig
from interlock_delivery.plan.plan import Plan, Task, index_tasks
from interlock_delivery.steps import REPAIR
from interlock_delivery.worktrees.diff import Diff
from interlock_delivery.worktrees.prepare import PrepareTarget, prepare_tree
from interlock_delivery.worktrees.tree import TaskTree
from interlock_delivery.worktrees.workspace import DeliveryWorkspace

_EXPERTS: Final = "experts"
_BASELINES: Final = "baselines"
_CHECKED: Final = "checked"
_LAST_PORT: Final = 65_535
_MOST_BLOCKS: Final = 500
_MOST_OUTPUT: Final = 3_000
_BASELINE_TREE: Final = "interlock#baseline"
"""The tree for the baseline; the id is illegal in plans, so no task has it."""


class TaskEnvironment:
    """The place where tasks are worked on. Each tree is opened once and kept."""

    def __init__(
        self,
        workspace: DeliveryWorkspace,
        config: DeliveryConfig,
        plan: Plan,
        environ: Mapping[str, str] = os.environ,
    ) -> None:
        self.workspace = workspace
        self.config = config
        self.environ = filter_environment(environ, config.work.let_in)
        """The part of our own environment that checks and the set-up command see."""
        self.made_experts = Path(config.home) / _EXPERTS
        self.baselines = Path(config.home) / _BASELINES
        self._trees: dict[str, TaskTree] = {}
        self.set_plan(plan)

    def set_plan(self, plan: Plan) -> None:
        self.plan = plan
        self.tasks = index_tasks(plan)

    def find_task(self, task_id: str) -> Task:
        found = self.tasks.get(task_id)
        if found is None:
            raise SourceError(f"task {task_id!r} is not in the plan any more; put it back")
        return found

    def tree_of(self, case_id: str, step: str) -> TaskTree:
        """Return the tree of a step: the task's, or that of its repair."""
        return self.open_tree(f"{case_id}#repair" if step in REPAIR else case_id)

    def open_tree(self, name: str) -> TaskTree:
        if name not in self._trees:
            self._trees[name] = self.workspace.open_tree(name)
        return self._trees[name]

    def forget_tree(self, tree: TaskTree) -> None:
        """Forget a tree, so that it is opened anew next time."""
        self._trees.pop(tree.record.task_id, None)

    def ports_of(self, case_no: int) -> tuple[int, int] | None:
        """Return a case's first port and the size of its block; blocks are assigned in turn."""
        work = self.config.work
        if not work.first_port:
            return None
        blocks = max(1, (_LAST_PORT + 1 - work.first_port) // work.ports)
        return work.first_port + case_no % min(blocks, _MOST_BLOCKS) * work.ports, work.ports

    def build_cells(self, task: Task | None = None) -> tuple[CheckCell, ...]:
        """Return the checks for a task: all, or those of its environment if it names one."""
        cells = build_matrix(self.plan.checks, self.plan.environments)
        wanted = normalize_name(task.environment) if task else ""
        return tuple(
            cell for cell in cells if not wanted or normalize_name(cell.environment.name) == wanted
        )

    def find_baseline(self, commit: str, cells: tuple[CheckCell, ...]) -> tuple[CheckResult, ...]:
        """Return the results of these checks at a commit, or else before the first task."""
        for each in (commit, self.workspace.base):
            baseline = read_baseline(self.baselines, each)
            if not baseline.find_missing(cells):
                break
        return baseline.results_of(cells)

    def store_baseline(
        self, commit: str, cells: tuple[CheckCell, ...], results: tuple[CheckResult, ...]
    ) -> None:
        """Store the results at a merged commit, as the baseline of later work."""
        baseline = Baseline(1, commit)
        for cell, result in zip(cells, results, strict=True):
            baseline = baseline.with_result(cell, result)
        write_baseline(self.baselines, baseline)


class TreeInspection:
    """Prepares and checks the trees of one environment."""

    def __init__(self, environment: TaskEnvironment, clock: Clock) -> None:
        self._environment = environment
        self._clock = clock
        self._limits = CheckLimits(at_once=environment.config.work.checks_at_once)

    async def prepare(self, tree: PrepareTarget, ask: Ask) -> str:
        """Copy files in and run the set-up command; return why the tree is not ready, or ""."""
        work = self._environment.config.work
        ports = self._environment.ports_of(ask.case_no)
        environ = self._environment.environ
        environ = {
            **environ,
            **build_tag_variables(str(self._build_tag(ask)), environ),
        }
        done = await asyncio.to_thread(
            prepare_tree, tree, work.copy, work.setup, ports, environ=environ
        )
        if done.is_ready:
            return ""
        return f"the set-up command failed: {done.output[-_MOST_OUTPUT:]}"

    async def take_baseline(self, cells: tuple[CheckCell, ...], ask: Ask) -> str:
        """Check the work as it was before any task; return why that is impossible, or ""."""
        environment = self._environment
        tree = await asyncio.to_thread(environment.open_tree, _BASELINE_TREE)
        problem = await self.prepare(tree, ask)
        if not problem:
            place = self._build_check_environment(tree, ask)
            base = environment.workspace.base
            await take_baseline(
                environment.baselines, base, cells, place, self._clock, limits=self._limits
            )
            await asyncio.to_thread(tree.restore, base)
        return problem

    async def run_on_recorded(
        self, tree: TaskTree, sha: str, cells: tuple[CheckCell, ...], ask: Ask
    ) -> tuple[CheckResult, ...]:
        """Run checks on recorded work, and remove what they leave in the tree."""
        marker = self._marker_file(tree)
        marker.parent.mkdir(exist_ok=True)
        await asyncio.to_thread(save_file, marker, sha.encode())
        results = await self.run(tree, cells, ask)
        await asyncio.to_thread(self.restore_recorded, tree)
        return results

    def restore_recorded(self, tree: TaskTree) -> None:
        """Remove what checks left in a tree, including checks that a crash cut short."""
        marker = self._marker_file(tree)
        if marker.exists():
            sha = marker.read_text(encoding="ascii")
            if not tree.is_unchanged(sha):
                tree.restore(sha)
            marker.unlink()

    def _marker_file(self, tree: TaskTree) -> Path:
        """Return the file that names a tree's recorded state while checks run in it."""
        return self._environment.workspace.home / _CHECKED / tree.name

    async def run(
        self, tree: PrepareTarget, cells: tuple[CheckCell, ...], ask: Ask
    ) -> tuple[CheckResult, ...]:
        place = self._build_check_environment(tree, ask)
        return await run_checks(cells, place, self._clock, limits=self._limits)

    def compare_with_baseline(
        self, base: str, cells: tuple[CheckCell, ...], results: tuple[CheckResult, ...], diff: Diff
    ) -> CheckVerdict:
        """Compare the results with those at a commit."""
        work = self._environment.config.work
        return compare_with_baseline(
            results,
            self._environment.find_baseline(base, cells),
            policy=work.policy,
            deleted=[file.path for file in diff.files if file.status == "deleted"],
            added=[file.path for file in diff.files if file.status == "added"],
            allow_fewer_tests=work.allow_fewer_tests,
        )

    def _build_check_environment(self, tree: PrepareTarget, ask: Ask) -> CheckEnvironment:
        variables = tree.environment(self._environment.ports_of(ask.case_no))
        environ = {**self._environment.environ, **variables}
        return CheckEnvironment(tree.folder, environ, self._build_tag(ask))

    def _build_tag(self, ask: Ask) -> ProcessTag:
        workspace = self._environment.config.workspace
        return ProcessTag(workspace, str(ask.run_id), str(ask.dispatch_id), "check")
