"""Queries: an agent's questions to people while it works on a dispatch, and their replies.

A query is two messages in a mailbox, each written whole and never changed, so it can be answered
even while nothing runs. `QueryBroker` notifies people at once and checks who answers: a reply of a
person who may not answer is removed and journaled. `PermissionBroker` waits for the answer to a
request for permission: only the word `allow` allows, and silence is a no.
"""

import asyncio
import re
from collections.abc import Callable, Collection
from contextlib import suppress
from typing import Annotated, Final, Literal, TypeVar

import msgspec
from msgspec import UNSET, Meta, UnsetType

from interlock.carriers.contract import Ask, Reply, Session
from interlock.carriers.human import EVERYBODY, AnswerPolicy
from interlock.journal.events import Notification
from interlock.journal.mailbox import Mailbox
from interlock.system.clock import Clock
from interlock.system.errors import InterlockError
from interlock.system.text import format_line

MAX_QUERIES: Final = 20
MAX_QUESTION: Final = 8_000
MAX_OPTIONS: Final = 12
_MAX_BODY: Final = 256 * 1024
_T = TypeVar("_T")
_QUERY_ID: Final = re.compile(r"([1-9][0-9]{0,15})\.([1-9][0-9]{0,2})", re.ASCII)


QUERY: Final = "query"
PERMISSION: Final = "permission"


class AgentQuery(msgspec.Struct, frozen=True):
    """A question of the agent that works on a dispatch."""

    query_id: str
    dispatch_id: int
    run_id: int
    case_id: str
    step: str
    role: str
    question: str
    options: tuple[str, ...]
    asked_at: float
    kind: str = QUERY
    """The kind of query for the policy: a question, or a request for permission."""


class QueryStatus(msgspec.Struct, frozen=True, kw_only=True):
    """The state of a query, as the agent sees it."""

    asked: bool
    answered: bool = False
    question_id: Annotated[
        str | UnsetType, Meta(description="Give it to ask again for the answer.")
    ] = UNSET
    decision: str | UnsetType = UNSET
    comment: str | UnsetType = UNSET
    by: str | UnsetType = UNSET
    sentence: str | UnsetType = UNSET
    """Why the query could not be asked, or is not known."""


class QueryReply(msgspec.Struct, frozen=True):
    """A person's answer."""

    query_id: str
    decision: str
    comment: str
    by: str
    at: float


def is_query_id(word: str) -> bool:
    """Return whether this names a query, such as 12.1: the first about dispatch 12."""
    return _QUERY_ID.fullmatch(word) is not None


def check_question(question: str, options: Collection[str]) -> str:
    """Return why this cannot be asked; empty if it can."""
    if not question.strip():
        return "Ask something: the question is empty."
    if len(question) > MAX_QUESTION:
        return f"A question may have at most {MAX_QUESTION:,} characters."
    if len(options) > MAX_OPTIONS or any(not 0 < len(each) <= 80 for each in options):
        return f"Give at most {MAX_OPTIONS} options of 1 to 80 characters."
    return ""


def next_query_id(mail: Mailbox, dispatch_id: int) -> str:
    """Return the id for the next query about a dispatch; empty if it has asked too often."""
    names = (each.name for each in mail.list_names())
    asked = len([name for name in names if is_query_id(name) and _about(name) == dispatch_id])
    return f"{dispatch_id}.{asked + 1}" if asked < MAX_QUERIES else ""


def write_query(mail: Mailbox, query: AgentQuery) -> None:
    _write_record(mail, query.query_id, query, query.run_id)


def write_reply(mail: Mailbox, reply: QueryReply) -> bool:
    """Answer a query; return False if it is already answered, because the first answer counts."""
    return _write_record(mail, _name_reply(reply.query_id), reply)


def _name_reply(query_id: str) -> str:
    return f"{query_id}.reply"


def _about(query_id: str) -> int:
    """Return the dispatch that a query is about."""
    return int(query_id.partition(".")[0])


def find_query(mail: Mailbox, query_id: str) -> AgentQuery | None:
    return _read_record(mail, query_id, AgentQuery) if is_query_id(query_id) else None


