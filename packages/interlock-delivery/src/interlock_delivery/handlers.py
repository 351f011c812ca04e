"""Handle the delivery's own steps: create trees, run checks, merge.

Findings are data, and the circuit decides. CHECK, PROVE and HEALTH_CHECK record the work, run the
checks and compare the agent's claims; changes by judges are undone. Run twice for one dispatch, as
after a crash, a handler finds what was already done.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, Final

import msgspec

from interlock.carriers.cli.ownership import cleanup_orphans
from interlock.carriers.contract import Ask, Reply
from interlock.carriers.function import build_answer
from interlock.engine.case import Case
from interlock.system.clock import Clock
from interlock.system.errors import SourceError
from interlock.system.file_kinds import has_tests, is_test
from interlock_delivery import steps
from interlock_delivery.checks import claims as claiming
from interlock_delivery.checks import verdict as findings
from interlock_delivery.checks.records import CheckResult
from interlock_delivery.inspection import TaskEnvironment, TreeInspection
from interlock_delivery.merging import MergeHandler
from interlock_delivery.open_tasks import OpenTasks
from interlock_delivery.plan.check import assess_task
from interlock_delivery.weakened_tests import WeakenedTest, find_weakened_tests
from interlock_delivery.worktrees.diff import Diff
from interlock_delivery.worktrees.names import Violation
from interlock_delivery.worktrees.snapshot import WriteSet, compare_write_set
from interlock_delivery.worktrees.tree import Snapshot, TaskTree
from interlock_delivery.worktrees.user_branches import accept_moves, claim_moves, describe_moves

Handler = Callable[[Ask, Case], Awaitable[dict[str, Any]]]
_MOST_TEXT: Final = 400_000
_MOST_OWED: Final = 20
"""The most findings that one judge must answer; further ones are only listed."""


class CheckHandler:
    """Inspects the work of tasks and repairs."""

    def __init__(
        self,
        environment: TaskEnvironment,
        inspection: TreeInspection,
        merging: MergeHandler,
        tasks: OpenTasks,
    ) -> None:
        self._environment = environment
        self._inspection = inspection
        self._merging = merging
        self._tasks = tasks

    async def __call__(self, ask: Ask, case: Case) -> dict[str, Any]:
        tree = await asyncio.to_thread(self._environment.tree_of, case.case_id, ask.step)
        if ask.step == steps.HEALTH_CHECK:
            await self._inspection.prepare(tree, ask)
        await asyncio.to_thread(self._inspection.restore_recorded, tree)
        snapshot, notes = await asyncio.to_thread(_record_work, tree, ask, case)
        if moved := await asyncio.to_thread(self._find_moved_branches, ask, case):
            return {**moved, "snapshot": snapshot.sha, "base": tree.base, "notes": notes}
        found = await self._inspect(ask, case, tree, snapshot)
        if found["unavailable"] and ask.step not in steps.REPAIR:
            fresh = await self._merging.bring_up_to_date(ask, tree)
            if fresh:
                await self._inspection.prepare(tree, ask)
                found = await self._inspect(ask, case, tree, Snapshot(fresh))
                notes.append("the work was rebased onto a repair that was merged meanwhile")
        return {**found, "notes": [*notes, *found["notes"]]}

    def _find_moved_branches(self, ask: Ask, case: Case) -> dict[str, Any]:
        """Return what a human must know if branches of the user moved while agents worked.

        Moves that this step reported before have been answered, and are accepted.
        """
        workspace, others = self._environment.workspace, self._tasks.list_declared()
        accept_moves(workspace, case.answers.get(ask.step, {}).get("moved", ()))
        moves = claim_moves(workspace, case.case_id, lambda name: name in others)
        if not moves:
            return {}
        text = f"{describe_moves(workspace, moves)}\n\nAnswer when the branch is as you want it."
        return {
            "moved": msgspec.to_builtins(moves),
            "ok": False,
            "empty": False,
            "unavailable": [],
            "violations": [],
            "summary": text,
            "text": text,
        }

    async def _inspect(
        self, ask: Ask, case: Case, tree: TaskTree, snapshot: Snapshot
    ) -> dict[str, Any]:
        """Run the checks on one recorded state, and return every finding about it."""
        is_repair = ask.step in steps.REPAIR
        diff = await asyncio.to_thread(
            self._tasks.read_diff, case.case_id, tree, tree.base, snapshot.sha
        )
        writes = WriteSet() if is_repair else self._compare_write_set(case, diff)
        trespasses = (
            Violation(
                "another-task",
                f"{path} is declared by task {owner}: leave it alone, or report FILE CONFLICT",
            )
            for path, owner in writes.others
        )
        violations = [*snapshot.violations, *trespasses]
        is_empty = not diff.files and not is_repair
        task = None if is_repair else self._environment.find_task(case.case_id)
        cells = self._environment.build_cells(task)
        results: tuple[CheckResult, ...] = ()
        if not violations and not is_empty:
            results = await self._inspection.run_on_recorded(tree, snapshot.sha, cells, ask)
        verdict = await asyncio.to_thread(
            self._inspection.compare_with_baseline, tree.base, cells, results, diff
        )
        weakened = await asyncio.to_thread(_find_weakened_tests, tree, diff)
        claims = self._compare_claims(ask.step, case, results, diff, tree)
        return {
            "ok": verdict.ok and not violations,
            "new_failures": list(verdict.reasons) if results else [],
            "unavailable": list(verdict.list_names("unavailable")),
            "violations": [each.sentence for each in violations],
            "weakened_tests": [f"{each.path}:{each.line}: {each.sentence}" for each in weakened],
            "owed": [*_list_owed(is_repair, weakened, writes, diff)],
            "results": [findings.build_result_row(each) for each in results],
            "notes": list(verdict.notes),
            "summary": findings.build_summary(verdict, results, violations, empty=is_empty),
            "snapshot": snapshot.sha,
            "base": tree.base,
            "changed": list(diff.paths),
            "empty": is_empty,
            "claims": msgspec.to_builtins(claims),
            "refuted": sum(each.found == "refuted" for each in claims),
        }

    def _compare_write_set(self, case: Case, diff: Diff) -> WriteSet:
        """Compare the changed files with those of this task and of other open tasks.

        A file that the task reported as a conflict may be changed.
        """
        declared = self._environment.find_task(case.case_id).target_files
        others = self._tasks.list_declared()
        others.pop(case.case_id, None)
        prefix = self._environment.workspace.source.prefix
        found = compare_write_set(diff.paths, declared, others, prefix)
        reported = {f"{prefix}{path}" for path in self._tasks.list_reported(case.case_id)}
        return WriteSet(
            found.inside,
            tuple(path for path in found.outside if path not in reported),
            tuple(row for row in found.others if row[0] not in reported),
        )

    def _compare_claims(
        self, step: str, case: Case, results: tuple[CheckResult, ...], diff: Diff, tree: TaskTree
    ) -> tuple[claiming.AgentClaim, ...]:
        claimed_at, signal = steps.CLAIMED[step]
        answer = case.answers.get(claimed_at, {})
        found = claiming.compare_claims(
            claiming.read_claim_rows(signal, answer), results, self._environment.plan.checks
        )
        if step == steps.CHECK:
            found += claiming.compare_file_claims(answer, diff.paths, str(tree.folder))
        return found


def _record_work(tree: TaskTree, ask: Ask, case: Case) -> tuple[Snapshot, list[str]]:
    """Record the work; after an audit, restore it to what was recorded before."""
    if ask.step != steps.PROVE:
        message = f"{case.case_id}: {ask.step.lower()} {ask.attempt}"
        return tree.snapshot(message), []
    sha = tree.tip
    notes = [f"after the work was recorded: {each.sentence}" for each in tree.check_violations(sha)]
    if not tree.is_unchanged(sha):
        tree.restore(sha)
        notes.append("the files were changed after the work was recorded; they were restored")
    return Snapshot(sha), notes


def _find_weakened_tests(tree: TaskTree, diff: Diff) -> tuple[WeakenedTest, ...]:
    """Return the tests that assert less in the tree than before the change."""
    tested = [file for file in diff.files if has_tests(file.path)]
    old = {file.path: tree.read_old_text(file.path) for file in tested if file.status != "added"}
    return find_weakened_tests(old, _read_new_texts(tree.root, [file.path for file in tested]))


def _read_new_texts(root: Path, names: Iterable[str]) -> dict[str, str]:
    """Return the texts of the files that still exist and are not too large."""
    found: dict[str, str] = {}
    for name in names:
        path = root / name
        try:
            if path.stat().st_size <= _MOST_TEXT and not path.is_symlink():
                found[name] = path.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError):
            continue
    return found


def _list_owed(
    is_repair: bool, weakened: Iterable[WeakenedTest], writes: WriteSet, diff: Diff
) -> Iterator[dict[str, str]]:
    """Yield the findings that a judge must answer before the work passes, one per file."""
    critic = "health-auditor" if is_repair else "critic"
    first: dict[str, str] = {}
    for each in weakened:
        first.setdefault(each.path, each.sentence)
    for path, sentence in [*first.items()][:_MOST_OWED]:
        yield {"judge": critic, "path": path, "sentence": sentence}
    # New tests belong to every task, wherever they are.
    new_tests = {file.path for file in diff.files if file.status == "added" and is_test(file.path)}
    outside = [path for path in writes.outside if path not in new_tests]
    for path in outside[:_MOST_OWED]:
        sentence = "it is outside the target files of the task"
        yield {"judge": "auditor", "path": path, "sentence": sentence}


_TO_EXPAND: Final = {"scope", "criteria"}
"""Parts that an analyst can add to a task that lacks them."""


class PrepareHandler:
    """Creates a tree for each task, and the baseline once per run."""

    def __init__(self, environment: TaskEnvironment, inspection: TreeInspection) -> None:
        self._environment = environment
        self._inspection = inspection
        self._turn = asyncio.Lock()

    async def __call__(self, ask: Ask, case: Case) -> dict[str, Any]:
        task = self._environment.find_task(case.case_id)
        problem = await self._take_baseline(ask)
        tree = await asyncio.to_thread(self._environment.tree_of, case.case_id, ask.step)
        problem = problem or await self._inspection.prepare(tree, ask)
        found = assess_task(task, self._environment.tasks)
        expand = self._environment.config.work.expand
        is_lacking = not _TO_EXPAND.isdisjoint(found.missing)
        return {
            "problem": problem or "; ".join(found.reasons),
            "ready": not problem,
            "needs_expansion": expand == "always" or (expand == "auto" and is_lacking),
            "needs_clarification": found.verdict == "NEEDS_CLARIFICATION",
            "base": tree.base,
        }

    async def _take_baseline(self, ask: Ask) -> str:
        """Take the baseline if it is missing; return the reason if that fails."""
        environment, cells = self._environment, self._environment.build_cells()
        async with self._turn:
            if not cells or environment.find_baseline(environment.workspace.base, cells):
                return ""
            return await self._inspection.take_baseline(cells, ask)


class DeliveryHandlers:
    """Dispatches each step whose role our own code plays to its handler."""

    def __init__(
        self,
        environment: TaskEnvironment,
        tasks: OpenTasks,
        clock: Clock,
        note: Callable[[str], None],
    ) -> None:
        inspection = TreeInspection(environment, clock)
        merging = MergeHandler(environment, inspection, tasks, note)
        checking = CheckHandler(environment, inspection, merging, tasks)
        self._workspace = environment.config.workspace
        self._clock = clock
        self._cleanup: asyncio.Task[Any] | None = None
        self._by_step: dict[str, Handler] = {
            steps.PREPARE: PrepareHandler(environment, inspection),
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
            # Processes that a killed session left running would work in the same trees.
            self._cleanup = asyncio.create_task(cleanup_orphans(self._workspace, self._clock))
        await asyncio.shield(self._cleanup)
        return build_answer(ask, await self._by_step[ask.step](ask, ask.case))
