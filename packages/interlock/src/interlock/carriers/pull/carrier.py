"""The carrier `mcp`: it offers each dispatch in a table, and looks there for its reply.

An answer is judged before it is delivered, so that whoever wrote it can mend it; one that comes too
late, twice or from somebody else is refused and journaled. Who has what is in `offers`.
"""

import asyncio
import time
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress

from interlock.carriers.background import report_error, report_failure
from interlock.carriers.contract import Ask, Carrier, Reply, Session, Traits
from interlock.carriers.files.case_folder import estimate_usage
from interlock.carriers.pull import offers
from interlock.carriers.pull.offers import (
    LOOK_SECONDS,
    UNSETTLED,
    OfferSession,
    OfferStatus,
    OfferTable,
    StoredReply,
    Verdict,
    Work,
)
from interlock.engine.circuit import TIMEOUT, UNREADABLE
from interlock.engine.circuit_file import NAMED_SHAPES
from interlock.engine.shape import build_schema, read_shape
from interlock.journal.address import DatabaseAddress
from interlock.journal.connection import RawConnection
from interlock.journal.database import open_reader
from interlock.system.errors import InterlockError

MAX_REFUSALS = 10
"""Answers to one dispatch that may be refused before the attempt ends as unreadable."""
_TEXT = read_shape(NAMED_SHAPES["text"])
_RETRY_SECONDS = 1.0
_Change = Callable[[RawConnection], None]


