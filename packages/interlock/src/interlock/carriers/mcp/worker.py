"""What each MCP tool does: a call to the coordinator, or a look at what it left on the disk.

`Worker` serves one agent: a tool's name and arguments come in, one JSON object goes out, also when
no coordinator is at work. `WorkerRegistry` is for a server that many agents use: a client with a
session is one worker for as long as that lasts; one without is known by the lease it names.
"""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from contextlib import suppress
from typing import Any, Final, NamedTuple, Protocol

import msgspec

from interlock.carriers.background import report_failure
from interlock.carriers.mcp import messages
from interlock.carriers.mcp.carrier import UNSETTLED
from interlock.carriers.mcp.socket import RECONNECT_PAUSE, CoordinatorClient, NoCoordinatorError
from interlock.carriers.queries import QueryBroker, QueryStatus
from interlock.system.errors import InterlockError

_ARGUMENTS: Final = {tool.name: tool.arguments for tool in messages.TOOLS}


class RunLookup(Protocol):
    """What can be read of runs without a coordinator. Called in threads."""

    def read_status(self, run_id: int | None) -> dict[str, Any]:
        """run_id, status, over (whether that is final), changed_at and a reason, of that run or the
        newest."""

    def read_report(self, run_id: int | None) -> messages.RunReport:
        """The report of that run, or of the newest."""


class Worker:
    """Serves one agent."""

    def __init__(
        self,
        coordinator: CoordinatorClient,
        queries: QueryBroker,
        runs: RunLookup,
        roles: tuple[str, ...] = (),
        since: float = 0.0,
    ) -> None:
        self._coordinator = coordinator
        self._queries = queries
        self._runs = runs
        self._roles = roles
        self._since = since
        self._tools: dict[str, Callable[[Any], Awaitable[dict[str, Any]]]] = {
            "interlock_next": self._next,
            "interlock_submit": self._submit,
            "interlock_signal": self._submit,
            "interlock_ask": self._ask,
            "interlock_status": self._status,
            "interlock_report": self._report,
        }

    async def call_tool(
        self, name: str, arguments: Mapping[str, Any], _session: str = ""
    ) -> dict[str, Any] | str:
        """What the tool returns, or a sentence about why it cannot be used like that. One worker is
        the same to whoever speaks to it."""
        if name not in self._tools:
            return f"There is no tool {name[:80]!r}; use {', '.join(self._tools)}."
        try:
            return await self._tools[name](msgspec.convert(arguments, _ARGUMENTS[name]))
        except (msgspec.ValidationError, InterlockError) as error:
            return f"{name}: {error}."

    async def read_resource(self, dispatch_id: int = 0, _session: str = "") -> dict[str, Any]:
        """The briefing, or a prompt, with the run it is of; no text if there is none."""
        try:
            return await self._coordinator.call(messages.ReadCall(dispatch_id))
        except NoCoordinatorError:
            return {"text": None, "run_id": self._coordinator.run_id}

    async def report_silence(self) -> float | None:
        """Nothing was heard of the agent; seconds until the last of its leases ends. None if no
        coordinator is there to be told."""
        try:
            found = await self._coordinator.call(messages.SilenceCall())
        except NoCoordinatorError:
            return None
        return float(found["seconds_left"])

    async def close(self) -> None:
        """Give back all that is held."""
        await self._coordinator.close()

    async def _next(self, call: messages.NextCall) -> dict[str, Any]:
        loop = asyncio.get_running_loop()
        until = loop.time() + max(0.0, min(call.wait, messages.MAX_WAIT))
        roles = call.roles or self._roles
        while True:
            left = max(0.0, until - loop.time())
            with suppress(NoCoordinatorError):
                found = await self._coordinator.call(messages.NextCall(left, call.ttl, roles))
                if not found.pop("leaving", False):
                    return found
            ended = await self._find_ended_run()
            if ended is not None:
                return ended
            if left == 0.0:
                return _build_no_work(await self._read_status())
            await asyncio.sleep(min(RECONNECT_PAUSE, left))

    async def _find_ended_run(self) -> dict[str, Any] | None:
        """That the run this worker worked for has come to its end, if it has; or the newest one,
        in this worker's own time. An older one says nothing: another may be about to begin."""
        status = await self._read_status()
        known = self._coordinator.run_id is not None or status["changed_at"] >= self._since
        return _build_no_work(status) if status["over"] and known else None

    async def _read_status(self) -> dict[str, Any]:
        return await asyncio.to_thread(self._runs.read_status, self._coordinator.run_id)

    async def _submit(self, call: messages.SubmitCall | messages.SignalCall) -> dict[str, Any]:
        try:
            return await self._coordinator.call(call)
        except NoCoordinatorError:
            return messages.to_dict(
                messages.SubmitResult(
                    False, call.dispatch_id, True, UNSETTLED.reason, UNSETTLED.sentence
                )
            )

    async def _ask(self, call: messages.AskCall) -> dict[str, Any]:
        try:
            return await self._coordinator.call(call)
        except NoCoordinatorError:
            if call.question_id:
                return messages.to_dict(self._queries.poll(call.question_id))
            sentence = "No coordinator is at work; ask again when interlock_status says so."
            return messages.to_dict(QueryStatus(asked=False, sentence=sentence))

    async def _status(self, call: messages.StatusCall) -> dict[str, Any]:
        try:
            return await self._coordinator.call(call)
        except NoCoordinatorError:
            status = await self._read_status()
            return messages.to_dict(
                messages.RunStatus(
                    coordinator=False,
                    run_id=status["run_id"],
                    status=status["status"],
                    reason=status["reason"],
                )
            )

    async def _report(self, call: messages.ReportCall) -> dict[str, Any]:
        run_id = call.run_id or self._coordinator.run_id
        return messages.to_dict(await asyncio.to_thread(self._runs.read_report, run_id))


