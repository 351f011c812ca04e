"""The table of offers: work that agents on this machine take under a lease, and their replies.

A run offers a dispatch once it is committed; an agent takes it, and has it until the lease ends.
Every call of the agent renews the lease. Each time a dispatch is taken its fence rises and it gets
a new token: only a reply with the newest token counts, before the lease ends and only once. A reply
that does not count is kept until the run has journaled it. `OfferTable` calls the functions here
with a connection; a run that hands out work is known by the lock of its session, which ends with
its process.
"""

import asyncio
import os
import re
import secrets
from collections.abc import Callable, Collection, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from interlock.engine.case import RefusedAnswer
from interlock.journal import sqlite
from interlock.journal.address import DatabaseAddress, beside
from interlock.journal.connection import Connection, RawConnection, transaction
from interlock.journal.database import explain_errors, write_beside
from interlock.journal.server import load_driver
from interlock.system.files import make_private_folder, write_file
from interlock.system.locks import lock_owner, take_lock

T = TypeVar("T")
MAX_ID = 2**53
"""Dispatches have smaller numbers than this; agents may send others."""
LOOK_SECONDS = 0.05
"""Seconds between two looks at the table."""
_TOKEN = re.compile(r"([0-9]{1,16})\.([0-9]{1,9})\.[0-9a-f]{1,64}", re.ASCII)
_READ_VERDICTS_WITHIN = 600.0


class Work(msgspec.Struct, frozen=True):
    """A dispatch as it is offered."""

    dispatch_id: int
    run_id: int
    case_id: str
    step: str
    attempt: int
    role: str
    prompt: str
    answer_schema: dict[str, Any]
    signals: tuple[str, ...]


class Lease(msgspec.Struct, frozen=True):
    """One dispatch in the hands of one agent."""

    work: Work
    token: str
    fence: int
    ttl: float
    until: float


class Verdict(msgspec.Struct, frozen=True):
    """A run's decision on a reply."""

    accepted: bool
    open: bool = False
    """The reply is refused, but its lease goes on."""
    refusal: str = ""
    sentence: str = ""


UNSETTLED = Verdict(
    accepted=False,
    open=True,
    refusal="Unsettled",
    sentence="No coordinator was there to take the answer; nothing is lost: submit it again, under"
    " the same lease, when interlock_status says that a coordinator is back.",
)


class Submission(msgspec.Struct, frozen=True):
    """A reply as an agent hands it in."""

    dispatch_id: int
    token: str
    content: bytes
    failure: str = ""
    reason: str = ""


class StoredReply(msgspec.Struct, frozen=True):
    """A reply in the table; one that is already `refused` only has to be journaled."""

    reply_id: str
    dispatch_id: int
    content: bytes
    failure: str
    reason: str
    refused: str


class OfferStatus(msgspec.Struct, frozen=True):
    """An offer that was taken."""

    dispatch_id: int
    state: str
    overdue: bool
    """True if the step's time, which counts from the first taking, is over."""
    leased: bool


# What a run does.


def insert_offers(
    raw: RawConnection, session: str, offers: Sequence[tuple[Work, float | None]]
) -> None:
    """Offer work, each with the step's timeout. A dispatch that an earlier session of the run has
    offered keeps its lease."""
    for work, timeout in offers:
        raw.execute(
            "insert into offers (dispatch_id, session, run_id, case_id, step, role, work, timeout,"
            " state, fence, token, holder, ttl) values (?, ?, ?, ?, ?, ?, ?, ?, 'offered', 0, '',"
            " '', 0) on conflict (dispatch_id) do nothing",
            (
                work.dispatch_id,
                session,
                work.run_id,
                work.case_id,
                work.step,
                work.role,
                msgspec.json.encode(work).decode(),
                timeout,
            ),
        )
        found = raw.execute(
            "select session, run_id, case_id, step from offers where dispatch_id = ?",
            (work.dispatch_id,),
        ).fetchone()
        if found[0] == session:
            continue
        raw.execute("delete from replies where dispatch_id = ?", (work.dispatch_id,))
        if tuple(found[1:]) == (work.run_id, work.case_id, work.step):
            raw.execute(
                "update offers set session = ?, state = case when state = 'offered' then state"
                " else 'taken' end where dispatch_id = ?",
                (session, work.dispatch_id),
            )
        else:  # the number was another run's
            raw.execute("delete from offers where dispatch_id = ?", (work.dispatch_id,))
            insert_offers(raw, session, [(work, timeout)])