class PullCarrier(Carrier):
    """Offer each ask to agents that pull their work."""

    traits = Traits(
        times_itself=True,
        hint="asks wait for workers: an agent takes them with the tools of 'interlock mcp'",
    )

    def __init__(self, db: DatabaseAddress) -> None:
        self._db = db
        self._asks: dict[int, Ask] = {}
        self._changes: list[_Change] = []
        self._judged: dict[int, StoredReply] = {}
        """By dispatch, the reply that the run has and has not settled."""
        self._refused: Counter[int] = Counter()
        self._taken: dict[int, OfferStatus] = {}
        self._late: set[int] = set()
        self._is_first = True
        self._closing = False

    def start(self, session: Session) -> None:
        super().start(session)
        self._session = session
        self._is_first, self._closing = True, False
        self._own = OfferSession(self._db)
        self._table = OfferTable(self._db)
        self._awake = asyncio.Event()
        self._task = asyncio.get_running_loop().create_task(self._look_on())
        self._task.add_done_callback(report_failure)

    def send(self, asks: Sequence[Ask]) -> None:
        fresh = [ask for ask in asks if ask.dispatch_id not in self._asks]
        self._asks |= {ask.dispatch_id: ask for ask in fresh}
        if not fresh:
            return
        works = [(self._build_work(ask), self._session.steps[ask.step].timeout) for ask in fresh]
        self._change(offers.insert_offers, self._own.name, works)
        if self._is_first:
            self._is_first = False
            self._change(offers.forget_other_sessions, self._own.name, fresh[0].run_id)
        briefing = self._session.write_briefing(fresh[0].run_id, list(self._asks.values()))
        self._own.write_briefing(briefing)

    def settle(self, dispatch_id: int, error: str = "") -> None:
        if self._asks.pop(dispatch_id, None) is None:
            return
        self._refused.pop(dispatch_id, None)
        self._taken.pop(dispatch_id, None)
        reply = self._judged.pop(dispatch_id, None)
        self._late.discard(dispatch_id)
        verdict = Verdict(accepted=True)
        if error and not (reply is not None and reply.failure):
            sentence = f"Not accepted: {error}"
            verdict = Verdict(accepted=False, refusal="Unreadable", sentence=sentence)
        reply_id = "" if reply is None else reply.reply_id
        self._change(offers.settle_offer, dispatch_id, reply_id, verdict)

    def keeps_answers(self) -> bool:
        """Return whether no agent holds an offer; offers without a holder are made again when the
        run goes on.

        Asked when a run is to stop, because an agent may have taken something since the last look.
        """
        with suppress(InterlockError), open_reader(self._db) as connection:
            self._note_taken(offers.list_taken(connection.raw, self._own.name, time.time()))
        return not self._has_work_out()

    def _has_work_out(self) -> bool:
        return bool(self._judged) or any(each.leased for each in self._taken.values())

    def _note_taken(self, taken: Sequence[OfferStatus]) -> None:
        self._taken = {each.dispatch_id: each for each in taken if each.dispatch_id in self._asks}

    async def close(self) -> None:
        if self._closing:
            return
        self._closing = True
        for reply in self._judged.values():
            self._give_verdict(reply, UNSETTLED)
        self._awake.set()
        with suppress(asyncio.CancelledError):
            await self._task
        await self._table.close()
        self._own.close()
        self._asks.clear()
        self._judged.clear()
        self._taken.clear()

    def _build_work(self, ask: Ask) -> Work:
        step = self._session.steps[ask.step]
        shape = _TEXT if step.language == "text" else step.shape
        return Work(
            dispatch_id=ask.dispatch_id,
            run_id=ask.run_id,
            case_id=ask.case_id,
            step=ask.step,
            attempt=ask.attempt,
            role=ask.role,
            prompt=ask.prompt,
            answer_schema=build_schema(shape),
            signals=step.signals,
        )

    def _change(self, do: Callable[..., None], *arguments: object) -> None:
        """Change the table at the next look, which is now."""
        self._changes.append(lambda raw: do(raw, *arguments))
        self._awake.set()

    async def _look_on(self) -> None:
        """Look as long as the carrier is open, and once more for changes that are left."""
        while True:
            closing = self._closing
            pause = LOOK_SECONDS
            try:
                await self._look()
            except InterlockError:
                pause = _RETRY_SECONDS
            if closing and not (self._changes and pause == LOOK_SECONDS):
                return
            with suppress(TimeoutError):
                await asyncio.wait_for(self._awake.wait(), pause)

    async def _look(self) -> None:
        self._awake.clear()
        changes = tuple(self._changes)
        now = time.time()
        if changes:
            await self._table.write(_apply_all, changes)
            del self._changes[: len(changes)]
        taken = await self._table.read(offers.list_taken, self._own.name, now)
        had_work_out = self._has_work_out()
        self._note_taken(taken)
        if await self._table.read(offers.has_replies, self._own.name):
            for reply in await self._table.write(offers.fetch_replies, self._own.name, now):
                self._take_reply(reply)
        for each in self._taken.values():
            if each.overdue and each.state != "replied" and each.dispatch_id not in self._late:
                self._end_late(self._asks[each.dispatch_id])
        if had_work_out and not self._has_work_out():
            self._session.wake_up()

    def _take_reply(self, stored: StoredReply) -> None:
        """Hand a reply over, unless it is refused; it is seen until the run has settled it."""
        if stored.refused:
            self._deliver_refusal(stored, stored.refused, stored.reason)
            return
        known, ask = self._judged.get(stored.dispatch_id), self._asks.get(stored.dispatch_id)
        if known is not None and known.reply_id == stored.reply_id:
            return
        if self._closing:
            self._give_verdict(stored, UNSETTLED)
            return
        if ask is None:
            sentence = offers.describe_settled(stored.dispatch_id)
            self._deliver_refusal(stored, "Stale", sentence)
            late = Verdict(accepted=False, refusal="Stale", sentence=sentence)
            self._give_verdict(stored, late)
            return
        self._judged[ask.dispatch_id] = stored
        usage = estimate_usage(ask, stored.content)
        reply = Reply(
            *(ask.dispatch_id, stored.content, stored.failure, stored.reason), usage=usage
        )
        try:
            problem = None if stored.failure else self._session.judge(ask, reply)
        except Exception as error:
            report_error(error, ask.dispatch_id)
            return
        if problem is None:
            self._deliver(reply)
            return
        del self._judged[ask.dispatch_id]
        self._deliver_refusal(stored, problem.reason, problem.sentence)
        self._refused[ask.dispatch_id] += 1
        is_open = self._refused[ask.dispatch_id] < MAX_REFUSALS
        verdict = Verdict(
            accepted=False, open=is_open, refusal=problem.reason, sentence=problem.sentence
        )
        self._give_verdict(stored, verdict)
        if not is_open:
            reason = f"{MAX_REFUSALS} answers were refused, the last because: {problem.sentence}"
            self._deliver(Reply(ask.dispatch_id, failure=UNREADABLE, reason=reason))

    def _give_verdict(self, stored: StoredReply, verdict: Verdict) -> None:
        self._change(offers.refuse_reply, stored, verdict, time.time())

    def _deliver_refusal(self, stored: StoredReply, refused: str, reason: str) -> None:
        self._deliver(Reply(stored.dispatch_id, stored.content, refused=refused, reason=reason))

    def _end_late(self, ask: Ask) -> None:
        self._late.add(ask.dispatch_id)
        timeout = self._session.steps[ask.step].timeout
        reason = f"no answer within {timeout:g} s after the first worker took it"
        self._deliver(Reply(ask.dispatch_id, failure=TIMEOUT, reason=reason))


def _apply_all(raw: RawConnection, changes: Sequence[_Change]) -> None:
    for change in changes:
        change(raw)
