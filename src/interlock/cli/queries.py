"""Queries at the command line: what agents at work ask a human, listed and answered."""

import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from interlock.cli.show import clock_time, document, say
from interlock.core.errors import SourceError, StateError

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from interlock.dispatch.query import Query


def waiting(connection: "Connection", path: Path) -> "list[Query]":
    """All queries about dispatches that are still open, oldest first."""
    from interlock import wiring
    from interlock.dispatch.query import open_queries
    from interlock.store.history import open_dispatch_ids

    return open_queries(wiring.queries_folder(path), open_dispatch_ids(connection))


def rows(queries: "Iterable[Query]") -> Iterator[tuple[object, ...]]:
    """Rows of the inbox."""
    for each in queries:
        choice = f" ({', '.join(each.options)})" if each.options else ""
        about = " ".join(f"{each.question}{choice}".split())
        asked = clock_time(each.asked_at)
        yield (each.query_id, each.run_id, each.case_id, each.step, asked, about[:60])


def reply(path: Path, query_id: str, decision: str, message: str, by: str, *, json: bool) -> None:
    """Answer a query; the agent that asked sees it when it asks again."""
    from interlock import wiring
    from interlock.dispatch.query import QueryReply, put_reply, reply_to
    from interlock.store.database import reading

    folder = wiring.queries_folder(path)
    with reading(path) as connection:
        found = [each for each in waiting(connection, path) if each.query_id == query_id]
    if not found:
        why = "is answered already" if reply_to(folder, query_id) else "is not open"
        raise StateError(f"question {query_id} {why}; 'interlock inbox' lists them")
    options = found[0].options
    if options and decision not in options:
        raise SourceError(f"question {query_id} takes {', '.join(options)}, not {decision!r}")
    put_reply(folder, QueryReply(query_id, decision, message, by, time.time()))
    if json:
        fields = {"question_id": query_id, "run_id": found[0].run_id, "taken_now": True}
        document(fields | {"also": []})
        return
    say(f"saved the answer to question {query_id}; the agent that asked gets it")
