"""The programs of a delivery: they make trees, run the checks and merge, and answer steps so.

What they find is told as data, and the circuit decides. Done twice for the same dispatch, as after
a crash, they find what was done. Refuses to know who is asked next.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any, Final

import msgspec

from interlock.apps.delivery import claims as claiming
from interlock.apps.delivery.assess import assess
from interlock.apps.delivery.check import Cell, Result
from interlock.apps.delivery.plan import Task
from interlock.apps.delivery.tells import find_tells
from interlock.apps.delivery.verdict import Verdict, judge
from interlock.core.case import Case
from interlock.core.errors import SourceError
from interlock.dispatch.carrier import Ask, Clock, Reply
from interlock.dispatch.program import answer
from interlock.foreman import steps
from interlock.foreman.site import Ground
from interlock.workshop.baseline import take_baseline
from interlock.workshop.checks import Bounds, run_checks
from interlock.workshop.diff import Diff
from interlock.workshop.ledger import MovedError
from interlock.workshop.line import AlreadyMerged, Change, Conflict, Empty, Line, Merged, Proposal
from interlock.workshop.prepare import Prepared, prepare
from interlock.workshop.tree import Snapshot, Tree
from interlock.workshop.violation import Violation

_TRIES: Final = 5
_MOST_TEXT: Final = 400_000
_MOST_OUTPUT: Final = 3_000


class Seen(msgspec.Struct, frozen=True):
    """The work as a program of ours saw it last: for the prompts of those who judge it."""

    diff: Diff
    results: tuple[Result, ...] = ()


class Labours:
    """Our own work for each step whose role is a program's."""

    def __init__(
        self,
        ground: Ground,
        clock: Clock,
        conflicts_of: Callable[[str], frozenset[str]],
        open_tasks: Callable[[], Mapping[str, tuple[str, ...]]],
        note: Callable[[str], None],
    ) -> None:
        self.seen: dict[str, Seen] = {}
        self._ground = ground
        self._clock = clock
        self._conflicts_of = conflicts_of
        self._open_tasks = open_tasks
        self._note = note
        self._first = asyncio.Lock()
        self._merging = asyncio.Lock()
        self._by_step: dict[str, Callable[[Ask, Case], Awaitable[dict[str, Any]]]] = {
            steps.PREPARE: self._prepare,
            steps.CHECK: self._check,
            steps.PROVE: self._check,
            steps.HEALTH_CHECK: self._check,
            steps.MERGE: self._merge,
            steps.MERGE_FIX: self._merge,
        }

    async def __call__(self, ask: Ask) -> Reply:
        if ask.case is None:
            raise SourceError(f"step {ask.step} of {ask.case_id} has no case")
        return answer(ask, await self._by_step[ask.step](ask, ask.case))

    async def _prepare(self, ask: Ask, case: Case) -> dict[str, Any]:
        """A tree of its own; and how things stood before, once for the whole run."""
        task = self._ground.task(case.case_id)
        problem = await self._take_baseline(ask)
        tree = await asyncio.to_thread(self._ground.tree_of, case.case_id, ask.step)
        prepared = await self._prepared(tree, ask)
        if not prepared.is_ready:
            problem = f"the set-up command failed: {prepared.output[-_MOST_OUTPUT:]}"
        found = assess(task, self._ground.tasks)
        expand = self._ground.terms.work.expand
        lacking = {"scope", "criteria"} & {*found.missing}
        return {
            "ready": not problem,
            "needs_expansion": expand == "always" or (expand == "auto" and bool(lacking)),
            "needs_clarification": found.verdict == "NEEDS_CLARIFICATION",
            "problem": problem or "; ".join(found.reasons),
            "base": tree.base,
        }

    async def _take_baseline(self, ask: Ask) -> str:
        """How the checks stand before any work; why it cannot be known, if so."""
        ground, cells = self._ground, self._ground.cells()
        async with self._first:
            if not cells or ground.baseline(ground.shop.base, cells):
                return ""
            tree = await asyncio.to_thread(ground.before)
            prepared = await self._prepared(tree, ask)
            if not prepared.is_ready:
                return f"the set-up command failed: {prepared.output[-_MOST_OUTPUT:]}"
            site = ground.check_site(tree.folder, tree.environment(), _tag(ask))
            await take_baseline(
                ground.baselines, ground.shop.base, cells, site, self._clock, bounds=self._bounds()
            )
            await asyncio.to_thread(tree.restore, ground.shop.base)
        return ""

    async def _prepared(self, tree: Tree, ask: Ask) -> Prepared:
        work = self._ground.terms.work
        ports = self._ground.ports(ask.case_no)
        return await asyncio.to_thread(tree.prepare, work.copy, work.setup, ports)

    async def _check(self, ask: Ask, case: Case) -> dict[str, Any]:
        """Record the work, run the checks on it, and compare what was claimed with what is seen."""
        task = self._ground.task(case.case_id)
        tree = await asyncio.to_thread(self._ground.tree_of, case.case_id, ask.step)
        if ask.step == steps.HEALTH_CHECK:
            await self._prepared(tree, ask)
        snapshot, notes = await asyncio.to_thread(_recorded, tree, ask, case)
        diff = await asyncio.to_thread(tree.diff, tree.base, snapshot.sha)
        violations = [*snapshot.violations, *self._trespasses(case, ask.step, diff)]
        repairing = ask.step == steps.HEALTH_CHECK
        empty = not diff.files and not repairing
        cells = self._ground.cells(None if repairing else task)
        results: tuple[Result, ...] = ()
        if not violations and not empty:
            results = await self._run(cells, tree.folder, tree.environment(), ask)
        self.seen[case.case_id] = Seen(diff, results)
        verdict = self._verdict(tree.base, cells, results, diff)
        texts = await asyncio.to_thread(_texts, tree.root, diff)
        tells = find_tells({file.path: file.added for file in diff.files}, texts)
        claimed = self._claims(ask.step, case, results, diff)
        return {
            "snapshot": snapshot.sha,
            "changed": list(diff.paths),
            "empty": empty,
            "ok": verdict.ok and not violations,
            "new_failures": list(verdict.reasons) if results else [],
            "unavailable": list(verdict.names("unavailable")),
            "violations": [each.sentence for each in violations],
            "tells": [f"{each.path}:{each.line}: {each.sentence}" for each in tells],
            "claims": msgspec.to_builtins(claimed),
            "refuted": sum(each.found == "refuted" for each in claimed),
            "results": [_row(each) for each in results],
            "notes": [*notes, *verdict.notes],
            "summary": _summary(violations, verdict, results, empty=empty),
        }

    def _trespasses(self, case: Case, step: str, diff: Diff) -> list[Violation]:
        """Files that another open task has declared and this one neither declared nor reported."""
        if step in steps.REPAIR:
            return []
        from interlock.workshop.write_set import compare  # noqa: PLC0415 - only where declared

        declared = self._ground.task(case.case_id).target_files
        others = {name: files for name, files in self._open_tasks().items() if name != case.case_id}
        prefix = self._ground.shop.manifest.found.prefix
        found = compare(diff.paths, declared, others, prefix)
        reported = self._conflicts_of(case.case_id)
        return [
            Violation(
                "another-task",
                f"{path} is declared by task {owner}: leave it alone, or report FILE CONFLICT",
            )
            for path, owner in found.others
            if path not in reported
        ]

    def _verdict(
        self, base: str, cells: tuple[Cell, ...], results: tuple[Result, ...], diff: Diff
    ) -> Verdict:
        work = self._ground.terms.work
        return judge(
            results,
            self._ground.baseline(base, cells),
            policy=work.policy,
            deleted=[file.path for file in diff.files if file.status == "deleted"],
            added=[file.path for file in diff.files if file.status == "added"],
            allow_fewer_tests=work.allow_fewer_tests,
        )

    def _claims(
        self, step: str, case: Case, results: tuple[Result, ...], diff: Diff
    ) -> tuple[claiming.Claim, ...]:
        where, signal = steps.CLAIMED[step]
        said = case.answers.get(where, {})
        found = claiming.compare(claiming.rows_of(signal, said), results, self._ground.plan.checks)
        if step == steps.CHECK:
            root = str(self._ground.tree_of(case.case_id, step).folder)
            found += claiming.file_claims(said, diff.paths, root)
        return found

    async def _merge(self, ask: Ask, case: Case) -> dict[str, Any]:
        """Onto what others finished meanwhile; checked there; then it is part of the line."""
        repairing = ask.step == steps.MERGE_FIX
        task = self._ground.task(case.case_id)
        tree = await asyncio.to_thread(self._ground.tree_of, case.case_id, ask.step)
        change = Change(
            task_id=case.case_id,
            dispatch_id=str(ask.dispatch_id),
            sha=_snapshot_of(case, steps.HEALTH_CHECK if repairing else steps.PROVE),
            base=tree.base,
            title=f"Repair, for {case.case_id}" if repairing else task.title,
        )
        async with self._merging:
            found = await self._merged(ask, change, None if repairing else task, tree)
        if repairing and found["outcome"] in ("merged", "empty"):
            await asyncio.to_thread(_renew, tree, self._ground.shop.line.tip)
        return found

    async def _merged(
        self, ask: Ask, change: Change, task: Task | None, tree: Tree
    ) -> dict[str, Any]:
        line = self._ground.shop.line
        for _ in range(_TRIES):
            proposal = await asyncio.to_thread(line.propose, change)
            match proposal:
                case AlreadyMerged(sha):
                    return await self._told_merged(line, sha)
                case Empty():
                    return {"outcome": "empty", "summary": "the line has all of this already"}
                case Conflict():
                    return await self._sent_back(line, tree, change, _conflict(proposal))
            refuted = await self._refuted(ask, proposal, task)
            if refuted:
                return await self._sent_back(line, tree, change, refuted)
            try:
                merged: Merged = await asyncio.to_thread(line.accept, proposal)
            except MovedError:
                continue
            return await self._told_merged(line, merged.sha)
        return {"outcome": "moved", "summary": f"the line moved {_TRIES} times meanwhile"}

    async def _told_merged(self, line: Line, sha: str) -> dict[str, Any]:
        published = await asyncio.to_thread(line.publish)
        if not published.is_done:
            self._note(published.sentence)
        where = f" on branch {published.branch}" if published.is_done else ""
        return {"outcome": "merged", "commit": sha, "summary": f"merged as {sha[:12]}{where}"}

    async def _refuted(
        self, ask: Ask, proposal: Proposal, task: Task | None
    ) -> dict[str, Any] | None:
        """What the checks have against it on top of the line; nothing if they hold."""
        line, work, ground = self._ground.shop.line, self._ground.terms.work, self._ground
        cells = ground.cells(task)
        await asyncio.to_thread(prepare, line.scratch, work.copy, work.setup)
        folder = Path(proposal.folder)
        results = await self._run(cells, folder, line.scratch.environment(), ask)
        verdict = self._verdict(proposal.tip, cells, results, Diff())
        if verdict.ok:
            ground.keep_baseline(proposal.commit, cells, results)
            return None
        return {"outcome": "refuted", "summary": _summary([], verdict, results, empty=False)}

    async def _sent_back(
        self, line: Line, tree: Tree, change: Change, told: dict[str, Any]
    ) -> dict[str, Any]:
        """The work goes onto the line's tip in its own tree, with marks where it does not fit."""
        replanted = await asyncio.to_thread(line.replant, tree, change.sha, change.base)
        if not replanted.files:
            return {**told, "files": []}
        marked = "Your work is on top of theirs now; resolve the conflict markers in these files: "
        return {
            **told,
            "files": list(replanted.files),
            "summary": f"{told['summary']}\n\n{marked}{', '.join(replanted.files)}",
        }

    async def _run(
        self, cells: tuple[Cell, ...], folder: Path, environ: Mapping[str, str], ask: Ask
    ) -> tuple[Result, ...]:
        site = self._ground.check_site(folder, environ, _tag(ask))
        return await run_checks(cells, site, self._clock, bounds=self._bounds())

    def _bounds(self) -> Bounds:
        return Bounds(at_once=self._ground.terms.work.checks_at_once)


