"""Queries: what an agent asks a human while it works on a dispatch, and the human's reply.

Files in a folder beside the database, two per query, each written whole and never changed: asked
while the run works, answered also while nothing runs. Knows nothing of gates, which are steps.
"""

import os
import re
from collections.abc import Collection
from pathlib import Path
from typing import Any, Final, TypeVar

import msgspec

from interlock.agents.carrier import Ask
from interlock.system.errors import SourceError, StateError

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
        return f"A question has at most {LONGEST_TEXT:,} characters."
    if len(options) > MOST_OPTIONS or any(not 0 < len(each) <= 80 for each in options):
        return f"Give at most {MOST_OPTIONS} options of 1 to 80 characters."
    return ""


def asked(
    folder: Path,
    about: Ask,
    question: str,
    options: tuple[str, ...],
    at: float,
    kind: str = QUERY,
) -> dict[str, Any]:
    """Ask it, and tell the one who asks under which id; or why it cannot be asked."""
    query_id = next_id(folder, about.dispatch_id)
    problem = unfit(question, options)
    if not problem and not query_id:
        problem = f"At most {MOST_QUERIES} questions can be asked about a dispatch."
    if problem:
        return {"asked": False, "answered": False, "sentence": problem}
    where = (about.dispatch_id, about.run_id, about.case_id, about.step, about.role)
    put_query(folder, AgentQuery(query_id, *where, question, options, at, kind))
    return {"asked": True, "answered": False, "question_id": query_id}


def polled(folder: Path, query_id: str, reply: QueryReply | None) -> dict[str, Any]:
    """How a query stands with this reply, as the one who asked it is told."""
    if find_query(folder, query_id) is None:
        return {"asked": False, "answered": False, "sentence": f"There is no question {query_id}."}
    found = {"asked": True, "answered": reply is not None, "question_id": query_id}
    if reply is not None:
        found |= {"decision": reply.decision, "comment": reply.comment, "by": reply.by}
    return found


def next_id(folder: Path, dispatch_id: int) -> str:
    """The id for the next query about a dispatch; none if it has asked too often."""
    asked = len([path for path in folder.glob(f"{dispatch_id}.*.json") if is_query(path.stem)])
    return f"{dispatch_id}.{asked + 1}" if asked < MOST_QUERIES else ""


def put_query(folder: Path, query: AgentQuery) -> None:
    _put(folder / f"{query.query_id}.json", query)


def put_reply(folder: Path, reply: QueryReply) -> None:
    """Answer once: a second answer is refused."""
    if reply_to(folder, reply.query_id) is not None:
        raise StateError(f"question {reply.query_id} is answered already")
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
    fresh = path.with_name(f".{path.name}.{os.getpid()}.new")
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        fresh.touch(mode=0o600)
        with fresh.open("wb") as file:
            file.write(msgspec.json.encode(record))
            file.flush()
            os.fsync(file.fileno())
        fresh.rename(path)
    except OSError as error:
        raise SourceError(f"{path} cannot be written: {error.strerror}") from None


def _get(path: Path, kind: type[_T]) -> _T | None:
    try:
        with path.open("rb") as file:
            return msgspec.json.decode(file.read(_LARGEST), type=kind)
    except (OSError, msgspec.DecodeError, UnicodeDecodeError):
        return None
