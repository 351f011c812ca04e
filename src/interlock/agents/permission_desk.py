"""The desk for permissions: an agent at work asks for leave, a human answers it as a query.

Knows that a question lives as long as the agent that asked it, and that no answer in time is a no.
Only the very word `allow` allows. Refuses to know protocols, agents and policies.
"""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from typing import Literal

import msgspec

from interlock.agents.carrier import Ask, Clock
from interlock.agents.query import (
    LONGEST_TEXT,
    PERMISSION,
    QueryReply,
    open_queries,
    put_reply,
    reply_to,
)
from interlock.agents.query_desk import QueryBroker
from interlock.system.errors import InterlockError

Leave = Literal["allow", "reject"]
LATE = "nobody in time"
ENDED = "the end of its dispatch"
_POLL = 0.25
_MOST_OPEN = 100


class PermissionRequest(msgspec.Struct, frozen=True):
    """What an agent wants to do: the kind of tool, its own words for it, and the particulars."""

    kind: str
    title: str
    detail: str = ""


class _Question(msgspec.Struct):
    until: float
    reply: "asyncio.Future[QueryReply]"


class PermissionBroker:
    """Questions of agents that wait, for all dispatches of this process."""

    def __init__(self, queries: QueryBroker, clock: Clock, patience: float) -> None:
        self.queries = queries
        self._clock = clock
        self._patience = patience
        self._open: dict[str, _Question] = {}
        self._cancel: Callable[[], None] | None = None

    def begin(self, dispatch_id: int) -> None:
        """Whatever an agent before this one still asks about the dispatch is nobody's any more."""
        for left in open_queries(self.queries.folder, {dispatch_id}):
            self._close(self._reply(left.query_id, ENDED))

    async def ask(self, ask: Ask, wish: PermissionRequest) -> Leave:
        """A human's word, or a no. Cancelled with its dispatch, the question is closed."""
        query_id = self._put(ask, wish)
        if not query_id:
            return "reject"
        future: asyncio.Future[QueryReply] = asyncio.get_running_loop().create_future()
        self._open[query_id] = _Question(self._clock.now() + self._patience, future)
        self._look_later()
        reply = self._reply(query_id, ENDED)
        try:
            reply = await future
        finally:
            del self._open[query_id]
            if reply_to(self.queries.folder, query_id) is None:
                self._close(reply)
            if not self._open and self._cancel is not None:
                self._cancel()
                self._cancel = None
        return "allow" if reply.decision == "allow" else "reject"

    def _put(self, ask: Ask, wish: PermissionRequest) -> str:
        """The id of the question; none if it cannot be asked."""
        if len(self._open) >= _MOST_OPEN:
            return ""
        question, now = self._text(wish)[:LONGEST_TEXT], self._clock.now()
        try:
            found = self.queries.ask(ask, question, ("allow", "reject"), now, PERMISSION)
        except InterlockError:
            return ""
        return str(found.get("question_id", ""))

    def _text(self, wish: PermissionRequest) -> str:
        lines = [f"May it {wish.kind}: {wish.title}", wish.detail]
        lines.append(f"Not answered within {self._patience:g} seconds, it may not.")
        return "\n".join(line for line in lines if line)

    def _look_later(self) -> None:
        if self._cancel is None:
            self._cancel = self._clock.call_at(self._clock.now() + _POLL, self._look)

    def _look(self) -> None:
        self._cancel = None
        now = self._clock.now()
        for query_id, question in self._open.items():
            if question.reply.done():
                continue
            reply = self.queries.reply(query_id)
            if reply is not None:
                question.reply.set_result(reply)
            elif now >= question.until:
                question.reply.set_result(self._reply(query_id, LATE))
        if self._open:
            self._look_later()

    def _reply(self, query_id: str, by: str) -> QueryReply:
        return QueryReply(query_id, "reject", "", by, self._clock.now())

    def _close(self, reply: QueryReply) -> None:
        with suppress(InterlockError):
            put_reply(self.queries.folder, reply)
