"""Apply effects: the changes of a decision beyond its case's step, one function each.

Each runs inside the transaction of its decision and may be repeated safely. An id or a category
that an answer made up is noted on the case and links nothing; it never breaks the commit.
"""

from collections.abc import Callable
from typing import Any

import msgspec

from interlock.journal.connection import RawConnection, lock_until_commit
from interlock_rca.analyst.triage import CATEGORIES
from interlock_rca.effects import (
    Closed,
    Correlated,
    Investigated,
    Recalled,
    Reviewed,
    SentBack,
    Triaged,
)
from interlock_rca.effects import Effect as RcaEffect
from interlock_rca.knowledge.cause_writer import (
    BY_REVIEW,
    CauseText,
    RcaCase,
    SymptomMatch,
    add_note,
    add_versions,
    count_sighting,
    drop_sighting,
    edit_cause,
    is_shared,
    link_case,
    make_headline,
    match_symptom,
    read_case,
    read_cause_text,
    read_status,
    reassign_cause,
    retire_own_cause,
    set_decision,
    set_recalled,
    set_regression,
    set_status,
    write_own_cause,
)

_TRIAGE = (
    "insert into triages (category, severity, hypothesis, candidate_repos, skip, clock_skew,"
    " cascade, notes, created_at, case_no) values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
)
_CLOSE_SUITE = (
    "update suites set status = 'closed', closed_at ="
    " case when created_at > ? then created_at else ? end"
    " where suite_id = ? and status = 'open' and not exists (select 1 from circuits c"
    " join launches l on l.circuit_id = c.circuit_id join rca_cases r on r.launch_id = l.launch_id"
    " where c.suite_id = suites.suite_id and r.status != 'closed')"
)


def apply_effect(case_no: int, effect: RcaEffect, raw: RawConnection, at: float) -> None:
    """Apply an effect inside a transaction. All runs share the knowledge, so writers take turns."""
    lock_until_commit(raw, "knowledge")
    _WRITERS[type(effect)](raw, read_case(raw, case_no), effect, at)


def _apply_recalled(raw: RawConnection, case: RcaCase, effect: Recalled, at: float) -> None:
    met = count_sighting(raw, effect.symptom_id, case.case_no, at)
    status = read_status(raw, effect.rca_id)
    known = status not in (None, "archived")
    if effect.symptom_id and met is None:
        add_note(raw, case.case_no, f"recall named symptom {effect.symptom_id}: there is none")
    if effect.rca_id and not known:
        add_note(raw, case.case_no, _describe_refused("recall", effect.rca_id, status))
    if met is None and not known:
        return
    symptom_id = met.symptom_id if met else case.symptom_id
    if known:
        _take_over(raw, case, symptom_id, effect.rca_id, at, "recalled")
    else:
        link_case(raw, case, symptom_id, case.rca_id, at)
    set_recalled(raw, case.case_no, recalled=True)
    if effect.regression or status in ("resolved", "verified") or (met and met.regression):
        set_regression(raw, case.case_no, regression=True)


def _apply_triaged(raw: RawConnection, case: RcaCase, effect: Triaged, at: float) -> None:
    raw.execute("delete from triages where case_no = ?", (case.case_no,))
    raw.execute(
        _TRIAGE,
        (
            _check_category(raw, case, effect.category),
            effect.severity,
            effect.hypothesis,
            msgspec.json.encode(effect.candidate_repos).decode(),
            int(effect.skip),
            int(effect.clock_skew),
            int(effect.cascade),
            effect.notes,
            at,
            case.case_no,
        ),
    )
    component = next(iter(effect.candidate_repos), "")
    met = match_symptom(raw, case, at, component, effect.severity)
    _note_regression(raw, case, met)
    if met and met.symptom_id == effect.came_back:
        set_regression(raw, case.case_no, regression=True)
    symptom_id = met.symptom_id if met else case.symptom_id
    if case.symptom_id is not None and symptom_id != case.symptom_id:
        drop_sighting(raw, case.symptom_id, case.case_no)
    if case.rca_id is not None and (effect.skip or not case.owns_rca):
        # Triage begins anew: what was recalled or found before is not this finding's cause.
        retire_own_cause(raw, case.case_no, None, at, followed=False)
        link_case(raw, read_case(raw, case.case_no), symptom_id, None, at)
        set_recalled(raw, case.case_no, recalled=False)
    else:
        link_case(raw, case, symptom_id, case.rca_id, at)
    set_status(raw, case, "triaged", at)


def _apply_investigated(raw: RawConnection, case: RcaCase, effect: Investigated, at: float) -> None:
    words = CauseText(
        title=effect.title or make_headline(effect.description),
        description=effect.description,
        defect_type=effect.defect_type,
        category=_check_category(raw, case, effect.category),
        component=effect.component,
        affected_versions=(case.version,),
        evidence=effect.evidence,
        convergence_score=_clamp(effect.convergence_score),
    )
    rca_id = write_own_cause(raw, case.case_no, effect.attempt, words, at, followed=True)
    link_case(
        raw,
        read_case(raw, case.case_no),
        _find_symptom(raw, case, at),
        rca_id,
        at,
        confidence=words.convergence_score,
        notes="investigated",
    )
    set_recalled(raw, case.case_no, recalled=False)
    set_status(raw, case, "investigated", at)