def forget_other_sessions(raw: RawConnection, session: str, run_id: int) -> None:
    """Remove what earlier sessions of the run have offered and this one does not."""
    raw.execute(
        "delete from replies where dispatch_id in"
        " (select dispatch_id from offers where run_id = ? and session <> ?)",
        (run_id, session),
    )
    raw.execute("delete from offers where run_id = ? and session <> ?", (run_id, session))


def settle_offer(raw: RawConnection, dispatch_id: int, reply_id: str, verdict: Verdict) -> None:
    """Withdraw an offer that is decided, and give the reply that the run has its verdict."""
    raw.execute("update replies set verdict = ? where reply_id = ?", (_encode(verdict), reply_id))
    raw.execute("delete from offers where dispatch_id = ?", (dispatch_id,))


def refuse_reply(raw: RawConnection, reply: StoredReply, verdict: Verdict, now: float) -> None:
    """Give a reply its verdict; its lease goes on."""
    raw.execute(
        "update replies set verdict = ? where reply_id = ?", (_encode(verdict), reply.reply_id)
    )
    raw.execute(
        "update offers set state = 'taken', lease_until = ? + ttl"
        " where dispatch_id = ? and state = 'replied'",
        (now, reply.dispatch_id),
    )


def fetch_replies(raw: RawConnection, session: str, now: float) -> list[StoredReply]:
    """Return the replies that wait for this session. Those that are refused are removed, and so
    are verdicts that nobody has read."""
    rows = raw.execute(
        "select reply_id, dispatch_id, content, failure, reason, refused from replies"
        " where session = ? and verdict is null order by at",
        (session,),
    ).fetchall()
    found = [StoredReply(row[0], row[1], bytes(row[2]), *row[3:]) for row in rows]
    for reply in found:
        if reply.refused:
            raw.execute("delete from replies where reply_id = ?", (reply.reply_id,))
    if found:
        raw.execute(
            "delete from replies where verdict is not null and at < ?",
            (now - _READ_VERDICTS_WITHIN,),
        )
    return found


def list_taken(raw: RawConnection, session: str, now: float) -> list[OfferStatus]:
    """Return the offers of this session that were ever taken."""
    rows = raw.execute(
        "select dispatch_id, state, timeout, first_taken_at, lease_until from offers"
        " where session = ? and first_taken_at is not null",
        (session,),
    )
    return [
        OfferStatus(
            number,
            state,
            timeout is not None and first + timeout <= now,
            state == "replied" or (state == "taken" and until > now),
        )
        for number, state, timeout, first, until in rows
    ]


def has_replies(raw: RawConnection, session: str) -> bool:
    """Return whether a reply waits for this session."""
    query = "select 1 from replies where session = ? and verdict is null limit 1"
    return raw.execute(query, (session,)).fetchone() is not None


# What an agent does. Only offers of sessions that live are seen.


def find_free(
    raw: RawConnection, sessions: Collection[str], roles: Collection[str], now: float
) -> int | None:
    """Return the oldest dispatch that anybody may take."""
    rows = raw.execute(
        "select dispatch_id, role, session from offers where state = 'offered'"
        " or (state = 'taken' and lease_until <= ?) order by dispatch_id",
        (now,),
    ).fetchall()
    free = (
        int(number)
        for number, role, session in rows
        if session in sessions and (not roles or role in roles)
    )
    return next(free, None)


