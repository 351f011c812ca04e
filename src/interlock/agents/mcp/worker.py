"""What each MCP tool does: a call to the coordinator, or a look at what it left on the disk.

`Worker` is one agent's hands: names and arguments come in, one JSON object goes out, also when no
coordinator is at work. `WorkerRegistry` is for a server that many agents speak to: a client with a
session is one worker for as long as that lasts; where the protocol has no sessions, each piece of
work has a worker of its own, known by its lease.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final, Protocol

import msgspec

from interlock.agents.carrier import report_failure
from interlock.agents.mcp import messages as words
from interlock.agents.mcp.carrier import UNSETTLED
from interlock.agents.mcp.socket import RECONNECT_PAUSE, CoordinatorClient, NoCoordinatorError
from interlock.agents.queries import QueryBroker, QueryStatus
from interlock.system.errors import InterlockError

GIVE_UP, RELEASE = "crash", "release"


class RunLookup(Protocol):
    """What can be read of runs without a coordinator. Called in threads."""

    def read_status(self, run_id: int | None) -> dict[str, Any]:
        """run_id, status, over (whether that is final), changed_at and a reason, of that run or the
        newest."""

    def read_report(self, run_id: int | None) -> words.RunReport:
        """The report of that run, or of the newest."""


class Worker:
    """One agent's hands."""

    def __init__(
        self,
        link: CoordinatorClient,
        queries: QueryBroker,
        records: RunLookup,
        roles: tuple[str, ...] = (),
        since: float = 0.0,
    ) -> None:
        self._coordinator = link
        self._queries = queries
        self._runs = records
        self._roles = roles
        self._since = since
        self._tools: dict[str, tuple[type[Any], Callable[[Any], Awaitable[dict[str, Any]]]]] = {
            "interlock_next": (words.NextArguments, self._next),
            "interlock_submit": (words.SubmitArguments, self._submit),
            "interlock_signal": (words.SignalArguments, self._signal),
            "interlock_ask": (words.AskArguments, self._ask),
            "interlock_status": (words.StatusArguments, self._status),
            "interlock_report": (words.ReportArguments, self._report),
        }

    async def call_tool(
        self, name: str, arguments: Mapping[str, Any], _session: str = ""
    ) -> dict[str, Any] | str:
        """What the tool gives, or a sentence about why it cannot be used so. One worker is the same
        to whoever speaks to it."""
        if name not in self._tools:
            return f"There is no tool {name[:80]!r}; use {', '.join(self._tools)}."
        shape, tool = self._tools[name]
        try:
            return await tool(msgspec.convert(arguments, shape))
        except msgspec.ValidationError as error:
            return f"{name}: {error}."
        except InterlockError as error:
            return f"{name}: {error}."

    async def read_resource(self, dispatch_id: int = 0, _session: str = "") -> dict[str, Any]:
        """The briefing, or a prompt, with the run it is of; no text if there is none."""
        try:
            return await self._coordinator.call(
                lambda n: words.ReadCall(call=n, dispatch_id=dispatch_id)
            )
        except NoCoordinatorError:
            return {"text": None, "run_id": self._coordinator.run_id}

    async def close(self) -> None:
        """Let go of all that is held."""
        await self._coordinator.close()

    async def _next(self, given: words.NextArguments) -> dict[str, Any]:
        running = asyncio.get_running_loop()
        until = running.time() + max(0.0, min(given.wait, words.MAX_WAIT))
        roles = given.roles or self._roles
        while True:
            left = max(0.0, until - running.time())
            found = await self._take_work(left, given.ttl, roles)
            if found is not None and not found.pop("leaving", False):
                return found
            over = await self._find_ended_run()
            if over is not None:
                return over
            if left == 0.0:
                return await self._report_no_coordinator()
            await asyncio.sleep(min(RECONNECT_PAUSE, left))

    async def _take_work(
        self, wait: float, ttl: float, roles: tuple[str, ...]
    ) -> dict[str, Any] | None:
        try:
            return await self._coordinator.call(
                lambda n: words.NextCall(call=n, wait=wait, ttl=ttl, roles=roles)
            )
        except NoCoordinatorError:
            return None

    async def _find_ended_run(self) -> dict[str, Any] | None:
        """That the run this worker worked for has come to its end, if it has; or the newest one,
        in this worker's own time. An older one says nothing: another may be about to begin."""
        stands = await asyncio.to_thread(self._runs.read_status, self._coordinator.run_id)
        known = self._coordinator.run_id is not None or stands["changed_at"] >= self._since
        return self._build_no_work(stands) if stands["over"] and known else None

    async def _report_no_coordinator(self) -> dict[str, Any]:
        stands = await asyncio.to_thread(self._runs.read_status, self._coordinator.run_id)
        return self._build_no_work(stands)

    def _build_no_work(self, stands: Mapping[str, Any]) -> dict[str, Any]:
        return _to_dict(
            words.NoWork(done=stands["over"], reason=stands["reason"], run_id=stands["run_id"])
        )

    async def _submit(self, given: words.SubmitArguments) -> dict[str, Any]:
        content = msgspec.json.encode(given.answer).decode()
        return await self._submit_content(given.dispatch_id, given.lease, content)

    async def _signal(self, given: words.SignalArguments) -> dict[str, Any]:
        if given.signal in (GIVE_UP, RELEASE):
            reason = str(given.data.get("reason", "")) or "the worker gave it up"
            return await self._call_or_unsettled(
                given.dispatch_id,
                lambda n: words.GiveUpCall(
                    call=n,
                    dispatch_id=given.dispatch_id,
                    lease=given.lease,
                    reason=reason[:2000],
                    release=given.signal == RELEASE,
                ),
            )
        content = msgspec.json.encode({"signal": given.signal, "data": given.data}).decode()
        return await self._submit_content(given.dispatch_id, given.lease, content)

    async def _submit_content(self, dispatch_id: int, lease: str, content: str) -> dict[str, Any]:
        return await self._call_or_unsettled(
            dispatch_id,
            lambda n: words.SubmitCall(
                call=n, dispatch_id=dispatch_id, lease=lease, content=content
            ),
        )

    async def _call_or_unsettled(
        self, dispatch_id: int, make: Callable[[int], words.Call]
    ) -> dict[str, Any]:
        try:
            return await self._coordinator.call(make)
        except NoCoordinatorError:
            return _to_dict(
                words.SubmitResult(False, dispatch_id, True, UNSETTLED.reason, UNSETTLED.sentence)
            )

    async def _ask(self, given: words.AskArguments) -> dict[str, Any]:
        if given.question_id:
            return await self._poll(given.question_id)
        try:
            return await self._coordinator.call(
                lambda n: words.QueryCall(
                    call=n,
                    dispatch_id=given.dispatch_id,
                    lease=given.lease,
                    question=given.question,
                    options=given.options,
                )
            )
        except NoCoordinatorError:
            sentence = "No coordinator is at work; ask again when interlock_status says so."
            return _to_dict(QueryStatus(asked=False, sentence=sentence))

    async def _poll(self, question_id: str) -> dict[str, Any]:
        try:
            return await self._coordinator.call(
                lambda n: words.PollCall(call=n, query_id=question_id)
            )
        except NoCoordinatorError:
            return _to_dict(self._queries.poll(question_id))

    async def _status(self, given: words.StatusArguments) -> dict[str, Any]:
        try:
            return await self._coordinator.call(
                lambda n: words.StatusCall(call=n, lease=given.lease)
            )
        except NoCoordinatorError:
            stands = await asyncio.to_thread(self._runs.read_status, self._coordinator.run_id)
            return _to_dict(
                words.RunStatus(
                    coordinator=False,
                    run_id=stands["run_id"],
                    status=stands["status"],
                    reason=stands["reason"],
                )
            )

    async def _report(self, given: words.ReportArguments) -> dict[str, Any]:
        run_id = given.run_id or self._coordinator.run_id
        return _to_dict(await asyncio.to_thread(self._runs.read_report, run_id))


