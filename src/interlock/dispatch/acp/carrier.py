"""The agent `acp`: any command that speaks the Agent Client Protocol. A carrier.

Knows which conversation belongs to which dispatch. Each gets a process, a session and a work folder
of its own; what they say to each other is `talk.py`'s business.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path

from interlock.core.circuit import CRASH
from interlock.core.errors import SourceError
from interlock.dispatch.acp.session_note import SessionNote
from interlock.dispatch.acp.talk import Talk
from interlock.dispatch.acp.terms import Terms
from interlock.dispatch.carrier import Ask, Clock, Deliver, Reply
from interlock.dispatch.case_folder import work_folder
from interlock.dispatch.command import variables_of
from interlock.dispatch.permission_desk import PermissionDesk
from interlock.supervise.clocks import Clocks
from interlock.supervise.environment import cleaned
from interlock.supervise.lookout import Lookout
from interlock.supervise.start import Start


class AcpAgent:
    """A carrier that holds one conversation for each ask."""

    def __init__(
        self,
        argv: Sequence[str],
        root: Path,
        clock: Clock,
        environment: Mapping[str, str],
        *,
        tag_of: Callable[[Ask], str],
        terms: Terms | None = None,
        clocks: Clocks | None = None,
        desk: PermissionDesk | None = None,
    ) -> None:
        self._argv = tuple(argv)
        self._root = root
        self._clock = clock
        self._environment = dict(environment)
        self._tag_of = tag_of
        self._terms = terms or Terms()
        self._clocks = clocks or Clocks()
        self._desk = desk
        self._lookout = Lookout()
        self._talks: dict[int, Talk] = {}
        self._folders: dict[int, Path] = {}
        self._tasks: set[asyncio.Task[Reply]] = set()
        self._deliver: Deliver

    def start(self, deliver: Deliver) -> None:
        self._deliver = deliver

    def send(self, asks: Sequence[Ask]) -> None:
        for ask in asks:
            if ask.dispatch_id in self._talks:
                continue
            try:
                talk = self._talks[ask.dispatch_id] = self._open(ask)
            except SourceError as error:
                self._deliver(Reply(ask.dispatch_id, failure=CRASH, reason=str(error)))
                continue
            task = asyncio.create_task(talk.reply())
            self._tasks.add(task)
            task.add_done_callback(partial(self._over, ask, talk))

    def settled(self, dispatch_id: int, error: str = "") -> None:
        folder = self._folders.pop(dispatch_id, None)
        if folder is not None:
            SessionNote(folder, self._argv).drop()
        self._hang_up(dispatch_id)

    async def close(self) -> None:
        for dispatch_id in list(self._talks):
            self._hang_up(dispatch_id)
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _hang_up(self, dispatch_id: int) -> None:
        talk = self._talks.pop(dispatch_id, None)
        if talk is not None:
            talk.hang_up()

    def _open(self, ask: Ask) -> Talk:
        folder = work_folder(self._root, ask.run_id, ask.dispatch_id)
        self._folders[ask.dispatch_id] = folder
        if self._desk is not None:
            self._desk.begin(ask.dispatch_id)
        environment = cleaned(self._environment, self._terms.environment, variables_of(ask))
        start = Start(self._argv, b"", folder, environment, self._tag_of(ask))
        return Talk(ask, start, self._terms, self._clocks, self._desk, self._clock, self._lookout)

    def _over(self, ask: Ask, talk: Talk, task: "asyncio.Task[Reply]") -> None:
        """A dispatch gets its reply, also if something broke that nobody thought of."""
        self._tasks.discard(task)
        if self._talks.get(ask.dispatch_id) is not talk or task.cancelled():
            return
        del self._talks[ask.dispatch_id]
        error = task.exception()
        if error is None:
            self._deliver(task.result())
        else:
            reason = f"the conversation broke off: {error!r}"
            self._deliver(Reply(ask.dispatch_id, failure=CRASH, reason=reason))
