"""The environment in which tasks are worked on, and inspecting the work in a worktree.

`TaskEnvironment` knows the workspace, the plan as it is now, and which tree and which checks belong
to a step. `TreeInspection` prepares a tree, runs the checks there and compares them with the
baseline. Every process it starts is tagged, so that none outlives us unseen.
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
"""The tree in which the baseline is taken. No task has this id: a plan's may not contain it."""


class TaskEnvironment:
    """Where tasks are worked on. Its trees are opened once and kept."""

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
        """What checks and the set-up command see of our own environment."""
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
        """The tree in which a step of a case works: the task's, or that of its repair."""
        return self.open_tree(f"{case_id}#repair" if step in REPAIR else case_id)

    def open_tree(self, name: str) -> TaskTree:
        if name not in self._trees:
            self._trees[name] = self.workspace.open_tree(name)
        return self._trees[name]

    def forget_tree(self, tree: TaskTree) -> None:
        """It is opened anew when it is asked for."""
        self._trees.pop(tree.record.task_id, None)

    def ports_of(self, case_no: int) -> tuple[int, int] | None:
        """The first port of a case, and how many are its own. Blocks are assigned in turn."""
        work = self.config.work
        if not work.first_port:
            return None
        blocks = max(1, (_LAST_PORT + 1 - work.first_port) // work.ports)
        return work.first_port + case_no % min(blocks, _MOST_BLOCKS) * work.ports, work.ports

    def build_cells(self, task: Task | None = None) -> tuple[CheckCell, ...]:
        """What is run for a task: all checks, or those of its environment if it names one."""
        cells = build_matrix(self.plan.checks, self.plan.environments)
        wanted = normalize_name(task.environment) if task else ""
        return tuple(
            cell for cell in cells if not wanted or normalize_name(cell.environment.name) == wanted
        )

    def find_baseline(self, commit: str, cells: tuple[CheckCell, ...]) -> tuple[CheckResult, ...]:
        """How these checks stood at that commit, or else before the first task."""
        for each in (commit, self.workspace.base):
            baseline = read_baseline(self.baselines, each)
            if not baseline.find_missing(cells):
                break
        return baseline.results_of(cells)

    def store_baseline(
        self, commit: str, cells: tuple[CheckCell, ...], results: tuple[CheckResult, ...]
    ) -> None:
        """Store the results at a merged commit: later work is compared with them."""
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
        """Copy files in and run the set-up command; why the tree is not ready, if so."""
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
        """Check the work as it was before any task; why it cannot be checked, if so."""
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
        """On recorded work: what the checks leave in the tree belongs to nobody and is removed."""
        marker = self._marker_file(tree)
        marker.parent.mkdir(exist_ok=True)
        await asyncio.to_thread(save_file, marker, sha.encode())
        results = await self.run(tree, cells, ask)
        await asyncio.to_thread(self.restore_recorded, tree)
        return results

    def restore_recorded(self, tree: TaskTree) -> None:
        """Remove what checks left, also those that a crash cut short."""
        marker = self._marker_file(tree)
        if marker.exists():
            sha = marker.read_text(encoding="ascii")
            if not tree.is_unchanged(sha):
                tree.restore(sha)
            marker.unlink()

    def _marker_file(self, tree: TaskTree) -> Path:
        """Contains the recorded state of a tree while checks run in it."""
        return self._environment.workspace.home / _CHECKED / tree.name

    async def run(
        self, tree: PrepareTarget, cells: tuple[CheckCell, ...], ask: Ask
    ) -> tuple[CheckResult, ...]:
        place = self._build_check_environment(tree, ask)
        return await run_checks(cells, place, self._clock, limits=self._limits)

    def compare_with_baseline(
        self, base: str, cells: tuple[CheckCell, ...], results: tuple[CheckResult, ...], diff: Diff
    ) -> CheckVerdict:
        """The results against how the checks stood at that commit."""
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
