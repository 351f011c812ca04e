"""The agent `acp`: any command that speaks the Agent Client Protocol. A carrier.

Each ask has a process of its own, which works in the folder of its case's step. `AcpDispatch` is
one of them from start to end: whatever happens, the process is gone, as a tree, before the reply
is handed over. What is said meanwhile is in `conversation`.
"""

import asyncio
from collections.abc import Callable, Sequence
from hashlib import blake2b
from math import isinf
from pathlib import Path
from typing import Any, cast

from acp import Client, connect_to_agent

from interlock.agents.acp.connection import AcpProcess, AcpTransport
from interlock.agents.acp.conversation import Conversation, Host, list_offered_requests
from interlock.agents.acp.settings import AcpSettings
from interlock.agents.carrier import Ask, Clock, Deliver, Reply, TaskSet
from interlock.agents.cli.carrier import AgentHome, WorkFolder, make_work_folder
from interlock.agents.cli.health import AgentHealth, assess_health, collect_facts
from interlock.agents.cli.process import ProcessSpec
from interlock.agents.cli.profiles import filter_environment
from interlock.agents.cli.tag import TAGS
from interlock.agents.cli.timeouts import ClockName, StreamSign, TimeoutWatch
from interlock.agents.command import build_variables
from interlock.agents.queries import PermissionBroker, PermissionDecision, PermissionRequest
from interlock.agents.status import AgentStatusFile
from interlock.engine.circuit import CRASH, TIMEOUT
from interlock.system.open_folder import OpenFolder
from interlock.system.process_table import Process, ProcessSnapshot, ProcessTable, list_processes

_CANCEL_GRACE = 1.0
"""Seconds for an agent to stop by itself when its turn is cancelled."""
_EXIT_GRACE = 1.0
_MAX_REASON = 2_000
_TIMEOUT_REASONS: dict[ClockName, str] = {
    "first_byte": "it produced no output",
    "silence": "it went silent",
    "tool": "it went silent while a tool was running",
    "wall": "it took too long",
    "after_result": "it did not exit",
}


class AcpDispatch:
    """A conversation about one dispatch, from the first byte to the last process."""

    def __init__(
        self,
        ask: Ask,
        start: ProcessSpec,
        place: WorkFolder,
        settings: AcpSettings,
        permissions: PermissionBroker | None,
        clock: Clock,
        lookout: ProcessSnapshot,
    ) -> None:
        self._ask = ask
        self._spec = start
        self._folder = place
        self._settings = settings
        self._permissions = permissions
        self._clock = clock
        self._snapshot = lookout
        self._timeouts = TimeoutWatch(settings.timeouts, clock.now(), clock.now())
        self._timer: Callable[[], None] = lambda: None
        self._outcome: asyncio.Future[Reply] = asyncio.get_running_loop().create_future()
        self._is_needed = True
        self._process: AcpProcess | None = None
        files = OpenFolder(start.cwd) if settings.files != "none" else None
        self._host = Host(
            settings.permissions, self._ask_permission, files, self._note_sight, self._fail
        )
        self._transport = AcpTransport(list_offered_requests(settings), self._note_output)

    @property
    def process(self) -> Process | None:
        """None before it was started."""
        return self._process.process if self._process else None

    def read_health(self, people: ProcessTable | None = None) -> AgentHealth:
        """How the agent stands now."""
        kin = (
            self._process.find_family(people if people is not None else list_processes(TAGS))
            if self._process
            else {}
        )
        leader = kin.get(self._process.process) if self._process else None
        now = self._clock.now()
        return assess_health(
            collect_facts(
                self._timeouts,
                now,
                now,
                state=leader.state if leader else "",
                cpu_share=None,
                children=len(kin) - (leader is not None),
                is_mute=self._process is not None and not self._process.stdout.is_open,
            )
        )

    def stop(self) -> None:
        """Nobody waits for the answer any more."""
        self._is_needed = False
        self._fail(CRASH, "it is not needed any more")

    async def run(self) -> Reply:
        """Start it, talk, end it. The reply comes when nothing of it is left; SourceError if it
        cannot be started."""
        if self._outcome.done():
            return self._outcome.result()
        agent = AcpProcess(
            self._spec, self._snapshot, self._transport.feed, self._transport.end_input
        )
        self._process = agent
        self._transport.connect(agent.stdin)
        connection = connect_to_agent(cast(Client, self._host), self._transport)
        self._set_timer()
        by_itself, exit_code = False, None
        try:
            found = await self._hold_conversation(
                Conversation(
                    connection, self._host, self._folder, self._ask, self._spec, self._settings
                ),
                agent,
            )
            by_itself = agent.has_exited
        finally:
            self._timer()
            await connection.close()
            exit_code = await agent.end(self._clock, self._timeouts.clocks.grace)
        reply = found or self._reply_to_hangup(agent, exit_code if by_itself else None)
        if reply.failure and self._is_needed:
            self._folder.forget_session()  # a session that failed would fail again
        return reply

    async def _hold_conversation(
        self, conversation: Conversation, agent: AcpProcess
    ) -> Reply | None:
        """What the conversation comes to, or what ends it before; None if the agent hung up."""
        talking = asyncio.create_task(conversation.run(self._clock.now))
        self._transport.broken.add_done_callback(lambda found: self._fail(CRASH, found.result()))
        await _wait_for_first(talking, self._outcome)
        if self._outcome.done():
            if not self._transport.broken.done():
                await conversation.cancel()
                await _wait_for_first(talking, agent.exited, patience=_CANCEL_GRACE)
            talking.cancel()
            await asyncio.wait([talking])
            return self._outcome.result()
        if (error := talking.exception()) is not None:
            return self._build_failure(CRASH, f"the conversation broke off: {error!r}")
        if talking.result() is None:
            await _wait_for_first(agent.exited, patience=_EXIT_GRACE)
        return talking.result()

    def _reply_to_hangup(self, agent: AcpProcess, code: int | None) -> Reply:
        """The agent ended the conversation: by its exit, or only by closing its output."""
        if self._outcome.done():
            return self._outcome.result()
        if code is None:
            reason = "it closed its output before its turn was over"
        else:
            how = f"exit code {code}" if code >= 0 else f"killed by signal {-code}"
            reason = f"{how} before its turn was over"
        words = agent.stderr_tail
        return self._build_failure(CRASH, f"{reason}: {words}" if words else reason)

    async def _ask_permission(self, wish: PermissionRequest) -> PermissionDecision:
        """A human's word; without a broker nobody can say yes."""
        return (
            "reject" if self._permissions is None else await self._permissions.ask(self._ask, wish)
        )

    def _note_output(self) -> None:
        self._timeouts.note_stdout(self._clock.now())

    def _note_sight(self, sight: StreamSign) -> None:
        self._timeouts.note_sign(sight, self._clock.now())

    def _set_timer(self) -> None:
        due = self._timeouts.next_due()
        if not isinf(due.when):
            self._timer = self._clock.call_at(due.when, self._on_timer)

    def _on_timer(self) -> None:
        """A clock went off, or would have: meanwhile something may have been heard."""
        now = self._clock.now()
        due = self._timeouts.next_due()
        if due.name in ("silence", "tool") and self._host.open_requests:
            self._timeouts.note_stdout(now)  # it waits for us, not we for it
            due = self._timeouts.next_due()
        if now < due.when:
            self._set_timer()
        else:
            seconds = getattr(self._timeouts.clocks, due.name)
            self._fail(TIMEOUT, f"{_TIMEOUT_REASONS[due.name]} ({seconds:g} s)")

    def _fail(self, failure: str, reason: str) -> None:
        if not self._outcome.done():
            self._outcome.set_result(self._build_failure(failure, reason))

    def _build_failure(self, failure: str, reason: str) -> Reply:
        return Reply(self._ask.dispatch_id, failure=failure, reason=reason[:_MAX_REASON])


