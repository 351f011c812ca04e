"""Handle MERGE and MERGE_FIX: put work on top of finished work, check it, and merge it.

Merges happen one at a time, since there is one merge branch with one tree. Work that conflicts is
rebased in its task's own tree. Run twice for one dispatch, the handler finds what was done the
first time.
"""

import asyncio
from collections.abc import Callable, Mapping
from typing import Any, Final

from interlock.carriers.contract import Ask
from interlock.engine.case import Case
from interlock.system.errors import InterlockError, SourceError
from interlock_delivery import steps
from interlock_delivery.checks import verdict as findings
from interlock_delivery.inspection import TaskEnvironment, TreeInspection
from interlock_delivery.open_tasks import OpenTasks
from interlock_delivery.plan.plan import Task
from interlock_delivery.worktrees.diff import Diff
from interlock_delivery.worktrees.merge_branch import (
    AlreadyMerged,
    Conflict,
    MergeBranch,
    NothingToMerge,
    Proposal,
    TaskChange,
)
from interlock_delivery.worktrees.ref_guard import MovedError
from interlock_delivery.worktrees.tree import TaskTree

_TRIES: Final = 5
_MARKED: Final = "Your work is now on top of theirs; resolve the conflict markers in these files: "


class MergeHandler:
    """Merges recorded work."""

    def __init__(
        self,
        environment: TaskEnvironment,
        inspection: TreeInspection,
        tasks: OpenTasks,
        note: Callable[[str], None],
    ) -> None:
        self._environment = environment
        self._inspection = inspection
        self._tasks = tasks
        self._note = note
        self._turn = asyncio.Lock()
        self._queued = 0
        self._unpublished = False

    async def __call__(self, ask: Ask, case: Case) -> dict[str, Any]:
        repairing = ask.step == steps.MERGE_FIX
        task = self._environment.find_task(case.case_id)
        tree = await asyncio.to_thread(self._environment.tree_of, case.case_id, ask.step)
        sha, base = _read_recorded(case, steps.HEALTH_CHECK if repairing else steps.PROVE)
        change = TaskChange(
            task_id=case.case_id,
            dispatch_id=str(ask.dispatch_id),
            sha=sha,
            base=base,
            title=f"Repair, for {case.case_id}" if repairing else task.title,
        )
        found = await self._merge_in_turn(ask, change, None if repairing else task, tree)
        if repairing and found["outcome"] in ("merged", "empty"):
            await asyncio.to_thread(
                _restart_tree, tree, self._environment.workspace.merge_branch.tip
            )
            await self._share_merged(ask, {**self._tasks.list_idle(), case.case_id: case.stack[0]})
        elif found["outcome"] == "merged":
            await asyncio.to_thread(self._close_tree, tree)
            await self._share_merged(ask, self._tasks.list_waiting_for(case.case_id))
        return found

    async def _merge_in_turn(
        self, ask: Ask, change: TaskChange, task: Task | None, tree: TaskTree
    ) -> dict[str, Any]:
        """Merge when no other merge runs; publish the branch when no other merge waits."""
        self._queued += 1
        async with self._turn:
            self._queued -= 1
            try:
                return await self._merge(ask, change, task, tree)
            finally:
                if self._unpublished and not self._queued:
                    await asyncio.to_thread(self._publish)

    async def bring_up_to_date(self, ask: Ask, tree: TaskTree) -> str:
        """Put recorded work on top of the merge branch in its own tree, and return the new commit.

        Return "" and change nothing if it is there already or conflicts.
        """
        async with self._turn:
            return await asyncio.to_thread(self._update_tree, ask, tree)

    def _update_tree(self, ask: Ask, tree: TaskTree) -> str:
        branch, sha, base = self._environment.workspace.merge_branch, tree.tip, tree.base
        if base == branch.tip:
            return ""
        task_id = tree.record.task_id
        dispatch_id = f"update-{ask.dispatch_id}"
        proposal = branch.propose(
            TaskChange(task_id=task_id, dispatch_id=dispatch_id, sha=sha, base=base)
        )
        if not isinstance(proposal, Proposal | NothingToMerge):
            return ""
        commit = proposal.commit if isinstance(proposal, Proposal) else branch.tip
        tree.restore(commit)
        tree.set_base(branch.tip)
        return commit

    async def _share_merged(self, ask: Ask, tasks: Mapping[str, str]) -> None:
        """Update the trees of tasks that waited for a repair or a task.

        A tree that an agent works in is left alone; the checks after its turn update it.
        """
        for name, step in sorted(tasks.items()):
            tree = await asyncio.to_thread(self._environment.tree_of, name, step)
            if tree.base == self._environment.workspace.merge_branch.tip:
                continue
            if step == steps.IMPLEMENT:
                await asyncio.to_thread(
                    tree.snapshot, f"{name}: before others' work was brought in"
                )
            await self.bring_up_to_date(ask, tree)
            await self._inspection.prepare(tree, ask)

    async def _merge(
        self, ask: Ask, change: TaskChange, task: Task | None, tree: TaskTree
    ) -> dict[str, Any]:
        branch = self._environment.workspace.merge_branch
        for _ in range(_TRIES):
            proposal = await asyncio.to_thread(branch.propose, change)
            match proposal:
                case AlreadyMerged(sha):
                    return self._build_merged(sha)
                case NothingToMerge():
                    return {"outcome": "empty", "summary": "the branch already has all of this"}
                case Conflict():
                    return await self._send_back(
                        branch, tree, change, findings.build_conflict(proposal)
                    )
            refuted = await self._verify(ask, branch, proposal, task)
            if refuted:
                return await self._send_back(branch, tree, change, refuted)
            try:
                merged = await asyncio.to_thread(branch.accept, proposal)
            except MovedError:
                continue
            return self._build_merged(merged.sha)
        return {"outcome": "moved", "summary": f"the branch moved {_TRIES} times meanwhile"}

    def _build_merged(self, sha: str) -> dict[str, Any]:
        self._unpublished = True
        return {"outcome": "merged", "commit": sha, "summary": f"merged as {sha[:12]}"}

    def _publish(self) -> None:
        """Publish the merge branch; if that fails, the next merge tries again."""
        published = self._environment.workspace.merge_branch.publish()
        self._unpublished = False
        if not published.is_done:
            self._note(published.sentence)

    async def _verify(
        self, ask: Ask, branch: MergeBranch, proposal: Proposal, task: Task | None
    ) -> dict[str, Any] | None:
        """Check a proposal; return what the checks have against it, or None."""
        cells = self._environment.build_cells(task)
        problem = await self._inspection.prepare(branch.merge_tree, ask)
        if problem:
            return {"outcome": "refuted", "summary": f"On top of the other tasks' work, {problem}"}
        results = await self._inspection.run(branch.merge_tree, cells, ask)
        verdict = self._inspection.compare_with_baseline(proposal.tip, cells, results, Diff())
        if verdict.ok:
            self._environment.store_baseline(proposal.commit, cells, results)
            return None
        return {"outcome": "refuted", "summary": findings.build_summary(verdict, results)}

    async def _send_back(
        self, branch: MergeBranch, tree: TaskTree, change: TaskChange, finding: dict[str, Any]
    ) -> dict[str, Any]:
        """Rebase the work in its own tree, with conflict markers where it does not fit."""
        rebased = await asyncio.to_thread(branch.rebase, tree, change.sha, change.base)
        files = list(rebased.files)
        more = f"\n\n{_MARKED}{', '.join(files)}" if files else ""
        return {**finding, "files": files, "summary": f"{finding['summary']}{more}"}

    def _close_tree(self, tree: TaskTree) -> None:
        """Remove the folder of a finished task; its branch and commits stay."""
        try:
            tree.close(force=True)
        except (InterlockError, OSError) as error:
            self._note(f"the folder of a finished task cannot be removed: {error}")
        self._environment.forget_tree(tree)


def _read_recorded(case: Case, step: str) -> tuple[str, str]:
    """Return the work and base recorded at a step.

    The tree itself may be elsewhere, after a merge that a crash cut short.
    """
    found = case.answers.get(step, {})
    sha, base = found.get("snapshot"), found.get("base")
    if not isinstance(sha, str) or not sha or not isinstance(base, str) or not base:
        raise SourceError(f"{case.case_id} has no recorded work at {step}")
    return sha, base


def _restart_tree(tree: TaskTree, tip: str) -> None:
    """Restart the tree of a merged repair from the branch's tip."""
    tree.restore(tip)
    tree.set_base(tip)