def _to_dict(record: msgspec.Struct) -> dict[str, Any]:
    found: dict[str, Any] = msgspec.to_builtins(record)
    return found


NEXT_TOOL: Final = "interlock_next"
RECENT_SECONDS: Final = 600.0
"""Seconds for which a client without a session is told that a run is over, not that none began."""
_LEASE_SLACK: Final = 1.0
"""Seconds by which a hand outlives its lease: the coordinator decides when that is over."""

MakeWorker = Callable[[float], Worker]
"""A new worker; it was there so many seconds ago already."""


class _HeldWork:
    """One piece of work and the worker that holds it; let go when nobody speaks of it."""

    def __init__(self, worker: Worker, work: Mapping[str, Any], let_go: Callable[[], None]) -> None:
        self.worker = worker
        self.dispatch_id = work["dispatch_id"]
        self._ttl = float(work["ttl"])
        self._release = let_go
        self._timer: asyncio.TimerHandle | None = None
        self.extend()

    def extend(self) -> None:
        self.cancel_timer()
        running = asyncio.get_running_loop()
        self._timer = running.call_later(self._ttl + _LEASE_SLACK, self._release)

    def cancel_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()


class WorkerRegistry:
    """All workers of a server. `use` and `read` are what the server calls."""

    def __init__(self, hire: MakeWorker) -> None:
        self._make_worker = hire
        self._sessions: dict[str, Worker] = {}
        self._held: dict[str, _HeldWork] = {}
        self._shared_worker: Worker | None = None
        self._closing: set[asyncio.Task[None]] = set()

    async def call_tool(
        self, name: str, arguments: Mapping[str, Any], session: str = ""
    ) -> dict[str, Any] | str:
        """What the tool gives to the worker of that session, or of the lease it speaks of."""
        if session:
            return await self._find_worker(session).call_tool(name, arguments)
        if name == NEXT_TOOL:
            return await self._take_work(arguments)
        lease = arguments.get("lease")
        hand = self._held.get(lease) if isinstance(lease, str) else None
        if not isinstance(lease, str) or hand is None:
            return await self._find_shared_worker().call_tool(name, arguments)
        hand.extend()
        found = await hand.worker.call_tool(name, arguments)
        if _is_finished(found, hand.dispatch_id):
            self._release_work(lease)
        return found

    async def read_resource(self, dispatch_id: int = 0, session: str = "") -> dict[str, Any]:
        worker = self._find_worker(session) if session else self._find_shared_worker()
        return await worker.read_resource(dispatch_id)

    def end_session(self, session: str) -> None:
        """The client of that session has gone: others may have its work."""
        worker = self._sessions.pop(session, None)
        if worker is not None:
            self._close_worker(worker)

    async def close(self) -> None:
        for session in list(self._sessions):
            self.end_session(session)
        for lease in list(self._held):
            self._release_work(lease)
        if self._shared_worker is not None:
            await self._shared_worker.close()
        await asyncio.gather(*self._closing, return_exceptions=True)

    async def _take_work(self, arguments: Mapping[str, Any]) -> dict[str, Any] | str:
        worker = self._make_worker(RECENT_SECONDS)
        kept = False
        try:
            found = await worker.call_tool(NEXT_TOOL, arguments)
            if isinstance(found, dict) and found["available"]:
                lease = str(found["lease"])
                self._held[lease] = _HeldWork(worker, found, lambda: self._release_work(lease))
                kept = True
            return found
        finally:
            if not kept:
                self._close_worker(worker)

    def _find_worker(self, session: str) -> Worker:
        if session not in self._sessions:
            self._sessions[session] = self._make_worker(0.0)
        return self._sessions[session]

    def _find_shared_worker(self) -> Worker:
        """Who speaks without a lease; it never holds work, and shows that such a lease is none."""
        if self._shared_worker is None:
            self._shared_worker = self._make_worker(RECENT_SECONDS)
        return self._shared_worker

    def _release_work(self, lease: str) -> None:
        hand = self._held.pop(lease, None)
        if hand is not None:
            hand.cancel_timer()
            self._close_worker(hand.worker)

    def _close_worker(self, worker: Worker) -> None:
        """Without waiting: whoever calls may be on the way out itself."""
        task = asyncio.get_running_loop().create_task(worker.close())
        self._closing.add(task)
        task.add_done_callback(self._closing.discard)
        task.add_done_callback(report_failure)


def _is_finished(found: dict[str, Any] | str, dispatch_id: int) -> bool:
    """Whether a hand has nothing left to do after this answer."""
    if isinstance(found, str) or "accepted" not in found:
        return False
    return found["dispatch_id"] == dispatch_id and not found["open"]