def _tag(ask: Ask) -> tuple[str, str, str]:
    return str(ask.run_id), str(ask.dispatch_id), "check"


def _recorded(tree: Tree, ask: Ask, case: Case) -> tuple[Snapshot, list[str]]:
    """The work as it is; where only judges looked at it, as it was before they did."""
    if ask.step != steps.PROVE:
        message = f"{case.case_id}: {ask.step.lower()} {ask.attempt}"
        return tree.snapshot(message), []
    sha = _snapshot_of(case, steps.CHECK)
    violations = tuple(tree.violations(sha))
    if tree.is_as_left(sha):
        return Snapshot(sha, violations=violations), []
    tree.restore(sha)
    return Snapshot(sha), ["a judge changed files of the work; they were put back"]


def _snapshot_of(case: Case, step: str) -> str:
    found = case.answers.get(step, {}).get("snapshot")
    if not isinstance(found, str) or not found:
        raise SourceError(f"{case.case_id} has no recorded work at {step}")
    return found


def _renew(tree: Tree, tip: str) -> None:
    """The tree of a repair that is merged begins anew where the line is."""
    tree.restore(tip)
    tree.begin_at(tip)


def _texts(root: Path, diff: Diff) -> dict[str, str]:
    """The new texts of the files that changed, as far as they are text of a sane size."""
    found: dict[str, str] = {}
    for file in diff.files:
        path = root / file.path
        try:
            if file.added and path.stat().st_size <= _MOST_TEXT and not path.is_symlink():
                found[file.path] = path.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError):
            continue
    return found


def _row(result: Result) -> dict[str, Any]:
    """A result as the journal keeps it: what it came to, and the end of what it printed."""
    return {
        "check": result.check,
        "environment": result.environment,
        "exit_code": result.exit_code,
        "passed": result.passed,
        "seconds": result.seconds,
        "tests": result.test_count,
        "note": result.note,
        "output": "" if result.passed else result.output_tail[-_MOST_OUTPUT:],
    }


def _summary(
    violations: list[Violation], verdict: Verdict, results: tuple[Result, ...], *, empty: bool
) -> str:
    if violations:
        return "\n".join(each.sentence for each in violations)
    if empty:
        return "Nothing was changed in the tree."
    if verdict.ok:
        return f"{len(results)} checks hold"
    failed = [each for each in results if not each.passed]
    shown = [
        f"{each.check} ({each.environment}):\n{each.output_tail[-_MOST_OUTPUT:]}" for each in failed
    ]
    return "\n\n".join(("\n".join(verdict.reasons), *shown))


def _conflict(found: Conflict) -> dict[str, Any]:
    files = ", ".join(found.files)
    return {
        "outcome": "conflict",
        "files": list(found.files),
        "summary": f"Others changed the same places meanwhile: {files}\n\n{found.text}",
    }
