"""Who waits for whom while one case of each family is investigated.

Reviews: a family is reviewed together, and nobody else with it.
"""

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from interlock.engine.case import Case
from interlock_rca.config import RcaConfig
from interlock_rca.families import FamilyQueue, list_reviews
from interlock_rca.steps import F0, F1, F2, F3, F4, F5, F6
from rca_tests.worlds.analysis_world import (
    PRODUCT,
    AnalysisWorld,
    launch,
    make_failure,
    write_script,
)


def at(
    families: FamilyQueue, case_id: str, step: str, *, first: bool = True, over: bool = False
) -> bool:
    case = Case(case_id, step, status="ended" if over else "open")
    return families.must_wait(case, first=first, healthy=True)


def test_nobody_goes_on_before_everybody_is_triaged() -> None:
    families = FamilyQueue({"A": "one", "B": "two"})
    assert not at(families, "A", F0)
    assert not at(families, "B", F0)
    assert at(families, "A", F2)
    assert families.release_cases() == []
    assert not at(families, "B", F1)
    assert families.release_cases() == []
    assert at(families, "B", F3)
    assert families.release_cases() == ["A", "B"]


def test_one_of_a_family_goes_first_and_the_others_follow_at_its_review() -> None:
    families = FamilyQueue(dict.fromkeys("ABC", "one"))
    assert [at(families, name, F2) for name in "ABC"] == [True] * 3
    assert families.release_cases() == ["A"]
    for step in (F3, F2, F3):
        assert not at(families, "A", step, first=False)
        assert families.release_cases() == []
    assert at(families, "A", F4, first=False)
    assert families.release_cases() == ["A"]
    assert not at(families, "A", F5)
    assert families.release_cases() == ["B", "C"]
    assert list(families.list_investigated("C")) == ["A"]


def test_reviews_by_agents_wait_for_the_triage_of_all() -> None:
    families = FamilyQueue({"A": "one", "B": "two"}, together=True)
    assert not at(families, "B", F1)
    assert at(families, "A", F5)
    assert families.release_cases() == []
    assert at(families, "B", F2)
    assert families.release_cases() == ["B", "A"]


def test_a_member_waits_for_the_review_of_the_one_that_stands_for_it() -> None:
    families = FamilyQueue(dict.fromkeys("AB", "one"), together=True)
    linked = {"linked": {"representative": "A", "linked_rca_id": 1}}
    member = Case("B", F5, context=linked, visits={F5: 1})
    assert at(families, "A", F5)
    assert families.release_cases() == ["A"]
    assert families.must_wait(member, first=True, healthy=True)
    assert families.release_cases() == []
    assert not at(families, "A", F2, first=False)
    assert families.release_cases() == [], "sent back: its review is still open"
    assert not at(families, "A", F6)
    assert families.release_cases() == ["B"]
    sent_back = Case("B", F5, context=linked, visits={F5: 2})
    assert families.must_wait(sent_back, first=False, healthy=True)
    assert families.release_cases() == ["B"], "it is reviewed by itself from then on"


def test_a_member_is_reviewed_by_itself_when_the_one_that_stands_for_it_ends_badly() -> None:
    families = FamilyQueue(dict.fromkeys("AB", "one"), together=True)
    assert at(families, "A", F5)
    assert families.release_cases() == ["A"]
    linked = {"linked": {"representative": "A", "linked_rca_id": 1}}
    assert families.must_wait(
        Case("B", F5, context=linked, visits={F5: 1}), first=True, healthy=True
    )
    assert families.release_cases() == []
    families.must_wait(Case("A", F5, status="ended"), first=False, healthy=False)
    assert families.release_cases() == ["B"]


def test_findings_are_compared_when_nobody_looks_any_more() -> None:
    families = FamilyQueue({"A": "one", "B": "two"})
    assert [at(families, name, F2) for name in "AB"] == [True, True]
    assert families.release_cases() == ["A", "B"]
    assert at(families, "A", F4)
    assert families.release_cases() == []
    assert not at(families, "B", F2, first=False)
    assert families.release_cases() == []
    assert at(families, "B", F4)
    assert families.release_cases() == ["A", "B"]


