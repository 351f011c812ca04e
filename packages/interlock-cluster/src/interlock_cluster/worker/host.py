"""A worker: has agents of this host answer the dispatches that procrastinate brings.

procrastinate's worker fetches jobs, beats, and gives jobs back when it is stopped. Each job is one
dispatch: it is taken under a new fence, an agent answers it, and the reply is written under that
fence. A worker that was cut off lets its agents finish; their late replies are refused.
"""

import asyncio
import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Protocol

import msgspec

from interlock.api.workers import HeldDetails
from interlock.carriers.contract import MAX_ANSWER, Ask, Carrier, Reply, Session
from interlock.engine.circuit import CRASH, RATE_LIMIT, UNREADABLE
from interlock.journal.address import PostgresAddress
from interlock.journal.database import explain_errors
from interlock.journal.schema import read_versions
from interlock.system.errors import InterlockError, StoreError
from interlock_cluster import queue
from interlock_cluster.postgres import open_driver
from interlock_cluster.queue import WorkerIdentity
from interlock_cluster.worker.checkout import CheckoutStore, WorkTree

if TYPE_CHECKING:
    from procrastinate import JobContext
    from procrastinate.worker import Worker

    from interlock_cluster.worker.connector import PatientConnector

BEATS = 5
"""Heartbeats in the time of a lease."""
_POLL = 0.5
"""Seconds between looks for jobs, where notifications do not come."""
_ABORT_POLL = 2.0
_START_PAUSE = 0.05
_AFTER_FAILURE = 1.0
_MOST_TRIES = 3
"""Workers that try to prepare the files of a dispatch before it fails."""
_MAX_REASON = 10_000
_TAKE = "select dispatch_id, fence, ask, token from interlock_take(%(job)s, %(worker)s)"
_REPLY = """
select interlock_reply(%(dispatch)s::bigint, %(fence)s::bigint, %(token)s::text, %(body)s::bytea,
  %(account)s::text, %(seconds)s::float, %(limited)s::boolean, %(reason)s::text) as said"""
_PRESENT = """
select interlock_present(%(worker)s::bigint, %(process)s::text, %(about)s::jsonb, %(state)s::text,
  %(held)s::text) as limits"""


class NotHereError(InterlockError):
    """A dispatch must be answered on another host."""


class HeldDispatch(msgspec.Struct):
    """A dispatch that this worker has taken."""

    ask: Ask
    fence: int
    token: str
    task: "asyncio.Task[Any]"
    answered: asyncio.Future[Reply]
    since: float
    over: float = 0.0
    """When the agent had ended, by the same clock as `since`; 0 before."""
    is_replaced: bool = False
    """This worker has taken the dispatch again, under a newer fence."""


class EndedWork(msgspec.Struct, frozen=True):
    """A dispatch that is over on this worker."""

    ask: Ask
    fence: int
    times: tuple[float, float]
    """From taking it to the agent's end, by this host's clock."""
    outcome: str
    """`accepted`, the refusal's reason, or, without a reply, `lost` or `given-back`."""
    reply: Reply | None = None


class Observer(Protocol):
    """Hears what a worker does."""

    def report(self, text: str, **fields: Any) -> None:
        """Report an event in words and fields."""

    def end(self, work: EndedWork) -> None:
        """Note a dispatch that is over; must not raise."""


