"""The agent `acp`: any command that speaks the Agent Client Protocol.

Each ask has a process of its own, which works in the folder of its case's step. `AcpDispatch` holds
one conversation from start to end; its whole process tree is gone before the reply is handed over.
The conversation itself is in `conversation`.
"""

import asyncio
from collections.abc import Callable, Sequence
from hashlib import blake2b
from math import isinf
from pathlib import Path
from typing import Any, cast

from acp import Client, connect_to_agent

from interlock.carriers.acp.connection import AcpProcess, AcpTransport
from interlock.carriers.acp.conversation import Conversation, Host, list_offered_requests
from interlock.carriers.acp.settings import AcpSettings
from interlock.carriers.background import TaskCarrier
from interlock.carriers.cli.carrier import AgentHome
from interlock.carriers.cli.health import AgentHealth
from interlock.carriers.cli.outcome import describe_left
from interlock.carriers.cli.ownership import TAGS
from interlock.carriers.cli.process import NOT_STARTED, ProcessSpec, describe_exit
from interlock.carriers.cli.profiles import filter_environment
from interlock.carriers.cli.timeouts import (
    ClockName,
    StreamSign,
    TimeoutWatch,
    WaitsForPermission,
)
from interlock.carriers.cli.work_folder import WorkFolder, make_work_folder
from interlock.carriers.contract import Ask, Reply, Session
from interlock.carriers.exec import build_variables
from interlock.carriers.queries import PermissionBroker, PermissionDecision, PermissionRequest
from interlock.carriers.status import AgentStatusFile
from interlock.engine.circuit import CRASH, TIMEOUT
from interlock.system.clock import Clock
from interlock.system.open_folder import OpenFolder
from interlock.system.process_table import Process, ProcessSnapshot, ProcessTable

_CANCEL_GRACE = 1.0
"""Seconds for an agent to stop by itself when its turn is cancelled."""
_EXIT_GRACE = 1.0
_MAX_REASON = 2_000
_MAX_NOTES = 20
_TIMEOUT_REASONS: dict[ClockName, str] = {
    "first_byte": "it produced no output",
    "silence": "it went silent",
    "tool": "it went silent while a tool was running",
    "wall": "it took too long",
    "after_result": "it did not exit",
}


class AcpDispatch:
    """The conversation about one dispatch, from the first byte to the last process."""

    def __init__(
        self,
        ask: Ask,
        spec: ProcessSpec,
        folder: WorkFolder,
        settings: AcpSettings,
        permissions: PermissionBroker | None,
        clock: Clock,
        snapshot: ProcessSnapshot,
    ) -> None:
        self._ask = ask
        self._spec = spec
        self._folder = folder
        self._settings = settings
        self._permissions = permissions
        self._clock = clock
        self._snapshot = snapshot
        self._watch = TimeoutWatch(settings.timeouts, clock.now(), clock.now())
        self._timer: Callable[[], None] = lambda: None
        self._outcome: asyncio.Future[Reply] = asyncio.get_running_loop().create_future()
        self._is_needed = True
        self._notes: list[str] = []
        self._process: AcpProcess | None = None
        files = OpenFolder(spec.cwd) if settings.files != "none" else None
        self._host = Host(
            settings.permissions, self._ask_permission, files, self._note_sign, self._fail
        )
        self._transport = AcpTransport(list_offered_requests(settings), self._note_output)

    @property
    def process(self) -> Process | None:
        """The agent's process; None before the start."""
        return self._process.family.leader if self._process else None

    def read_health(self, processes: ProcessTable | None = None) -> AgentHealth:
        """Return the agent's health now."""
        if self._process is None:
            return NOT_STARTED
        now, is_mute = self._clock.now(), not self._process.stdout.is_open
        return self._process.family.read_health(self._watch, now, now, processes, is_mute=is_mute)

    def stop(self) -> None:
        """Stop the conversation, because nobody waits for its answer."""
        self._is_needed = False
        self._fail(CRASH, "it is not needed any more")

    async def run(self) -> Reply:
        """Start the agent, talk to it, and end it; SourceError if it cannot be started.

        The reply comes when none of its processes is left.
        """
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
            reply = await self._hold_conversation(
                Conversation(
                    connection, self._host, self._folder, self._ask, self._spec.cwd, self._settings
                ),
                agent,
            )
            by_itself = agent.family.exit.has_exited
        finally:
            self._timer()
            await connection.close()
            exit_code = await agent.end(self._clock, self._watch.timeouts.grace)
        if agent.strays:
            self._notes.append(describe_left(agent.strays))
        if self._notes:
            notes = list(dict.fromkeys(self._notes))[:_MAX_NOTES]
            record = {"dispatch_id": self._ask.dispatch_id, "notes": notes}
            self._folder.write_record(self._ask.attempt, record)
        if reply is None:
            reply = self._reply_to_hangup(agent, exit_code if by_itself else None)
        if reply.failure and self._is_needed:
            self._folder.forget_session()  # a session that failed would fail again
        return reply

    async def _hold_conversation(
        self, conversation: Conversation, agent: AcpProcess
    ) -> Reply | None:
        """Return the reply of the conversation, or of what ended it; None if the agent hung up."""
        talking = asyncio.create_task(conversation.run(self._clock.now))
        self._transport.broken.add_done_callback(lambda broken: self._fail(CRASH, broken.result()))
        await _wait_for_first(talking, self._outcome)
        if self._outcome.done():
            if not self._transport.broken.done():
                await conversation.cancel()
                await _wait_for_first(talking, agent.exited, seconds=_CANCEL_GRACE)
            talking.cancel()
            await asyncio.wait([talking])
            return self._outcome.result()
        if (error := talking.exception()) is not None:
            return self._build_failure(CRASH, f"the conversation broke off: {error!r}")
        if talking.result() is None:
            await _wait_for_first(agent.exited, seconds=_EXIT_GRACE)
        return talking.result()

    def _reply_to_hangup(self, agent: AcpProcess, code: int | None) -> Reply:
        """Build the reply for an agent that exited, or closed its output."""
        if self._outcome.done():
            return self._outcome.result()
        if code is None:
            reason = "it closed its output before its turn was over"
        else:
            reason = f"{describe_exit(code)} before its turn was over"
        stderr = agent.stderr_tail
        return self._build_failure(CRASH, f"{reason}: {stderr}" if stderr else reason)

    async def _ask_permission(self, request: PermissionRequest) -> PermissionDecision:
        """Return a person's decision; without a broker the answer is no."""
        if self._permissions is None:
            return "reject"
        return await self._permissions.ask(self._ask, request)

    def _note_output(self) -> None:
        self._watch.note_stdout(self._clock.now())

    def _note_sign(self, sign: StreamSign) -> None:
        if isinstance(sign, WaitsForPermission):
            self._notes.append(f"it asked for a permission: {sign.what}"[:300])
        self._watch.note_sign(sign, self._clock.now())

    def _set_timer(self) -> None:
        due = self._watch.next_due()
        if not isinf(due.when):
            self._timer = self._clock.call_at(due.when, self._on_timer)

    def _on_timer(self) -> None:
        """Handle an expired timeout, unless something has arrived meanwhile."""
        now = self._clock.now()
        due = self._watch.next_due()
        if due.name in ("silence", "tool") and self._host.open_requests:
            self._watch.note_stdout(now)  # it waits for us, not we for it
            due = self._watch.next_due()
        if now < due.when:
            self._set_timer()
        else:
            seconds = getattr(self._watch.timeouts, due.name)
            self._fail(TIMEOUT, f"{_TIMEOUT_REASONS[due.name]} ({seconds:g} s)")

    def _fail(self, failure: str, reason: str) -> None:
        if not self._outcome.done():
            self._outcome.set_result(self._build_failure(failure, reason))

    def _build_failure(self, failure: str, reason: str) -> Reply:
        return Reply(self._ask.dispatch_id, failure=failure, reason=reason[:_MAX_REASON])


