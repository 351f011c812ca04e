"""The reference responder: find waiting signals and let agents answer them, several at once.

It writes only while the signal still waits for this very dispatch. Notes in the batch manifest
never undo those of another writer; they are a courtesy, only the artifact counts.
"""

import asyncio
import os
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Literal

import msgspec

from interlock.carriers.contract import Ask, Carrier, Reply, Session
from interlock.carriers.registry import AgentContext, build_agent
from interlock.runtime.settings import DATABASE, open_query_broker, read_settings
from interlock.signals.batch import (
    BatchManifest,
    EntryStatus,
    encode_manifest,
    limit_batch_size,
    move_entry,
    move_manifest,
)
from interlock.signals.signal_file import (
    Artifact,
    encode_artifact,
    encode_signal,
    move_signal,
    read_artifact,
)
from interlock.system.clock import SystemClock
from interlock.system.errors import SourceError, UsageError
from interlock.system.open_folder import OpenFolder
from interlock.system.strict_json import Problem, read_object
from interlock.testing.responder.inbox import (
    SIGNAL,
    DispatchClaim,
    SignalBatch,
    SignalFinder,
    WaitingSignal,
    take_claim,
)

CreateAgent = Callable[[Mapping[str, str]], Carrier]
"""Build an agent for one dispatch, with variables beside the ids."""
_LONGEST_REASON = 1_000


def make_agent_factory(spec: str, project: Path) -> CreateAgent:
    """Return a function that builds agents of that name; SourceError or UsageError if it is
    unknown."""
    if not spec:
        raise UsageError("no agent is named; use --agent exec:COMMAND")
    settings = read_settings(project)

    def make_agent(named: Mapping[str, str]) -> Carrier:
        context = AgentContext(
            project=project,
            db=DATABASE,
            clock=SystemClock(),
            settings=settings.written,
            environment={**os.environ, **named},
            queries=open_query_broker(DATABASE, settings.inbox),
        )
        return build_agent(spec, context)

    make_agent({})
    return make_agent


class AnswerResult(msgspec.Struct, frozen=True):
    """The result of a dispatch; `overtaken` means that the coordinator went on without us."""

    kind: Literal["answered", "failed", "overtaken"]
    reason: str = ""


class Answerer:
    """Let an agent answer dispatches."""

    def __init__(self, create_agent: CreateAgent, seconds: float, finder: SignalFinder) -> None:
        self._create_agent = create_agent
        self._seconds = seconds
        self._finder = finder

    async def answer(self, waiting: WaitingSignal, attempt: int) -> AnswerResult:
        try:
            artifact_path = _check_artifact_path(waiting)
            prompt = _read_prompt(waiting)
            data = await self._ask(waiting, prompt, attempt)
        except SourceError as error:
            return self._fail(waiting, str(error))
        artifact = encode_artifact(Artifact(waiting.signal.dispatch_id, data))
        try:
            written = waiting.tree.write(artifact_path, artifact, lambda: self._is_ours(waiting))
        except (OSError, SourceError) as error:
            return self._fail(waiting, f"the artifact cannot be written: {error}")
        return AnswerResult("answered" if written else "overtaken")

    async def _ask(self, waiting: WaitingSignal, prompt: str, attempt: int) -> dict[str, Any]:
        signal = waiting.signal
        ask = Ask(signal.dispatch_id, 0, signal.case_id, signal.step, attempt, "", prompt)
        reply = await _await_reply(
            self._create_agent(_build_environment(waiting)), ask, self._seconds
        )
        if reply.failure:
            raise SourceError(f"{reply.failure}: {reply.reason}")
        return _parse_data(reply.content, signal.dispatch_id)

    def _fail(self, waiting: WaitingSignal, reason: str) -> AnswerResult:
        reason = reason[:_LONGEST_REASON]
        error = encode_signal(move_signal(waiting.signal, "error", reason))
        try:
            ours = waiting.tree.write(waiting.path, error, lambda: self._is_ours(waiting))
        except (OSError, SourceError) as problem:
            return AnswerResult("failed", f"{reason}; the signal cannot be written: {problem}")
        return AnswerResult("failed" if ours else "overtaken", reason)

    def _is_ours(self, waiting: WaitingSignal) -> bool:
        return self._finder.read_now(waiting) == waiting.signal


def _check_artifact_path(waiting: WaitingSignal) -> Path:
    path = Path(waiting.signal.artifact_path)
    waiting.tree.split_path(path)
    if path.name == SIGNAL or path.name.startswith("."):
        raise SourceError(f"an artifact may not be written to {path}")
    return path


def _read_prompt(waiting: WaitingSignal) -> str:
    try:
        return waiting.tree.read(Path(waiting.signal.prompt_path)).decode()
    except UnicodeDecodeError:
        raise SourceError(f"the prompt {waiting.signal.prompt_path} is not UTF-8") from None
    except OSError as error:
        path = waiting.signal.prompt_path
        raise SourceError(f"the prompt {path} cannot be read: {error.strerror}") from None