def find_reply(mail: Mailbox, query_id: str) -> QueryReply | None:
    name = _name_reply(query_id)
    return _read_record(mail, name, QueryReply) if is_query_id(query_id) else None


def list_open_queries(mail: Mailbox, dispatches: Collection[int]) -> list[AgentQuery]:
    """Return the open queries about these dispatches, oldest first."""
    names = {each.name for each in mail.list_names()}
    open_ids = [
        name
        for name in names
        if is_query_id(name) and _about(name) in dispatches and not find_reply(mail, name)
    ]
    waiting = [each for each in (find_query(mail, name) for name in open_ids) if each]
    return sorted(waiting, key=lambda each: (each.asked_at, each.query_id))


def _write_record(
    mail: Mailbox, name: str, record: msgspec.Struct, run_id: int | None = None
) -> bool:
    """Return whether the record was written; one that exists is never changed."""
    return mail.put(name, msgspec.json.encode(record), run_id)


def _read_record(mail: Mailbox, name: str, kind: type[_T]) -> _T | None:
    found = mail.find(name, _MAX_BODY)
    if found is None:
        return None
    try:
        return msgspec.json.decode(found.body, type=kind)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None


_MAX_SHOWN = 80
NO_SESSION: Final = Session(lambda _reply: None)


class QueryBroker:
    """The queries of all dispatches of one carrier."""

    def __init__(
        self, mail: Mailbox, policy: AnswerPolicy = EVERYBODY, session: Session = NO_SESSION
    ) -> None:
        self.mail = mail
        self._policy = policy
        self._session = session

    def open_for(self, session: Session) -> "QueryBroker":
        """Return the broker of a run, which notifies its people and journals what is refused."""
        return QueryBroker(self.mail, self._policy, session)

    def ask(
        self, ask: Ask, question: str, options: tuple[str, ...], at: float, kind: str = QUERY
    ) -> QueryStatus:
        """Ask people, and return the query's id or why it cannot be asked."""
        query_id = next_query_id(self.mail, ask.dispatch_id)
        problem = check_question(question, options)
        if not problem and not query_id:
            problem = f"At most {MAX_QUERIES} questions can be asked about a dispatch."
        if problem:
            return QueryStatus(asked=False, sentence=problem)
        query = AgentQuery(
            query_id,
            ask.dispatch_id,
            ask.run_id,
            ask.case_id,
            ask.step,
            ask.role,
            question,
            options,
            at,
            kind,
        )
        write_query(self.mail, query)
        self._session.notify(_build_notification(query))
        return QueryStatus(asked=True, question_id=query_id)

    def poll(self, query_id: str) -> QueryStatus:
        """Return the state of a query."""
        if find_query(self.mail, query_id) is None:
            return QueryStatus(asked=False, sentence=f"There is no question {query_id}.")
        reply = self.find_reply(query_id)
        if reply is None:
            return QueryStatus(asked=True, question_id=query_id)
        return QueryStatus(
            asked=True,
            answered=True,
            question_id=query_id,
            decision=reply.decision,
            comment=reply.comment,
            by=reply.by,
        )

    def find_reply(self, query_id: str) -> QueryReply | None:
        """Return the reply, if it is from a person who may answer."""
        query = find_query(self.mail, query_id)
        found = find_reply(self.mail, query_id)
        if query is None or found is None or found.query_id != query_id:
            return None
        name = _name_reply(query_id)
        message = self.mail.find(name, 0)
        user = message.written_by if message else ""
        problem = self._policy.find_problem(query.kind, found.by, user)
        if not problem:
            return found
        self.mail.remove(name)
        reason = f"{problem[:1].upper()}{problem[1:]}."
        content = msgspec.json.encode(found)
        self._session.deliver(Reply(query.dispatch_id, content, refused="WrongRole", reason=reason))
        return None