def test_when_the_first_fails_the_next_is_investigated() -> None:
    families = FamilyQueue(dict.fromkeys("ABC", "one"))
    for name in "ABC":
        at(families, name, F2)
    assert families.release_cases() == ["A"]
    families.must_wait(Case("A", F3, status="ended", end="FAILED"), first=False, healthy=False)
    assert families.release_cases() == ["B"]
    assert list(families.list_investigated("C")) == []


def test_a_case_that_is_sent_back_is_not_held_again() -> None:
    families = FamilyQueue({"A": "one"})
    at(families, "A", F2)
    families.release_cases()
    at(families, "A", F5)
    assert not at(families, "A", F2, first=False)
    assert not at(families, "A", F3, first=True)


def test_after_a_restart_the_one_at_work_is_waited_for() -> None:
    families = FamilyQueue(dict.fromkeys("ABC", "one"))
    families.restore("A", F3, "open", worked=True)
    families.restore("B", F2, "open", worked=False)
    assert at(families, "B", F2)
    assert at(families, "C", F2)
    assert families.release_cases() == []
    at(families, "A", F5)
    assert families.release_cases() == ["B", "C"]


@given(st.lists(st.integers(0, 4), min_size=1, max_size=30))
def test_everybody_is_let_go_exactly_once(kin: list[int]) -> None:
    family_of = {f"C{index}": f"K{family}" for index, family in enumerate(kin)}
    families = FamilyQueue(family_of)
    for name in family_of:
        at(families, name, F0)
    for name in family_of:
        at(families, name, F2)
    gone: list[str] = []
    while out := families.release_cases():
        gone += out
        for name in out:
            at(families, name, F5)
    assert sorted(gone) == sorted(family_of)


NEXT = {
    F0: (F1, F5, "FAILED"),
    F1: (F2, F3, F5, F1, "FAILED"),
    F2: (F3, F5, F2, "FAILED", "stuck"),
    F3: (F4, F5, F2, F3, "FAILED", "stuck"),
    F4: (F5, F4, "FAILED"),
    F5: ("rest", F1, F2, F3, "DONE"),
}
"""Where a case may go from each step; at its review it may rest, too."""


class Walk:
    """Cases that move as the circuit lets them, under families; some rest at their review."""

    def __init__(self, kin: list[int]) -> None:
        self.family_of = {f"C{index}": f"K{family}" for index, family in enumerate(kin)}
        self.families = FamilyQueue(self.family_of)
        self.visits = {name: {F0: 1} for name in self.family_of}
        self.active: list[str] = []
        self.held: set[str] = set()
        for name in self.family_of:
            self.place(Case(name, F0))

    def place(self, case: Case) -> None:
        visits = self.visits[case.case_id]
        first = visits.get(F2, 0) + visits.get(F3, 0) == 1
        held = self.families.must_wait(case, first=first, healthy=case.end == "DONE")
        if case.status == "open":
            (self.held.add if held else self.active.append)(case.case_id)

    def move(self, pick: int, way: int, at: dict[str, str]) -> None:
        """One active case goes on."""
        name = self.active.pop(pick % len(self.active))
        ways = NEXT[at[name]]
        to = ways[way % len(ways)]
        if to in NEXT:
            self.visits[name][to] = self.visits[name].get(to, 0) + 1
            at[name] = to
            self.place(Case(name, to, visits=self.visits[name]))
        elif to == "stuck":
            self.place(Case(name, at[name], status="stuck"))
        elif to != "rest":
            self.place(Case(name, at[name], status="ended", end=to))

    def let_go(self) -> None:
        gone = self.families.release_cases()
        assert len(set(gone)) == len(gone)
        assert set(gone) <= self.held, "nobody is let go who was not held"
        self.held -= {*gone}
        self.active += gone


@settings(max_examples=300)
@given(
    st.lists(st.integers(0, 3), min_size=1, max_size=8),
    st.lists(st.tuples(st.integers(0, 7), st.integers(0, 4)), max_size=120),
)
def test_nobody_is_left_waiting(kin: list[int], moves: list[tuple[int, int]]) -> None:
    walk = Walk(kin)
    at = dict.fromkeys(walk.family_of, F0)
    walk.let_go()
    for pick, way in moves:
        if walk.active:
            walk.move(pick, way, at)
            walk.let_go()
    for _ in range(20 * len(kin)):  # from now on everybody takes the straight way
        if walk.active:
            walk.move(0, 0, at)
            walk.let_go()
    assert walk.active == []
    assert walk.held == set()


