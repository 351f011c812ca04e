"""The responder: looks, takes what waits, and has it answered by so many workers at once.

Knows how many may work, when a worker is not needed any more, and when to stop. Refuses to know
what an agent is (answer.py) and what files look like (lookout.py).
"""

import asyncio
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import msgspec

from interlock.signals.batch import EntryStatus, allowed_size
from interlock.system.errors import SourceError
from interlock.system.strict_json import Problem
from interlock.testing.responder.answer import Answerer, AnswerResult
from interlock.testing.responder.batch import Notes
from interlock.testing.responder.claim import DispatchClaim, take
from interlock.testing.responder.lookout import SignalFinder, WaitingSignal

POLL = 0.2
"""Seconds between two looks; the protocol's own limit is 250 ms."""
BRISK = 0.03
"""The same right after an answer: what follows it is written soon."""
_SOON = 1.0
_ENTRY: dict[str, EntryStatus] = {"answered": "done", "failed": "error"}


class ResponderCounts(msgspec.Struct):
    """What became of the dispatches that were taken, and whether a budget left some untaken."""

    answered: int = 0
    failed: int = 0
    overtaken: int = 0
    budget_spent: bool = False


class _Job(msgspec.Struct):
    """A dispatch in work. `answering` may be broken off, the notes that follow it may not."""

    waiting: WaitingSignal
    answering: asyncio.Task[AnswerResult]
    whole: asyncio.Task[None] | None = None
    overtaken: bool = False


class Responder:
    """Answers what waits until it is stopped, or once until nothing waits."""

    def __init__(
        self,
        lookout: SignalFinder,
        answerer: Answerer,
        notes: Notes,
        *,
        parallel: int,
        tell: Callable[[str], None],
    ) -> None:
        self.tally = ResponderCounts()
        self._lookout = lookout
        self._answerer = answerer
        self._notes = notes
        self._parallel = parallel
        self._tell = tell
        self._jobs: dict[Path, _Job] = {}
        self._given_up: set[tuple[Path, int]] = set()
        self._attempts: Counter[tuple[Path, str]] = Counter()
        self._stop = asyncio.Event()
        self._answered_at = float("-inf")

    def stop(self) -> None:
        self._stop.set()

    async def work(self, *, once: bool = False) -> ResponderCounts:
        """Look again and again. What is unanswered at the end still waits, for anybody."""
        try:
            while not self._stop.is_set():
                self._let_go()
                self._take_all(self._lookout.look())
                if once and not self._jobs:
                    break
                await self._pause()
        finally:
            await self._end_jobs()
        return self.tally

    def _take_all(self, waiting: list[WaitingSignal]) -> None:
        self.tally.budget_spent = False
        for each in waiting:
            given_up = (each.path, each.signal.dispatch_id) in self._given_up
            if each.path not in self._jobs and not given_up and self._has_room(each):
                self._take(each)

    def _has_room(self, waiting: WaitingSignal) -> bool:
        budget = self._lookout.budget(waiting)
        wanted = self._parallel - len(self._jobs)
        if isinstance(budget, Problem):
            return not self._jobs
        allowed = allowed_size(self._parallel, budget)
        self.tally.budget_spent = self.tally.budget_spent or allowed == 0
        suite = sum(job.waiting.suite == waiting.suite for job in self._jobs.values())
        return wanted > 0 and suite < allowed

    def _take(self, waiting: WaitingSignal) -> None:
        claim = self._claim(waiting)
        if claim is None:
            return
        if self._lookout.now(waiting) != waiting.signal or self._lookout.answered(waiting):
            claim.settle()
            return
        self._attempts[waiting.path, waiting.signal.step] += 1
        attempt = self._attempts[waiting.path, waiting.signal.step]
        job = _Job(waiting, asyncio.create_task(self._begin(waiting, attempt)))
        job.whole = asyncio.create_task(self._finish(job, claim))
        self._jobs[waiting.path] = job

    def _claim(self, waiting: WaitingSignal) -> DispatchClaim | None:
        """What another parent has marked is left to it, unless it was one of us and died."""
        marked = waiting.batch is not None and waiting.batch.entry.status == "claimed"
        name = str(waiting.signal.dispatch_id)
        try:
            return take(waiting.tree, waiting.path, name, only_abandoned=marked)
        except (OSError, SourceError) as error:
            self._tell(f"left alone: {waiting.path}: {error}")
            return None

    async def _begin(self, waiting: WaitingSignal, attempt: int) -> AnswerResult:
        await self._note(waiting, "claimed")
        return await self._answerer.answer(waiting, attempt)

    async def _finish(self, job: _Job, claim: DispatchClaim) -> None:
        """Count what came of it. A job broken off by our own stop leaves its claim behind."""
        await asyncio.wait([job.answering])
        if job.answering.cancelled() and not job.overtaken:
            claim.leave()
            return
        overtaken = job.answering.cancelled()
        try:
            await self._count(
                job.waiting, AnswerResult("overtaken") if overtaken else job.answering.result()
            )
        finally:
            claim.settle()

    async def _count(self, waiting: WaitingSignal, outcome: AnswerResult) -> None:
        signal = waiting.signal
        self._answered_at = asyncio.get_running_loop().time()
        setattr(self.tally, outcome.kind, getattr(self.tally, outcome.kind) + 1)
        reason = f": {outcome.reason}" if outcome.reason else ""
        self._tell(f"{signal.dispatch_id} {signal.case_id} {signal.step} {outcome.kind}{reason}")
        if outcome.kind == "failed":
            self._given_up.add((waiting.path, signal.dispatch_id))
        if outcome.kind in _ENTRY:
            await self._note(waiting, _ENTRY[outcome.kind])

    async def _note(self, waiting: WaitingSignal, status: EntryStatus) -> None:
        if waiting.batch is not None:
            await self._notes.note(waiting.tree, waiting.batch, status)

    def _let_go(self) -> None:
        """Forget who has finished; stop those whose signal asks for something else by now."""
        for path, job in list(self._jobs.items()):
            if job.whole is not None and job.whole.done():
                del self._jobs[path]
                job.whole.result()
            elif self._lookout.now(job.waiting) not in (None, job.waiting.signal):
                job.overtaken = job.answering.cancel() or job.overtaken

    async def _pause(self) -> None:
        stop = asyncio.create_task(self._stop.wait())
        try:
            jobs = [job.whole for job in self._jobs.values() if job.whole is not None]
            recent = asyncio.get_running_loop().time() - self._answered_at < _SOON
            timeout = BRISK if recent else POLL
            await asyncio.wait([stop, *jobs], timeout=timeout, return_when="FIRST_COMPLETED")
        finally:
            stop.cancel()

    async def _end_jobs(self) -> None:
        for job in self._jobs.values():
            job.answering.cancel()
        jobs = [job.whole for job in self._jobs.values() if job.whole is not None]
        await asyncio.gather(*jobs, return_exceptions=True)
