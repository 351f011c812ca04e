"""The carrier `mcp`: asks wait here until a worker comes and takes one, under a lease.

It knows what each worker is told. An answer is judged before it is delivered, so that whoever wrote
it can mend it; one that comes too late, twice or from somebody else is refused and journaled. Who
holds what is in `leases`; the socket and the MCP server are strangers to it.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, assert_never

import msgspec

from interlock.agents.carrier import Ask, Clock, Deliver, Reply
from interlock.agents.files.batch import ProgressGauge
from interlock.agents.files.case_folder import estimate_usage
from interlock.agents.mcp import messages as words
from interlock.agents.mcp.leases import LeaseBoard
from interlock.agents.mcp.socket import WorkerSocket
from interlock.agents.queries import QueryBroker, QueryStatus
from interlock.engine.case import RefusedAnswer
from interlock.engine.circuit import CRASH, TIMEOUT, UNREADABLE, Step
from interlock.engine.shape import build_schema

MAX_REFUSALS = 10
"""Answers to one dispatch that may be refused before the attempt ends as unreadable."""
_LEASES_FILE = "leases.json"
_MAX_ID = 2**53
UNSETTLED = RefusedAnswer(
    "Unsettled",
    "No coordinator was there to take the answer; nothing is lost: submit it again, under the same"
    " lease, when interlock_status says that a coordinator is back.",
)
_CLOSING_REASON = "this coordinator has ended its sitting"

JudgeAnswer = Callable[[Ask, Reply], RefusedAnswer | None]
WriteBriefing = Callable[[int, Sequence[Ask]], str]


def _accept_all(_ask: Ask, _reply: Reply) -> RefusedAnswer | None:
    return None


def _write_nothing(_run_id: int, _asks: Sequence[Ask]) -> str:
    return ""


class McpCarrier:
    """A carrier whose asks are fetched. `steps`, `judge` and `brief` are put in before it
    starts."""

    def __init__(
        self,
        folder: Path,
        queries: QueryBroker,
        clock: Clock,
        gauge: ProgressGauge,
        nonce: Callable[[], str],
    ) -> None:
        self.steps: Mapping[str, Step] = {}
        self.judge_answer: JudgeAnswer = _accept_all
        self.write_briefing: WriteBriefing = _write_nothing
        self.queries = queries
        self._socket = WorkerSocket(folder, self)
        self._clock = clock
        self._progress = gauge
        self._board = LeaseBoard(folder / _LEASES_FILE, clock, nonce, self._time_out)
        self._refused: Counter[int] = Counter()
        self._workers: Counter[str] = Counter()
        self._deliver: Deliver

    def start(self, deliver: Deliver) -> None:
        self._deliver = self.queries.refuse = deliver
        self._socket.open()
        self._board.open()

    def send(self, asks: Sequence[Ask]) -> None:
        self._board.add(asks)

    def settle(self, dispatch_id: int, error: str = "") -> None:
        self._refused.pop(dispatch_id, None)
        self._board.drop(dispatch_id, error)

    async def close(self) -> None:
        self._board.close(_CLOSING_REASON)
        await self._socket.close()

    def worker_joined(self, worker: str) -> None:
        """A worker is here; what it held when the last coordinator died is still its own."""
        self._workers[worker] += 1
        self._board.book.renew(worker, self._clock.now())

    def worker_left(self, worker: str) -> None:
        """A worker has left or died: others may have what it held."""
        self._workers[worker] -= 1
        if self._workers[worker] > 0 or self._board.is_closed:
            return
        for lease in self._board.book.list_held(worker):
            self._board.release(lease.dispatch_id)

    async def answer_call(self, worker: str, call: words.Call) -> dict[str, Any]:
        """What a worker gets for its call."""
        match call:
            case words.NextCall():
                return _to_dict(await self._wait_for_work(worker, call))
            case words.SubmitCall():
                content = call.content.encode(errors="surrogatepass")
                return _to_dict(await self._submit(worker, call, content))
            case words.GiveUpCall():
                return _to_dict(await self._give_up(worker, call))
            case words.QueryCall():
                return _to_dict(self._ask_query(worker, call))
            case words.PollCall():
                self._board.book.renew(worker, self._clock.now())
                return _to_dict(self.queries.poll(call.query_id))
            case words.StatusCall():
                self._board.book.renew(worker, self._clock.now(), call.lease)
                return _to_dict(self._build_status(worker))
            case words.ReadCall():
                return self._read_text(call.dispatch_id)
            case words.HelloCall() | words.CancelCall():
                return {"run_id": self._board.find_run_id()}
        assert_never(call)

    async def _wait_for_work(
        self, worker: str, call: words.NextCall
    ) -> words.WorkItem | words.NoWork:
        until = self._clock.now() + max(0.0, min(call.wait, words.MAX_WAIT))
        while not self._board.is_closed:
            for ask in self._board.list_free():
                if not call.roles or ask.role in call.roles:
                    return self._hand_out(ask, worker, call.ttl)
            if self._clock.now() >= until:
                return words.NoWork(reason=self._board.explain_no_work(call.roles))
            await self._board.wake.wait(until)
        return words.CoordinatorLeaving(reason=_CLOSING_REASON)

    def _hand_out(self, ask: Ask, worker: str, ttl: float) -> words.WorkItem:
        step = self.steps[ask.step]
        bounded = max(1.0, min(ttl, words.MAX_LEASE))
        lease = self._board.grant(ask, worker, bounded, step.timeout)
        return words.WorkItem(
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
            answer_schema=build_schema(step.shape),
            signals=step.signals,
        )

    async def _submit(
        self,
        worker: str,
        call: words.SubmitCall | words.GiveUpCall,
        content: bytes,
        failure: str = "",
    ) -> words.SubmitResult:
        self._board.book.renew(worker, self._clock.now(), call.lease)
        why = self._board.find_problem(worker, call.dispatch_id, call.lease)
        if why is not None:
            return self._refuse(call.dispatch_id, content, why, still_open=False)
        reason = call.reason if isinstance(call, words.GiveUpCall) else ""
        ask = self._board.asks[call.dispatch_id]
        usage = estimate_usage(ask, content)
        reply = Reply(call.dispatch_id, content, failure=failure, reason=reason, usage=usage)
        why = None if failure else self.judge_answer(ask, reply)
        if why is not None:
            return self._refuse_answer(call.dispatch_id, content, why)
        settling = self._board.begin_settling(call.dispatch_id)
        self._deliver(reply)
        error = await settling
        if error == _CLOSING_REASON:
            return words.SubmitResult(
                False, call.dispatch_id, True, UNSETTLED.reason, UNSETTLED.sentence
            )
        if error and not failure:
            return words.SubmitResult(
                False, call.dispatch_id, False, "Unreadable", f"Not accepted: {error}"
            )
        return words.SubmitResult(True, call.dispatch_id)

    async def _give_up(self, worker: str, call: words.GiveUpCall) -> words.SubmitResult:
        if not call.release:
            return await self._submit(worker, call, b"", CRASH)
        why = self._board.find_problem(worker, call.dispatch_id, call.lease)
        if why is not None:
            return words.SubmitResult(False, call.dispatch_id, False, why.reason, why.sentence)
        self._board.release(call.dispatch_id)
        return words.SubmitResult(True, call.dispatch_id)

    def _refuse_answer(
        self, dispatch_id: int, content: bytes, why: RefusedAnswer
    ) -> words.SubmitResult:
        """The sentence to mend it by; after too many the attempt is over."""
        self._refused[dispatch_id] += 1
        if self._refused[dispatch_id] < MAX_REFUSALS:
            return self._refuse(dispatch_id, content, why, still_open=True)
        reason = f"{MAX_REFUSALS} answers were refused, the last because: {why.sentence}"
        taken = self._refuse(dispatch_id, content, why, still_open=False)
        self._deliver(Reply(dispatch_id, failure=UNREADABLE, reason=reason))
        return taken

    def _refuse(
        self, dispatch_id: int, content: bytes, why: RefusedAnswer, *, still_open: bool
    ) -> words.SubmitResult:
        if 0 < dispatch_id < _MAX_ID:
            self._deliver(Reply(dispatch_id, content, refused=why.reason, reason=why.sentence))
        return words.SubmitResult(False, dispatch_id, still_open, why.reason, why.sentence)

    def _ask_query(self, worker: str, call: words.QueryCall) -> QueryStatus:
        self._board.book.renew(worker, self._clock.now(), call.lease)
        why = self._board.find_problem(worker, call.dispatch_id, call.lease)
        if why is not None:
            return QueryStatus(asked=False, sentence=why.sentence)
        about = self._board.asks[call.dispatch_id]
        return self.queries.ask(about, call.question, call.options, self._clock.now())

    def _build_status(self, worker: str) -> words.RunStatus:
        reading = self._progress.read_progress()
        return words.RunStatus(
            coordinator=True,
            run_id=self._board.find_run_id(),
            cases=reading.cases,
            over=reading.over,
            open=len(self._board.asks),
            leased=self._board.count_leased(),
            workers=len(+self._workers),
            yours=self._board.list_held(worker),
            reason="",
        )

    def _read_text(self, dispatch_id: int) -> dict[str, Any]:
        """The briefing, or a prompt; one that is not open is not told."""
        asks, run_id = self._board.asks, self._board.find_run_id()
        if dispatch_id:
            ask = asks.get(dispatch_id)
            return {"text": ask.prompt if ask else None, "run_id": run_id}
        return {"text": self.write_briefing(run_id or 0, list(asks.values())), "run_id": run_id}

    def _time_out(self, ask: Ask, timeout: float) -> None:
        reason = f"no answer within {timeout:g} s after the first worker took it"
        self._deliver(Reply(ask.dispatch_id, failure=TIMEOUT, reason=reason))


def _to_dict(record: msgspec.Struct) -> dict[str, Any]:
    found: dict[str, Any] = msgspec.to_builtins(record)
    return found
