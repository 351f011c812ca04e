"""The tools of agents that fetch their work: each is a call to the table of offers, or a look at
what runs have left in the journal.

A tool's name and arguments come in, one JSON object goes out, also when no run hands out work. An
agent is known by the lease that it names, and by its connection if that has a name: then it may
also renew, find again and give back all that it holds.
"""

import asyncio
import secrets
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Final, Protocol

import msgspec

from interlock.carriers.contract import Ask
from interlock.carriers.pull import messages, offers
from interlock.carriers.pull.offers import (
    LOOK_SECONDS,
    UNSETTLED,
    Lease,
    OfferCounts,
    OfferTable,
    Submission,
    Verdict,
)
from interlock.carriers.queries import QueryBroker, QueryStatus
from interlock.engine.case import RefusedAnswer
from interlock.engine.circuit import CRASH
from interlock.system.errors import InterlockError

_ARGUMENTS: Final = {tool.name: tool.arguments for tool in messages.TOOLS}
_MAX_REASON: Final = 2_000
_LOOK_FOR_END: Final = 1.0
"""Seconds between two looks whether the run is over."""
_RESUME_SECONDS: Final = 2.0
"""Seconds that a run which goes on has to offer its work again."""


class RunLookup(Protocol):
    """Reads the journal of a run, in threads."""

    def read_status(self, run_id: int | None) -> dict[str, Any]:
        """Return run_id, status, over (whether that is final), changed_at, cases, cases_over and a
        reason, of that run or the newest."""

    def read_report(self, run_id: int | None) -> messages.RunReport:
        """Return the report of that run, or of the newest."""


