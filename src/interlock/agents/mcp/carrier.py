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
from interlock.agents.files.case_folder import reckoned
from interlock.agents.mcp import messages as words
from interlock.agents.mcp.leases import LeaseBoard
from interlock.agents.mcp.socket import WorkerSocket
from interlock.agents.queries import QueryBroker, QueryStatus
from interlock.engine.case import Refused
from interlock.engine.circuit import CRASH, TIMEOUT, UNREADABLE, Step
from interlock.engine.shape import schema_of

MOST_REFUSED = 10
"""Answers to one dispatch that may be refused before the attempt ends as unreadable."""
_LEASES = "leases.json"
_MOST_ID = 2**53
UNSETTLED = Refused(
    "Unsettled",
    "No coordinator was there to take the answer; nothing is lost: submit it again, under the same"
    " lease, when interlock_status says that a coordinator is back.",
)
_OVER = "this coordinator has ended its sitting"

Judge = Callable[[Ask, Reply], Refused | None]
Brief = Callable[[int, Sequence[Ask]], str]


def _takes_all(_ask: Ask, _reply: Reply) -> Refused | None:
    return None


def _says_nothing(_run_id: int, _asks: Sequence[Ask]) -> str:
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
        self.judge: Judge = _takes_all
        self.brief: Brief = _says_nothing
        self.queries = queries
        self._door = WorkerSocket(folder, self)
        self._clock = clock
        self._gauge = gauge
        self._board = LeaseBoard(folder / _LEASES, clock, nonce, self._late)
        self._refused: Counter[int] = Counter()
        self._present: Counter[str] = Counter()
        self._deliver: Deliver

    def start(self, deliver: Deliver) -> None:
        self._deliver = self.queries.refuse = deliver
        self._door.open()
        self._board.open()

    def send(self, asks: Sequence[Ask]) -> None:
        self._board.put(asks)

    def settled(self, dispatch_id: int, error: str = "") -> None:
        self._refused.pop(dispatch_id, None)
        self._board.drop(dispatch_id, error)

    async def close(self) -> None:
        self._board.close(_OVER)
        await self._door.close()

    def came(self, worker: str) -> None:
        """A worker is here; what it held when the last coordinator died is still its own."""
        self._present[worker] += 1
        self._board.book.renew(worker, self._clock.now())

    def gone(self, worker: str) -> None:
        """A worker has left or died: others may have what it held."""
        self._present[worker] -= 1
        if self._present[worker] > 0 or self._board.closed:
            return
        for lease in self._board.book.held_by(worker):
            self._board.release(lease.dispatch_id)

    async def answer(self, worker: str, call: words.Call) -> dict[str, Any]:
        """What a worker gets for its call."""
        match call:
            case words.Next():
                return _told(await self._next(worker, call))
            case words.Submit():
                content = call.content.encode(errors="surrogatepass")
                return _told(await self._submit(worker, call, content))
            case words.GiveUp():
                return _told(await self._give_up(worker, call))
            case words.QueryCall():
                return _told(self._query(worker, call))
            case words.Poll():
                self._board.book.renew(worker, self._clock.now())
                return _told(self.queries.poll(call.query_id))
            case words.StatusCall():
                self._board.book.renew(worker, self._clock.now(), call.lease)
                return _told(self._standing(worker))
            case words.Read():
                return self._text(call.dispatch_id)
            case words.Hello() | words.Cancel():
                return {"run_id": self._board.run_id()}
        assert_never(call)

    async def _next(self, worker: str, call: words.Next) -> words.WorkItem | words.NoWork:
        until = self._clock.now() + max(0.0, min(call.wait, words.LONGEST_WAIT))
        while not self._board.closed:
            for ask in self._board.free():
                if not call.roles or ask.role in call.roles:
                    return self._hand_out(ask, worker, call.ttl)
            if self._clock.now() >= until:
                return words.NoWork(reason=self._board.why_none(call.roles))
            await self._board.stir.wait(until)
        return words.Leaving(reason=_OVER)

    def _hand_out(self, ask: Ask, worker: str, ttl: float) -> words.WorkItem:
        step = self.steps[ask.step]
        bounded = max(1.0, min(ttl, words.LONGEST_LEASE))
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
            answer_schema=schema_of(step.shape),
            signals=step.signals,
        )

    async def _submit(
        self, worker: str, call: words.Submit | words.GiveUp, content: bytes, failure: str = ""
    ) -> words.Taken:
        self._board.book.renew(worker, self._clock.now(), call.lease)
        why = self._board.out_of_turn(worker, call.dispatch_id, call.lease)
        if why is not None:
            return self._refuse(call.dispatch_id, content, why, still_open=False)
        reason = call.reason if isinstance(call, words.GiveUp) else ""
        ask = self._board.asks[call.dispatch_id]
        usage = reckoned(ask, content)
        reply = Reply(call.dispatch_id, content, failure=failure, reason=reason, usage=usage)
        why = None if failure else self.judge(ask, reply)
        if why is not None:
            return self._mend(call.dispatch_id, content, why)
        settling = self._board.settling(call.dispatch_id)
        self._deliver(reply)
        error = await settling
        if error == _OVER:
            return words.Taken(False, call.dispatch_id, True, UNSETTLED.reason, UNSETTLED.sentence)
        if error and not failure:
            return words.Taken(
                False, call.dispatch_id, False, "Unreadable", f"Not accepted: {error}"
            )
        return words.Taken(True, call.dispatch_id)

    async def _give_up(self, worker: str, call: words.GiveUp) -> words.Taken:
        if not call.release:
            return await self._submit(worker, call, b"", CRASH)
        why = self._board.out_of_turn(worker, call.dispatch_id, call.lease)
        if why is not None:
            return words.Taken(False, call.dispatch_id, False, why.reason, why.sentence)
        self._board.release(call.dispatch_id)
        return words.Taken(True, call.dispatch_id)

    def _mend(self, dispatch_id: int, content: bytes, why: Refused) -> words.Taken:
        """The sentence to mend it by; after too many the attempt is over."""
        self._refused[dispatch_id] += 1
        if self._refused[dispatch_id] < MOST_REFUSED:
            return self._refuse(dispatch_id, content, why, still_open=True)
        reason = f"{MOST_REFUSED} answers were refused, the last because: {why.sentence}"
        taken = self._refuse(dispatch_id, content, why, still_open=False)
        self._deliver(Reply(dispatch_id, failure=UNREADABLE, reason=reason))
        return taken

    def _refuse(
        self, dispatch_id: int, content: bytes, why: Refused, *, still_open: bool
    ) -> words.Taken:
        if 0 < dispatch_id < _MOST_ID:
            self._deliver(Reply(dispatch_id, content, refused=why.reason, reason=why.sentence))
        return words.Taken(False, dispatch_id, still_open, why.reason, why.sentence)

    def _query(self, worker: str, call: words.QueryCall) -> QueryStatus:
        self._board.book.renew(worker, self._clock.now(), call.lease)
        why = self._board.out_of_turn(worker, call.dispatch_id, call.lease)
        if why is not None:
            return QueryStatus(asked=False, sentence=why.sentence)
        about = self._board.asks[call.dispatch_id]
        return self.queries.ask(about, call.question, call.options, self._clock.now())

    def _standing(self, worker: str) -> words.RunStatus:
        reading = self._gauge.read()
        return words.RunStatus(
            coordinator=True,
            run_id=self._board.run_id(),
            cases=reading.cases,
            over=reading.over,
            open=len(self._board.asks),
            leased=self._board.leased(),
            workers=len(+self._present),
            yours=self._board.held_by(worker),
            reason="",
        )

    def _text(self, dispatch_id: int) -> dict[str, Any]:
        """The briefing, or a prompt; one that is not open is not told."""
        asks, run_id = self._board.asks, self._board.run_id()
        if dispatch_id:
            ask = asks.get(dispatch_id)
            return {"text": ask.prompt if ask else None, "run_id": run_id}
        return {"text": self.brief(run_id or 0, list(asks.values())), "run_id": run_id}

    def _late(self, ask: Ask, timeout: float) -> None:
        reason = f"no answer within {timeout:g} s after the first worker took it"
        self._deliver(Reply(ask.dispatch_id, failure=TIMEOUT, reason=reason))


def _told(record: msgspec.Struct) -> dict[str, Any]:
    found: dict[str, Any] = msgspec.to_builtins(record)
    return found
