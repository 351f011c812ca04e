"""A worker: takes dispatches that coordinators offer, and has agents of this host answer them.

Every few seconds it says that it lives and what it holds, and learns what is no longer its own;
that goes on until the last reply is written, whatever else happens. A reply counts only under the
fence that its dispatch was taken under: one that comes late is refused, and journaled. Asked to
stop, a worker takes nothing new, lets its agents finish for a while, and gives the rest back.
"""

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial

import msgspec

from interlock.api.workers import HeldDetails
from interlock.carriers.background import report_failure
from interlock.carriers.contract import MAX_ANSWER, Ask, Carrier, Reply, Session
from interlock.engine.circuit import CRASH, RATE_LIMIT, UNREADABLE
from interlock.journal.address import PostgresAddress
from interlock.journal.events import Report
from interlock.journal.schema import read_versions
from interlock.system.errors import InterlockError, StoreError
from interlock_cluster import queue, queue_worker
from interlock_cluster.postgres import PostgresConnection
from interlock_cluster.queue_worker import BeatAnswer, Taken, WorkerIdentity, WrittenReply
from interlock_cluster.worker.checkout import CheckoutStore, WorkTree
from interlock_cluster.worker.database import DatabaseThreads
from interlock_cluster.worker.jobs import JobPuller
from interlock_cluster.worker.replies import ReplyWriter

BEATS = 5
"""Heartbeats in the time of a lease."""
_LAST_WORDS = 1.0
"""Seconds for an answer that is on its way when its dispatch is lost: it is refused, but known."""
_CONNECTIONS = 2
"""To take and to reply: neither waits for the other."""
_MAX_REASON = 10_000


class HeldDispatch(msgspec.Struct):
    """A dispatch that this worker has taken."""

    ask: Ask
    fence: int
    token: str
    since: float
    answered: asyncio.Future[Reply]
    over: float = 0.0
    """When the agent had ended, by the same clock as `since`; 0 before."""


class EndedWork(msgspec.Struct, frozen=True):
    """What became of a dispatch on this worker, for whoever watches it."""

    ask: Ask
    fence: int
    times: tuple[float, float]
    """From taking it to the agent's end, by this host's clock."""
    outcome: str
    """Whether its reply was `accepted`, or refused as what, or that there is none: `lost` to
    another, `given-back`."""
    reply: Reply | None = None


