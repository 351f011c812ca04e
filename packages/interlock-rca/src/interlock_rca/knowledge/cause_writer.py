"""Write the rows of effects: an RCA case, its root cause, its symptom, and their links.

A case's symptom and root cause are linked to each other. A case has at most one open root cause of
its own, and is then linked to it. A root cause that another case relies on is never taken from it:
when its case gives it up, it is archived only if nobody else has it, else it becomes the other's. A
symptom counts each case once. A symptom that was dormant or resolved, or whose causes are all
fixed, is a regression when seen again.
"""

from collections.abc import Iterable

import msgspec

from interlock.journal.connection import RawConnection, is_row_id
from interlock.system.errors import StoreError
from interlock.system.text import shorten

_CASE = (
    "select r.case_no, c.suite_id, r.status, r.symptom_id, r.rca_id, a.case_no, r.name,"
    " r.error_message, r.error_pattern, r.test_name_pattern, r.features, r.fingerprint, r.bands,"
    " v.label from rca_cases r join launches l on l.launch_id = r.launch_id"
    " join circuits c on c.circuit_id = l.circuit_id"
    " join versions v on v.version_id = c.version_id"
    " left join rcas a on a.rca_id = r.rca_id where r.case_no = ?"
)
_LINK = (
    "insert into symptom_rca (symptom_id, rca_id, case_no, confidence, notes, linked_at)"
    " values (?, ?, ?, ?, ?, ?) on conflict (symptom_id, rca_id) do update set"
    " confidence = case when symptom_rca.confidence > excluded.confidence"
    " then symptom_rca.confidence else coalesce(excluded.confidence, symptom_rca.confidence) end"
)
_UNLINK = (
    "delete from symptom_rca where symptom_id = ? and rca_id = ? and case_no = ? and not exists"
    " (select 1 from rca_cases c where c.symptom_id = symptom_rca.symptom_id"
    " and c.rca_id = symptom_rca.rca_id)"
)


class RcaCase(msgspec.Struct, frozen=True):
    """The facts about a case that effects need."""

    case_no: int
    suite_id: int
    status: str
    symptom_id: int | None
    rca_id: int | None
    owner_no: int | None
    """The case that owns its root cause."""
    name: str
    error_message: str
    error_pattern: str
    test_name_pattern: str
    features: str
    fingerprint: str
    bands: str
    version: str

    @property
    def owns_rca(self) -> bool:
        """Return True if its root cause is its own, not shared from another case."""
        return self.owner_no == self.case_no


def read_case(raw: RawConnection, case_no: int) -> RcaCase:
    row = raw.execute(_CASE, (case_no,)).fetchone()
    if row is None:
        raise StoreError(
            f"case number {case_no} is not a failed test: only an analysis has effects"
        )
    return RcaCase(*row)


def link_case(
    raw: RawConnection,
    case: RcaCase,
    symptom_id: int | None,
    rca_id: int | None,
    at: float,
    *,
    confidence: float | None = None,
    notes: str = "",
) -> None:
    """Give a case that symptom and root cause, and link the two. A link that only this case
    supported is removed, so that a withdrawn finding is not recalled again."""
    if symptom_id is not None and rca_id is not None:
        raw.execute(_LINK, (symptom_id, rca_id, case.case_no, confidence, notes, at))
    raw.execute(
        "update rca_cases set symptom_id = ?, rca_id = ?, updated_at = ? where case_no = ?",
        (symptom_id, rca_id, at, case.case_no),
    )
    if not case.owns_rca or case.symptom_id != symptom_id:
        raw.execute(_UNLINK, (case.symptom_id, case.rca_id, case.case_no))


def set_status(raw: RawConnection, case: RcaCase, status: str, at: float) -> None:
    """Set the case's status. Reopening a case reopens its suite."""
    raw.execute(
        "update rca_cases set status = ?, updated_at = ? where case_no = ?",
        (status, at, case.case_no),
    )
    if case.status == "closed" != status:
        raw.execute(
            "update suites set status = 'open', closed_at = null where suite_id = ?",
            (case.suite_id,),
        )