def take_offer(
    raw: RawConnection, dispatch_id: int, holder: str, ttl: float, now: float
) -> Lease | None:
    """Lease a dispatch to this holder; None if somebody else was faster."""
    nonce = secrets.token_hex(8)
    row = raw.execute(
        "update offers set state = 'taken', fence = fence + 1, holder = ?, ttl = ?,"
        " lease_until = ?, first_taken_at = coalesce(first_taken_at, ?)"
        " where dispatch_id = ?"
        " and (state = 'offered' or (state = 'taken' and lease_until <= ?)) returning fence, work",
        (holder, ttl, now + ttl, now, dispatch_id, now),
    ).fetchone()
    if row is None:
        return None
    token = f"{dispatch_id}.{row[0]}.{nonce}"
    raw.execute("update offers set token = ? where dispatch_id = ?", (token, dispatch_id))
    return Lease(msgspec.json.decode(row[1], type=Work), token, row[0], ttl, now + ttl)


def list_held(
    raw: RawConnection, sessions: Collection[str], holder: str, token: str, now: float
) -> list[Lease]:
    """Return the dispatches that a holder has under a lease, or the one under the lease of that
    token."""
    rows = raw.execute(
        "select work, token, fence, ttl, lease_until, session from offers"
        " where state = 'taken' and lease_until > ? and (holder = ? or token = ?)"
        " order by dispatch_id",
        (now, holder or None, token or None),
    ).fetchall()
    return [
        Lease(msgspec.json.decode(row[0], type=Work), *row[1:5])
        for row in rows
        if row[5] in sessions
    ]


def renew_lease(raw: RawConnection, holder: str, token: str, now: float) -> None:
    """Let the lease of that token last longer; without a token, all leases of the holder."""
    raw.execute(
        "update offers set lease_until = ? + ttl where (token = ? or holder = ?)"
        " and state = 'taken' and lease_until > ?",
        (now, token or None, None if token else holder or None, now),
    )


def release_leases(raw: RawConnection, holder: str, token: str = "") -> None:
    """Give back the work of that token; without one, all that the holder has."""
    raw.execute(
        "update offers set state = 'offered', lease_until = null"
        " where (token = ? or holder = ?) and state = 'taken'",
        (token or None, None if token else holder or None),
    )


def find_problem(
    raw: RawConnection, dispatch_id: int, token: str, now: float
) -> RefusedAnswer | None:
    """Return why a reply under that token does not count."""
    row = None
    if 0 < dispatch_id < MAX_ID:
        row = raw.execute(
            "select state, fence, token, lease_until from offers where dispatch_id = ?",
            (dispatch_id,),
        ).fetchone()
    if row is None:
        return RefusedAnswer("Stale", describe_settled(dispatch_id))
    state, fence, newest, until = row
    if state == "replied":
        sentence = f"An answer to dispatch {dispatch_id} is already being processed."
        return RefusedAnswer("Stale", sentence)
    is_held = state == "taken" and until > now
    if is_held and secrets.compare_digest(token.encode(errors="replace"), newest.encode()):
        return None
    parts = _TOKEN.fullmatch(token)
    if parts is None or int(parts[1]) != dispatch_id:
        sentence = f"This is not a lease of dispatch {dispatch_id}; use its own."
        return RefusedAnswer("WrongTask", sentence)
    if int(parts[2]) > fence or (int(parts[2]) == fence and token != newest):
        return RefusedAnswer(
            "WrongTask", f"This lease of dispatch {dispatch_id} was never granted."
        )
    state = "another worker has the dispatch now" if is_held else "the dispatch waits for a worker"
    sentence = f"The lease is over and {state}: take work with interlock_next."
    return RefusedAnswer("Stale", sentence)


def describe_settled(dispatch_id: int) -> str:
    return f"Dispatch {dispatch_id} is not open: it is settled, or never was."