async def _wait_for_first(*what: "asyncio.Future[Any]", patience: float | None = None) -> None:
    await asyncio.wait(what, timeout=patience, return_when=asyncio.FIRST_COMPLETED)


class AcpAgent:
    """A carrier that starts one process and holds one conversation for each ask. Without a broker
    nobody can be asked for permission, and what the policy does not allow is rejected."""

    def __init__(
        self,
        argv: Sequence[str],
        station: AgentHome,
        clock: Clock,
        *,
        settings: AcpSettings | None = None,
        permissions: PermissionBroker | None = None,
    ) -> None:
        self._argv = tuple(argv)
        self._home = station
        self._clock = clock
        self._settings = settings or AcpSettings()
        self._permissions = permissions
        self.queries = permissions.queries if permissions else None
        self._snapshot = ProcessSnapshot(TAGS)
        mark = blake2b("\0".join(self._argv).encode(errors="replace"), digest_size=4)
        self._name = f"acp-{mark.hexdigest()}"
        self._status_file = AgentStatusFile(station.root / f"standing-{self._name}.json", clock)
        self._dispatches: dict[int, AcpDispatch] = {}
        self._tasks = TaskSet(self._work, self._stop)

    def start(self, deliver: Deliver) -> None:
        if self.queries is not None:
            self.queries.refuse = deliver
        grace = self._settings.timeouts.grace
        self._tasks.start(deliver, self._home.owner.cleanup_orphans(self._clock, grace))

    def send(self, asks: Sequence[Ask]) -> None:
        if self._permissions is not None:
            for ask in asks:
                if ask.dispatch_id not in self._tasks:
                    self._permissions.close_earlier(ask.dispatch_id)
        self._tasks.begin(asks)

    def settle(self, dispatch_id: int, error: str = "") -> None:
        self._tasks.drop(dispatch_id)

    def account_of(self, role: str) -> str:
        """Asks to the same command share its limits, whoever sends them."""
        return f"acp:{Path(self._argv[0]).name}"

    async def close(self) -> None:
        await self._tasks.close()
        self._status_file.close()

    def _build_dispatch(self, ask: Ask) -> AcpDispatch:
        place = make_work_folder(self._home.root, ask, self._name)
        folder = place.work if self._settings.folder == "own" else self._home.project
        given = {**self._settings.env, **build_variables(ask)}
        environment = filter_environment(self._home.environ, self._settings.let_in, given)
        tag = self._home.owner.make_tag(ask.run_id, ask.dispatch_id, self._home.make_nonce())
        start = ProcessSpec(self._argv, b"", folder, environment, tag)
        return AcpDispatch(
            ask, start, place, self._settings, self._permissions, self._clock, self._snapshot
        )

    async def _work(self, ask: Ask) -> Reply:
        talk = self._dispatches[ask.dispatch_id] = self._build_dispatch(ask)
        self._status_file.add(ask, self.account_of(ask.role), talk)
        try:
            return await talk.run()
        finally:
            self._status_file.drop(ask.dispatch_id)
            if self._dispatches.get(ask.dispatch_id) is talk:
                del self._dispatches[ask.dispatch_id]

    def _stop(self, dispatch_id: int) -> bool:
        """Not by cancelling the task: the agent is told that its turn is cancelled, and has a
        moment to stop by itself."""
        talk = self._dispatches.pop(dispatch_id, None)
        if talk is not None:
            talk.stop()
        return talk is not None