class WorkerHost:
    """One worker process."""

    def __init__(
        self,
        address: PostgresAddress,
        identity: WorkerIdentity,
        agents: Mapping[str, Carrier],
        report: Report,
        *,
        checkouts: CheckoutStore,
        grace: float,
        read_liveness: Callable[[], Mapping[int, str]] = dict,
        ended: Callable[[EndedWork], None] = lambda _work: None,
    ) -> None:
        """`agents` are the carriers by role; `grace` is for how many seconds agents may finish
        after a stop; `read_liveness` says how agents stand, by dispatch; `ended` is told what
        became of each, and must not raise."""
        self._address = address
        self._identity = identity
        self._agents = agents
        self._report = report
        self._checkouts = checkouts
        self._grace = grace
        self._read_liveness = read_liveness
        self._ended = ended
        self._held: dict[int, HeldDispatch] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._limits: Mapping[str, float] = {}
        self._closed: set[str] = set()
        self._stops = 0
        self._changed = asyncio.Event()
        self._problems: dict[str, str] = {}
        self.done = 0
        """How many replies were accepted."""

    def stop(self) -> None:
        """Once: take nothing new, and let agents finish for a while. Twice: give back at once."""
        self._stops += 1
        self._changed.set()

    async def run(self) -> None:
        """Work until stopped; StoreError if the queue cannot be used."""
        self._database = DatabaseThreads(self._address, "interlock-work", _CONNECTIONS)
        self._beats = DatabaseThreads(self._address, "interlock-beat")
        self._replies = ReplyWriter(
            self._database, self._identity.worker_id, partial(self._note_problem, "reply")
        )
        try:
            schema = await self._database.call(self._join)
            who = self._identity
            self._report(
                f"worker {who.name} is ready for {', '.join(who.queues)} of {self._address}",
                event="ready",
            )
            await self._work(schema)
        finally:
            await asyncio.gather(self._database.close(), self._beats.close())

    async def _work(self, schema: str) -> None:
        carriers = {id(each): each for each in self._agents.values()}.values()
        for carrier in carriers:
            carrier.start(Session(self._receive))
        self._slots = asyncio.Semaphore(self._identity.slots)
        self._puller = JobPuller(self._address, schema, self._slots, self._take)
        self._puller.set_queues([*self._identity.queues])
        beating = asyncio.create_task(self._beat_on())
        pulling = asyncio.create_task(self._puller.run(partial(self._note_problem, "jobs")))
        try:
            while not self._stops:
                await self._wait_for_change()
            self._puller.stop()
            await self._drain()
        finally:
            self._puller.stop()
            await pulling
            for carrier in carriers:
                await carrier.close()
            beating.cancel()
            with suppress(asyncio.CancelledError):
                await beating
            with suppress(InterlockError):
                await self._database.call(self._leave)

    def _join(self, server: PostgresConnection) -> str:
        """In the thread: be known as a worker; the schema of the queue."""
        if server.is_pooled:
            raise StoreError(
                f"{self._address}: a worker needs the server itself, not a pooler between: name "
                "the server's own port"
            )
        if not read_versions(server):
            raise StoreError(
                f"there is no journal in {self._address} yet: run 'interlock init-db' first"
            )
        queue.ensure_queue(server)
        queue_worker.join_workers(server, self._identity)
        return queue.find_schema(server)

    def _leave(self, server: PostgresConnection) -> None:
        queue_worker.leave_workers(server, self._identity.worker_id)

    async def _wait_for_change(self, seconds: float | None = None) -> None:
        """Until something has changed here, or time is up."""
        with suppress(TimeoutError):
            await asyncio.wait_for(self._changed.wait(), seconds)
        self._changed.clear()

    def _note_problem(self, of: str, problem: str) -> None:
        """Say that the queue cannot be used, and that it can again, whoever noticed first."""
        before = bool(self._problems)
        if problem:
            self._problems[of] = problem
        else:
            self._problems.pop(of, None)
        if self._problems and not before:
            self._report(f"waiting for the work queue: {problem}", event="queue-lost")
        elif before and not self._problems:
            self._report("the work queue is back", event="queue-back")

    # One dispatch, from its offer to its reply.

    async def _take(self, dispatch_id: int, fence: int, queues: Sequence[str], more: int) -> int:
        """Take it, if nobody has, and up to so many others of these queues; how many are ours. Each
        gives its slot back when it is over."""
        found = await self._database.call(
            lambda server: queue_worker.take_offers(
                server, self._identity.worker_id, dispatch_id, fence, queues, more
            )
        )
        for taken in found:
            self._begin(taken)
        return len(found)

    def _begin(self, taken: Taken) -> None:
        ask = msgspec.json.decode(taken.ask, type=Ask)
        answered: asyncio.Future[Reply] = asyncio.get_running_loop().create_future()
        held = HeldDispatch(ask, taken.fence, taken.token, time.monotonic(), answered)
        before = self._held.get(taken.dispatch_id)
        if before is not None:
            self._stop_agent(before)  # it was lost, and is ours again under another fence
        self._held[taken.dispatch_id] = held
        task = asyncio.create_task(self._answer(held))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        task.add_done_callback(report_failure)

    async def _answer(self, held: HeldDispatch) -> None:
        """Have the agent answer, and hand its reply in; it is ours until that is written."""
        number = held.ask.dispatch_id
        try:
            self._tell(held, f"{held.ask.case_id} {held.ask.step}, taken", "taken")
            reply = await self._ask_agent(held)
            held.over = time.monotonic()
            await self._hand_in(held, reply)
        except asyncio.CancelledError:
            self._stop_agent(held)
        finally:
            if self._held.get(number) is held:
                del self._held[number]
            self._slots.release()
            self._changed.set()

    async def _ask_agent(self, held: HeldDispatch) -> Reply:
        """The agent's reply, with its work pushed if it works on files of a repository."""
        tree: WorkTree | None = None
        store = self._checkouts
        try:
            carrier = self._agents[held.ask.role]
            ask, tree = await asyncio.to_thread(store.prepare, held.ask, held.fence)
            if not held.answered.done():
                carrier.send([ask])
            reply = await held.answered
            carrier.settle(ask.dispatch_id)
            if tree is not None:
                reply = await asyncio.to_thread(store.record, tree, ask, reply)
        except (InterlockError, OSError) as error:
            return Reply(held.ask.dispatch_id, failure=CRASH, reason=str(error))
        finally:
            if tree is not None:
                tree.release()
        return reply

    def _stop_agent(self, held: HeldDispatch) -> None:
        carrier = self._agents[held.ask.role]
        carrier.settle(held.ask.dispatch_id, "it is no longer this worker's")

    def _receive(self, reply: Reply) -> None:
        """What the agents' carriers hand their replies to."""
        held = self._held.get(reply.dispatch_id)
        if held is None or held.answered.done():
            return
        if reply.stops_run:
            self._close_role(held, reply.reason)
        elif not reply.refused:
            held.answered.set_result(reply)

    def _close_role(self, held: HeldDispatch, reason: str) -> None:
        """This host's agent cannot be asked before somebody has changed something here. Others may
        have one that can."""
        role = held.ask.role
        self._closed |= {name for name in self._identity.queues if name.split(":")[0] == role}
        self._report(f"{role}: {reason}; start this worker again when that is mended")
        self._puller.set_queues(self._list_queues())
        held.answered.cancel()
        task = asyncio.create_task(self._give_back(held))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def _list_queues(self) -> list[str]:
        """The queues to pull from: those whose account does not rest, and whose agent works."""
        return [
            name
            for name, account in self._identity.queues.items()
            if name not in self._closed and account not in self._limits
        ]

    async def _hand_in(self, held: HeldDispatch, reply: Reply) -> None:
        """Write the reply, however long that takes to succeed."""
        number = held.ask.dispatch_id
        if len(reply.content) > MAX_ANSWER:
            reason = f"the answer has {len(reply.content):,} bytes; {MAX_ANSWER:,} are the most"
            reply = Reply(number, failure=UNREADABLE, reason=reason, usage=reply.usage)
        limited = reply.failure == RATE_LIMIT
        seconds = max(0.0, reply.until - time.time()) if limited and reply.until else 0.0
        body = msgspec.json.encode(
            msgspec.structs.replace(
                reply, dispatch_id=number, reason=reply.reason[:_MAX_REASON], until=seconds
            )
        )

        said = await self._replies.write(
            WrittenReply(
                number,
                held.fence,
                held.token,
                body,
                self._find_account(held.ask.role),
                seconds if limited else None,
                reply.reason,
            )
        )
        self.done += said == "accepted"
        self._end(held, said, said, reply)

    def _end(self, held: HeldDispatch, text: str, outcome: str, reply: Reply | None = None) -> None:
        """Report what became of a dispatch."""
        self._tell(held, text, outcome)
        ago = time.time() - time.monotonic()
        times = (ago + held.since, ago + (held.over or time.monotonic()))
        self._ended(EndedWork(held.ask, held.fence, times, outcome, reply))

    def _tell(self, held: HeldDispatch, text: str, event: str) -> None:
        """Report something about a dispatch."""
        ask = held.ask
        self._report(
            f"dispatch {ask.dispatch_id}: {text}",
            event=event,
            dispatch_id=ask.dispatch_id,
            fence=held.fence,
            run_id=ask.run_id,
            case_id=ask.case_id,
            step=ask.step,
            role=ask.role,
            seconds=round(time.monotonic() - held.since, 3),
            busy=len(self._held),
        )

    def _find_account(self, role: str) -> str:
        return self._agents[role].account_of(role)

    # Life and death.

    async def _beat_on(self) -> None:
        """Say that this worker lives, as long as it does."""
        pause = self._identity.lease / BEATS
        while True:
            held = dict(self._held)
            say = partial(
                queue_worker.beat,
                worker_id=self._identity.worker_id,
                state="draining" if self._stops else "ready",
                held={number: each.fence for number, each in held.items()},
                details=msgspec.json.encode(self._describe(held)).decode(),
            )
            try:
                answer = await self._beats.call(say)
                if not answer.known:
                    await self._beats.call(
                        lambda server: queue_worker.join_workers(server, self._identity)
                    )
                self._take_beat(held, answer)
                self._note_problem("beat", "")
            except InterlockError as error:
                self._note_problem("beat", str(error))
            await asyncio.sleep(pause)

    def _describe(self, held: Mapping[int, HeldDispatch]) -> list[HeldDetails]:
        liveness, now = self._read_liveness(), time.monotonic()
        return [
            HeldDetails(
                number,
                each.ask.run_id,
                each.ask.case_id,
                each.ask.step,
                each.ask.role,
                round(now - each.since, 1),
                liveness.get(number, ""),
            )
            for number, each in held.items()
        ]

    def _take_beat(self, held: Mapping[int, HeldDispatch], answer: BeatAnswer) -> None:
        """Stop what is not ours any more, and pull only for accounts that do not rest."""
        for number, each in held.items():
            if number not in answer.held and self._held.get(number) is each:
                asyncio.get_running_loop().call_later(_LAST_WORDS, self._lose, each)
        self._limits = answer.limits
        if not self._stops:
            self._puller.set_queues(self._list_queues())

    def _lose(self, held: HeldDispatch) -> None:
        """Another has it, or nobody needs it. An answer that came by now is handed in, to be
        refused by name; else the agent is stopped."""
        if not held.answered.done() and self._held.get(held.ask.dispatch_id) is held:
            del self._held[held.ask.dispatch_id]
            held.answered.cancel()
            self._end(held, "no longer this worker's; stopped", "lost")

    async def _drain(self) -> None:
        """Let agents finish, for a while; give the rest back at once."""
        end = time.monotonic() + self._grace
        if self._held:
            self._report(f"stopping: {len(self._held)} under way have {self._grace:g} s to finish")
        while self._tasks and self._stops < 2 and time.monotonic() < end:
            await self._wait_for_change(min(1.0, max(0.0, end - time.monotonic())))
        for held in list(self._held.values()):
            if not held.answered.done():
                held.answered.cancel()
                await self._give_back(held)
        while self._tasks and self._stops < 2:  # replies under way, for a database that is gone
            await asyncio.wait(self._tasks, timeout=1.0)
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _give_back(self, held: HeldDispatch) -> None:
        number = held.ask.dispatch_id
        with suppress(InterlockError):
            given = await self._database.call(
                lambda server: queue_worker.give_back(
                    server, self._identity.worker_id, number, held.fence, held.token
                )
            )
            word = "given back" if given else "was lost before"
            self._end(held, word, "given-back" if given else "lost")
