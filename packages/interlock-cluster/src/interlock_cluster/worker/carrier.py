"""The carrier `worker`: asks are offered to workers on other hosts, whose replies are rows.

Each exchange with the database is one transaction: it settles, offers, and offers again what a
worker has lost. Replies are read and handed to the loop; a row is removed only after the loop has
decided and called `settle`. A reply under an older fence is handed on as refused, so that it is
journaled. A run offers no more than the workers can soon take.
"""

import asyncio
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
from interlock_cluster.queue import MOST_LOSSES, LostOffer, Offer, QueuedReply
from interlock_cluster.worker.database import DatabaseThread, ReplyListener

POLL = 1.0
"""Seconds between looks, give or take a third."""
_EVERY = {"missing": 5.0, "tidy": 30.0}
"""Seconds between looks for missing offers, and between clean-ups."""
_LEAST = 2
"""Dispatches of a role that are offered even without a worker, for the first to come."""
_AHEAD = 2
"""Dispatches that a run offers for each slot of its workers."""

_decode = msgspec.json.Decoder(Reply).decode
_PROBLEMS = {
    "stale": "Dispatch {} was given to another worker or is settled: this reply came too late.",
    "forged": "The reply to dispatch {} lacks the token that the dispatch was given out with.",
}


class _News(msgspec.Struct):
    """The results of one exchange with the database."""

    replies: list[QueuedReply] = []
    slots: dict[str, int] = {}
    lost: list[LostOffer] = []
    overdue: list[tuple[int, float]] = []
    missing: set[int] = set()
    limited_for: float = 0.0


class _Exchange(msgspec.Struct, frozen=True):
    """One transaction with the database, and the queries after it."""

    offers: tuple[Offer, ...]
    settled: tuple[int, ...]
    run_ids: tuple[int, ...]
    queues: tuple[str, ...]
    delivered: tuple[tuple[int, int], ...]
    open: tuple[int, ...]
    """Dispatches whose offers are looked for."""
    withdrawn: tuple[int, ...]
    """Dispatches that no worker should begin, because the work on their run ends."""
    tidy: bool

    def hold(self, server: PostgresConnection) -> _News:
        """Hold the exchange. Blocks: for a thread."""
        news = _News()
        server.begin()
        if self.settled:
            queue.settle_offers(server, self.settled)
        if self.offers:
            queue.insert_offers(server, self.offers)
        if self.run_ids:
            news.lost = queue.sweep_offers(server, self.run_ids, self.queues)
            news.overdue = queue.list_overdue(server, self.run_ids, self.queues)
        if self.withdrawn:
            me = describe_self()
            queue.withdraw_offers(server, self.withdrawn, me.pid, me.host)
        if self.tidy:
            queue.tidy_queue(server)
        server.commit()
        if self.run_ids:
            news.replies = queue.read_replies(server, self.run_ids, self.queues, self.delivered)
            news.slots = queue.count_slots(server, self.queues)
        if self.open:
            news.missing = queue.find_missing(server, self.open)
        if any(each.is_limited for each in news.replies):
            news.limited_for = queue.read_limit_end(server, self.queues)
        return news


class WorkerCarrier(Carrier):
    """Carries asks to workers that have the label, if there is one."""

    traits = Traits(capacity="by role", times_itself=True, elsewhere=True)

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
        self._slots: dict[str, int] = {}
        self._due = dict.fromkeys(_EVERY, 0.0)
        self._told: set[str] = set()
        self._problem = ""
        self._closing = False

    def start(self, session: Session) -> None:
        super().start(session)
        self._session = session
        self._closing = False
        self._database = DatabaseThread(self._address, "interlock-offers")
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
        """Withdraw what no worker has begun; the run finds the replies to the rest when it is
        resumed."""
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
        """Return the account that rests when those of all workers for the role do."""
        return f"workers for {self.name_queue(role)}"

    def keeps_answers(self) -> bool:
        return True

    def free_capacity(self, role: str) -> int:
        """Return twice the slots of live workers, less what is out."""
        slots = self._slots.get(self.name_queue(role), 0)
        return max(_LEAST, _AHEAD * slots) - self._out[role]

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
        """Wait until there is something to say or to hear; after a failure, for a while."""
        # Chance only keeps coordinators out of step; no decision depends on it.
        pause = POLL * random.uniform(2 / 3, 4 / 3)  # noqa: S311
        if self._problem and not self._closing:
            await asyncio.sleep(pause)
        elif not self._awake.is_set():
            with suppress(TimeoutError):
                await asyncio.wait_for(self._awake.wait(), pause)

    def _plan_exchange(self, offered: Mapping[int, Ask], settled: Mapping[int, None]) -> _Exchange:
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
        """Make the queue, once the database can be reached."""
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
        before, self._slots = self._slots, news.slots or self._slots
        if before != self._slots:
            self._tell_of_room()
            self._session.wake_up()

    def _take_reply(self, queued: QueuedReply, news: _News) -> None:
        if queued.problem:
            self._refuse(queued)
            return
        ask = self._open.get(queued.dispatch_id)
        if ask is None:
            return
        others = news.slots.get(self.name_queue(ask.role), 0)
        if queued.is_limited and queued.account and others:
            # Another worker has an account that does not rest.
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
            tell_user(f"dispatch {lost.dispatch_id}: its worker{who} is gone; offered again")
        elif lost.dispatch_id in self._open:
            reason = f"{lost.losses} workers died or were cut off while they worked on it{who}"
            self._deliver(Reply(lost.dispatch_id, failure=CRASH, reason=reason))

    def _tell_of_room(self) -> None:
        """Tell the user once that a role has no worker."""
        waiting = {self.name_queue(ask.role): ask.role for ask in self._open.values()}
        for name, role in waiting.items():
            if name not in self._told and not self._slots.get(name):
                self._told.add(name)
                label = f" --label {self._label}" if self._label else ""
                tell_user(
                    f"no worker is there for {name}; start one with 'interlock worker --role "
                    f"{role}=AGENT{label}'"
                )


def _read_reply(ask: Ask, queued: QueuedReply, limited_for: float) -> Reply:
    """Return the reply with only what a worker may say: about this dispatch, and not as a human."""
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
    """Return a refused reply as it is journaled."""
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
