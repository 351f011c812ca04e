"""Queries: what an agent asks a human while it works on a dispatch, and the human's reply.

Two files per query in a folder beside the database, each written whole and never changed, so that
one can be asked while the run works and answered also while nothing runs. `QueryBroker` tells
people at once and checks who answers: a reply of somebody who may not give it is taken away and
told to the journal. `PermissionBroker` waits for the answer to "may I?": only the very word
`allow` allows, and no answer in time is a no.
"""

import asyncio
import re
from collections.abc import Callable, Collection
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Final, Literal, TypeVar

import msgspec
from msgspec import UNSET, Meta, UnsetType

from interlock.agents.carrier import Ask, Clock, Reply
from interlock.agents.human import EVERYBODY, AnswerPolicy, owner_of
from interlock.journal.events import Notification, Tell, silence
from interlock.system.errors import InterlockError, SourceError, StateError
from interlock.system.files import UnreadableFile, read_file, write_file

MOST_QUERIES: Final = 20
LONGEST_TEXT: Final = 8_000
MOST_OPTIONS: Final = 12
_LARGEST: Final = 256 * 1024
_T = TypeVar("_T")
_ID: Final = re.compile(r"([1-9][0-9]{0,15})\.([1-9][0-9]{0,2})", re.ASCII)


QUERY: Final = "query"
PERMISSION: Final = "permission"


class AgentQuery(msgspec.Struct, frozen=True):
    """A question of the one who works on a dispatch."""

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
    """What it is to the policy: a question, or the wish for leave to do something."""


class QueryStatus(msgspec.Struct, frozen=True, kw_only=True):
    """How a query stands, as its asker is told."""

    asked: bool
    answered: bool = False
    question_id: Annotated[
        str | UnsetType, Meta(description="Give it to ask again for the answer.")
    ] = UNSET
    decision: str | UnsetType = UNSET
    comment: str | UnsetType = UNSET
    by: str | UnsetType = UNSET
    sentence: str | UnsetType = UNSET
    """Why it could not be asked, or is not known."""


class QueryReply(msgspec.Struct, frozen=True):
    """What a human said to it."""

    query_id: str
    decision: str
    comment: str
    by: str
    at: float


def is_query(word: str) -> bool:
    """Whether this names a query, such as 12.1: the first about dispatch 12."""
    return _ID.fullmatch(word) is not None


def unfit(question: str, options: Collection[str]) -> str:
    """Why this cannot be asked; nothing if it can."""
    if not question.strip():
        return "Ask something: the question is empty."
    if len(question) > LONGEST_TEXT:
        return f"A question may have at most {LONGEST_TEXT:,} characters."
    if len(options) > MOST_OPTIONS or any(not 0 < len(each) <= 80 for each in options):
        return f"Give at most {MOST_OPTIONS} options of 1 to 80 characters."
    return ""


def ask_question(
    folder: Path,
    about: Ask,
    question: str,
    options: tuple[str, ...],
    at: float,
    kind: str = QUERY,
) -> QueryStatus:
    """Ask it, and tell the one who asks under which id; or why it cannot be asked."""
    query_id = next_id(folder, about.dispatch_id)
    problem = unfit(question, options)
    if not problem and not query_id:
        problem = f"At most {MOST_QUERIES} questions can be asked about a dispatch."
    if problem:
        return QueryStatus(asked=False, sentence=problem)
    query = AgentQuery(
        query_id,
        about.dispatch_id,
        about.run_id,
        about.case_id,
        about.step,
        about.role,
        question,
        options,
        at,
        kind,
    )
    put_query(folder, query)
    return QueryStatus(asked=True, question_id=query_id)


def next_id(folder: Path, dispatch_id: int) -> str:
    """The id for the next query about a dispatch; none if it has asked too often."""
    asked = len([path for path in folder.glob(f"{dispatch_id}.*.json") if is_query(path.stem)])
    return f"{dispatch_id}.{asked + 1}" if asked < MOST_QUERIES else ""


def put_query(folder: Path, query: AgentQuery) -> None:
    _put(folder / f"{query.query_id}.json", query)