def set_decision(raw: RawConnection, case_no: int, decision: str, by: str) -> None:
    raw.execute(
        "update rca_cases set decision = ?, reviewed_by = ? where case_no = ?",
        (decision, by, case_no),
    )


def set_recalled(raw: RawConnection, case_no: int, *, recalled: bool) -> None:
    raw.execute("update rca_cases set recalled = ? where case_no = ?", (int(recalled), case_no))


def set_regression(raw: RawConnection, case_no: int, *, regression: bool) -> None:
    raw.execute(
        "update rca_cases set is_regression = ? where case_no = ?", (int(regression), case_no)
    )


def add_note(raw: RawConnection, case_no: int, note: str) -> None:
    query = "select notes from rca_cases where case_no = ?"
    notes = msgspec.json.decode(raw.execute(query, (case_no,)).fetchone()[0], type=list[str])
    text = msgspec.json.encode([*notes, note]).decode()
    raw.execute("update rca_cases set notes = ? where case_no = ?", (text, case_no))


BY_REVIEW = 0
"""The attempt number of a root cause made by a review."""
_TITLE = 80
_NEW_CAUSE = (
    "insert into rcas (case_no, attempt, title, description, defect_type, category, component,"
    " affected_versions, evidence, convergence_score, jira_ticket_id, jira_link, status,"
    " created_at)"
    " values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, '', '', 'open', ?) returning rca_id"
)
_REWORD = (
    "update rcas set title = ?, description = ?, defect_type = ?, category = ?, component = ?,"
    " affected_versions = ?, evidence = ?, convergence_score = ? where rca_id = ?"
)
_DATES = ("resolved_at", "verified_at", "archived_at")
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
    """The text of a root cause."""

    title: str
    description: str
    defect_type: str
    category: str = "unknown"
    component: str = ""
    affected_versions: tuple[str, ...] = ()
    evidence: tuple[dict[str, str], ...] = ()
    convergence_score: float | None = None


def make_headline(text: str) -> str:
    """Return the first line of a text, cut to a title."""
    first = next((line.strip() for line in text.splitlines() if line.strip()), "")
    return shorten(first, _TITLE)


def write_own_cause(
    raw: RawConnection,
    case_no: int,
    attempt: int,
    words: CauseText,
    at: float,
    *,
    followed: bool,
) -> int:
    """Write the case's own root cause of that attempt in place of its earlier one. If `followed`,
    cases that shared the old one, and were not reviewed with it, get the new one."""
    found = _find_attempt(raw, case_no, attempt)
    if found is not None and is_shared(raw, found, case_no, agreed=followed):
        found = None
    followers = retire_own_cause(raw, case_no, found, at, followed=followed)
    if found is None:
        if _find_attempt(raw, case_no, attempt) is not None:
            query = "select max(attempt) + 1 from rcas where case_no = ?"
            (attempt,) = raw.execute(query, (case_no,)).fetchone()
        row = (case_no, attempt, *_build_row(words), at)
        rca_id = int(raw.execute(_NEW_CAUSE, row).fetchone()[0])
    else:
        raw.execute(_REWORD, (*_build_row(words), found))
        change_status(raw, found, "open", at)
        rca_id = found
    reassign_cause(raw, followers, rca_id, at)
    return rca_id


def edit_cause(raw: RawConnection, rca_id: int, words: CauseText, at: float) -> None:
    """Change a root cause's text. An archived one reopens, because somebody vouches for it."""
    raw.execute(_REWORD, (*_build_row(words), rca_id))
    if read_status(raw, rca_id) == "archived":
        change_status(raw, rca_id, "open", at)


def change_status(raw: RawConnection, rca_id: int, status: str, at: float) -> None:
    """Set the status with its date, never before earlier dates; reopening clears the dates."""
    query = "select created_at, resolved_at, verified_at, archived_at from rcas where rca_id = ?"
    created, *dates = raw.execute(query, (rca_id,)).fetchone()
    if status == "open":
        dates = [None, None, None]
    else:
        place = _DATES.index(f"{status}_at")
        dates[place] = max(at, created, *(each for each in dates[:place] if each is not None))
    raw.execute(
        "update rcas set status = ?, resolved_at = ?, verified_at = ?, archived_at = ?"
        " where rca_id = ?",
        (status, *dates, rca_id),
    )