def _build_environment(waiting: WaitingSignal) -> dict[str, str]:
    """Return the agent's variables beside the ids; a missing briefing is empty."""
    return {
        "INTERLOCK_SIGNAL_PATH": str(waiting.path),
        "INTERLOCK_BRIEFING_PATH": str(_find_briefing(waiting) or ""),
    }


def _find_briefing(waiting: WaitingSignal) -> Path | None:
    """Return the batch's briefing, if it can be read; its path is relative to some folder above."""
    if waiting.batch is None or not waiting.batch.manifest.briefing_path:
        return None
    for folder in waiting.batch.path.parents:
        path = folder / waiting.batch.manifest.briefing_path
        with suppress(OSError, SourceError):
            waiting.tree.read(path)
            return path
    return None


async def _await_reply(agent: Carrier, ask: Ask, seconds: float) -> Reply:
    answer: asyncio.Future[Reply] = asyncio.get_running_loop().create_future()
    agent.start(Session(lambda reply: None if answer.done() else answer.set_result(reply)))
    agent.send([ask])
    try:
        async with asyncio.timeout(seconds):
            return await answer
    except TimeoutError:
        return Reply(ask.dispatch_id, failure="timeout", reason=f"no answer within {seconds:g} s")
    finally:
        await agent.close()


def _parse_data(content: bytes, dispatch_id: int) -> dict[str, Any]:
    """Return the answer's own object, without the wrapper that an agent may have added."""
    found = read_object(content)
    if isinstance(found, Problem):
        raise SourceError(f"the agent must print one JSON object: {found.sentence}")
    if set(found) != {"dispatch_id", "data"}:
        return found
    wrapped = read_artifact(content)
    if isinstance(wrapped, Problem):
        raise SourceError(f"the agent's own wrapper is wrong: {wrapped.sentence}")
    if wrapped.dispatch_id != dispatch_id:
        raise SourceError(f"the agent answered dispatch {wrapped.dispatch_id}, not {dispatch_id}")
    return wrapped.data


_TRIES = 100
_PAUSE = 0.01


class Notes:
    """Note the results of a batch's signals."""

    def __init__(self, finder: SignalFinder, now: Callable[[], str]) -> None:
        self._finder = finder
        self._now = now

    async def note(self, tree: OpenFolder, batch: SignalBatch, status: EntryStatus) -> None:
        """Set one entry's status, if the batch is still the same."""
        for _ in range(_TRIES):
            try:
                lock = take_claim(tree, batch.path, "manifest")
                if lock is not None:
                    try:
                        return self._write(tree, batch, status)
                    finally:
                        lock.release()
            except (OSError, SourceError):
                return None
            await asyncio.sleep(_PAUSE)
        return None

    def _write(self, tree: OpenFolder, batch: SignalBatch, status: EntryStatus) -> None:
        before = self._finder.read_manifest(tree, batch.path)
        if before is None or before.batch_id != batch.manifest.batch_id:
            return
        after = _note_status(before, batch.entry.case_id, status, self._now())
        if after != before:
            tree.write(
                batch.path,
                encode_manifest(after),
                lambda: self._finder.read_manifest(tree, batch.path) == before,
            )


def _note_status(
    manifest: BatchManifest, case_id: str, status: EntryStatus, at: str
) -> BatchManifest:
    try:
        if manifest.status == "pending":
            manifest = move_manifest(manifest, "in_progress", at)
        return (
            move_entry(manifest, case_id, status, at)
            if manifest.status == "in_progress"
            else manifest
        )
    except ValueError:
        return manifest


POLL = 0.2
"""Seconds between two looks; the protocol's own limit is 250 ms."""
POLL_SOON = 0.03
"""Seconds to the next look after an answer, which is often followed by another signal."""
_SOON = 1.0
_ENTRY: dict[str, EntryStatus] = {"answered": "done", "failed": "error"}


