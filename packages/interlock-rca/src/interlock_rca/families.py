"""Families of cases: one is investigated, the others take over its finding.

All cases are triaged first. Then each family's first case continues; the others are released when
it reaches its review, or are investigated themselves if it fails. Reviews that travel like the
other steps wait too. A family is reviewed together: one human answer settles all its questions.
"""

from collections.abc import Iterator, Mapping

import msgspec

from interlock.engine.case import ENDED, OPEN, Case
from interlock.journal.connection import Connection
from interlock_rca.knowledge.causes import find_rca
from interlock_rca.knowledge.suites import CaseView, find_open_reviews, find_position, find_suite
from interlock_rca.steps import F2, F3, F4, F5, F6, LINKED, TRIAGE_STEPS

_PLACES = (F2, F3)
_WORK = (F2, F3, F4)


class FamilyMember(msgspec.Struct):
    """The progress of one case: held back, at work, or past the investigation."""

    step: str
    status: str
    held: bool = False
    worked: bool = False
    healthy: bool = True


class FamilyQueue:
    """Holds family members back while another is investigated for them, and holds findings back
    from comparison until all investigations have found something. Where agents review `together`,
    reviews belong to the investigation, and a member waits for its representative's review."""

    def __init__(self, family_of: Mapping[str, str], *, together: bool = False) -> None:
        self._family_of = family_of
        self._together = together
        self._states: dict[str, FamilyMember] = {}
        self._triaging: set[str] = set()
        self._investigating: set[str] = set()
        self._held: dict[str, set[str]] = {}
        """The held cases by family: families may be large, and most hold nobody."""
        self._changed: dict[str, None] = {}
        self._to_compare: dict[str, None] = {}
        self._to_review: dict[str, str] = {}
        self._members: dict[str, list[str]] = {}
        for case_id, family in family_of.items():
            self._members.setdefault(family, []).append(case_id)

    def restore(self, case_id: str, step: str, status: str, *, worked: bool) -> None:
        """Restore a case from the journal; `worked` if its investigation has begun."""
        self._states[case_id] = FamilyMember(step, status, worked=worked, healthy=status != "stuck")
        self._update_member(case_id)

    def must_wait(self, case: Case, *, first: bool, healthy: bool) -> bool:
        """Return True if the case must wait; `first` on its first arrival at the investigation."""
        member = self._states.setdefault(case.case_id, FamilyMember(case.step, case.status))
        member.step, member.status, member.healthy = case.step, case.status, healthy
        member.held = case.status == OPEN and case.step in _PLACES and first and not member.worked
        self._update_member(case.case_id)
        if case.status == OPEN and case.step == F4:
            self._to_compare[case.case_id] = None
            return True
        if case.status == OPEN and case.step == F5 and self._together:
            self._to_review[case.case_id] = _find_representative(case)
            return True
        return member.held

    def _update_member(self, case_id: str) -> None:
        member = self._states[case_id]
        is_open = member.status == OPEN
        _set_membership(self._triaging, case_id, is_open and member.step in TRIAGE_STEPS)
        _set_membership(
            self._investigating, case_id, is_open and member.worked and member.step in _PLACES
        )
        family = self._family_of.get(case_id, "")
        _set_membership(self._held.setdefault(family, set()), case_id, member.held)
        self._changed[family] = None

    def release_cases(self) -> list[str]:
        """Return the cases that may go on: none while cases are triaged, then family by family, and
        finished ones when no investigation is left."""
        if self._triaging:
            return []
        changed, self._changed = self._changed, {}
        gone = [
            name
            for family in changed
            if self._held.get(family)
            for name in self._release_family(self._members.get(family, []))
        ]
        for name in gone:
            self._states[name].held = False
            self._held[self._family_of.get(name, "")].discard(name)
            self._states[name].worked = True
            self._investigating.add(name)
        if not self._investigating:
            gone += self._to_compare
            self._to_compare = {}
        free = [name for name, other in self._to_review.items() if not self._is_undecided(other)]
        for name in free:
            del self._to_review[name]
        return gone + free

    def _is_undecided(self, name: str) -> bool:
        """Return True if that case's review is still open."""
        member = self._states.get(name)
        return bool(member and member.status == OPEN and member.step != F6)

    def list_investigated(self, case_id: str) -> Iterator[str]:
        """Yield the family's cases that were investigated before this one, in order."""
        members = self._members.get(self._family_of.get(case_id, ""), [])
        return (name for name in members if name != case_id and self._is_found(name))

    def list_shared(self) -> list[list[str]]:
        """Return the members of each family with several investigated cases, the representative
        first."""
        found: list[list[str]] = []
        for members in self._members.values():
            came = [name for name in members if self._has_come(name)]
            if len(came) > 1:
                found.append(sorted(came, key=lambda name: self._states[name].held))
        return found

    def _has_come(self, name: str) -> bool:
        member = self._states.get(name)
        return bool(member and (member.held or member.worked))

    def _release_family(self, members: list[str]) -> list[str]:
        waiting = [name for name in members if name in self._states and self._states[name].held]
        if any(self._is_found(name) for name in members):
            return waiting
        busy = any(self._is_at_work(name) for name in members)
        return [] if busy else waiting[:1]

    def _is_at_work(self, name: str) -> bool:
        member = self._states.get(name)
        return bool(member and member.worked and member.status == OPEN and member.step in _WORK)

    def _is_found(self, name: str) -> bool:
        """Return True if the case was investigated and has reached its review."""
        member = self._states.get(name)
        if not member or not member.worked or member.step in TRIAGE_STEPS:
            return False
        return (member.status == OPEN and member.step not in _WORK) or (
            member.status == ENDED and member.healthy
        )


def _find_representative(case: Case) -> str:
    """Return the case investigated for this one, on its first arrival at the review."""
    linked = case.context.get(LINKED, {}) if case.visits.get(F5, 0) <= 1 else {}
    return str(linked.get("representative", ""))


def _set_membership(members: set[str], name: str, is_one: bool) -> None:
    if is_one:
        members.add(name)
    else:
        members.discard(name)


_ABOUT = 100


class Review(msgspec.Struct, frozen=True):
    """Questions that one answer settles, and their subject."""

    question_ids: list[int]
    case_ids: list[str]
    about: str


def list_reviews(connection: Connection, run_id: int) -> list[Review]:
    """Return a run's pending reviews, family by family; none if it is no investigation."""
    if find_suite(connection, run_id=run_id) is None:
        return []
    groups: dict[tuple[str, object], list[tuple[int, CaseView]]] = {}
    for number, look in find_open_reviews(connection, run_id).items():
        groups.setdefault(_make_review_key(connection, look), []).append((number, look))
    return [
        Review(
            [number for number, _ in members],
            [look.case_id for _, look in members],
            _describe_review(connection, members[0][1]),
        )
        for members in groups.values()
    ]


def _describe_review(connection: Connection, look: CaseView) -> str:
    place = find_position(connection, look.case_no)
    cause = find_rca(connection, place.rca_id) if place and place.rca_id else None
    text = cause.title if cause else str(look.input.get("message") or look.input.get("test_name"))
    return " ".join(text.split())[:_ABOUT]


def _make_review_key(connection: Connection, look: CaseView) -> tuple[str, object]:
    place = find_position(connection, look.case_no)
    if place and place.rca_id:
        return "rca", place.rca_id
    return "family", look.input.get("family") or look.case_no
