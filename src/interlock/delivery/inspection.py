"""A look at the work in one tree: it is made ready, the checks are run there, and judged.

Knows the ground and the clock. What is started is tagged, so that nothing of it outlives us unseen.
Refuses to know why somebody looks, and what follows.
"""

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from interlock.agents.carrier import Ask, Clock
from interlock.agents.cli.start import owner
from interlock.agents.cli.tag import variables
from interlock.delivery.checks.baseline import take_baseline
from interlock.delivery.checks.checks import Bounds, run_checks
from interlock.delivery.checks.checks import Site as CheckSite
from interlock.delivery.checks.records import CheckCell, CheckResult
from interlock.delivery.checks.verdict import CheckVerdict, judge
from interlock.delivery.site import TaskEnvironment
from interlock.delivery.worktrees.diff import Diff
from interlock.delivery.worktrees.prepare import PrepareTarget as Tree
from interlock.delivery.worktrees.prepare import prepare
from interlock.delivery.worktrees.tree import TaskTree
from interlock.system.files import write_whole

_MOST_OUTPUT: Final = 3_000
_CHECKED: Final = "checked"


class TreeInspection:
    """Looks at trees of one ground."""

    def __init__(self, ground: TaskEnvironment, clock: Clock) -> None:
        self._ground = ground
        self._clock = clock
        self._bounds = Bounds(at_once=ground.terms.work.checks_at_once)

    async def prepare(self, tree: Tree, ask: Ask) -> str:
        """Files are copied in, the set-up command is run; why the tree is not ready, if so."""
        work = self._ground.terms.work
        site = self._site(tree.folder, {}, ask)
        environ = {**site.environ, **variables(site.tag, owner(), site.environ)}
        ports = self._ground.ports(ask.case_no)
        done = await asyncio.to_thread(prepare, tree, work.copy, work.setup, ports, environ=environ)
        if done.is_ready:
            return ""
        return f"the set-up command failed: {done.output[-_MOST_OUTPUT:]}"

    async def take_baseline(self, tree: TaskTree, cells: tuple[CheckCell, ...], ask: Ask) -> None:
        """How the checks stand in a tree that shows the work before any task."""
        ground, base = self._ground, self._ground.shop.base
        site = self._site(tree.folder, tree.environment(self._ground.ports(ask.case_no)), ask)
        await take_baseline(ground.baselines, base, cells, site, self._clock, bounds=self._bounds)
        await asyncio.to_thread(tree.restore, base)

    async def run_recorded(
        self, tree: TaskTree, sha: str, cells: tuple[CheckCell, ...], ask: Ask
    ) -> tuple[CheckResult, ...]:
        """On recorded work: what the checks leave in the tree is nobody's, and taken away again."""
        mark = self._mark(tree)
        mark.parent.mkdir(exist_ok=True)
        await asyncio.to_thread(write_whole, mark, sha.encode())
        results = await self.run(tree, cells, ask)
        await asyncio.to_thread(self.tidy, tree)
        return results

    def tidy(self, tree: TaskTree) -> None:
        """Take away what checks left, also those that a crash cut short."""
        mark = self._mark(tree)
        if mark.exists():
            sha = mark.read_text(encoding="ascii")
            if not tree.is_as_left(sha):
                tree.restore(sha)
            mark.unlink()

    def _mark(self, tree: TaskTree) -> Path:
        """Holds the recorded state of a tree while checks are at work in it."""
        return self._ground.shop.home / _CHECKED / tree.name

    async def run(
        self, tree: Tree, cells: tuple[CheckCell, ...], ask: Ask
    ) -> tuple[CheckResult, ...]:
        environ = tree.environment(self._ground.ports(ask.case_no))
        site = self._site(tree.folder, environ, ask)
        return await run_checks(cells, site, self._clock, bounds=self._bounds)

    def judge(
        self, base: str, cells: tuple[CheckCell, ...], results: tuple[CheckResult, ...], diff: Diff
    ) -> CheckVerdict:
        """The results against how the checks stood at that commit."""
        work = self._ground.terms.work
        return judge(
            results,
            self._ground.baseline(base, cells),
            policy=work.policy,
            deleted=[file.path for file in diff.files if file.status == "deleted"],
            added=[file.path for file in diff.files if file.status == "added"],
            allow_fewer_tests=work.allow_fewer_tests,
        )

    def _site(self, folder: Path, environ: Mapping[str, str], ask: Ask) -> CheckSite:
        tag = (str(ask.run_id), str(ask.dispatch_id), "check")
        return self._ground.check_site(folder, environ, tag)