class PullTools:
    """The tools, for one agent or for all clients of a server."""

    def __init__(
        self,
        table: OfferTable,
        queries: QueryBroker,
        runs: RunLookup,
        *,
        roles: tuple[str, ...] = (),
        client: str = "",
        since: Callable[[], float] = time.time,
    ) -> None:
        """`client` names the agent if there is only one; a run that ended after `since` is one
        that it may have come for."""
        self._table = table
        self._queries = queries
        self._runs = runs
        self._roles = roles
        self._client = client
        self._since = since
        self._run_id: int | None = None
        """The newest run that has handed out work."""
        self._tools: dict[str, Callable[[Any, str], Awaitable[msgspec.Struct]]] = {
            "interlock_next": self.take_next,
            "interlock_submit": self.submit,
            "interlock_signal": self.signal,
            "interlock_ask": self.ask,
            "interlock_status": self.read_status,
            "interlock_report": self._report,
        }

    async def call_tool(
        self, name: str, arguments: Mapping[str, Any], client: str = ""
    ) -> dict[str, Any] | str:
        """Return what the tool gives, or a sentence about why it cannot be used like that."""
        if name not in self._tools:
            return f"There is no tool {name[:80]!r}; use {', '.join(self._tools)}."
        try:
            call = msgspec.convert(arguments, _ARGUMENTS[name])
            return messages.to_dict(await self._tools[name](call, client or self._client))
        except (msgspec.ValidationError, InterlockError) as error:
            return f"{name}: {error}."

    async def read_resource(self, dispatch_id: int = 0) -> dict[str, Any]:
        """Return the briefing, or a prompt, with the run it is of; no text if there is none."""
        sessions = self._list_sessions()
        if not sessions:
            return {"text": None, "run_id": self._run_id}
        if dispatch_id:
            found = await self._table.read(offers.find_prompt, sessions, dispatch_id)
            run_id, text = found or (None, None)
            return {"text": text, "run_id": run_id}
        counts = await self._count(sessions)
        return {
            "text": offers.read_briefing(self._table.db, sessions),
            "run_id": counts.run_id,
        }

    async def release_all(self, client: str = "") -> None:
        """Give back all that a client holds."""
        client = client or self._client
        if client and self._list_sessions():
            await self._table.write(offers.release_leases, client)

    async def close(self) -> None:
        """Give back all that is held by the one agent, and let go of the database."""
        try:
            await self.release_all()
        except InterlockError:
            return  # the leases end by themselves
        finally:
            await self._table.close()

    def _list_sessions(self) -> list[str]:
        return offers.list_sessions(self._table.db)

    async def _count(self, sessions: Sequence[str]) -> OfferCounts:
        found = await self._table.read(offers.count_offers, sessions, time.time())
        self._run_id = found.run_id or self._run_id
        return found

    # Take.

    async def take_next(
        self, call: messages.NextCall, client: str = ""
    ) -> messages.WorkItem | messages.NoWork:
        """Wait for work that is offered. When none came in time, give what the agent itself holds:
        it may have lost it. Not before: several agents may share a connection."""
        until = time.monotonic() + max(0.0, min(call.wait, messages.MAX_WAIT))
        ttl = max(1.0, min(call.ttl, messages.MAX_LEASE))
        roles = call.roles or self._roles
        looked_at = -_LOOK_FOR_END
        while True:
            is_last = time.monotonic() >= until
            sessions = self._list_sessions()
            if sessions:
                lease = await self._take(sessions, roles, client, ttl)
                if lease is None and is_last and client:
                    lease = await self._find_held(sessions, roles, client)
                if lease is not None:
                    self._run_id = lease.work.run_id
                    return _build_item(lease)
            elif is_last or time.monotonic() - looked_at >= _LOOK_FOR_END:
                looked_at = time.monotonic()
                status = await self._read_status()
                if is_last or self._has_ended(status):
                    return _build_no_work(status)
            if is_last:
                counts = await self._count(sessions)
                return messages.NoWork(reason=_explain_no_work(counts, roles))
            await asyncio.sleep(LOOK_SECONDS)

    def _has_ended(self, status: Mapping[str, Any]) -> bool:
        """Return whether this is the run that the agent came for, and over."""
        known = self._run_id is not None or status["changed_at"] >= self._since()
        return bool(status["over"]) and known

    async def _take(
        self, sessions: Sequence[str], roles: Sequence[str], client: str, ttl: float
    ) -> Lease | None:
        """Take the oldest offer. If whoever asked has gone meanwhile, give it back."""
        free = await self._table.read(offers.find_free, sessions, roles, time.time())
        if free is None:
            return None
        holder = client or secrets.token_hex(8)
        taking = asyncio.ensure_future(
            self._table.write(offers.take_offer, free, holder, ttl, time.time())
        )
        try:
            return await asyncio.shield(taking)
        except asyncio.CancelledError:
            lease = await taking
            if lease is not None:
                await self._table.write(offers.release_leases, holder, lease.token)
            raise

    async def _find_held(
        self, sessions: Sequence[str], roles: Sequence[str], client: str
    ) -> Lease | None:
        held = await self._table.read(offers.list_held, sessions, client, "", time.time())
        lease = next((each for each in held if not roles or each.work.role in roles), None)
        if lease is not None:
            await self._table.write(offers.renew_lease, client, lease.token, time.time())
        return lease

    # Submit.

    async def submit(self, call: messages.SubmitCall, _client: str = "") -> messages.SubmitResult:
        """Hand an answer in and return the run's verdict on it."""
        content = msgspec.json.encode(call.answer)
        return await self._hand_in(Submission(call.dispatch_id, call.lease, content))

    async def signal(self, call: messages.SignalCall, _client: str = "") -> messages.SubmitResult:
        """Give a signal in the place of an answer; `crash` and `release` are always legal."""
        number, token = call.dispatch_id, call.lease
        if call.signal == messages.GIVE_UP:
            reason = str(call.data.get("reason", "")) or "the worker gave it up"
            return await self._hand_in(Submission(number, token, b"", CRASH, reason[:_MAX_REASON]))
        if call.signal != messages.RELEASE:
            content = msgspec.json.encode({"signal": call.signal, "data": call.data})
            return await self._hand_in(Submission(number, token, content))
        if not self._list_sessions():
            return _build_result(number, UNSETTLED)
        problem = await self._table.read(offers.find_problem, number, token, time.time())
        if problem is not None:
            return messages.SubmitResult(False, number, False, problem.reason, problem.sentence)
        await self._table.write(offers.release_leases, "", token)
        return messages.SubmitResult(True, number)

    async def _hand_in(self, sent: Submission) -> messages.SubmitResult:
        """Hand a reply in and wait for the run's verdict, as long as the run lives."""
        number = sent.dispatch_id
        found: str | RefusedAnswer | None = None
        until = time.monotonic() + _RESUME_SECONDS
        while found is None:
            sessions = self._list_sessions()
            if not sessions or time.monotonic() > until:
                return _build_result(number, UNSETTLED)
            found = await self._table.write(offers.submit_reply, sessions, sent, time.time())
            if found is None:
                await asyncio.sleep(LOOK_SECONDS)
        if not isinstance(found, str):
            return messages.SubmitResult(False, number, False, found.reason, found.sentence)
        verdict: Verdict | None = None
        while verdict is None:
            await asyncio.sleep(LOOK_SECONDS / 2)
            lives = bool(self._list_sessions())
            verdict = await self._table.read(offers.find_verdict, found)
            if verdict is not None or not lives:
                verdict = await self._table.write(offers.withdraw_reply, found, time.time())
        return _build_result(number, verdict)

    # The rest.

    async def ask(self, call: messages.AskCall, client: str = "") -> QueryStatus:
        """Ask a person about a dispatch that is held, or poll an earlier question."""
        if call.question_id:
            return self._queries.poll(call.question_id)
        sessions = self._list_sessions()
        if not sessions:
            sentence = "No coordinator is at work; ask again when interlock_status says so."
            return QueryStatus(asked=False, sentence=sentence)
        now = time.time()
        await self._table.write(offers.renew_lease, client, call.lease, now)
        problem = await self._table.read(offers.find_problem, call.dispatch_id, call.lease, now)
        if problem is not None:
            return QueryStatus(asked=False, sentence=problem.sentence)
        held = await self._table.read(offers.list_held, sessions, "", call.lease, now)
        if not held:
            return QueryStatus(asked=False, sentence=UNSETTLED.sentence)
        work = held[0].work
        ask = Ask(
            *(work.dispatch_id, work.run_id, work.case_id, work.step, work.attempt, work.role),
            prompt=work.prompt,
        )
        return self._queries.ask(ask, call.question, call.options, now)

    async def read_status(self, call: messages.StatusCall, client: str = "") -> messages.RunStatus:
        """Renew a lease, and return how the run stands."""
        sessions, now = self._list_sessions(), time.time()
        if not sessions:
            status = await self._read_status()
            return messages.RunStatus(
                coordinator=False,
                run_id=status["run_id"],
                status=status["status"],
                reason=status["reason"],
            )
        await self._table.write(offers.renew_lease, client, call.lease, now)
        counts = await self._count(sessions)
        status = await self._read_status()
        held = await self._table.read(offers.list_held, sessions, client, call.lease, now)
        return messages.RunStatus(
            coordinator=True,
            run_id=counts.run_id,
            cases=status["cases"],
            over=status["cases_over"],
            open=counts.open,
            leased=counts.leased,
            workers=counts.holders,
            yours=[_describe_held(each, now) for each in held],
            reason="",
        )

    async def _report(self, call: messages.ReportCall, _client: str) -> messages.RunReport:
        return await asyncio.to_thread(self._runs.read_report, call.run_id or self._run_id)

    async def _read_status(self) -> dict[str, Any]:
        return await asyncio.to_thread(self._runs.read_status, self._run_id)


def _build_item(lease: Lease) -> messages.WorkItem:
    work = msgspec.structs.asdict(lease.work)
    return messages.WorkItem(lease=lease.token, fence=lease.fence, ttl=lease.ttl, **work)


def _build_no_work(status: Mapping[str, Any]) -> messages.NoWork:
    return messages.NoWork(done=status["over"], reason=status["reason"], run_id=status["run_id"])


def _build_result(dispatch_id: int, verdict: Verdict) -> messages.SubmitResult:
    return messages.SubmitResult(
        verdict.accepted, dispatch_id, verdict.open, verdict.refusal, verdict.sentence
    )


def _describe_held(lease: Lease, now: float) -> dict[str, Any]:
    return {
        "dispatch_id": lease.work.dispatch_id,
        "case_id": lease.work.case_id,
        "step": lease.work.step,
        "seconds_left": round(lease.until - now, 1),
    }


def _explain_no_work(counts: OfferCounts, roles: Sequence[str]) -> str:
    if counts.free_roles:
        return f"what waits is for {', '.join(counts.free_roles)}, not for {', '.join(roles)}"
    if counts.open:
        return "other workers have all that is open; ask again"
    return "nothing is to be done at this moment; ask again"
