"""Root causes, the writer's side: written once per attempt, retired, shared, handed over.

A case has at most one open root cause of its own, and then that is the one it is linked to. What
another case relies on is never taken from it: a root cause that its case gives up is archived only
if nobody else has it, else it becomes the other's.
"""

import sqlite3
from collections.abc import Iterable

import msgspec

from interlock.journal.database import is_number
from interlock.rca.knowledge.rca_case import link, read_case

BY_REVIEW = 0
"""The attempt of a root cause that no investigation made, but a review."""
_TITLE = 80
_NEW = (
    "insert into rcas (case_no, attempt, title, description, defect_type, category, component,"
    " affected_versions, evidence, convergence_score, jira_ticket_id, jira_link, status,"
    " created_at)"
    " values (?, iif(exists (select 1 from rcas where case_no = ? and attempt = ?),"
    " (select max(attempt) + 1 from rcas where case_no = ?), ?),"
    " ?, ?, ?, ?, ?, ?, ?, ?, '', '', 'open', ?) returning rca_id"
)
_REWORD = (
    "update rcas set title = ?, description = ?, defect_type = ?, category = ?, component = ?,"
    " affected_versions = ?, evidence = ?, convergence_score = ? where rca_id = ?"
)
_REOPEN = (
    "update rcas set status = 'open', resolved_at = null, verified_at = null, archived_at = null"
    " where rca_id = ?"
)
_ARCHIVE = (
    "update rcas set status = 'archived', archived_at ="
    " max(?, created_at, coalesce(resolved_at, created_at), coalesce(verified_at, created_at))"
    " where rca_id = ?"
)
_SHARING = "select case_no from rca_cases where rca_id = ? and case_no != ? order by case_no"
_SHARING_AGREED = (
    "select case_no from rca_cases where rca_id = ? and case_no != ?"
    " and status in ('reviewed', 'closed') order by case_no"
)
_SHARING_STILL_OPEN = (
    "select case_no from rca_cases where rca_id = ? and case_no != ?"
    " and status not in ('reviewed', 'closed') order by case_no"
)
_HAND_OVER = (
    "update rcas set case_no = ?, attempt ="
    " (select coalesce(max(attempt), 0) + 1 from rcas where case_no = ?) where rca_id = ?"
)


class CauseText(msgspec.Struct, frozen=True, kw_only=True):
    """What a root cause says."""

    title: str
    description: str
    defect_type: str
    category: str = "unknown"
    component: str = ""
    affected_versions: tuple[str, ...] = ()
    evidence: tuple[dict[str, str], ...] = ()
    convergence_score: float | None = None


def headline(text: str) -> str:
    """The first line of a text, short enough for a title."""
    first = next((line.strip() for line in text.splitlines() if line.strip()), "")
    return first if len(first) <= _TITLE else f"{first[: _TITLE - 1].rstrip()}…"


def write_own(
    raw: sqlite3.Connection,
    case_no: int,
    attempt: int,
    words: CauseText,
    at: float,
    *,
    followed: bool,
) -> int:
    """The case's own root cause of that attempt; it takes the place of the one it had. If it is
    `followed`, cases that shared the old one and were not reviewed with it get the new one."""
    found = _attempt(raw, case_no, attempt)
    if found is not None and shared(raw, found, case_no, agreed=followed):
        found = None
    followers = retire_own(raw, case_no, found, at, followed=followed)
    if found is None:
        which = (case_no, case_no, attempt, case_no, attempt)
        rca_id = int(raw.execute(_NEW, (*which, *_row(words), at)).fetchone()[0])
    else:
        raw.execute(_REWORD, (*_row(words), found))
        raw.execute(_REOPEN, (found,))
        rca_id = found
    bring_along(raw, followers, rca_id, at)
    return rca_id


def reword(raw: sqlite3.Connection, rca_id: int, words: CauseText) -> None:
    """Say it otherwise. One that was archived is open again: somebody stands for it."""
    raw.execute(_REWORD, (*_row(words), rca_id))
    if status_of(raw, rca_id) == "archived":
        raw.execute(_REOPEN, (rca_id,))


def read_words(raw: sqlite3.Connection, rca_id: int) -> CauseText:
    query = (
        "select title, description, defect_type, category, component, affected_versions, evidence,"
        " convergence_score from rcas where rca_id = ?"
    )
    row = raw.execute(query, (rca_id,)).fetchone()
    found = dict(zip(CauseText.__struct_fields__, row, strict=True))
    for name in ("affected_versions", "evidence"):
        found[name] = msgspec.json.decode(found[name])
    return msgspec.convert(found, CauseText)


def shared(raw: sqlite3.Connection, rca_id: int, case_no: int, *, agreed: bool = False) -> bool:
    """Another case has it; `agreed`: one that was reviewed with it."""
    query = _SHARING_AGREED if agreed else _SHARING
    return raw.execute(query, (rca_id, case_no)).fetchone() is not None


def retire_own(
    raw: sqlite3.Connection, case_no: int, keep: int | None, at: float, *, followed: bool
) -> list[int]:
    """Give up the case's own open root cause, unless it is the one to keep. If it is `followed`,
    the cases that share it and were not reviewed with it shall have its successor: they are the
    answer."""
    row = raw.execute(
        "select rca_id from rcas where case_no = ? and status = 'open' and rca_id is not ?",
        (case_no, keep),
    ).fetchone()
    if row is None:
        return []
    rca_id = int(row[0])
    query = _SHARING_AGREED if followed else _SHARING
    heir = raw.execute(query, (rca_id, case_no)).fetchone()
    if heir is None:
        raw.execute(_ARCHIVE, (at, rca_id))
    else:
        raw.execute(_HAND_OVER, (*heir, *heir, rca_id))
    if not followed:
        return []
    return [each for (each,) in raw.execute(_SHARING_STILL_OPEN, (rca_id, case_no))]


def bring_along(raw: sqlite3.Connection, followers: Iterable[int], rca_id: int, at: float) -> None:
    """Cases that shared what was given up get what took its place."""
    for case_no in followers:
        case = read_case(raw, case_no)
        link(raw, case, case.symptom_id, rca_id, at, notes="followed")
        add_versions(raw, rca_id, (case.version,))


def add_versions(raw: sqlite3.Connection, rca_id: int, labels: Iterable[str]) -> None:
    """The versions in which a root cause was seen, each once."""
    (text,) = raw.execute(
        "select affected_versions from rcas where rca_id = ?", (rca_id,)
    ).fetchone()
    known = msgspec.json.decode(text, type=list[str])
    more = sorted({*known, *labels} - {""})
    if more != known:
        new = msgspec.json.encode(more).decode()
        raw.execute("update rcas set affected_versions = ? where rca_id = ?", (new, rca_id))


def status_of(raw: sqlite3.Connection, rca_id: int) -> str | None:
    if not is_number(rca_id):
        return None
    row = raw.execute("select status from rcas where rca_id = ?", (rca_id,)).fetchone()
    return row[0] if row else None


def _attempt(raw: sqlite3.Connection, case_no: int, attempt: int) -> int | None:
    row = raw.execute(
        "select rca_id from rcas where case_no = ? and attempt = ?", (case_no, attempt)
    ).fetchone()
    return int(row[0]) if row else None


def _row(words: CauseText) -> tuple[object, ...]:
    encode = msgspec.json.encode
    return (
        *(words.title, words.description, words.defect_type, words.category, words.component),
        encode(sorted({*words.affected_versions} - {""})).decode(),
        *(encode(words.evidence).decode(), words.convergence_score),
    )