def submit_reply(
    raw: RawConnection, sessions: Sequence[str], sent: Submission, now: float
) -> str | RefusedAnswer | None:
    """Hand in a reply; return its id, or why it does not count, or None if nobody works on its run.

    A reply that does not count is kept for the run's journal.
    """
    problem = find_problem(raw, sent.dispatch_id, sent.token, now)
    session = sessions[0]
    if 0 < sent.dispatch_id < MAX_ID:
        query = "select session from offers where dispatch_id = ?"
        row = raw.execute(query, (sent.dispatch_id,)).fetchone()
        session = row[0] if row else session
        if session not in sessions:
            return None
    elif problem is not None:
        return problem
    reply_id = secrets.token_hex(16)
    reason = problem.sentence if problem else sent.reason
    raw.execute(
        "insert into replies (reply_id, dispatch_id, session, content, failure, reason, refused,"
        " at) values (?, ?, ?, ?, ?, ?, ?, ?)",
        (
            *(reply_id, sent.dispatch_id, session, sent.content, sent.failure, reason),
            *(problem.reason if problem else "", now),
        ),
    )
    if problem is not None:
        return problem
    raw.execute("update offers set state = 'replied' where dispatch_id = ?", (sent.dispatch_id,))
    return reply_id


def find_verdict(raw: RawConnection, reply_id: str) -> Verdict | None:
    """Return the verdict on a reply, or None while it is open."""
    query = "select verdict from replies where reply_id = ?"
    row = raw.execute(query, (reply_id,)).fetchone()
    if row is None:
        return UNSETTLED
    return None if row[0] is None else msgspec.json.decode(row[0], type=Verdict)


def withdraw_reply(raw: RawConnection, reply_id: str, now: float) -> Verdict:
    """Withdraw an undecided reply so that it can be handed in again; return its verdict if there is
    one by now."""
    verdict = find_verdict(raw, reply_id)
    if verdict is None:
        raw.execute(
            "update offers set state = 'taken', lease_until = ? + ttl where state = 'replied' and"
            " dispatch_id in (select dispatch_id from replies where reply_id = ?)",
            (now, reply_id),
        )
    raw.execute("delete from replies where reply_id = ?", (reply_id,))
    return verdict or UNSETTLED


class OfferCounts(msgspec.Struct, frozen=True):
    """How many offers there are, and how many are taken, by how many holders."""

    run_id: int | None = None
    open: int = 0
    leased: int = 0
    holders: int = 0
    free_roles: tuple[str, ...] = ()


def count_offers(raw: RawConnection, sessions: Collection[str], now: float) -> OfferCounts:
    """Return how many offers there are, and how many are taken."""
    rows = raw.execute(
        "select run_id, role, holder, state = 'replied' or (state = 'taken' and lease_until > ?),"
        " session from offers order by dispatch_id",
        (now,),
    ).fetchall()
    rows = [row for row in rows if row[4] in sessions]
    held = [row[2] for row in rows if row[3]]
    free = sorted({row[1] for row in rows if not row[3]})
    run_id = rows[0][0] if rows else None
    return OfferCounts(run_id, len(rows), len(held), len(set(held)), tuple(free))


def find_prompt(
    raw: RawConnection, sessions: Collection[str], dispatch_id: int
) -> tuple[int, str] | None:
    """Return the run and the prompt of an offer."""
    query = "select work, session from offers where dispatch_id = ?"
    row = raw.execute(query, (dispatch_id,)).fetchone()
    if row is None or row[1] not in sessions:
        return None
    work = msgspec.json.decode(row[0], type=Work)
    return work.run_id, work.prompt


def _encode(verdict: Verdict) -> str:
    return msgspec.json.encode(verdict).decode()


# Who hands out work, and the connection.


