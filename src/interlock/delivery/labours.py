"""The programs of a delivery, by step: they make trees, run the checks and merge, and answer so.

What they find is told as data, and the circuit decides. Done twice for the same dispatch, as after
a crash, they find what was done. Refuses to know who is asked next.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, Final

from interlock.agents.carrier import Ask, Clock, Reply
from interlock.agents.cli.reap import reap
from interlock.agents.program import answer
from interlock.delivery import steps
from interlock.delivery.checking import CheckHandler
from interlock.delivery.inspection import TreeInspection
from interlock.delivery.merging import MergeHandler
from interlock.delivery.plan.assess import assess
from interlock.delivery.site import TaskEnvironment
from interlock.engine.case import Case
from interlock.system.errors import SourceError

_TO_EXPAND: Final = {"scope", "criteria"}
"""What an analyst can find out where a task does not say it."""


class Preparing:
    """A tree of its own for each task; and how things stood before, once for the whole run."""

    def __init__(self, ground: TaskEnvironment, inspection: TreeInspection) -> None:
        self._ground = ground
        self._inspection = inspection
        self._turn = asyncio.Lock()

    async def __call__(self, ask: Ask, case: Case) -> dict[str, Any]:
        task = self._ground.task(case.case_id)
        problem = await self._take_baseline(ask)
        tree = await asyncio.to_thread(self._ground.tree_of, case.case_id, ask.step)
        problem = problem or await self._inspection.prepare(tree, ask)
        found = assess(task, self._ground.tasks)
        expand = self._ground.terms.work.expand
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
        ground, cells = self._ground, self._ground.cells()
        async with self._turn:
            if not cells or ground.baseline(ground.shop.base, cells):
                return ""
            tree = await asyncio.to_thread(ground.before)
            problem = await self._inspection.prepare(tree, ask)
            if not problem:
                await self._inspection.take_baseline(tree, cells, ask)
            return problem


class DeliveryHandlers:
    """Our own work for each step whose role is a program's."""

    def __init__(
        self,
        ground: TaskEnvironment,
        clock: Clock,
        merging: MergeHandler,
        checking: CheckHandler,
        inspection: TreeInspection,
    ) -> None:
        self._workspace = ground.terms.workspace
        self._clock = clock
        self._reaped: asyncio.Task[Any] | None = None
        self._by_step: dict[str, Callable[[Ask, Case], Awaitable[dict[str, Any]]]] = {
            steps.PREPARE: Preparing(ground, inspection),
            steps.CHECK: checking,
            steps.PROVE: checking,
            steps.HEALTH_CHECK: checking,
            steps.MERGE: merging,
            steps.MERGE_FIX: merging,
        }

    async def __call__(self, ask: Ask) -> Reply:
        if ask.case is None:
            raise SourceError(f"step {ask.step} of {ask.case_id} has no case")
        if self._reaped is None:
            # What a sitting that was killed left running would work in the same trees.
            self._reaped = asyncio.create_task(reap(self._workspace, self._clock))
        await asyncio.shield(self._reaped)
        return answer(ask, await self._by_step[ask.step](ask, ask.case))
