"""One dispatch with an agent: its process, the clocks, and how it came to its end.

Knows what may end a conversation and that the process goes as a tree, whatever happened, before
the reply is handed over. What is said meanwhile is in `conversation.py`.
"""

import asyncio
from collections.abc import Callable
from math import isinf
from typing import Any, cast

from acp import Client, connect_to_agent

from interlock.agents.acp.connection import AcpProcess, AcpTransport
from interlock.agents.acp.conversation import Conversation, offers
from interlock.agents.acp.host import Host
from interlock.agents.acp.terms import AcpSettings
from interlock.agents.carrier import Ask, Clock, Reply
from interlock.agents.cli.carrier import WorkFolder
from interlock.agents.cli.health import AgentHealth, facts_of, standing
from interlock.agents.cli.start import ProcessSpec
from interlock.agents.cli.tag import TAGS
from interlock.agents.cli.timeouts import ClockName, Sight, TimeoutWatch
from interlock.agents.queries import Leave, PermissionBroker, PermissionRequest
from interlock.engine.circuit import CRASH, TIMEOUT
from interlock.system.open_folder import OpenFolder
from interlock.system.process_table import Census, Process, ProcessSnapshot, census

_COURTESY = 1.0
"""Seconds for an agent to stop by itself when its turn is cancelled."""
_LAST_WORDS = 1.0
_LONGEST = 2_000
_RUNG: dict[ClockName, str] = {
    "first_byte": "it did not say a word",
    "silence": "it fell silent",
    "tool": "it fell silent with a tool at work",
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
        terms: AcpSettings,
        desk: PermissionBroker | None,
        clock: Clock,
        lookout: ProcessSnapshot,
    ) -> None:
        self._ask = ask
        self._start = start
        self._place = place
        self._terms = terms
        self._desk = desk
        self._clock = clock
        self._lookout = lookout
        self._watch = TimeoutWatch(terms.five_clocks, clock.now(), clock.now())
        self._timer: Callable[[], None] = lambda: None
        self._over: asyncio.Future[Reply] = asyncio.get_running_loop().create_future()
        self._is_wanted = True
        self._agent: AcpProcess | None = None
        files = OpenFolder(start.cwd) if terms.files != "none" else None
        self._host = Host(terms.permissions, self._leave, files, self._see, self._fails)
        self._line = AcpTransport(offers(terms), self._heard)

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
                    connection, self._host, self._place, self._ask, self._start, self._terms
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
        """A human's word; without a desk nobody can say yes."""
        return "reject" if self._desk is None else await self._desk.ask(self._ask, wish)

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