class OfferSession:
    """A run that hands out work: its lock tells agents that it lives, and its briefing lies beside
    the lock."""

    def __init__(self, db: DatabaseAddress) -> None:
        self.name = secrets.token_hex(8)
        self._folder = pull_folder(db)
        with write_beside(db):
            pass  # the tables are made if they are not there
        make_private_folder(self._folder)
        for path in self._folder.glob("*.lock"):
            if lock_owner(path) is None:
                path.unlink(missing_ok=True)
                path.with_suffix(".md").unlink(missing_ok=True)
        self._lock = take_lock(self._path(".lock"), wait=1.0)

    def write_briefing(self, text: str) -> None:
        with suppress(OSError):
            write_file(self._path(".md"), text.encode(errors="replace"), sync=False)

    def close(self) -> None:
        self._path(".md").unlink(missing_ok=True)
        self._path(".lock").unlink(missing_ok=True)
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    def _path(self, suffix: str) -> Path:
        return self._folder / f"{self.name}{suffix}"


def list_sessions(db: DatabaseAddress) -> list[str]:
    """Return the sessions that hand out work now."""
    paths = sorted(pull_folder(db).glob("*.lock"))
    return [path.stem for path in paths if lock_owner(path) is not None]


def read_briefing(db: DatabaseAddress, sessions: Collection[str]) -> str | None:
    """Return what agents should know of the work that these sessions hand out."""
    for session in sessions:
        with suppress(OSError):
            return (pull_folder(db) / f"{session}.md").read_text(encoding="utf-8")
    return None


def pull_folder(db: DatabaseAddress) -> Path:
    """Return where runs that hand out work leave their locks."""
    return beside(db, "pull")


class OfferTable:
    """Calls functions with a connection, one after the other, in a thread of its own."""

    def __init__(self, db: DatabaseAddress) -> None:
        self.db = db
        self._executor: ThreadPoolExecutor | None = None
        self._opened = ExitStack()
        self._connection: Connection | None = None

    async def read(self, do: Callable[..., T], *arguments: Any) -> T:
        """Return what the function returns."""
        return await self._run(self._read, do, arguments)

    async def write(self, do: Callable[..., T], *arguments: Any) -> T:
        """Return what the function returns, once all that it wrote is committed."""
        return await self._run(self._write, do, arguments)

    async def close(self) -> None:
        if self._executor is not None:
            executor, self._executor = self._executor, None
            executor.submit(self._disconnect)
            await asyncio.get_running_loop().run_in_executor(None, executor.shutdown)

    async def _run(self, call: Callable[..., T], *arguments: Any) -> T:
        if self._executor is None:
            self._executor = ThreadPoolExecutor(1, thread_name_prefix="interlock-offers")
        return await asyncio.get_running_loop().run_in_executor(self._executor, call, *arguments)

    def _read(self, do: Callable[..., T], arguments: Sequence[Any]) -> T:
        with explain_errors(self.db):
            return self._use(lambda connection: do(connection.raw, *arguments))

    def _write(self, do: Callable[..., T], arguments: Sequence[Any]) -> T:
        def write(connection: Connection) -> T:
            with transaction(connection) as raw:
                return do(raw, *arguments)

        with explain_errors(self.db):
            return self._use(write)

    def _use(self, do: Callable[[Connection], T]) -> T:
        """Use the connection; one that fails is made anew for the next call."""
        if self._connection is None:
            self._connection = self._connect()
        try:
            return do(self._connection)
        except BaseException:
            self._disconnect()
            raise

    def _connect(self) -> Connection:
        if isinstance(self.db, Path):
            connection = self._opened.enter_context(sqlite.connect(self.db, "rw"))
            # An offer that a power cut takes away is made again when the run goes on.
            connection.raw.execute("pragma synchronous=normal")
            return connection
        return self._opened.enter_context(load_driver().connect(self.db, "rw"))

    def _disconnect(self) -> None:
        self._connection = None
        self._opened.close()