class ResponderCounts(msgspec.Struct):
    """The results of the dispatches that were taken, and whether a budget left some untaken."""

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
    """Answer what waits, until stopped or `once`, until nothing waits."""

    def __init__(
        self,
        finder: SignalFinder,
        answerer: Answerer,
        notes: Notes,
        *,
        parallel: int,
        report: Callable[[str], None],
    ) -> None:
        self.counts = ResponderCounts()
        self._finder = finder
        self._answerer = answerer
        self._notes = notes
        self._parallel = parallel
        self._report = report
        self._jobs: dict[Path, _Job] = {}
        self._given_up: set[tuple[Path, int]] = set()
        self._attempts: Counter[tuple[Path, str]] = Counter()
        self._stop = asyncio.Event()
        self._answered_at = float("-inf")

    def stop(self) -> None:
        self._stop.set()

    async def work(self, *, once: bool = False) -> ResponderCounts:
        """Look again and again; what is unanswered at the end still waits for anybody."""
        try:
            while not self._stop.is_set():
                self._drop_finished()
                self._take_all(self._finder.find_waiting())
                if once and not self._jobs:
                    break
                await self._pause()
        finally:
            await self._cancel_jobs()
        return self.counts

    def _take_all(self, found: list[WaitingSignal]) -> None:
        self.counts.budget_spent = False
        for waiting in found:
            given_up = (waiting.path, waiting.signal.dispatch_id) in self._given_up
            if waiting.path not in self._jobs and not given_up and self._has_room(waiting):
                self._take(waiting)

    def _has_room(self, waiting: WaitingSignal) -> bool:
        budget = self._finder.read_budget(waiting)
        wanted = self._parallel - len(self._jobs)
        if isinstance(budget, Problem):
            return not self._jobs
        allowed = limit_batch_size(self._parallel, budget)
        self.counts.budget_spent = self.counts.budget_spent or allowed == 0
        suite = sum(job.waiting.suite == waiting.suite for job in self._jobs.values())
        return wanted > 0 and suite < allowed

    def _take(self, waiting: WaitingSignal) -> None:
        claim = self._claim(waiting)
        if claim is None:
            return
        if self._finder.read_now(waiting) != waiting.signal or self._finder.is_answered(waiting):
            claim.release()
            return
        self._attempts[waiting.path, waiting.signal.step] += 1
        attempt = self._attempts[waiting.path, waiting.signal.step]
        job = _Job(waiting, asyncio.create_task(self._begin(waiting, attempt)))
        job.whole = asyncio.create_task(self._finish(job, claim))
        self._jobs[waiting.path] = job

    def _claim(self, waiting: WaitingSignal) -> DispatchClaim | None:
        """Claim a dispatch, unless another living parent has marked it."""
        marked = waiting.batch is not None and waiting.batch.entry.status == "claimed"
        name = str(waiting.signal.dispatch_id)
        try:
            return take_claim(waiting.tree, waiting.path, name, only_abandoned=marked)
        except (OSError, SourceError) as error:
            self._report(f"skipped: {waiting.path}: {error}")
            return None

    async def _begin(self, waiting: WaitingSignal, attempt: int) -> AnswerResult:
        await self._note_status(waiting, "claimed")
        return await self._answerer.answer(waiting, attempt)

    async def _finish(self, job: _Job, claim: DispatchClaim) -> None:
        """Count the result of a job; one that our own stop broke off leaves its claim behind."""
        await asyncio.wait([job.answering])
        if job.answering.cancelled() and not job.overtaken:
            claim.abandon()
            return
        overtaken = job.answering.cancelled()
        try:
            await self._count(
                job.waiting, AnswerResult("overtaken") if overtaken else job.answering.result()
            )
        finally:
            claim.release()

    async def _count(self, waiting: WaitingSignal, outcome: AnswerResult) -> None:
        signal = waiting.signal
        self._answered_at = asyncio.get_running_loop().time()
        setattr(self.counts, outcome.kind, getattr(self.counts, outcome.kind) + 1)
        reason = f": {outcome.reason}" if outcome.reason else ""
        self._report(f"{signal.dispatch_id} {signal.case_id} {signal.step} {outcome.kind}{reason}")
        if outcome.kind == "failed":
            self._given_up.add((waiting.path, signal.dispatch_id))
        if outcome.kind in _ENTRY:
            await self._note_status(waiting, _ENTRY[outcome.kind])

    async def _note_status(self, waiting: WaitingSignal, status: EntryStatus) -> None:
        if waiting.batch is not None:
            await self._notes.note(waiting.tree, waiting.batch, status)

    def _drop_finished(self) -> None:
        """Forget finished jobs, and stop those whose signal has changed."""
        for path, job in list(self._jobs.items()):
            if job.whole is not None and job.whole.done():
                del self._jobs[path]
                job.whole.result()
            elif self._finder.read_now(job.waiting) not in (None, job.waiting.signal):
                job.overtaken = job.answering.cancel() or job.overtaken

    async def _pause(self) -> None:
        stop = asyncio.create_task(self._stop.wait())
        try:
            jobs = [job.whole for job in self._jobs.values() if job.whole is not None]
            recent = asyncio.get_running_loop().time() - self._answered_at < _SOON
            timeout = POLL_SOON if recent else POLL
            await asyncio.wait([stop, *jobs], timeout=timeout, return_when="FIRST_COMPLETED")
        finally:
            stop.cancel()

    async def _cancel_jobs(self) -> None:
        for job in self._jobs.values():
            job.answering.cancel()
        jobs = [job.whole for job in self._jobs.values() if job.whole is not None]
        await asyncio.gather(*jobs, return_exceptions=True)
