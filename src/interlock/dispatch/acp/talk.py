"""One dispatch with an agent: its process, the clocks, and how it came to its end.

Knows what may end a conversation and that the process goes as a tree, whatever happened, before
the reply is handed over. What is said meanwhile is in `conversation.py`.
"""

import asyncio
import os
from asyncio.subprocess import PIPE
from collections.abc import Callable
from math import isinf
from typing import cast

from acp import Client, connect_to_agent

from interlock.core.circuit import CRASH, TIMEOUT
from interlock.dispatch.acp.conversation import Conversation, offers
from interlock.dispatch.acp.host import Host
from interlock.dispatch.acp.line import AgentLine
from interlock.dispatch.acp.session_note import SessionNote
from interlock.dispatch.acp.terms import Terms
from interlock.dispatch.acp.work_files import WorkFiles
from interlock.dispatch.carrier import Ask, Clock, Reply
from interlock.dispatch.permission_desk import Leave, PermissionDesk, Wish
from interlock.supervise.census import Process, Seen, look
from interlock.supervise.clocks import ClockName, Clocks, Watch
from interlock.supervise.kinship import family
from interlock.supervise.lookout import Lookout
from interlock.supervise.sight import Sight
from interlock.supervise.start import Start, owner
from interlock.supervise.tag import checked, variables
from interlock.supervise.tree import fell

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


class Talk:
    """A conversation about one dispatch, from the first byte to the last process."""

    def __init__(
        self,
        ask: Ask,
        start: Start,
        terms: Terms,
        clocks: Clocks,
        desk: PermissionDesk | None,
        clock: Clock,
        lookout: Lookout,
    ) -> None:
        self._ask = ask
        self._start = start
        self._desk = desk
        self._clock = clock
        self._lookout = lookout
        self._watch = Watch(clocks, clock.now(), clock.now())
        self._timer: Callable[[], None] = lambda: None
        self._over: asyncio.Future[Reply] = asyncio.get_running_loop().create_future()
        self._leader: Process | None = None
        files = WorkFiles(start.cwd) if terms.files != "none" else None
        self._host = Host(terms.permissions, self._leave, files, self._see, self._fails)
        self._line = AgentLine(offers(terms), self._heard)
        self._terms = terms

    def hang_up(self) -> None:
        """Nobody waits for the answer any more."""
        self._end(self._failed(CRASH, "it is not needed any more"))

    async def reply(self) -> Reply:
        """Start it, talk, end it. The reply comes when nothing of it is left."""
        if self._over.done():
            return self._over.result()
        try:
            await self._begin()
        except (OSError, ValueError) as error:
            why = (error.strerror if isinstance(error, OSError) else None) or str(error)
            return self._failed(CRASH, f"{self._start.argv[0]!r} cannot be started: {why}")
        connection = connect_to_agent(cast(Client, self._host), self._line)
        self._wind()
        try:
            note = SessionNote(self._start.cwd, self._start.argv)
            return await self._talk(
                Conversation(connection, self._host, note, self._ask, self._start.cwd, self._terms)
            )
        finally:
            self._timer()
            await connection.close()
            await fell(await self._kin(), self._kin, self._clock, self._watch.clocks.grace)
            await self._line.let_go()

    async def _begin(self) -> None:
        marks = variables(checked(self._start.tag), owner(), os.environ)
        await asyncio.get_running_loop().subprocess_exec(
            lambda: self._line,
            *self._start.argv,
            stdin=PIPE,
            stdout=PIPE,
            stderr=PIPE,
            cwd=self._start.cwd,
            env={**self._start.env, **marks},
            start_new_session=True,
        )
        seen = look(self._line.pid)
        self._leader = seen.process if seen else None

    async def _talk(self, conversation: Conversation) -> Reply:
        """What the conversation comes to, or what ends it before."""
        talking = asyncio.create_task(conversation.held())
        self._line.broken.add_done_callback(lambda found: self._fails(CRASH, found.result()))
        await asyncio.wait([talking, self._over], return_when=asyncio.FIRST_COMPLETED)
        if self._over.done():
            if not self._line.broken.done():
                await conversation.cancel()
                await asyncio.wait([talking, self._line.exited], timeout=_COURTESY)
            talking.cancel()
            await asyncio.wait([talking])
            return self._over.result()
        if (error := talking.exception()) is not None:
            return self._failed(CRASH, f"the conversation broke off: {error!r}")
        return talking.result() or await self._hung_up()

    async def _hung_up(self) -> Reply:
        """The agent ended the conversation: by its exit, or only by closing its output."""
        await self._line.last_words(_LAST_WORDS)
        code = self._line.exit_code
        if self._over.done():
            return self._over.result()
        if code is None:
            reason = "it closed its output before its turn was over"
        else:
            how = f"exit code {code}" if code >= 0 else f"killed by signal {-code}"
            reason = f"{how} before its turn was over"
        words = self._line.complaints
        return self._failed(CRASH, f"{reason}: {words}" if words else reason)

    async def _leave(self, wish: Wish) -> Leave:
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

    async def _kin(self, _stop: bool = False) -> dict[Process, Seen]:
        return family(await self._lookout.look(), self._start.tag, self._leader)

    def _fails(self, failure: str, reason: str) -> None:
        self._end(self._failed(failure, reason))

    def _end(self, reply: Reply) -> None:
        if not self._over.done():
            self._over.set_result(reply)

    def _failed(self, failure: str, reason: str) -> Reply:
        return Reply(self._ask.dispatch_id, failure=failure, reason=reason[:_LONGEST])