def _build_notification(query: AgentQuery) -> Notification:
    choice = "|".join(query.options) or "ANSWER"
    short = format_line(query.question, _MAX_SHOWN)
    text = f"{query.case_id} at {query.step}: {short} 'interlock answer {query.query_id} {choice}'"
    subject = f"{query.step}/{query.query_id}"
    return Notification(
        "query", query.run_id, query.asked_at, text, subject, (query.case_id,), (query.query_id,)
    )


PermissionDecision = Literal["allow", "reject"]
TIMED_OUT_BY = "nobody in time"
DISPATCH_ENDED_BY = "the end of its dispatch"
_POLL = 0.25
_MAX_OPEN = 100


class PermissionRequest(msgspec.Struct, frozen=True):
    """A request for permission: the kind of tool, its own words for it, and the details."""

    kind: str
    title: str
    detail: str = ""


class _OpenQuestion(msgspec.Struct):
    until: float
    reply: "asyncio.Future[QueryReply]"


class PermissionBroker:
    """The permission questions of all dispatches of this process."""

    def __init__(self, queries: QueryBroker, clock: Clock, timeout: float) -> None:
        self.queries = queries
        self._clock = clock
        self._timeout = timeout
        self._open: dict[str, _OpenQuestion] = {}
        self._cancel: Callable[[], None] | None = None

    def start(self, session: Session) -> None:
        """Ask for this run from now on."""
        self.queries = self.queries.open_for(session)

    def close_earlier(self, dispatch_id: int) -> None:
        """Close the questions of an earlier agent about the dispatch."""
        for left in list_open_queries(self.queries.mail, {dispatch_id}):
            self._write_reply(self._build_rejection(left.query_id, DISPATCH_ENDED_BY))

    async def ask(self, ask: Ask, request: PermissionRequest) -> PermissionDecision:
        """Return a person's decision, or a no; if the dispatch is cancelled, close the question."""
        query_id = self._write_question(ask, request)
        if not query_id:
            return "reject"
        future: asyncio.Future[QueryReply] = asyncio.get_running_loop().create_future()
        self._open[query_id] = _OpenQuestion(self._clock.now() + self._timeout, future)
        if self._cancel is None:
            self._schedule_check()
        reply = self._build_rejection(query_id, DISPATCH_ENDED_BY)
        try:
            reply = await future
        finally:
            del self._open[query_id]
            if find_reply(self.queries.mail, query_id) is None:
                self._write_reply(reply)
            if not self._open and self._cancel is not None:
                self._cancel()
                self._cancel = None
        return "allow" if reply.decision == "allow" else "reject"

    def _write_question(self, ask: Ask, request: PermissionRequest) -> str:
        """Return the id of the question; empty if it cannot be asked."""
        if len(self._open) >= _MAX_OPEN:
            return ""
        question, now = self._format_question(request)[:MAX_QUESTION], self._clock.now()
        try:
            found = self.queries.ask(ask, question, ("allow", "reject"), now, PERMISSION)
        except InterlockError:
            return ""
        return "" if found.question_id is UNSET else found.question_id

    def _format_question(self, request: PermissionRequest) -> str:
        lines = [f"May it {request.kind}: {request.title}", request.detail]
        lines.append(f"Not answered within {self._timeout:g} seconds, it is denied.")
        return "\n".join(line for line in lines if line)

    def _schedule_check(self) -> None:
        self._cancel = self._clock.call_at(self._clock.now() + _POLL, self._check_replies)

    def _check_replies(self) -> None:
        self._schedule_check()
        now = self._clock.now()
        replied = {each.name for each in self.queries.mail.list_names()}
        for query_id, question in self._open.items():
            if question.reply.done():
                continue
            is_replied = _name_reply(query_id) in replied
            reply = self.queries.find_reply(query_id) if is_replied else None
            if reply is not None:
                question.reply.set_result(reply)
            elif now >= question.until:
                question.reply.set_result(self._build_rejection(query_id, TIMED_OUT_BY))

    def _build_rejection(self, query_id: str, by: str) -> QueryReply:
        return QueryReply(query_id, "reject", "", by, self._clock.now())

    def _write_reply(self, reply: QueryReply) -> None:
        with suppress(InterlockError):
            write_reply(self.queries.mail, reply)