@given(
    st.lists(st.integers(0, 2), min_size=1, max_size=6),
    st.lists(st.tuples(st.integers(0, 7), st.integers(0, 4)), max_size=60),
)
def test_a_restart_at_any_moment_leaves_nobody_waiting(
    kin: list[int], moves: list[tuple[int, int]]
) -> None:
    walk = Walk(kin)
    at = dict.fromkeys(walk.family_of, F0)
    walk.let_go()
    for pick, way in moves:
        if walk.active:
            walk.move(pick, way, at)
            walk.let_go()
    again = Walk.__new__(Walk)
    again.family_of, again.visits = walk.family_of, walk.visits
    again.families = FamilyQueue(walk.family_of)
    again.active, again.held = [], set()
    open_ones = {*walk.active, *walk.held}
    for name, visits in walk.visits.items():
        came = visits.get(F2, 0) + visits.get(F3, 0)
        started = name in walk.active or at[name] not in (F2, F3) or came > 1
        status = "open" if name in open_ones else "ended"
        again.families.restore(name, at[name], status, worked=came > 0 and started)
    for name in walk.family_of:
        if name in walk.active:
            again.active.append(name)
        elif name in walk.held:
            again.place(Case(name, at[name], visits=walk.visits[name]))
    again.let_go()
    for _ in range(20 * len(kin)):
        if again.active:
            again.move(0, 0, at)
            again.let_go()
    assert again.held == set()


ANCHOR = "Keel.weigh() gave 12 tons for an anchor of 3"


@pytest.fixture
def room(tmp_path: Path) -> AnalysisWorld:
    found = AnalysisWorld(tmp_path)
    kin = [make_failure(name, ANCHOR, class_name="yard.Keel") for name in ("alpha", "beta")]
    found.take_in(launch(*kin, make_failure("omega")))
    return found


def test_cases_of_one_cause_are_one_review(room: AnalysisWorld) -> None:
    room.work_on(write_script(), RcaConfig(families=True), bench=True)
    asked = room.questions()
    with room.reading() as connection:
        reviews = list_reviews(connection, 1)
        assert {tuple(each.case_ids) for each in reviews} == {("C1", "C2"), ("C3",)}
        assert {each.about[:12] for each in reviews} == {"Keel.weigh()"}
        assert sorted(number for each in reviews for number in each.question_ids) == sorted(
            asked.values()
        )


def test_without_a_cause_those_alike_are_one_review(room: AnalysisWorld) -> None:
    skipped = {F1: PRODUCT | {"symptom_category": "infra"}}
    room.work_on(write_script(skipped), bench=True)
    with room.reading() as connection:
        reviews = list_reviews(connection, 1)
        assert [each.case_ids for each in reviews] == [["C1", "C2"], ["C3"]]
        assert reviews[0].about == ANCHOR


def test_who_was_answered_is_asked_no_more(room: AnalysisWorld) -> None:
    room.work_on(write_script(), RcaConfig(families=True), bench=True)
    room.say(room.questions()["C1"], decision="approve")
    room.work_on(write_script(), RcaConfig(families=True), bench=True)
    with room.reading() as connection:
        assert [each.case_ids for each in list_reviews(connection, 1)] == [["C2"], ["C3"]] or [
            each.case_ids for each in list_reviews(connection, 1)
        ] == [["C3"], ["C2"]]


def test_questions_of_another_run_are_not_touched(room: AnalysisWorld) -> None:
    room.take_in(launch(make_failure("omega"), launch_id="L2"), name="other")
    room.work_on(write_script(), bench=True)
    room.work_on(write_script(), run_id=2, bench=True)
    with room.reading() as connection:
        assert len(list_reviews(connection, 2)) == 1
        assert len(list_reviews(connection, 1)) == 3


def test_a_run_that_is_no_investigation_has_no_reviews(tmp_path: Path) -> None:
    room = AnalysisWorld(tmp_path)
    room.begin("A")
    with room.reading() as connection:
        assert list_reviews(connection, 1) == []
        assert list_reviews(connection, 77) == []