def _build_no_work(status: Mapping[str, Any]) -> dict[str, Any]:
    return messages.to_dict(
        messages.NoWork(done=status["over"], reason=status["reason"], run_id=status["run_id"])
    )


NEXT_TOOL: Final = "interlock_next"
KNOWN_CLIENT: Final = "client:"
"""Stands before the name of a client without a session that sent its cookie back."""
NEW_CLIENT: Final = "new:"
"""Stands before the name of a client that was never seen before."""
RECENT_SECONDS: Final = 600.0
"""Seconds for which a client without a session is told that a run is over, not that none began."""
_LEASE_SLACK: Final = 1.0
"""Seconds by which a worker outlives its lease: the coordinator decides when that is over."""

_RETRY_SECONDS: Final = 1.0
"""Seconds between attempts to tell a coordinator that a client is silent."""

MakeWorker = Callable[[float], Worker]
"""Makes a worker that counts as having been there for so many seconds."""


class _HeldWork(NamedTuple):
    """A lease in the hands of a client that may keep no cookies: the session it was given to, and
    the timer that ends it."""

    session: str
    dispatch_id: int
    ttl: float
    timer: asyncio.TimerHandle


class WorkerRegistry:
    """All workers of a server."""

    def __init__(self, make_worker: MakeWorker) -> None:
        self._make_worker = make_worker
        self._sessions: dict[str, Worker] = {}
        self._held: dict[str, _HeldWork] = {}
        self._silent: dict[str, asyncio.TimerHandle] = {}
        self.on_recognised: Callable[[str, str], None] = lambda _visitor, _session: None
        """Told when a client that was never seen before names the lease of a session."""
        self._shared_worker: Worker | None = None
        self._tasks: set[asyncio.Task[None]] = set()

    async def call_tool(
        self, name: str, arguments: Mapping[str, Any], session: str = ""
    ) -> dict[str, Any] | str:
        """Call a tool as the worker of that session. A client that was never seen before may be one
        that keeps no cookies: it is the worker of the lease that it names."""
        if session and not session.startswith(NEW_CLIENT):
            return await self._find_worker(session).call_tool(name, arguments)
        if name == NEXT_TOOL:
            return await self._take_work(session.removeprefix(NEW_CLIENT), arguments)
        lease = arguments.get("lease")
        held = self._held.get(lease) if isinstance(lease, str) else None
        worker = self._sessions.get(held.session) if held else None
        if not isinstance(lease, str) or held is None or worker is None:
            return await self._find_shared_worker().call_tool(name, arguments)
        self.on_recognised(session.removeprefix(NEW_CLIENT), held.session)
        self._hear_of(held.session)
        self._hold(lease, held.session, held.dispatch_id, held.ttl)
        found = await worker.call_tool(name, arguments)
        if _is_finished(found, held.dispatch_id):
            self.end_session(held.session)
        return found

    async def read_resource(self, dispatch_id: int = 0, session: str = "") -> dict[str, Any]:
        known = session and not session.startswith(NEW_CLIENT)
        worker = self._find_worker(session) if known else self._find_shared_worker()
        return await worker.read_resource(dispatch_id)

    def holds_work(self, session: str) -> bool:
        """Whether a client that may keep no cookies was given work under that name."""
        return any(held.session == session for held in self._held.values())

    def miss_session(self, session: str) -> None:
        """Nothing is heard of the client of that session: it may have died, or think. Others are
        offered its work; should it come back first, its answer counts."""
        worker = self._sessions.get(session)
        if worker is not None:
            self._silent.pop(session, None)
            self._run_aside(self._report_silence(session, worker))

    def end_session(self, session: str) -> None:
        """The client of that session has gone: others may have its work."""
        self._hear_of(session)
        self._drop_held(session)
        worker = self._sessions.pop(session, None)
        if worker is not None:
            self._close_worker(worker)

    async def close(self) -> None:
        for session in list(self._sessions):
            self.end_session(session)
        if self._shared_worker is not None:
            await self._shared_worker.close()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _take_work(self, session: str, arguments: Mapping[str, Any]) -> dict[str, Any] | str:
        """Work for a client that was never seen before."""
        worker = self._make_worker(RECENT_SECONDS)
        kept = False
        try:
            found = await worker.call_tool(NEXT_TOOL, arguments)
            if isinstance(found, dict) and found["available"]:
                self._sessions[session] = worker
                self._hold(str(found["lease"]), session, found["dispatch_id"], float(found["ttl"]))
                kept = True
            return found
        finally:
            if not kept:
                self._close_worker(worker)

    def _hold(self, lease: str, session: str, dispatch_id: int, ttl: float) -> None:
        before = self._held.get(lease)
        if before is not None:
            before.timer.cancel()
        loop = asyncio.get_running_loop()
        timer = loop.call_later(ttl + _LEASE_SLACK, self.end_session, session)
        self._held[lease] = _HeldWork(session, dispatch_id, ttl, timer)

    def _drop_held(self, session: str) -> None:
        for lease, held in list(self._held.items()):
            if held.session == session:
                held.timer.cancel()
                del self._held[lease]

    async def _report_silence(self, session: str, worker: Worker) -> None:
        left = await worker.report_silence()
        if session in self._silent or self._sessions.get(session) is not worker:
            return
        if left == 0.0:  # it held nothing
            self.end_session(session)
            return
        later = (
            (_RETRY_SECONDS, self.miss_session)
            if left is None
            else (left + _LEASE_SLACK, self.end_session)
        )
        loop = asyncio.get_running_loop()
        self._silent[session] = loop.call_later(*later, session)

    def _hear_of(self, session: str) -> None:
        if timer := self._silent.pop(session, None):
            timer.cancel()

    def _find_worker(self, session: str) -> Worker:
        """One that sends its cookie back needs no timer: its connection shows that it lives."""
        self._hear_of(session)
        self._drop_held(session)
        if session not in self._sessions:
            since = RECENT_SECONDS if session.startswith(KNOWN_CLIENT) else 0.0
            self._sessions[session] = self._make_worker(since)
        return self._sessions[session]

    def _find_shared_worker(self) -> Worker:
        """For calls without a session and without a known lease; it never holds work."""
        if self._shared_worker is None:
            self._shared_worker = self._make_worker(RECENT_SECONDS)
        return self._shared_worker

    def _close_worker(self, worker: Worker) -> None:
        """Without waiting: whoever calls may be on the way out itself."""
        self._run_aside(worker.close())

    def _run_aside(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        task.add_done_callback(report_failure)


def _is_finished(found: dict[str, Any] | str, dispatch_id: int) -> bool:
    """Whether a worker has nothing left to do after this result."""
    if isinstance(found, str) or "accepted" not in found:
        return False
    return found["dispatch_id"] == dispatch_id and not found["open"]
