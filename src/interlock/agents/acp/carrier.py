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
from interlock.agents.acp.conversation import Conversation, Host, offers
from interlock.agents.acp.settings import AcpSettings
from interlock.agents.carrier import Ask, Clock, Deliver, Reply, TaskSet
from interlock.agents.cli.carrier import AgentHome, WorkFolder, workplace
from interlock.agents.cli.health import AgentHealth, facts_of, standing
from interlock.agents.cli.process import ProcessSpec
from interlock.agents.cli.profiles import cleaned
from interlock.agents.cli.tag import TAGS
from interlock.agents.cli.timeouts import ClockName, Sight, TimeoutWatch
from interlock.agents.command import variables_of
from interlock.agents.queries import Leave, PermissionBroker, PermissionRequest
from interlock.agents.status import AgentStatusFile
from interlock.engine.circuit import CRASH, TIMEOUT
from interlock.system.open_folder import OpenFolder
from interlock.system.process_table import Census, Process, ProcessSnapshot, census

_COURTESY = 1.0
"""Seconds for an agent to stop by itself when its turn is cancelled."""
_LAST_WORDS = 1.0
_LONGEST = 2_000
_RUNG: dict[ClockName, str] = {
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
        self._start = start
        self._place = place
        self._settings = settings
        self._permissions = permissions
        self._clock = clock
        self._lookout = lookout
        self._watch = TimeoutWatch(settings.five_clocks, clock.now(), clock.now())
        self._timer: Callable[[], None] = lambda: None
        self._over: asyncio.Future[Reply] = asyncio.get_running_loop().create_future()
        self._is_wanted = True
        self._agent: AcpProcess | None = None
        files = OpenFolder(start.cwd) if settings.files != "none" else None
        self._host = Host(settings.permissions, self._leave, files, self._see, self._fails)
        self._line = AcpTransport(offers(settings), self._heard)

    @property
    def process(self) -> Process | None:
        """None before it was started."""
        return self._agent.process if self._agent else None

    def standing(self, people: Census | None = None) -> AgentHealth:
        """How the agent stands now."""
        kin = self._agent.kin(people if people is not None else census(TAGS)) if self._agent else {}
        leader = kin.get(self._agent.process) if self._agent else None
        now = self._clock.now()
        return standing(
            facts_of(
                self._watch,
                now,
                now,
                state=leader.state if leader else "",
                cpu_share=None,
                children=len(kin) - (leader is not None),
                is_mute=self._agent is not None and not self._agent.ear.is_open,
            )
        )

    def hang_up(self) -> None:
        """Nobody waits for the answer any more."""
        self._is_wanted = False
        self._fails(CRASH, "it is not needed any more")

    async def reply(self) -> Reply:
        """Start it, talk, end it. The reply comes when nothing of it is left; SourceError if it
        cannot be started."""
        if self._over.done():
            return self._over.result()
        agent = AcpProcess(self._start, self._lookout, self._line.take, self._line.hang_up)
        self._agent = agent
        self._line.connect(agent.pen)
        connection = connect_to_agent(cast(Client, self._host), self._line)
        self._wind()
        by_itself, exit_code = False, None
        try:
            found = await self._talk(
                Conversation(
                    connection, self._host, self._place, self._ask, self._start, self._settings
                ),
                agent,
            )
            by_itself = agent.has_exited
        finally:
            self._timer()
            await connection.close()
            exit_code = await agent.end(self._clock, self._watch.clocks.grace)
        reply = found or self._hung_up(agent, exit_code if by_itself else None)
        if reply.failure and self._is_wanted:
            self._place.forget()  # a session that failed would fail again
        return reply

    async def _talk(self, conversation: Conversation, agent: AcpProcess) -> Reply | None:
        """What the conversation comes to, or what ends it before; None if the agent hung up."""
        talking = asyncio.create_task(conversation.held(self._clock.now))
        self._line.broken.add_done_callback(lambda found: self._fails(CRASH, found.result()))
        await _first(talking, self._over)
        if self._over.done():
            if not self._line.broken.done():
                await conversation.cancel()
                await _first(talking, agent.exited, patience=_COURTESY)
            talking.cancel()
            await asyncio.wait([talking])
            return self._over.result()
        if (error := talking.exception()) is not None:
            return self._failed(CRASH, f"the conversation broke off: {error!r}")
        if talking.result() is None:
            await _first(agent.exited, patience=_LAST_WORDS)
        return talking.result()

    def _hung_up(self, agent: AcpProcess, code: int | None) -> Reply:
        """The agent ended the conversation: by its exit, or only by closing its output."""
        if self._over.done():
            return self._over.result()
        if code is None:
            reason = "it closed its output before its turn was over"
        else:
            how = f"exit code {code}" if code >= 0 else f"killed by signal {-code}"
            reason = f"{how} before its turn was over"
        words = agent.complaints
        return self._failed(CRASH, f"{reason}: {words}" if words else reason)

    async def _leave(self, wish: PermissionRequest) -> Leave:
        """A human's word; without a broker nobody can say yes."""
        return (
            "reject" if self._permissions is None else await self._permissions.ask(self._ask, wish)
        )

    def _heard(self) -> None:
        self._watch.hear(self._clock.now())

    def _see(self, sight: Sight) -> None:
        self._watch.see(sight, self._clock.now())

    def _wind(self) -> None:
        due = self._watch.due()
        if not isinf(due.when):
            self._timer = self._clock.call_at(due.when, self._ring)

    def _ring(self) -> None:
        """A clock went off, or would have: meanwhile something may have been heard."""
        now = self._clock.now()
        due = self._watch.due()
        if due.name in ("silence", "tool") and self._host.asking:
            self._watch.hear(now)  # it waits for us, not we for it
            due = self._watch.due()
        if now < due.when:
            self._wind()
        else:
            seconds = getattr(self._watch.clocks, due.name)
            self._fails(TIMEOUT, f"{_RUNG[due.name]} ({seconds:g} s)")

    def _fails(self, failure: str, reason: str) -> None:
        if not self._over.done():
            self._over.set_result(self._failed(failure, reason))

    def _failed(self, failure: str, reason: str) -> Reply:
        return Reply(self._ask.dispatch_id, failure=failure, reason=reason[:_LONGEST])


async def _first(*what: "asyncio.Future[Any]", patience: float | None = None) -> None:
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
        self._station = station
        self._clock = clock
        self._settings = settings or AcpSettings()
        self._permissions = permissions
        self.queries = permissions.queries if permissions else None
        self._lookout = ProcessSnapshot(TAGS)
        mark = blake2b("\0".join(self._argv).encode(errors="replace"), digest_size=4)
        self._name = f"acp-{mark.hexdigest()}"
        self._standings = AgentStatusFile(station.root / f"standing-{self._name}.json", clock)
        self._talks: dict[int, AcpDispatch] = {}
        self._tasks = TaskSet(self._hold, self._stop)

    def start(self, deliver: Deliver) -> None:
        if self.queries is not None:
            self.queries.refuse = deliver
        grace = self._settings.five_clocks.grace
        self._tasks.start(deliver, self._station.ours.reap(self._clock, grace))

    def send(self, asks: Sequence[Ask]) -> None:
        if self._permissions is not None:
            for ask in asks:
                if ask.dispatch_id not in self._tasks:
                    self._permissions.begin(ask.dispatch_id)
        self._tasks.begin(asks)

    def settled(self, dispatch_id: int, error: str = "") -> None:
        self._tasks.drop(dispatch_id)

    def account(self, role: str) -> str:
        """Asks to the same command share its limits, whoever sends them."""
        return f"acp:{Path(self._argv[0]).name}"

    async def close(self) -> None:
        await self._tasks.end()
        self._standings.close()

    def _open(self, ask: Ask) -> AcpDispatch:
        place = workplace(self._station.root, ask, self._name)
        folder = place.work if self._settings.folder == "own" else self._station.project
        given = {**self._settings.env, **variables_of(ask)}
        environment = cleaned(self._station.environ, self._settings.let_in, given)
        tag = self._station.ours.tag(ask.run_id, ask.dispatch_id, self._station.nonce())
        start = ProcessSpec(self._argv, b"", folder, environment, tag)
        return AcpDispatch(
            ask, start, place, self._settings, self._permissions, self._clock, self._lookout
        )

    async def _hold(self, ask: Ask) -> Reply:
        talk = self._talks[ask.dispatch_id] = self._open(ask)
        self._standings.add(ask, self.account(ask.role), talk)
        try:
            return await talk.reply()
        finally:
            self._standings.drop(ask.dispatch_id)
            if self._talks.get(ask.dispatch_id) is talk:
                del self._talks[ask.dispatch_id]

    def _stop(self, dispatch_id: int) -> bool:
        """Not by cancelling the task: the agent is told that its turn is cancelled, and has a
        moment to stop by itself."""
        talk = self._talks.pop(dispatch_id, None)
        if talk is not None:
            talk.hang_up()
        return talk is not None