async def _wait_for_first(*futures: "asyncio.Future[Any]", seconds: float | None = None) -> None:
    await asyncio.wait(futures, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)


class AcpAgent(TaskCarrier):
    """Start one process and hold one conversation for each ask.

    Without a broker nobody can be asked for permission, and everything the policy does not allow is
    rejected.
    """

    def __init__(
        self,
        argv: Sequence[str],
        home: AgentHome,
        clock: Clock,
        *,
        settings: AcpSettings | None = None,
        permissions: PermissionBroker | None = None,
    ) -> None:
        super().__init__()
        self._argv = tuple(argv)
        self._home = home
        self._clock = clock
        self._settings = settings or AcpSettings()
        self._permissions = permissions
        self._snapshot = ProcessSnapshot(TAGS)
        mark = blake2b("\0".join(self._argv).encode(errors="replace"), digest_size=4)
        self._name = f"acp-{mark.hexdigest()}"
        self._status_file = AgentStatusFile(home.root / f"standing-{self._name}.json", clock)

    def start(self, session: Session) -> None:
        if self._permissions is not None:
            self._permissions.start(session)
        super().start(session)

    async def prepare(self) -> None:
        await self._home.owner.cleanup_orphans(self._clock, self._settings.timeouts.grace)

    def send(self, asks: Sequence[Ask]) -> None:
        if self._permissions is not None:
            for ask in asks:
                if not self.is_under_way(ask.dispatch_id):
                    self._permissions.close_earlier(ask.dispatch_id)
        super().send(asks)

    def account_of(self, role: str) -> str:
        """Return the command: all who ask it share its limits."""
        return f"acp:{Path(self._argv[0]).name}"

    async def close(self) -> None:
        await super().close()
        self._status_file.close()

    def _build_dispatch(self, ask: Ask) -> AcpDispatch:
        folder = make_work_folder(self._home.root, ask, self._name)
        cwd = folder.work if self._settings.folder == "own" else self._home.project
        added = {**self._settings.env, **build_variables(ask)}
        environment = filter_environment(self._home.environ, self._settings.let_in, added)
        spec = ProcessSpec(self._argv, b"", cwd, environment, self._home.make_tag(ask))
        return AcpDispatch(
            ask, spec, folder, self._settings, self._permissions, self._clock, self._snapshot
        )

    async def answer(self, ask: Ask) -> Reply:
        """Hold a conversation about an ask.

        A dispatch that is not needed any more is stopped, not cancelled: the agent learns that its
        turn is cancelled, and has a moment to stop by itself.
        """
        dispatch = self._build_dispatch(ask)
        self._status_file.add(ask, self.account_of(ask.role), dispatch)
        try:
            with self.stoppable(ask, dispatch):
                return await dispatch.run()
        finally:
            self._status_file.drop(ask.dispatch_id)