def put_reply(folder: Path, reply: QueryReply) -> None:
    """Answer once: a second answer is refused."""
    if reply_to(folder, reply.query_id) is not None:
        raise StateError(f"question {reply.query_id} is already answered")
    _put(reply_path(folder, reply.query_id), reply)


def reply_path(folder: Path, query_id: str) -> Path:
    return folder / f"{query_id}.reply.json"


def find_query(folder: Path, query_id: str) -> AgentQuery | None:
    return _get(folder / f"{query_id}.json", AgentQuery) if is_query(query_id) else None


def reply_to(folder: Path, query_id: str) -> QueryReply | None:
    return _get(reply_path(folder, query_id), QueryReply) if is_query(query_id) else None


def open_queries(folder: Path, dispatches: Collection[int]) -> list[AgentQuery]:
    """Those about these dispatches that nobody has answered, oldest first."""
    ids = [path.stem for path in folder.glob("*.json") if is_query(path.stem)]
    found = [find_query(folder, each) for each in ids if int(each.partition(".")[0]) in dispatches]
    waiting = [each for each in found if each and reply_to(folder, each.query_id) is None]
    return sorted(waiting, key=lambda each: (each.asked_at, each.query_id))


def _put(path: Path, record: msgspec.Struct) -> None:
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        write_file(path, msgspec.json.encode(record))
    except OSError as error:
        raise SourceError(f"{path} cannot be written: {error.strerror}") from None


def _get(path: Path, kind: type[_T]) -> _T | None:
    raw = read_file(path, _LARGEST)
    if isinstance(raw, UnreadableFile):
        return None
    try:
        return msgspec.json.decode(raw, type=kind)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None


_SHOWN = 80


def _nowhere(_reply: Reply) -> None:
    """Nobody keeps a journal here."""


class QueryBroker:
    """Queries of all dispatches of one carrier. `tell` and `refuse` are put in before it works."""

    def __init__(self, folder: Path, policy: AnswerPolicy = EVERYBODY) -> None:
        self.folder = folder
        self.tell: Tell = silence
        self.refuse: Callable[[Reply], None] = _nowhere
        self._policy = policy

    def ask(
        self, about: Ask, question: str, options: tuple[str, ...], at: float, kind: str = QUERY
    ) -> QueryStatus:
        """Ask it: the id it has, or why it cannot be asked."""
        found = ask_question(self.folder, about, question, options, at, kind)
        if found.question_id is not UNSET:
            asked = find_query(self.folder, found.question_id)
            if asked is not None:
                self.tell(_notice(asked))
        return found

    def poll(self, query_id: str) -> QueryStatus:
        """How a query stands."""
        if find_query(self.folder, query_id) is None:
            return QueryStatus(asked=False, sentence=f"There is no question {query_id}.")
        reply = self.reply(query_id)
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

    def reply(self, query_id: str) -> QueryReply | None:
        """What somebody said to it who may."""
        asked = find_query(self.folder, query_id)
        found = reply_to(self.folder, query_id)
        if asked is None or found is None or found.query_id != query_id:
            return None
        path = reply_path(self.folder, query_id)
        problem = self._policy.problem(asked.kind, found.by, owner_of(path))
        if not problem:
            return found
        path.unlink(missing_ok=True)
        reason = f"{problem[:1].upper()}{problem[1:]}."
        content = msgspec.json.encode(found)
        self.refuse(Reply(asked.dispatch_id, content, refused="WrongRole", reason=reason))
        return None


def _notice(asked: AgentQuery) -> Notification:
    words = " ".join(asked.question.split())
    short = words if len(words) <= _SHOWN else f"{words[: _SHOWN - 1]}…"
    choice = "|".join(asked.options) or "ANSWER"
    text = f"{asked.case_id} at {asked.step}: {short} 'interlock answer {asked.query_id} {choice}'"
    about = f"{asked.step}/{asked.query_id}"
    return Notification(
        "query", asked.run_id, asked.asked_at, text, about, (asked.case_id,), (asked.query_id,)
    )


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
        return "" if found.question_id is UNSET else found.question_id

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
