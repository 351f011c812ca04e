"""The carrier `mcp`: asks wait here until a worker comes and takes one, under a lease.

Knows which asks are open, who holds them, and what each worker is told. An answer is judged before
it is delivered, so that whoever wrote it can mend it; one that comes too late, twice or from
somebody else is refused and journaled. Refuses to know sockets (`pull_door`) and MCP.
"""

import asyncio
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, assert_never

import msgspec

from interlock.core.case import Refused
from interlock.core.circuit import CRASH, TIMEOUT, UNREADABLE, Step
from interlock.core.shape_schema import schema_of
from interlock.dispatch import pull_words as words
from interlock.dispatch.briefer import Gauge
from interlock.dispatch.carrier import Ask, Clock, Deliver, Reply
from interlock.dispatch.lease import LeaseBook
from interlock.dispatch.pull_door import PullDoor
from interlock.dispatch.query_desk import QueryDesk
from interlock.dispatch.stir import Stir, resolve

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


class PullDesk:
    """A carrier whose asks are fetched. `steps`, `judge` and `brief` are put in before it
    starts."""

    def __init__(
        self, folder: Path, queries: QueryDesk, clock: Clock, gauge: Gauge, nonce: Callable[[], str]
    ) -> None:
        self.steps: Mapping[str, Step] = {}
        self.judge: Judge = _takes_all
        self.brief: Brief = _says_nothing
        self._door = PullDoor(folder, self)
        self.queries = queries
        self._clock = clock
        self._gauge = gauge
        self._book = LeaseBook(folder / _LEASES, nonce)
        self._open: dict[int, Ask] = {}
        self._settling: dict[int, asyncio.Future[str]] = {}
        self._refused: Counter[int] = Counter()
        self._limits: dict[int, Callable[[], None]] = {}
        self._stir = Stir(clock)
        self._present: Counter[str] = Counter()
        self._ring: Callable[[], None] | None = None
        self._first = True
        self._closed = False
        self._deliver: Deliver

    def start(self, deliver: Deliver) -> None:
        self._deliver = self.queries.refuse = deliver
        self._door.open()
        self._book.open(self._clock.now())

    def send(self, asks: Sequence[Ask]) -> None:
        self._open |= {ask.dispatch_id: ask for ask in asks}
        if self._first:
            self._first = False
            self._book.keep_only(set(self._open))
            self._watch_leases()
        self._stir.ring()

    def settled(self, dispatch_id: int, error: str = "") -> None:
        self._open.pop(dispatch_id, None)
        self._book.forget(dispatch_id)
        self._refused.pop(dispatch_id, None)
        if cancel := self._limits.pop(dispatch_id, None):
            cancel()
        if waiting := self._settling.pop(dispatch_id, None):
            resolve(waiting, error)

    async def close(self) -> None:
        self._closed = True
        for cancel in (self._ring, *self._limits.values()):
            if cancel is not None:
                cancel()
        for waiting in self._settling.values():
            resolve(waiting, _OVER)
        self._stir.ring()
        await self._door.close()

    def came(self, worker: str) -> None:
        """A worker is here; what it held when the last coordinator died is still its own."""
        self._present[worker] += 1
        self._book.renew(worker, self._clock.now())

    def gone(self, worker: str) -> None:
        """A worker has left or died: others may have what it held."""
        self._present[worker] -= 1
        if self._present[worker] > 0 or self._closed:
            return
        for lease in self._book.held_by(worker):
            self._release(lease.dispatch_id)

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
            case words.Query():
                return self._query(worker, call)
            case words.Poll():
                return self._poll(worker, call)
            case words.Look():
                self._book.renew(worker, self._clock.now(), call.lease)
                return self._standing(worker)
            case words.Read():
                return self._text(call.dispatch_id)
            case words.Hello() | words.Cancel():
                return {"run_id": self._run_id()}
        assert_never(call)

    async def _next(self, worker: str, call: words.Next) -> words.Work | words.NoWork:
        until = self._clock.now() + max(0.0, min(call.wait, words.LONGEST_WAIT))
        while not self._closed:
            for ask in sorted(self._open.values(), key=lambda each: each.dispatch_id):
                if self._free(ask.dispatch_id) and (not call.roles or ask.role in call.roles):
                    return self._hand_out(ask, worker, call.ttl)
            if self._clock.now() >= until:
                return words.NoWork(self._why_none(call.roles))
            await self._stir.wait(until)
        return words.NoWork(_OVER, leaving=True)

    def _hand_out(self, ask: Ask, worker: str, ttl: float) -> words.Work:
        now = self._clock.now()
        step = self.steps[ask.step]
        lease = self._book.grant(
            ask.dispatch_id, worker, max(1.0, min(ttl, words.LONGEST_LEASE)), now
        )
        if step.timeout is not None and ask.dispatch_id not in self._limits:
            late = self._clock.call_at(now + step.timeout, lambda: self._late(ask, step))
            self._limits[ask.dispatch_id] = late
        self._watch_leases()
        return words.Work(
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
        self._book.renew(worker, self._clock.now(), call.lease)
        why = self._out_of_turn(worker, call.dispatch_id, call.lease)
        if why is not None:
            return self._refuse(call.dispatch_id, content, why, still_open=False)
        reason = call.reason if isinstance(call, words.GiveUp) else ""
        reply = Reply(call.dispatch_id, content, failure=failure, reason=reason)
        why = None if failure else self.judge(self._open[call.dispatch_id], reply)
        if why is not None:
            return self._mend(call.dispatch_id, content, why)
        settling = asyncio.get_running_loop().create_future()
        self._settling[call.dispatch_id] = settling
        self._deliver(reply)
        error = await settling
        if error == _OVER:
            return words.Taken(False, call.dispatch_id, True, *UNSETTLED)
        if error and not failure:
            return words.Taken(False, call.dispatch_id, False, "Unreadable", f"Not taken: {error}")
        return words.Taken(True, call.dispatch_id)

    async def _give_up(self, worker: str, call: words.GiveUp) -> words.Taken:
        if not call.release:
            return await self._submit(worker, call, b"", CRASH)
        why = self._out_of_turn(worker, call.dispatch_id, call.lease)
        if why is not None:
            return words.Taken(False, call.dispatch_id, False, why.reason, why.sentence)
        self._release(call.dispatch_id)
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

    def _out_of_turn(self, worker: str, dispatch_id: int, token: str) -> Refused | None:
        if dispatch_id in self._settling:
            return Refused("Stale", f"An answer to dispatch {dispatch_id} is being taken already.")
        if dispatch_id not in self._open:
            sentence = f"Dispatch {dispatch_id} is not open: it is settled, or never was."
            return Refused("Stale", sentence)
        return self._book.problem(worker, dispatch_id, token)

    def _query(self, worker: str, call: words.Query) -> dict[str, Any]:
        self._book.renew(worker, self._clock.now(), call.lease)
        why = self._out_of_turn(worker, call.dispatch_id, call.lease)
        if why is not None:
            return {"asked": False, "answered": False, "sentence": why.sentence}
        about = self._open[call.dispatch_id]
        return self.queries.ask(about, call.question, call.options, self._clock.now())

    def _poll(self, worker: str, call: words.Poll) -> dict[str, Any]:
        self._book.renew(worker, self._clock.now())
        return self.queries.poll(call.query_id)

    def _standing(self, worker: str) -> dict[str, Any]:
        reading = self._gauge.read()
        mine = self._book.held_by(worker)
        held = [each for each in self._open if self._book.of(each) is not None]
        return {
            "coordinator": True,
            "run_id": self._run_id(),
            "cases": reading.cases,
            "over": reading.over,
            "open": len(self._open),
            "leased": len(held),
            "workers": len(+self._present),
            "yours": [
                {
                    "dispatch_id": each.dispatch_id,
                    "case_id": self._open[each.dispatch_id].case_id,
                    "step": self._open[each.dispatch_id].step,
                    "seconds_left": round(each.until - self._clock.now(), 1),
                }
                for each in sorted(mine, key=lambda each: each.dispatch_id)
                if each.dispatch_id in self._open
            ],
            "reason": "",
        }

    def _text(self, dispatch_id: int) -> dict[str, Any]:
        """The briefing, or a prompt; one that is not open is not told."""
        if dispatch_id:
            ask = self._open.get(dispatch_id)
            return {"text": ask.prompt if ask else None, "run_id": self._run_id()}
        asks = list(self._open.values())
        return {"text": self.brief(self._run_id() or 0, asks), "run_id": self._run_id()}

    def _run_id(self) -> int | None:
        return next((ask.run_id for ask in self._open.values()), None)

    def _why_none(self, roles: Sequence[str]) -> str:
        free = [ask.role for ask in self._open.values() if self._free(ask.dispatch_id)]
        if free:
            return f"what waits is for {', '.join(sorted(set(free)))}, not for {', '.join(roles)}"
        if self._open:
            return "other workers have all that is open; ask again"
        return "nothing is to be done at this moment; ask again"

    def _free(self, dispatch_id: int) -> bool:
        return self._book.of(dispatch_id) is None and dispatch_id not in self._settling

    def _release(self, dispatch_id: int) -> None:
        self._book.release(dispatch_id)
        self._stir.ring()

    def _late(self, ask: Ask, step: Step) -> None:
        self._limits.pop(ask.dispatch_id, None)
        if ask.dispatch_id in self._open and ask.dispatch_id not in self._settling:
            reason = f"no answer within {step.timeout:g} s of its first worker"
            self._deliver(Reply(ask.dispatch_id, failure=TIMEOUT, reason=reason))

    def _watch_leases(self) -> None:
        """Wake when the first lease runs out; one that was renewed meanwhile is looked at again."""
        if self._ring is not None:
            self._ring()
        end = self._book.next_end()
        self._ring = None if end is None else self._clock.call_at(end, self._look)

    def _look(self) -> None:
        self._ring = None
        for lease in self._book.run_out(self._clock.now()):
            if lease.dispatch_id not in self._settling:
                self._release(lease.dispatch_id)
        if not self._closed:
            self._watch_leases()


def _told(record: msgspec.Struct) -> dict[str, Any]:
    found: dict[str, Any] = msgspec.to_builtins(record)
    return found