def _apply_correlated(raw: RawConnection, case: RcaCase, effect: Correlated, at: float) -> None:
    status = read_status(raw, effect.rca_id)
    if status is None or status == "archived":
        add_note(raw, case.case_no, _describe_refused("correlation", effect.rca_id, status))
        return
    symptom_id = _find_symptom(raw, case, at)
    confidence = _clamp(effect.confidence)
    _take_over(raw, case, symptom_id, effect.rca_id, at, "correlated", confidence)
    add_versions(raw, effect.rca_id, effect.affected_versions)
    set_recalled(raw, case.case_no, recalled=False)
    set_status(raw, case, "investigated", at)


def _apply_reviewed(raw: RawConnection, case: RcaCase, effect: Reviewed, at: float) -> None:
    if effect.decision == "overturn":
        _overturn(raw, case, effect, at)
    elif case.rca_id is None and (words := _read_triage_text(raw, case)):
        _write_reviewed_cause(raw, case, words, at)
    set_decision(raw, case.case_no, effect.decision, effect.by)
    set_status(raw, case, "reviewed", at)


def _apply_sent_back(raw: RawConnection, case: RcaCase, effect: SentBack, at: float) -> None:
    set_status(raw, case, effect.status, at)
    set_decision(raw, case.case_no, "", "")


def _apply_closed(raw: RawConnection, case: RcaCase, effect: Closed, at: float) -> None:
    set_status(raw, case, "closed", at)
    if effect.draft:
        draft = msgspec.json.encode(effect.draft).decode()
        raw.execute("update rca_cases set draft = ? where case_no = ?", (draft, case.case_no))
    raw.execute(_CLOSE_SUITE, (at, at, case.suite_id))


def _take_over(
    raw: RawConnection,
    case: RcaCase,
    symptom_id: int | None,
    rca_id: int,
    at: float,
    notes: str,
    confidence: float | None = None,
) -> None:
    """Give the case another's root cause; cases that shared its own follow."""
    followers = retire_own_cause(raw, case.case_no, rca_id, at, followed=True)
    case = read_case(raw, case.case_no)
    link_case(raw, case, symptom_id, rca_id, at, confidence=confidence, notes=notes)
    add_versions(raw, rca_id, (case.version,))
    reassign_cause(raw, followers, rca_id, at)


def _overturn(raw: RawConnection, case: RcaCase, effect: Reviewed, at: float) -> None:
    """Apply one person's correction to one case; other cases keep their root cause."""
    known = (
        _read_triage_text(raw, case) if case.rca_id is None else read_cause_text(raw, case.rca_id)
    )
    known = known or CauseText(title=case.name, description=case.error_message, defect_type="")
    words = msgspec.structs.replace(
        known,
        title=make_headline(effect.description) or known.title,
        description=effect.description or known.description,
        defect_type=effect.defect_type or known.defect_type,
        category=effect.category or known.category,
    )
    if case.rca_id is not None and case.owns_rca and not is_shared(raw, case.rca_id, case.case_no):
        edit_cause(raw, case.rca_id, words, at)
    else:
        own = msgspec.structs.replace(words, affected_versions=(case.version,))
        _write_reviewed_cause(raw, case, own, at)


def _write_reviewed_cause(raw: RawConnection, case: RcaCase, words: CauseText, at: float) -> None:
    rca_id = write_own_cause(raw, case.case_no, BY_REVIEW, words, at, followed=False)
    symptom_id = _find_symptom(raw, case, at)
    link_case(raw, read_case(raw, case.case_no), symptom_id, rca_id, at, notes="reviewed")


def _read_triage_text(raw: RawConnection, case: RcaCase) -> CauseText | None:
    """Return the text of a triage that needed no investigation."""
    row = raw.execute(
        "select category, hypothesis, candidate_repos, notes from triages where case_no = ?",
        (case.case_no,),
    ).fetchone()
    if row is None:
        return None
    category, hypothesis, repos, notes = row
    description = notes or case.error_message
    return CauseText(
        # Notes on the data do not name the cause; the failure does.
        title=make_headline(case.error_message) or make_headline(notes) or case.name,
        description=description,
        defect_type=hypothesis,
        category=category,
        component=next(iter(msgspec.json.decode(repos, type=list[str])), ""),
        affected_versions=(case.version,),
    )


def _find_symptom(raw: RawConnection, case: RcaCase, at: float) -> int | None:
    """Return the symptom of a case: its own, or that of its fingerprint."""
    if case.symptom_id is not None:
        return case.symptom_id
    met = match_symptom(raw, case, at)
    _note_regression(raw, case, met)
    return met.symptom_id if met else None


def _note_regression(raw: RawConnection, case: RcaCase, met: SymptomMatch | None) -> None:
    """Record whether the symptom came back; an earlier symptom's mark no longer counts."""
    if met and (met.first or met.symptom_id != case.symptom_id):
        set_regression(raw, case.case_no, regression=met.regression)


def _check_category(raw: RawConnection, case: RcaCase, category: str) -> str:
    if category in CATEGORIES:
        return category
    add_note(raw, case.case_no, f"category {category[:40]!r} is none: taken for unknown")
    return "unknown"


def _clamp(number: float) -> float:
    return min(1.0, max(0.0, number))


def _describe_refused(who: str, rca_id: int, status: str | None) -> str:
    why = "there is none" if status is None else "it is archived"
    return f"{who} named root cause {rca_id}: {why}"


_WRITERS: dict[type, Callable[[RawConnection, RcaCase, Any, float], None]] = {
    Recalled: _apply_recalled,
    Triaged: _apply_triaged,
    Investigated: _apply_investigated,
    Correlated: _apply_correlated,
    Reviewed: _apply_reviewed,
    SentBack: _apply_sent_back,
    Closed: _apply_closed,
}
