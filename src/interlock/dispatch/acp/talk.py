"""One dispatch with an agent: its process, the handshake, the prompt, and how it came to its end.

Knows the order of the protocol's requests and whose fault an end is. The process goes as a tree,
whatever happened, before the reply is handed over. Refuses to know other dispatches.
"""

import asyncio
from asyncio.subprocess import PIPE
from collections.abc import Mapping
from pathlib import Path
from typing import cast

import msgspec
from acp import PROTOCOL_VERSION, Client, RequestError, connect_to_agent, text_block
from acp.client.connection import ClientSideConnection
from acp.schema import (
    AgentCapabilities,
    ClientCapabilities,
    FileSystemCapabilities,
    Implementation,
    PromptResponse,
)
from pydantic import ValidationError

from interlock.core.case import Usage
from interlock.core.circuit import CRASH, TIMEOUT, UNREADABLE
from interlock.dispatch.acp import outcome
from interlock.dispatch.acp.host import Host
from interlock.dispatch.acp.line import AgentLine
from interlock.dispatch.acp.session_note import SessionNote
from interlock.dispatch.acp.terms import Terms
from interlock.dispatch.acp.work_files import WorkFiles
from interlock.dispatch.carrier import Ask, Clock, Reply
from interlock.dispatch.permission_desk import PermissionDesk
from interlock.store.permissions import Leave, Wish
from interlock.supervise.census import Process, Seen, census, look
from interlock.supervise.clocks import Clocks, Watch
from interlock.supervise.kinship import family
from interlock.supervise.tree import fell

_LONGEST_ID = 1_000
_OFFERS = {
    "none": (),
    "read": ("fs/read_text_file",),
    "write": ("fs/read_text_file", "fs/write_text_file"),
}


class Launch(msgspec.Struct, frozen=True):
    """How an agent's process is started for one dispatch."""

    argv: tuple[str, ...]
    folder: Path
    environment: Mapping[str, str]
    tag: str


class Talk:
    """A conversation about one dispatch, from the first byte to the last process."""

    def __init__(
        self,
        ask: Ask,
        launch: Launch,
        terms: Terms,
        clocks: Clocks,
        desk: PermissionDesk | None,
        clock: Clock,
    ) -> None:
        self._ask = ask
        self._launch = launch
        self._terms = terms
        self._desk = desk
        self._clock = clock
        self._watch = Watch(clocks, clock.now(), clock.now())
        self._note = SessionNote(launch.folder, launch.argv)
        self._session_id = ""
        self._request = "initialize"
        self._over: asyncio.Future[Reply] = asyncio.get_running_loop().create_future()
        self._leader: Process | None = None
        files = WorkFiles(launch.folder) if terms.files != "none" else None
        self._host = Host(terms.permissions, self._leave, files, self._too_far)
        self._line = AgentLine(self._offered(), self._heard)
        self._connection: ClientSideConnection

    def hang_up(self) -> None:
        """Nobody waits for the answer any more."""
        self._end_with(self._failed(CRASH, "it is not needed any more"))

    async def reply(self) -> Reply:
        """Start it, talk, end it. The reply comes when nothing of it is left."""
        try:
            await asyncio.get_running_loop().subprocess_exec(
                lambda: self._line,
                *self._launch.argv,
                stdin=PIPE,
                stdout=PIPE,
                stderr=PIPE,
                cwd=self._launch.folder,
                env=dict(self._launch.environment),
                start_new_session=True,
            )
        except OSError as error:
            return self._failed(CRASH, f"{self._launch.argv[0]!r} cannot be started: {error.strerror}")
        seen = look(self._line.pid)
        self._leader = seen.process if seen else None
        self._connection = connect_to_agent(cast(Client, self._host), self._line)
        cancel = self._wind()
        try:
            return await self._talk()
        finally:
            cancel()
            await self._connection.close()
            await self._fell()

    async def _talk(self) -> Reply:
        """What the conversation comes to, or what ends it before."""
        talking = asyncio.create_task(self._converse())
        self._line.broken.add_done_callback(self._broken)
        await asyncio.wait([talking, self._over], return_when=asyncio.FIRST_COMPLETED)
        if self._over.done():
            await self._cancel(talking)
            return self._over.result()
        return talking.result()
