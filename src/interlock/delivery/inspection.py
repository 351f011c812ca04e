"""The environment in which tasks are worked on, and inspecting the work in a tree.

`TaskEnvironment` knows the workspace, the plan as it is now, and which tree and which checks belong
to a step. `TreeInspection` prepares a tree, runs the checks there and compares them with the
baseline. Every process it starts is tagged, so that none outlives us unseen.
"""

import asyncio
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from interlock.agents.carrier import Ask, Clock
from interlock.agents.cli.orphans import describe_owner
from interlock.agents.cli.profiles import filter_environment
from interlock.agents.cli.tag import ProcessTag, build_tag_variables
from interlock.delivery.checks.baseline import (
    Baseline,
    read_baseline,
    take_baseline,
    write_baseline,
)
from interlock.delivery.checks.records import CheckCell, CheckResult, build_matrix, normalize_name
from interlock.delivery.checks.run import CheckEnvironment as CheckSite
from interlock.delivery.checks.run import CheckLimits, run_checks
from interlock.delivery.checks.verdict import CheckVerdict, compare_with_baseline
from interlock.delivery.config import DeliveryConfig
from interlock.delivery.plan.plan import Plan, Task, index_tasks
from interlock.delivery.steps import REPAIR
from interlock.delivery.worktrees.diff import Diff
from interlock.delivery.worktrees.prepare import PrepareTarget as Tree
from interlock.delivery.worktrees.prepare import prepare_tree
from interlock.delivery.worktrees.tree import TaskTree
from interlock.delivery.worktrees.workspace import DeliveryWorkspace
from interlock.system.errors import SourceError
from interlock.system.files import save_file

_EXPERTS: Final = "experts"
_BASELINES: Final = "baselines"
_LAST_PORT: Final = 65_535
_BLOCKS: Final = 500
_BEFORE: Final = "interlock#baseline"
"""The tree in which the baseline is taken. No task has this id: a plan's may not hold it."""


