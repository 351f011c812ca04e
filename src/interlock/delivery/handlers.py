"""The handlers of a delivery's own steps: they create trees, run the checks and merge.

Their findings are data, and the circuit decides. CHECK, PROVE and HEALTH_CHECK record the work as
it is, run the checks and compare the agent's claims; what judges changed is put back. Run twice for
one dispatch, as after a crash, a handler finds what was done.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final

import msgspec

from interlock.agents.carrier import Ask, Clock, Reply
from interlock.agents.cli.orphans import cleanup_orphans
from interlock.agents.function import build_answer
from interlock.delivery import steps
from interlock.delivery.checks import claims as claiming
from interlock.delivery.checks import verdict as findings
from interlock.delivery.checks.records import CheckCell, CheckResult
from interlock.delivery.diff_findings import find_diff_issues
from interlock.delivery.inspection import TaskEnvironment, TreeInspection
from interlock.delivery.merging import MergeHandler
from interlock.delivery.plan.check import assess_task
from interlock.delivery.worktrees.diff import Diff
from interlock.delivery.worktrees.names import Violation
from interlock.delivery.worktrees.snapshot import compare_write_set
from interlock.delivery.worktrees.tree import Snapshot, TaskTree
from interlock.engine.case import Case
from interlock.system.errors import SourceError


class CheckHandler:
    """Looks at the work of tasks and repairs. `seen` keeps the change it saw last of each task,
    for the prompts of those who judge it."""

    def __init__(
        self,
        env: TaskEnvironment,
        inspection: TreeInspection,
        merging: MergeHandler,
        conflicts_of: Callable[[str], frozenset[str]],
        open_tasks: Callable[[], Mapping[str, tuple[str, ...]]],
    ) -> None:
        self.diffs: dict[str, Diff] = {}
        self._commits: dict[str, tuple[str, str]] = {}
        self._env = env
        self._inspection = inspection
        self._merging = merging
        self._conflicts_of = conflicts_of
        self._open_tasks = open_tasks

    async def __call__(self, ask: Ask, case: Case) -> dict[str, Any]:
        tree = await asyncio.to_thread(self._env.tree_of, case.case_id, ask.step)
        if ask.step == steps.HEALTH_CHECK:
            await self._inspection.prepare(tree, ask)
        await asyncio.to_thread(self._inspection.restore_recorded, tree)
        snapshot, notes = await asyncio.to_thread(_record_work, tree, ask, case)
        found = await self._inspect(ask, case, tree, snapshot)
        if found["unavailable"] and ask.step not in steps.REPAIR:
            fresh = await self._merging.bring_up_to_date(ask, tree)
            if fresh:
                await self._inspection.prepare(tree, ask)
                found = await self._inspect(ask, case, tree, Snapshot(fresh))
                notes.append("the work was put on top of what was repaired meanwhile")
        return {**found, "notes": [*notes, *found["notes"]]}

    async def _inspect(
        self, ask: Ask, case: Case, tree: TaskTree, snapshot: Snapshot
    ) -> dict[str, Any]:
        """The checks on one recorded state, and all that is noticed about it."""
        repairing = ask.step in steps.REPAIR
        diff = await self._read_diff(case.case_id, tree, snapshot.sha)
        violations = [*snapshot.violations, *self._find_trespasses(case, ask.step, diff)]
        empty = not diff.files and not repairing
        cells = self._env.build_cells(None if repairing else self._env.find_task(case.case_id))
        results: tuple[CheckResult, ...] = ()
        if not violations and not empty:
            results = await self._inspection.run_on_recorded(tree, snapshot.sha, cells, ask)
        told = await asyncio.to_thread(
            self._build_findings, ask.step, tree, diff, cells, results, violations
        )
        claimed = self._compare_claims(ask.step, case, results, diff, tree)
        return {
            **told,
            "snapshot": snapshot.sha,
            "base": tree.base,
            "changed": list(diff.paths),
            "empty": empty,
            "claims": msgspec.to_builtins(claimed),
            "refuted": sum(each.found == "refuted" for each in claimed),
        }

    async def _read_diff(self, case_id: str, tree: TaskTree, sha: str) -> Diff:
        """What changed; looked up once for the same two commits."""
        commits = (tree.base, sha)
        if self._commits.get(case_id) != commits or case_id not in self.diffs:
            self.diffs[case_id] = await asyncio.to_thread(tree.diff, *commits)
            self._commits[case_id] = commits
        return self.diffs[case_id]

    def _build_findings(
        self,
        step: str,
        tree: TaskTree,
        diff: Diff,
        cells: tuple[CheckCell, ...],
        results: tuple[CheckResult, ...],
        violations: list[Violation],
    ) -> dict[str, Any]:
        """What the checks and the text of the change itself say."""
        empty = not diff.files and step not in steps.REPAIR
        verdict = self._inspection.compare_with_baseline(tree.base, cells, results, diff)
        texts = findings.read_new_texts(tree.root, diff)
        tells = find_diff_issues({file.path: file.added for file in diff.files}, texts)
        return {
            "ok": verdict.ok and not violations,
            "new_failures": list(verdict.reasons) if results else [],
            "unavailable": list(verdict.list_names("unavailable")),
            "violations": [each.sentence for each in violations],
            "tells": [f"{each.path}:{each.line}: {each.sentence}" for each in tells],
            "results": [findings.build_result_row(each) for each in results],
            "notes": list(verdict.notes),
            "summary": findings.build_summary(verdict, results, violations, empty=empty),
        }

    def _find_trespasses(self, case: Case, step: str, diff: Diff) -> list[Violation]:
        """Files that another open task has declared and this one neither declared nor reported."""
        if step in steps.REPAIR:
            return []
        declared = self._env.find_task(case.case_id).target_files
        others = {name: files for name, files in self._open_tasks().items() if name != case.case_id}
        prefix = self._env.workspace.manifest.found.prefix
        found = compare_write_set(diff.paths, declared, others, prefix).others
        reported = {f"{prefix}{path}" for path in self._conflicts_of(case.case_id)} if found else ()
        return [
            Violation(
                "another-task",
                f"{path} is declared by task {owner}: leave it alone, or report FILE CONFLICT",
            )
            for path, owner in found
            if path not in reported
        ]

    def _compare_claims(
        self, step: str, case: Case, results: tuple[CheckResult, ...], diff: Diff, tree: TaskTree
    ) -> tuple[claiming.AgentClaim, ...]:
        where, signal = steps.CLAIMED[step]
        said = case.answers.get(where, {})
        found = claiming.compare_claims(
            claiming.read_claim_rows(signal, said), results, self._env.plan.checks
        )
        if step == steps.CHECK:
            found += claiming.compare_file_claims(said, diff.paths, str(tree.folder))
        return found


def _record_work(tree: TaskTree, ask: Ask, case: Case) -> tuple[Snapshot, list[str]]:
    """The work as it is; where only judges looked at it since, as we recorded it before."""
    if ask.step != steps.PROVE:
        message = f"{case.case_id}: {ask.step.lower()} {ask.attempt}"
        return tree.snapshot(message), []
    sha = tree.tip
    notes = [f"after the work was recorded: {each.sentence}" for each in tree.check_violations(sha)]
    if not tree.is_unchanged(sha):
        tree.restore(sha)
        notes.append("after the work was recorded somebody changed its files; they were put back")
    return Snapshot(sha), notes


_TO_EXPAND: Final = {"scope", "criteria"}
"""What an analyst can find out where a task does not say it."""


class PrepareHandler:
    """A tree of its own for each task; and how things stood before, once for the whole run."""

    def __init__(self, env: TaskEnvironment, inspection: TreeInspection) -> None:
        self._env = env
        self._inspection = inspection
        self._turn = asyncio.Lock()

    async def __call__(self, ask: Ask, case: Case) -> dict[str, Any]:
        task = self._env.find_task(case.case_id)
        problem = await self._take_baseline(ask)
        tree = await asyncio.to_thread(self._env.tree_of, case.case_id, ask.step)
        problem = problem or await self._inspection.prepare(tree, ask)
        found = assess_task(task, self._env.tasks)
        expand = self._env.terms.work.expand
        lacking = not _TO_EXPAND.isdisjoint(found.missing)
        return {
            "ready": not problem,
            "needs_expansion": expand == "always" or (expand == "auto" and lacking),
            "needs_clarification": found.verdict == "NEEDS_CLARIFICATION",
            "problem": problem or "; ".join(found.reasons),
            "base": tree.base,
        }

    async def _take_baseline(self, ask: Ask) -> str:
        """Why it cannot be known how the checks stand before any work, if so."""
        env, cells = self._env, self._env.build_cells()
        async with self._turn:
            if not cells or env.find_baseline(env.workspace.base, cells):
                return ""
            tree = await asyncio.to_thread(env.baseline_tree)
            problem = await self._inspection.prepare(tree, ask)
            if not problem:
                await self._inspection.take_baseline(tree, cells, ask)
            return problem


class DeliveryHandlers:
    """Our own work for each step whose role is a program's."""

    def __init__(
        self,
        env: TaskEnvironment,
        clock: Clock,
        merging: MergeHandler,
        checking: CheckHandler,
        inspection: TreeInspection,
    ) -> None:
        self._workspace = env.terms.workspace
        self._clock = clock
        self._cleanup: asyncio.Task[Any] | None = None
        self._by_step: dict[str, Callable[[Ask, Case], Awaitable[dict[str, Any]]]] = {
            steps.PREPARE: PrepareHandler(env, inspection),
            steps.CHECK: checking,
            steps.PROVE: checking,
            steps.HEALTH_CHECK: checking,
            steps.MERGE: merging,
            steps.MERGE_FIX: merging,
        }

    async def __call__(self, ask: Ask) -> Reply:
        if ask.case is None:
            raise SourceError(f"step {ask.step} of {ask.case_id} has no case")
        if self._cleanup is None:
            # What a sitting that was killed left running would work in the same trees.
            self._cleanup = asyncio.create_task(cleanup_orphans(self._workspace, self._clock))
        await asyncio.shield(self._cleanup)
        return build_answer(ask, await self._by_step[ask.step](ask, ask.case))