def read_cause_text(raw: RawConnection, rca_id: int) -> CauseText:
    query = (
        "select title, description, defect_type, category, component, affected_versions, evidence,"
        " convergence_score from rcas where rca_id = ?"
    )
    row = raw.execute(query, (rca_id,)).fetchone()
    found = dict(zip(CauseText.__struct_fields__, row, strict=True))
    for name in ("affected_versions", "evidence"):
        found[name] = msgspec.json.decode(found[name])
    return msgspec.convert(found, CauseText)


def is_shared(raw: RawConnection, rca_id: int, case_no: int, *, agreed: bool = False) -> bool:
    """Return True if another case has it; with `agreed`, one that was reviewed with it."""
    query = _SHARING_AGREED if agreed else _SHARING
    return raw.execute(query, (rca_id, case_no)).fetchone() is not None


def retire_own_cause(
    raw: RawConnection, case_no: int, keep: int | None, at: float, *, followed: bool
) -> list[int]:
    """Give up the case's own open root cause unless it is `keep`. If `followed`, return the cases
    that share it and were not reviewed with it: they get its successor."""
    query = "select rca_id from rcas where case_no = ? and status = 'open'"
    row = raw.execute(query, (case_no,)).fetchone()
    if row is None or row[0] == keep:
        return []
    rca_id = int(row[0])
    query = _SHARING_AGREED if followed else _SHARING
    successor = raw.execute(query, (rca_id, case_no)).fetchone()
    if successor is None:
        change_status(raw, rca_id, "archived", at)
    else:
        raw.execute(_HAND_OVER, (*successor, *successor, rca_id))
    if not followed:
        return []
    return [each for (each,) in raw.execute(_SHARING_STILL_OPEN, (rca_id, case_no))]


def reassign_cause(raw: RawConnection, followers: Iterable[int], rca_id: int, at: float) -> None:
    """Give the followers of a retired root cause its successor."""
    for case_no in followers:
        case = read_case(raw, case_no)
        link_case(raw, case, case.symptom_id, rca_id, at, notes="followed")
        add_versions(raw, rca_id, (case.version,))


def add_versions(raw: RawConnection, rca_id: int, labels: Iterable[str]) -> None:
    """Add the versions in which a root cause was seen, each once."""
    (text,) = raw.execute(
        "select affected_versions from rcas where rca_id = ?", (rca_id,)
    ).fetchone()
    known = msgspec.json.decode(text, type=list[str])
    more = sorted({*known, *labels} - {""})
    if more != known:
        new = msgspec.json.encode(more).decode()
        raw.execute("update rcas set affected_versions = ? where rca_id = ?", (new, rca_id))


def read_status(raw: RawConnection, rca_id: int) -> str | None:
    if not is_row_id(rca_id):
        return None
    row = raw.execute("select status from rcas where rca_id = ?", (rca_id,)).fetchone()
    return row[0] if row else None


def _find_attempt(raw: RawConnection, case_no: int, attempt: int) -> int | None:
    row = raw.execute(
        "select rca_id from rcas where case_no = ? and attempt = ?", (case_no, attempt)
    ).fetchone()
    return int(row[0]) if row else None


def _build_row(words: CauseText) -> tuple[object, ...]:
    encode = msgspec.json.encode
    return (
        words.title,
        words.description,
        words.defect_type,
        words.category,
        words.component,
        encode(sorted({*words.affected_versions} - {""})).decode(),
        encode(words.evidence).decode(),
        words.convergence_score,
    )


_CAUSE_STATUSES = (
    "select a.status from symptom_rca l join rcas a on a.rca_id = l.rca_id where l.symptom_id = ?"
)
_NEW_SYMPTOM = (
    "insert into symptoms (fingerprint, name, error_pattern, test_name_pattern, features,"
    " component, severity, first_seen_at, last_seen_at, occurrence_count, status)"
    " values (?, ?, ?, ?, ?, ?, ?, ?, ?, 1, 'active') returning symptom_id"
)


