"""The carrier `worker`: asks are offered to workers on other hosts, whose replies are rows.

Everything it tells the database goes out in one exchange: what is settled, what is offered, what
workers have lost. Replies are read and handed to the loop; only when the loop has decided, and said
so by `settle`, is a row removed. A reply under an older fence is handed on as refused, so that it
is journaled. Nobody is asked for more than the workers can soon take.
"""

import asyncio
import math
import random
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

import msgspec

from interlock.carriers.background import report_failure, tell_user
from interlock.carriers.contract import Ask, Carrier, Reply, Session, Traits
from interlock.carriers.registry import AgentContext, AgentSpec, is_label
from interlock.engine.case import Usage
from interlock.engine.circuit import CRASH, FAILURES, TIMEOUT, UNREADABLE
from interlock.journal.address import PostgresAddress
from interlock.journal.ownership import describe_self
from interlock.system.errors import InterlockError, SourceError
from interlock_cluster import queue
from interlock_cluster.postgres import PostgresConnection
from interlock_cluster.queue import MOST_LOSSES, LostOffer, Offer, QueuedReply, QueueRoom
from interlock_cluster.worker.database import DatabaseThreads, ReplyListener

POLL = 1.0
"""Seconds between looks, give or take a third."""
_EVERY = {"missing": 5.0, "tidy": 30.0}
"""Seconds between looks for offers that are gone, and for what is over."""
_LEAST = 2
"""Dispatches of a role that are offered even if nobody is there: the first to come finds work."""
_AHEAD = 2
"""How many times the slots of its workers a queue is offered."""

_decode = msgspec.json.Decoder(Reply).decode
_PROBLEMS = {
    "stale": "Dispatch {} was given to another worker, or is settled: this reply came too late.",
    "forged": "The reply to dispatch {} has not the token that was given out with it.",
}


class _News(msgspec.Struct):
    """What one exchange with the database brought."""

    replies: list[QueuedReply] = []
    room: dict[str, QueueRoom] = {}
    lost: tuple[LostOffer, ...] = ()
    overdue: tuple[tuple[int, float], ...] = ()
    missing: set[int] = set()
    limited_for: float = 0.0


class _Exchange(msgspec.Struct, frozen=True):
    """What the database is told in one transaction, and asked after it."""

    offers: tuple[Offer, ...]
    settled: tuple[int, ...]
    run_ids: tuple[int, ...]
    queues: tuple[str, ...]
    delivered: tuple[tuple[int, int], ...]
    open: tuple[int, ...]
    """Dispatches to look for, lest one be missing."""
    withdrawn: tuple[int, ...]
    """Those that nobody should begin with, because the work on their run ends."""
    tidy: bool

    def hold(self, server: PostgresConnection) -> _News:
        """Blocks: for a thread."""
        news = _News()
        server.begin()
        if self.settled:
            queue.settle_offers(server, self.settled)
        if self.offers:
            queue.insert_offers(server, self.offers)
        if self.run_ids:
            swept = queue.sweep_offers(server, self.run_ids, self.queues)
            news.lost, news.overdue = swept.lost, swept.overdue
        if self.withdrawn:
            me = describe_self()
            queue.withdraw_offers(server, self.withdrawn, me.pid, me.host)
        if self.tidy:
            queue.tidy_queue(server)
        server.commit()
        if self.run_ids:
            news.replies = queue.read_replies(server, self.run_ids, self.queues, self.delivered)
            news.room = queue.read_room(server, self.queues)
        if self.open:
            news.missing = queue.find_missing(server, self.open)
        if any(each.is_limited for each in news.replies):
            news.limited_for = queue.read_limit_end(server, self.queues)
        return news


