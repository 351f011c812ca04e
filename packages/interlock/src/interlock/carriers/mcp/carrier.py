"""The carrier `mcp`: asks wait here until a worker comes and takes one, under a lease.

An answer is judged before it is delivered, so that whoever wrote it can mend it; one that comes too
late, twice or from somebody else is refused and journaled. Who holds what is in `leases`.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, assert_never

import msgspec

from interlock.carriers.contract import Ask, Carrier, Reply, Session, Traits
from interlock.carriers.files.case_folder import estimate_usage
from interlock.carriers.mcp import messages
from interlock.carriers.mcp.leases import Lease, LeaseBoard
from interlock.carriers.mcp.socket import WorkerSocket
from interlock.carriers.queries import QueryBroker, QueryStatus
from interlock.engine.case import RefusedAnswer
from interlock.engine.circuit import CRASH, TIMEOUT, UNREADABLE
from interlock.engine.circuit_file import NAMED_SHAPES
from interlock.engine.shape import build_schema, read_shape
from interlock.system.clock import Clock

MAX_REFUSALS = 10
"""Answers to one dispatch that may be refused before the attempt ends as unreadable."""
_LEASES_FILE = "leases.json"
_MAX_ID = 2**53
UNSETTLED = RefusedAnswer(
    "Unsettled",
    "No coordinator was there to take the answer; nothing is lost: submit it again, under the same"
    " lease, when interlock_status says that a coordinator is back.",
)
_MAX_REASON = 2_000
_CLOSING_REASON = "this coordinator has ended its session"


_TEXT = read_shape(NAMED_SHAPES["text"])


class McpCarrier(Carrier):
    """A carrier whose asks are fetched."""

    traits = Traits(
        times_itself=True,
        hint="asks wait for workers: an agent takes them with the tools of 'interlock mcp'",
    )

    def __init__(
        self,
        folder: Path,
        queries: QueryBroker,
        clock: Clock,
        nonce: Callable[[], str],
    ) -> None:
        self.queries = queries
        self._socket = WorkerSocket(folder, self)
        self._clock = clock
        self._board = LeaseBoard(folder / _LEASES_FILE, clock, nonce, self._time_out)
        self._refused: Counter[int] = Counter()
        self._workers: Counter[str] = Counter()
        self._session: Session

    def start(self, session: Session) -> None:
        super().start(session)
        self._session = session
        self.queries = self.queries.open_for(session)
        self._socket.open()
        self._board.open()

    def send(self, asks: Sequence[Ask]) -> None:
        self._board.add(asks)

    def settle(self, dispatch_id: int, error: str = "") -> None:
        self._refused.pop(dispatch_id, None)
        self._board.drop(dispatch_id, error)

    def keeps_answers(self) -> bool:
        """What no worker holds is offered again when the run goes on."""
        return not self._board.has_work_out()

    async def close(self) -> None:
        self._board.close(_CLOSING_REASON)
        await self._socket.close()

    def worker_joined(self, worker: str) -> None:
        """A worker is here; what it held when the last coordinator died is still its own."""
        self._workers[worker] += 1
        self._board.book.renew(worker, self._clock.now(), lives=False)

    def worker_left(self, worker: str) -> None:
        """A worker has left or died: others may have what it held."""
        self._workers[worker] -= 1
        if self._workers[worker] <= 0 and not self._board.is_closed:
            self._board.release_all(worker)

    async def answer_call(self, worker: str, call: messages.Call) -> dict[str, Any]:
        """What a worker gets for its call."""
        match call:
            case messages.NextCall():
                return messages.to_dict(await self._wait_for_work(worker, call))
            case messages.SubmitCall(dispatch_id, lease, answer):
                content = msgspec.json.encode(answer)
                return messages.to_dict(await self._submit(worker, dispatch_id, lease, content))
            case messages.SignalCall():
                return messages.to_dict(await self._take_signal(worker, call))
            case messages.AskCall():
                self._board.book.renew(worker, self._clock.now(), call.lease)
                return messages.to_dict(self._take_query(worker, call))
            case messages.StatusCall():
                self._board.book.renew(worker, self._clock.now(), call.lease)
                return messages.to_dict(self._build_status(worker))
            case messages.ReadCall():
                return self._read_text(call.dispatch_id)
            case messages.SilenceCall():
                return {"seconds_left": self._board.mark_silent(worker)}
            case messages.HelloCall() | messages.CancelCall():
                return {"run_id": self._board.find_run_id()}
        assert_never(call)

    async def _wait_for_work(
        self, worker: str, call: messages.NextCall
    ) -> messages.WorkItem | messages.NoWork:
        """Work that is offered or, when none came in time, what the worker itself holds: it may
        have lost it. Not before: several agents may share one worker, and would do it twice."""
        until = self._clock.now() + max(0.0, min(call.wait, messages.MAX_WAIT))
        while not self._board.is_closed:
            for ask in self._board.list_offered(worker):
                if not call.roles or ask.role in call.roles:
                    ttl = max(1.0, min(call.ttl, messages.MAX_LEASE))
                    timeout = self._session.steps[ask.step].timeout
                    return self._build_item(ask, self._board.grant(ask, worker, ttl, timeout))
            if self._clock.now() >= until:
                lease = self._board.find_held(worker, call.roles)
                if lease is not None:
                    self._board.book.renew(worker, self._clock.now(), lease.token)
                    return self._build_item(self._board.asks[lease.dispatch_id], lease)
                return messages.NoWork(reason=self._board.explain_no_work(call.roles))
            await self._board.wake.wait(until)
        return messages.CoordinatorLeaving(reason=_CLOSING_REASON)

    def _build_item(self, ask: Ask, lease: Lease) -> messages.WorkItem:
        step = self._session.steps[ask.step]
        return messages.WorkItem(
            dispatch_id=ask.dispatch_id,
            lease=lease.token,
            fence=lease.fence,
            ttl=lease.ttl,
            run_id=ask.run_id,
            case_id=ask.case_id,
            step=ask.step,
            attempt=ask.attempt,
            role=ask.role,
            prompt=ask.prompt,
            answer_schema=build_schema(_TEXT if step.language == "text" else step.shape),
            signals=step.signals,
        )

    async def _submit(
        self,
        worker: str,
        dispatch_id: int,
        lease: str,
        content: bytes,
        failure: str = "",
        reason: str = "",
    ) -> messages.SubmitResult:
        self._board.book.renew(worker, self._clock.now(), lease)
        problem = self._board.find_problem(worker, dispatch_id, lease)
        if problem is not None:
            return self._refuse(dispatch_id, content, problem, still_open=False)
        ask = self._board.asks[dispatch_id]
        usage = estimate_usage(ask, content)
        reply = Reply(dispatch_id, content, failure=failure, reason=reason, usage=usage)
        problem = None if failure else self._session.judge(ask, reply)
        if problem is not None:
            return self._refuse_answer(dispatch_id, content, problem)
        settling = self._board.begin_settling(dispatch_id)
        self._deliver(reply)
        error = await settling
        if error == _CLOSING_REASON:
            return messages.SubmitResult(
                False, dispatch_id, True, UNSETTLED.reason, UNSETTLED.sentence
            )
        if error and not failure:
            sentence = f"Not accepted: {error}"
            return messages.SubmitResult(False, dispatch_id, False, "Unreadable", sentence)
        return messages.SubmitResult(True, dispatch_id)

    async def _take_signal(self, worker: str, call: messages.SignalCall) -> messages.SubmitResult:
        if call.signal == messages.GIVE_UP:
            reason = str(call.data.get("reason", "")) or "the worker gave it up"
            return await self._submit(
                worker, call.dispatch_id, call.lease, b"", CRASH, reason[:_MAX_REASON]
            )
        if call.signal != messages.RELEASE:
            content = msgspec.json.encode({"signal": call.signal, "data": call.data})
            return await self._submit(worker, call.dispatch_id, call.lease, content)
        problem = self._board.find_problem(worker, call.dispatch_id, call.lease)
        if problem is not None:
            return messages.SubmitResult(
                False, call.dispatch_id, False, problem.reason, problem.sentence
            )
        self._board.release(call.dispatch_id)
        return messages.SubmitResult(True, call.dispatch_id)

    def _refuse_answer(
        self, dispatch_id: int, content: bytes, problem: RefusedAnswer
    ) -> messages.SubmitResult:
        """The sentence to mend it by; after too many the attempt is over."""
        self._refused[dispatch_id] += 1
        if self._refused[dispatch_id] < MAX_REFUSALS:
            return self._refuse(dispatch_id, content, problem, still_open=True)
        reason = f"{MAX_REFUSALS} answers were refused, the last because: {problem.sentence}"
        result = self._refuse(dispatch_id, content, problem, still_open=False)
        self._deliver(Reply(dispatch_id, failure=UNREADABLE, reason=reason))
        return result

    def _refuse(
        self, dispatch_id: int, content: bytes, problem: RefusedAnswer, *, still_open: bool
    ) -> messages.SubmitResult:
        if 0 < dispatch_id < _MAX_ID:
            self._deliver(
                Reply(dispatch_id, content, refused=problem.reason, reason=problem.sentence)
            )
        return messages.SubmitResult(
            False, dispatch_id, still_open, problem.reason, problem.sentence
        )

    def _take_query(self, worker: str, call: messages.AskCall) -> QueryStatus:
        if call.question_id:
            return self.queries.poll(call.question_id)
        problem = self._board.find_problem(worker, call.dispatch_id, call.lease)
        if problem is not None:
            return QueryStatus(asked=False, sentence=problem.sentence)
        ask = self._board.asks[call.dispatch_id]
        return self.queries.ask(ask, call.question, call.options, self._clock.now())

    def _build_status(self, worker: str) -> messages.RunStatus:
        progress = self._session.read_progress()
        return messages.RunStatus(
            coordinator=True,
            run_id=self._board.find_run_id(),
            cases=progress.cases,
            over=progress.over,
            open=len(self._board.asks),
            leased=self._board.count_leased(),
            workers=len(+self._workers),
            yours=self._board.describe_held(worker),
            reason="",
        )

    def _read_text(self, dispatch_id: int) -> dict[str, Any]:
        """The briefing, or the prompt of an open dispatch."""
        asks, run_id = self._board.asks, self._board.find_run_id()
        if dispatch_id:
            ask = asks.get(dispatch_id)
            return {"text": ask.prompt if ask else None, "run_id": run_id}
        return {
            "text": self._session.write_briefing(run_id or 0, list(asks.values())),
            "run_id": run_id,
        }

    def _time_out(self, ask: Ask, timeout: float) -> None:
        reason = f"no answer within {timeout:g} s after the first worker took it"
        self._deliver(Reply(ask.dispatch_id, failure=TIMEOUT, reason=reason))