class SymptomMatch(msgspec.Struct, frozen=True):
    """The symptom that a case reports."""

    symptom_id: int
    first: bool
    """True if the case was not counted before."""
    regression: bool


def match_symptom(
    raw: RawConnection, case: RcaCase, at: float, component: str = "", severity: str = ""
) -> SymptomMatch | None:
    """Return the symptom of the case's fingerprint, created if needed; None without a
    fingerprint."""
    if not case.fingerprint:
        return None
    row = raw.execute(
        "select symptom_id from symptoms where fingerprint = ?", (case.fingerprint,)
    ).fetchone()
    if row is None:
        return SymptomMatch(_insert_symptom(raw, case, at, component, severity), True, False)
    raw.execute(
        "update symptoms set component = case component when '' then ? else component end,"
        " severity = case severity when '' then ? else severity end where symptom_id = ?",
        (component, severity, row[0]),
    )
    return count_sighting(raw, row[0], case.case_no, at)


def count_sighting(
    raw: RawConnection, symptom_id: int, case_no: int, at: float
) -> SymptomMatch | None:
    """Count a case for a known symptom once, and wake it up. Return None if there is no such
    symptom."""
    if not is_row_id(symptom_id):
        return None
    query = "select status, first_seen_at, last_seen_at from symptoms where symptom_id = ?"
    row = raw.execute(query, (symptom_id,)).fetchone()
    if row is None:
        return None
    status, first, last = row
    when = _find_time_seen(raw, case_no, at)
    if not _count_case(raw, symptom_id, case_no, when):
        return SymptomMatch(symptom_id, False, False)
    causes = {cause for (cause,) in raw.execute(_CAUSE_STATUSES, (symptom_id,))}
    fixed = bool(causes & {"resolved", "verified"}) and "open" not in causes
    raw.execute(
        "update symptoms set occurrence_count = occurrence_count + 1, status = 'active',"
        " first_seen_at = ?, last_seen_at = ? where symptom_id = ?",
        (min(first, when), max(last, when), symptom_id),
    )
    return SymptomMatch(symptom_id, True, status != "active" or fixed)


def drop_sighting(raw: RawConnection, symptom_id: int, case_no: int) -> None:
    """Withdraw a case from a symptom."""
    row = (symptom_id, case_no)
    if raw.execute("delete from sightings where symptom_id = ? and case_no = ?", row).rowcount:
        raw.execute(
            "update symptoms set occurrence_count = occurrence_count - 1 where symptom_id = ?",
            (symptom_id,),
        )


def _find_time_seen(raw: RawConnection, case_no: int, at: float) -> float:
    """Return when a case's test failed, if known: analysis may come much later."""
    row = raw.execute("select started_at from rca_cases where case_no = ?", (case_no,)).fetchone()
    return min(row[0], at) if row and row[0] is not None else at


def _count_case(raw: RawConnection, symptom_id: int, case_no: int, at: float) -> bool:
    """Count the case for the symptom; return False if it was counted before."""
    query = "insert into sightings values (?, ?, ?) on conflict do nothing"
    return raw.execute(query, (symptom_id, case_no, at)).rowcount == 1


def _insert_symptom(
    raw: RawConnection, case: RcaCase, at: float, component: str, severity: str
) -> int:
    when = _find_time_seen(raw, case.case_no, at)
    row = (
        case.fingerprint,
        case.name,
        case.error_pattern,
        case.test_name_pattern,
        case.features,
        component,
        severity,
        when,
        when,
    )
    symptom_id = int(raw.execute(_NEW_SYMPTOM, row).fetchone()[0])
    _count_case(raw, symptom_id, case.case_no, when)
    bands = sorted(set(msgspec.json.decode(case.bands, type=list[int])))
    raw.executemany(
        "insert into symptom_bands values (?, ?)", [(band, symptom_id) for band in bands]
    )
    return symptom_id