class TaskEnvironment:
    """Where tasks are worked on. Its trees are entered once and kept."""

    def __init__(
        self,
        shop: DeliveryWorkspace,
        terms: DeliveryConfig,
        plan: Plan,
        environ: Mapping[str, str] = os.environ,
    ) -> None:
        self.workspace = shop
        self.terms = terms
        self.plan = plan
        self.tasks = index_tasks(plan)
        self.made_experts = Path(terms.home) / _EXPERTS
        self.baselines = Path(terms.home) / _BASELINES
        self._workspace_tag = terms.workspace
        self._environ = filter_environment(environ, terms.work.let_in)
        self._trees: dict[str, TaskTree] = {}

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
        return self._open_tree(f"{case_id}#repair" if step in REPAIR else case_id)

    def baseline_tree(self) -> TaskTree:
        """The tree that shows the work before any task."""
        return self._open_tree(_BEFORE)

    def _open_tree(self, name: str) -> TaskTree:
        if name not in self._trees:
            self._trees[name] = self.workspace.open_tree(name)
        return self._trees[name]

    def forget_tree(self, tree: TaskTree) -> None:
        """It is entered anew when somebody asks for it."""
        self._trees.pop(tree.record.task_id, None)

    def ports_of(self, case_no: int) -> tuple[int, int] | None:
        """The first port of a case, and how many are its own. Blocks are given out in turn."""
        work = self.terms.work
        if not work.first_port:
            return None
        blocks = max(1, (_LAST_PORT + 1 - work.first_port) // work.ports)
        return work.first_port + case_no % min(blocks, _BLOCKS) * work.ports, work.ports

    def build_cells(self, task: Task | None = None) -> tuple[CheckCell, ...]:
        """What is run for a task: all checks, or those of its environment if it names one."""
        cells = build_matrix(self.plan.checks, self.plan.environments)
        wanted = normalize_name(task.environment) if task else ""
        return tuple(
            cell for cell in cells if not wanted or normalize_name(cell.environment.name) == wanted
        )

    def build_check_environment(
        self, folder: Path, environ: Mapping[str, str], tag: tuple[str, ...]
    ) -> CheckSite:
        return CheckSite(
            folder, {**self._environ, **environ}, ProcessTag(self._workspace_tag, *tag)
        )

    def find_baseline(self, commit: str, cells: tuple[CheckCell, ...]) -> tuple[CheckResult, ...]:
        """How these checks stood at that commit, or else before the first task."""
        for each in (commit, self.workspace.base):
            kept = read_baseline(self.baselines, each)
            if not kept.find_missing(cells):
                break
        return kept.results_of(cells)

    def store_baseline(
        self, commit: str, cells: tuple[CheckCell, ...], results: tuple[CheckResult, ...]
    ) -> None:
        """Store the results at a merged commit: later work is compared with them."""
        kept = Baseline(1, commit)
        for cell, result in zip(cells, results, strict=True):
            kept = kept.with_result(cell, result)
        write_baseline(self.baselines, kept)


_MOST_OUTPUT: Final = 3_000
_CHECKED: Final = "checked"


class TreeInspection:
    """Looks at trees of one environment."""

    def __init__(self, env: TaskEnvironment, clock: Clock) -> None:
        self._env = env
        self._clock = clock
        self._bounds = CheckLimits(at_once=env.terms.work.checks_at_once)

    async def prepare(self, tree: Tree, ask: Ask) -> str:
        """Files are copied in, the set-up command is run; why the tree is not ready, if so."""
        work = self._env.terms.work
        place = self._build_check_environment(tree.folder, {}, ask)
        environ = {
            **place.environ,
            **build_tag_variables(place.tag, describe_owner(), place.environ),
        }
        ports = self._env.ports_of(ask.case_no)
        done = await asyncio.to_thread(
            prepare_tree, tree, work.copy, work.setup, ports, environ=environ
        )
        if done.is_ready:
            return ""
        return f"the set-up command failed: {done.output[-_MOST_OUTPUT:]}"

    async def take_baseline(self, tree: TaskTree, cells: tuple[CheckCell, ...], ask: Ask) -> None:
        """How the checks stand in a tree that shows the work before any task."""
        env, base = self._env, self._env.workspace.base
        place = self._build_check_environment(
            tree.folder, tree.environment(self._env.ports_of(ask.case_no)), ask
        )
        await take_baseline(env.baselines, base, cells, place, self._clock, bounds=self._bounds)
        await asyncio.to_thread(tree.restore, base)

    async def run_on_recorded(
        self, tree: TaskTree, sha: str, cells: tuple[CheckCell, ...], ask: Ask
    ) -> tuple[CheckResult, ...]:
        """On recorded work: what the checks leave in the tree is nobody's, and taken away again."""
        mark = self._marker_file(tree)
        mark.parent.mkdir(exist_ok=True)
        await asyncio.to_thread(save_file, mark, sha.encode())
        results = await self.run(tree, cells, ask)
        await asyncio.to_thread(self.restore_recorded, tree)
        return results

    def restore_recorded(self, tree: TaskTree) -> None:
        """Take away what checks left, also those that a crash cut short."""
        mark = self._marker_file(tree)
        if mark.exists():
            sha = mark.read_text(encoding="ascii")
            if not tree.is_unchanged(sha):
                tree.restore(sha)
            mark.unlink()

    def _marker_file(self, tree: TaskTree) -> Path:
        """Holds the recorded state of a tree while checks are at work in it."""
        return self._env.workspace.home / _CHECKED / tree.name

    async def run(
        self, tree: Tree, cells: tuple[CheckCell, ...], ask: Ask
    ) -> tuple[CheckResult, ...]:
        environ = tree.environment(self._env.ports_of(ask.case_no))
        place = self._build_check_environment(tree.folder, environ, ask)
        return await run_checks(cells, place, self._clock, bounds=self._bounds)

    def compare_with_baseline(
        self, base: str, cells: tuple[CheckCell, ...], results: tuple[CheckResult, ...], diff: Diff
    ) -> CheckVerdict:
        """The results against how the checks stood at that commit."""
        work = self._env.terms.work
        return compare_with_baseline(
            results,
            self._env.find_baseline(base, cells),
            policy=work.policy,
            deleted=[file.path for file in diff.files if file.status == "deleted"],
            added=[file.path for file in diff.files if file.status == "added"],
            allow_fewer_tests=work.allow_fewer_tests,
        )

    def _build_check_environment(
        self, folder: Path, environ: Mapping[str, str], ask: Ask
    ) -> CheckSite:
        tag = (str(ask.run_id), str(ask.dispatch_id), "check")
        return self._env.build_check_environment(folder, environ, tag)