class WorkerCarrier(Carrier):
    """Carries asks to workers that have the label, if there is one."""

    traits = Traits(capacity="by role", times_itself=True)

    def __init__(self, address: PostgresAddress, label: str = "") -> None:
        self._address = address
        self._label = label
        self._open: dict[int, Ask] = {}
        self._out: Counter[str] = Counter()
        self._to_offer: dict[int, Ask] = {}
        self._to_settle: dict[int, None] = {}
        self._delivered: dict[int, set[int]] = {}
        """The fences of replies that the loop has, by dispatch."""
        self._refused: set[tuple[int, int, str]] = set()
        self._run_ids: set[int] = set()
        self._queues: dict[str, None] = {}
        self._room: dict[str, QueueRoom] = {}
        self._due = dict.fromkeys(_EVERY, 0.0)
        self._told: set[str] = set()
        self._problem = ""
        self._closing = False

    def start(self, session: Session) -> None:
        super().start(session)
        self._session = session
        self._closing = False
        self._database = DatabaseThreads(self._address, "interlock-offers")
        self._awake = asyncio.Event()
        self._stop_listening = ReplyListener.add(self._address, self._awake.set)
        self._task = asyncio.get_running_loop().create_task(self._run())
        self._task.add_done_callback(report_failure)

    def send(self, asks: Sequence[Ask]) -> None:
        for ask in asks:
            self._out[ask.role] += ask.dispatch_id not in self._open
            self._open[ask.dispatch_id] = self._to_offer[ask.dispatch_id] = ask
            self._run_ids.add(ask.run_id)
            self._queues[self.name_queue(ask.role)] = None
        self._awake.set()

    def settle(self, dispatch_id: int, error: str = "") -> None:
        known = self._open.pop(dispatch_id, None)
        self._to_offer.pop(dispatch_id, None)
        if known is not None:
            self._out[known.role] -= 1
            self._to_settle[dispatch_id] = None
            self._awake.set()

    async def close(self) -> None:
        """What a worker has begun with goes on; its reply is found when the run does. Nobody begins
        with the rest."""
        self._closing = True
        self._awake.set()
        self._stop_listening()
        with suppress(asyncio.CancelledError):
            await self._task
        await self._database.close()
        self._open.clear()
        self._out.clear()
        self._to_offer.clear()
        self._delivered.clear()

    def name_queue(self, role: str) -> str:
        return f"{role}:{self._label}" if self._label else role

    def account_of(self, role: str) -> str:
        """What rests when the accounts of all workers do that could answer for the role."""
        return f"workers for {self.name_queue(role)}"

    def keeps_answers(self) -> bool:
        return True

    def free_capacity(self, role: str) -> int:
        """Twice the slots of live workers, shared with the other runs that want them."""
        name = self.name_queue(role)
        room = self._room.get(name, QueueRoom())
        return max(_LEAST, math.ceil(_AHEAD * room.slots / room.runs)) - self._out[role]

    async def _run(self) -> None:
        await self._prepare()
        while True:
            is_last = self._closing
            self._awake.clear()
            settled, self._to_settle = self._to_settle, {}
            offered: dict[int, Ask] = {}
            if not is_last:  # what nobody was offered yet goes out when the run goes on
                offered, self._to_offer = self._to_offer, {}
            elif not settled and not self._open:
                return
            talk = self._plan_exchange(offered, settled)
            try:
                news = await self._database.call(talk.hold)
                for number in settled:
                    self._delivered.pop(number, None)
                self._note_problem("")
            except InterlockError as error:
                # Nothing is lost: it goes out with the next exchange, unless that has changed.
                again = {number: ask for number, ask in offered.items() if number in self._open}
                self._to_offer = again | self._to_offer
                self._to_settle = settled | self._to_settle
                self._note_problem(str(error))
                news = _News()
            if is_last:
                return
            self._take_news(news)
            await self._wait()

    async def _wait(self) -> None:
        """Until there is something to say or to hear; where the database fails, for a while."""
        # Chance only keeps coordinators out of step; no decision depends on it.
        pause = POLL * random.uniform(2 / 3, 4 / 3)  # noqa: S311
        if self._problem and not self._closing:
            await asyncio.sleep(pause)
        elif not self._awake.is_set():
            with suppress(TimeoutError):
                await asyncio.wait_for(self._awake.wait(), pause)

    def _plan_exchange(
        self, offered: Mapping[int, Ask], settled: Mapping[int, None]
    ) -> "_Exchange":
        now = time.monotonic()
        due = {what for what, when in self._due.items() if when <= now}
        self._due |= {what: now + _EVERY[what] for what in due}
        return _Exchange(
            tuple(self._build_offer(ask) for ask in offered.values()),
            tuple(settled),
            tuple(self._run_ids),
            tuple(self._queues),
            tuple(
                (number, fence) for number, fences in self._delivered.items() for fence in fences
            ),
            tuple(self._open) if "missing" in due and not self._closing else (),
            tuple(self._open) if self._closing else (),
            "tidy" in due,
        )

    async def _prepare(self) -> None:
        """Have a queue, once the database can be reached."""
        while not self._closing:
            try:
                await self._database.call(queue.ensure_queue)
            except InterlockError as error:
                self._note_problem(str(error))
                with suppress(TimeoutError):
                    await asyncio.wait_for(self._awake.wait(), POLL)
                    self._awake.clear()
            else:
                return

    def _note_problem(self, problem: str) -> None:
        if problem and not self._problem:
            tell_user(f"waiting for the work queue: {problem}")
        self._problem = problem

    def _build_offer(self, ask: Ask) -> Offer:
        step = self._session.steps.get(ask.step)
        return Offer(
            ask.dispatch_id,
            ask.run_id,
            ask.case_no,
            ask.case_id,
            ask.step,
            ask.role,
            self.name_queue(ask.role),
            msgspec.json.encode(msgspec.structs.replace(ask, case=None)),
            step.timeout if step else None,
        )

    def _take_news(self, news: _News) -> None:
        for reply in news.replies:
            self._take_reply(reply, news)
        for lost in news.lost:
            self._take_loss(lost)
        for dispatch_id, timeout in news.overdue:
            if dispatch_id in self._open:
                reason = f"no answer within {timeout:g} s after a worker took it"
                self._deliver(Reply(dispatch_id, failure=TIMEOUT, reason=reason))
        for dispatch_id in news.missing:
            if dispatch_id in self._open and dispatch_id not in self._delivered:
                self._to_offer[dispatch_id] = self._open[dispatch_id]
        before, self._room = self._room, news.room or self._room
        if before != self._room:
            self._tell_of_room()
            self._session.wake_up()

    def _take_reply(self, queued: QueuedReply, news: _News) -> None:
        if queued.problem:
            self._refuse(queued)
            return
        ask = self._open.get(queued.dispatch_id)
        if ask is None:
            return
        others = news.room.get(self.name_queue(ask.role), QueueRoom()).slots
        if queued.is_limited and queued.account and others:
            # Somebody has an account that does not rest.
            self._to_settle[ask.dispatch_id] = None
            self._to_offer[ask.dispatch_id] = ask
            self._awake.set()
            return
        self._delivered.setdefault(ask.dispatch_id, set()).add(queued.fence)
        self._deliver(_read_reply(ask, queued, news.limited_for))

    def _refuse(self, queued: QueuedReply) -> None:
        key = (queued.dispatch_id, queued.fence, queued.problem)
        if key in self._refused:
            return
        self._refused.add(key)
        self._deliver(refuse_late(queued))

    def _take_loss(self, lost: LostOffer) -> None:
        who = f" ({lost.worker})" if lost.worker else ""
        if lost.losses < MOST_LOSSES:
            if lost.losses > 0:
                tell_user(f"dispatch {lost.dispatch_id}: its worker{who} is gone; offered again")
        elif lost.dispatch_id in self._open:
            reason = f"{lost.losses} workers died or were cut off while they worked on it{who}"
            self._deliver(Reply(lost.dispatch_id, failure=CRASH, reason=reason))

    def _tell_of_room(self) -> None:
        """Say once that nobody is there for a role, lest a user wait in vain."""
        waiting = {self.name_queue(ask.role): ask.role for ask in self._open.values()}
        for name, role in waiting.items():
            if name not in self._told and not self._room.get(name, QueueRoom()).slots:
                self._told.add(name)
                label = f" --label {self._label}" if self._label else ""
                tell_user(
                    f"no worker is there for {name}; start one with 'interlock worker --role "
                    f"{role}=AGENT{label}'"
                )