class WorkerHost:
    """One worker process."""

    def __init__(
        self,
        address: PostgresAddress,
        identity: WorkerIdentity,
        agents: Mapping[str, Carrier],
        observer: Observer,
        *,
        checkouts: CheckoutStore,
        grace: float,
        read_liveness: Callable[[], Mapping[int, str]] = dict,
    ) -> None:
        """`agents` are the carriers by role; `grace` is the time in seconds that agents have to
        finish after a stop; `read_liveness` describes running agents by dispatch."""
        self._address = address
        self._identity = identity
        self._agents = agents
        self._observer = observer
        self._checkouts = checkouts
        self._grace = grace
        self._read_liveness = read_liveness
        self._held: dict[int, HeldDispatch] = {}
        self._queues = [*identity.queues]
        """The queues to fetch from. procrastinate reads this list at each fetch."""
        self._closed: set[str] = set()
        self._connector: PatientConnector | None = None
        self._worker: Worker | None = None
        self._stops = 0
        self._problem = ""
        self.done = 0
        """How many replies were accepted."""

    def stop(self) -> None:
        """Take nothing new and let agents finish; the second time, give everything back at once."""
        self._stops += 1
        if self._stops == 1 and self._held:
            count = len(self._held)
            self._report(f"stopping: {count} under way have {self._grace:g} s to finish")
        if self._worker is not None:
            self._worker.stop()  # type: ignore[no-untyped-call]
        if self._stops > 1:
            for held in self._held.values():
                held.task.cancel()
        self._give_up_if_over()

    def _give_up_if_over(self) -> None:
        """Wait for no server any more once this worker is stopped and holds nothing."""
        if self._connector is not None and self._stops and (self._stops > 1 or not self._held):
            self._connector.give_up()

    async def run(self) -> None:
        """Work until stopped; raise StoreError if the queue cannot be used."""
        schema = await asyncio.to_thread(self._prepare_queue)
        carriers = {id(each): each for each in self._agents.values()}.values()
        for carrier in carriers:
            carrier.start(Session(self._receive))
        try:
            while not self._stops:
                try:
                    await self._work(schema)
                except Exception as error:  # whatever procrastinate raises, it is begun anew
                    self._note_problem(str(error.__cause__ or error))
                    await asyncio.sleep(_AFTER_FAILURE)
        finally:
            for carrier in carriers:
                await carrier.close()

    def _prepare_queue(self) -> str:
        """Return the queue's schema, made if there is none yet. Blocks: for a thread."""
        with explain_errors(self._address):
            server = open_driver(self._address)
            try:
                if server.is_pooled:
                    raise StoreError(
                        f"{self._address}: a worker needs the server itself, not a pooler between: "
                        "name the server's own port"
                    )
                if not read_versions(server):
                    raise StoreError(
                        f"there is no journal in {self._address} yet: run 'interlock init-db' first"
                    )
                queue.ensure_queue(server)
                return queue.find_schema(server)
            finally:
                server.close()

    async def _work(self, schema: str) -> None:
        """Run procrastinate's worker until it ends."""
        from procrastinate import App, RetryStrategy
        from procrastinate.worker import Worker

        from interlock_cluster.worker.connector import PatientConnector

        self._connector = PatientConnector(self._address, schema, self._note_problem)
        app = App(connector=self._connector)
        # Whatever goes wrong on this host, others may have the dispatch: at once, then less often.
        retry = RetryStrategy(linear_wait=1)
        app.task(name=queue.TASK, pass_context=True, retry=retry)(self._answer)
        async with app.open_async():
            self._worker = Worker(
                app,
                queues=self._queues,
                concurrency=self._identity.slots,
                delete_jobs="always",
                install_signal_handlers=False,
                fetch_job_polling_interval=_POLL,
                abort_job_polling_interval=_ABORT_POLL,
                shutdown_graceful_timeout=self._grace,
                update_heartbeat_interval=self._identity.lease / BEATS,
                stalled_worker_timeout=queue.KEEP_WORKERS,
            )
            presenting = asyncio.create_task(self._present_on(self._worker, self._connector))
            try:
                if not self._stops:
                    await self._worker.run()  # type: ignore[no-untyped-call]
            finally:
                self._worker = None
                presenting.cancel()
                await asyncio.gather(presenting, return_exceptions=True)

    async def _present_on(self, worker: "Worker", connector: "PatientConnector") -> None:
        """Describe this worker now and then, and leave the queues whose account rests."""
        who, is_new = self._identity, True
        while True:
            if worker.worker_id is None:  # procrastinate has not registered it yet
                await asyncio.sleep(_START_PAUSE)
                continue
            try:
                row = await connector.execute_query_one_async(
                    _PRESENT,
                    worker=worker.worker_id,
                    process=who.worker_id,
                    about=msgspec.json.encode(who).decode(),
                    state="draining" if self._stops else "ready",
                    held=msgspec.json.encode(self._describe_held()).decode(),
                )
            except Exception as error:  # a worker that was silent for too long is removed
                self._note_problem(str(error.__cause__ or error))
                worker.stop()  # type: ignore[no-untyped-call]
                return
            self._choose_queues(msgspec.json.decode(row["limits"], type=dict[str, float]))
            if is_new:
                is_new = False
                self._report(
                    f"worker {who.name} is ready for {', '.join(who.queues)} of {self._address}",
                    event="ready",
                )
            await asyncio.sleep(who.lease / BEATS)

    def _describe_held(self) -> list[HeldDetails]:
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
            for number, each in self._held.items()
        ]

    def _choose_queues(self, limits: Mapping[str, float]) -> None:
        self._queues[:] = [
            name
            for name, account in self._identity.queues.items()
            if name not in self._closed and account not in limits
        ]

    def _report(self, text: str, **fields: Any) -> None:
        self._observer.report(text, **fields)

    def _note_problem(self, problem: str) -> None:
        """Report once that the queue cannot be used, and once that it can again."""
        if problem and not self._problem:
            self._report(f"waiting for the work queue: {problem}", event="queue-lost")
        elif self._problem and not problem:
            self._report("the work queue is back", event="queue-back")
        self._problem = problem

    # One dispatch, from its job to its reply.

    async def _answer(self, context: "JobContext", dispatch_id: int) -> None:
        """Have an agent answer the dispatch of a job, and write its reply."""
        connector, task = self._connector, asyncio.current_task()
        assert connector is not None and task is not None  # noqa: S101, PT018 - a job runs in both
        if self._stops:  # procrastinate had fetched it when it was stopped
            raise NotHereError("this worker is stopping")
        job = context.job
        rows = await connector.execute_query_all_async(_TAKE, job=job.id, worker=job.worker_id)
        if not rows:
            return  # it was answered or settled meanwhile, or others have it
        ask = msgspec.json.decode(rows[0]["ask"], type=Ask)
        answered: asyncio.Future[Reply] = asyncio.get_running_loop().create_future()
        fence, token = rows[0]["fence"], rows[0]["token"]
        held = HeldDispatch(ask, fence, token, task, answered, time.monotonic())
        before = self._held.get(dispatch_id)
        if before is not None:
            before.is_replaced = True
            before.task.cancel()
        self._held[dispatch_id] = held
        try:
            self._tell(held, f"{ask.case_id} {ask.step}, taken", "taken")
            reply = await self._ask_agent(held, job.attempts)
            held.over = time.monotonic()
            await self._hand_in(held, reply, connector)
        except asyncio.CancelledError:
            self._cancel(held, context)
            raise
        finally:
            if self._held.get(dispatch_id) is held:
                del self._held[dispatch_id]
            self._give_up_if_over()

    async def _ask_agent(self, held: HeldDispatch, tries: int) -> Reply:
        """Return the agent's reply, with its work pushed if it works on files of a repository."""
        tree: WorkTree | None = None
        store = self._checkouts
        carrier = self._agents[held.ask.role]
        try:
            preparing = asyncio.ensure_future(
                asyncio.to_thread(store.prepare, held.ask, held.fence)
            )
            try:
                ask, tree = await asyncio.shield(preparing)
            except asyncio.CancelledError:
                preparing.add_done_callback(_release_tree)
                raise
            carrier.send([ask])
            reply = await held.answered
            carrier.settle(ask.dispatch_id)
            if tree is not None:
                reply = await asyncio.to_thread(store.record, tree, ask, reply)
        except (InterlockError, OSError) as error:
            if isinstance(error, NotHereError) or tries + 1 < _MOST_TRIES:
                self._end(held, f"given back: {error}", "given-back")
                raise
            return Reply(held.ask.dispatch_id, failure=CRASH, reason=str(error))
        finally:
            if tree is not None:
                tree.release()
        return reply

    def _cancel(self, held: HeldDispatch, context: "JobContext") -> None:
        """Stop the agent; raise JobAborted if nobody needs an answer from this worker any more."""
        from procrastinate.exceptions import JobAborted
        from procrastinate.job_context import AbortReason

        if held.is_replaced or context.abort_reason() is AbortReason.USER_REQUEST:
            if not held.is_replaced:
                self._stop_agent(held)
            self._end(held, "no longer this worker's; stopped", "lost")
            raise JobAborted
        self._stop_agent(held)
        self._end(held, "given back", "given-back")

    def _stop_agent(self, held: HeldDispatch) -> None:
        carrier = self._agents[held.ask.role]
        carrier.settle(held.ask.dispatch_id, "it is no longer this worker's")

    def _receive(self, reply: Reply) -> None:
        """Take a reply from an agent's carrier."""
        held = self._held.get(reply.dispatch_id)
        if held is None or held.answered.done():
            return
        if reply.stops_run:
            self._close_role(held, reply.reason)
        elif not reply.refused:
            held.answered.set_result(reply)

    def _close_role(self, held: HeldDispatch, reason: str) -> None:
        """Take no more dispatches of a role whose agent cannot be asked on this host."""
        role = held.ask.role
        self._closed |= {name for name in self._identity.queues if name.split(":")[0] == role}
        self._queues[:] = [name for name in self._queues if name not in self._closed]
        self._report(f"{role}: {reason}; start this worker again when that is mended")
        held.answered.set_exception(NotHereError(reason))

    async def _hand_in(
        self, held: HeldDispatch, reply: Reply, connector: "PatientConnector"
    ) -> None:
        """Write the reply, however long that takes to succeed."""
        number = held.ask.dispatch_id
        if len(reply.content) > MAX_ANSWER:
            reason = f"the answer has {len(reply.content):,} bytes; {MAX_ANSWER:,} are the most"
            reply = Reply(number, failure=UNREADABLE, reason=reason, usage=reply.usage)
        limited = reply.failure == RATE_LIMIT
        seconds = max(0.0, reply.until - time.time()) if limited and reply.until else 0.0
        written = msgspec.structs.replace(
            reply, dispatch_id=number, reason=reply.reason[:_MAX_REASON], until=seconds
        )
        row = await connector.execute_query_one_async(
            _REPLY,
            dispatch=number,
            fence=held.fence,
            token=held.token,
            body=msgspec.json.encode(written),
            account=self._agents[held.ask.role].account_of(held.ask.role),
            seconds=seconds,
            limited=limited,
            reason=reply.reason[:_MAX_REASON].replace("\0", "\ufffd"),
        )
        said = row["said"]
        self.done += said == "accepted"
        self._end(held, said, said, reply)

    def _end(self, held: HeldDispatch, text: str, outcome: str, reply: Reply | None = None) -> None:
        """Report that a dispatch is over here."""
        self._tell(held, text, outcome)
        ago = time.time() - time.monotonic()
        times = (ago + held.since, ago + (held.over or time.monotonic()))
        self._observer.end(EndedWork(held.ask, held.fence, times, outcome, reply))

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


def _release_tree(prepared: "asyncio.Future[tuple[Ask, WorkTree | None]]") -> None:
    """Release a tree that was made for a dispatch that is no longer this worker's."""
    if not prepared.cancelled() and prepared.exception() is None:
        _, tree = prepared.result()
        if tree is not None:
            tree.release()
