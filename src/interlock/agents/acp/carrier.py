"""The agent `acp`: any command that speaks the Agent Client Protocol. A carrier.

Knows which conversation belongs to which dispatch. Each has a process of its own, and works in the
place of its case's step; what they say to each other is `talk.py`'s business.
"""

import asyncio
from collections.abc import Sequence
from functools import partial
from hashlib import blake2b
from pathlib import Path

from interlock.agents.acp.talk import AcpDispatch
from interlock.agents.acp.terms import AcpSettings
from interlock.agents.carrier import Ask, Clock, Deliver, Reply
from interlock.agents.cli.carrier import AgentHome, workplace
from interlock.agents.cli.environment import cleaned
from interlock.agents.cli.start import ProcessSpec
from interlock.agents.cli.tag import TAGS
from interlock.agents.command import variables_of
from interlock.agents.queries import PermissionBroker
from interlock.agents.status import AgentStatusFile
from interlock.engine.circuit import CRASH
from interlock.system.errors import InterlockError
from interlock.system.process_table import ProcessSnapshot


class AcpAgent:
    """A carrier that holds one conversation for each ask. Without a desk nobody can be asked for
    permission, and what the policy does not allow is rejected."""

    def __init__(
        self,
        argv: Sequence[str],
        station: AgentHome,
        clock: Clock,
        *,
        terms: AcpSettings | None = None,
        desk: PermissionBroker | None = None,
    ) -> None:
        self._argv = tuple(argv)
        self._station = station
        self._clock = clock
        self._terms = terms or AcpSettings()
        self._desk = desk
        self.queries = desk.queries if desk else None
        self._lookout = ProcessSnapshot(TAGS)
        mark = blake2b("\0".join(self._argv).encode(errors="replace"), digest_size=4)
        self._name = f"acp-{mark.hexdigest()}"
        self._standings = AgentStatusFile(station.root / f"standing-{self._name}.json", clock)
        self._talks: dict[int, AcpDispatch] = {}
        self._tasks: set[asyncio.Task[Reply]] = set()
        self._ready: asyncio.Task[None]
        self._deliver: Deliver

    def start(self, deliver: Deliver) -> None:
        self._deliver = deliver
        if self.queries is not None:
            self.queries.refuse = deliver
        self._ready = asyncio.create_task(self._reap())

    def send(self, asks: Sequence[Ask]) -> None:
        for ask in asks:
            if ask.dispatch_id in self._talks:
                continue
            try:
                talk = self._talks[ask.dispatch_id] = self._open(ask)
            except InterlockError as error:
                self._deliver(Reply(ask.dispatch_id, failure=CRASH, reason=str(error)))
                continue
            task = asyncio.create_task(self._hold(ask, talk))
            self._tasks.add(task)
            task.add_done_callback(partial(self._over, ask, talk))

    def settled(self, dispatch_id: int, error: str = "") -> None:
        talk = self._talks.pop(dispatch_id, None)
        if talk is not None:
            talk.hang_up()

    def account(self, role: str) -> str:
        """Asks to the same command share its limits, whoever sends them."""
        return f"acp:{Path(self._argv[0]).name}"

    async def close(self) -> None:
        for dispatch_id in list(self._talks):
            self.settled(dispatch_id)
        await asyncio.gather(self._ready, *self._tasks, return_exceptions=True)
        self._standings.close()

    async def _reap(self) -> None:
        await self._station.ours.reap(self._clock, self._terms.five_clocks.grace)

    def _open(self, ask: Ask) -> AcpDispatch:
        place = workplace(self._station.root, ask, self._name)
        folder = place.work if self._terms.folder == "own" else self._station.project
        if self._desk is not None:
            self._desk.begin(ask.dispatch_id)
        given = {**self._terms.env, **variables_of(ask)}
        environment = cleaned(self._station.environ, self._terms.let_in, given)
        tag = self._station.ours.tag(ask.run_id, ask.dispatch_id, self._station.nonce())
        start = ProcessSpec(self._argv, b"", folder, environment, tag)
        return AcpDispatch(ask, start, place, self._terms, self._desk, self._clock, self._lookout)

    async def _hold(self, ask: Ask, talk: AcpDispatch) -> Reply:
        await self._ready
        self._standings.add(ask, self.account(ask.role), talk)
        try:
            return await talk.reply()
        finally:
            self._standings.drop(ask.dispatch_id)

    def _over(self, ask: Ask, talk: AcpDispatch, task: "asyncio.Task[Reply]") -> None:
        """A dispatch gets its reply, also if something broke that nobody thought of."""
        self._tasks.discard(task)
        error = None if task.cancelled() else task.exception()
        if self._talks.get(ask.dispatch_id) is not talk or task.cancelled():
            return
        del self._talks[ask.dispatch_id]
        if error is None:
            self._deliver(task.result())
            return
        known = isinstance(error, InterlockError)
        reason = f"{error}" if known else f"the conversation broke off: {error!r}"
        self._deliver(Reply(ask.dispatch_id, failure=CRASH, reason=reason))