def _read_reply(ask: Ask, queued: QueuedReply, limited_for: float) -> Reply:
    """What a worker says, as far as it may say it: of this dispatch, at a cost, and as no human."""
    try:
        said = _decode(queued.body)
    except (msgspec.DecodeError, UnicodeError) as error:
        reason = f"the worker's reply cannot be read: {error}"
        return Reply(ask.dispatch_id, failure=UNREADABLE, reason=reason)
    usage = Usage(max(0, said.usage.tokens), max(0.0, said.usage.money))
    # Hosts' clocks differ, so a worker says for how long, not until when.
    seconds = (limited_for or said.until) if queued.is_limited else 0.0
    return msgspec.structs.replace(
        said,
        dispatch_id=ask.dispatch_id,
        failure=said.failure if said.failure in FAILURES else CRASH if said.failure else "",
        refused="",
        stops_run=False,
        usage=usage,
        answered_by="",
        until=time.time() + seconds if seconds > 0 else 0.0,
    )


def refuse_late(queued: QueuedReply) -> Reply:
    """A reply that cannot count, as it is journaled."""
    try:
        content = _decode(queued.body).content
    except (msgspec.DecodeError, UnicodeError):
        content = queued.body
    sentence = _PROBLEMS[queued.problem].format(queued.dispatch_id)
    return Reply(queued.dispatch_id, content, refused="Stale", reason=sentence)


def build_worker(spec: AgentSpec, context: AgentContext) -> Carrier:
    """Build the agent `worker[:LABEL]`, which workers on other hosts answer."""
    if isinstance(context.db, Path):
        raise SourceError(
            f"the agent 'worker' needs a PostgreSQL database; {context.db} is a file: use --db "
            "postgresql://USER@HOST/NAME, or --dispatch mcp for workers on this machine"
        )
    if spec.rest and not is_label(spec.rest):
        raise SourceError(
            f"{spec}: a label has letters, digits, '.', '_' and '-'; use worker:LABEL"
        )
    return WorkerCarrier(context.db, spec.rest)
