"""Who waits for whom while one case of each family is investigated."""

from hypothesis import given
from hypothesis import strategies as st

from interlock.apps.rca.steps import F0, F1, F2, F3, F4, F5
from interlock.casework.families import Families
from interlock.core.case import Case


def at(
    families: Families, case_id: str, step: str, *, first: bool = True, over: bool = False
) -> bool:
    case = Case(case_id, step, status="ended" if over else "open")
    return families.held(case, first=first, healthy=True)


def test_nobody_goes_on_before_everybody_is_triaged() -> None:
    families = Families({"A": "one", "B": "two"})
    assert not at(families, "A", F0)
    assert not at(families, "B", F0)
    assert at(families, "A", F2)
    assert families.let_go() == []
    assert not at(families, "B", F1)
    assert families.let_go() == []
    assert at(families, "B", F3)
    assert families.let_go() == ["A", "B"]


def test_one_of_a_family_goes_first_and_the_others_follow_at_its_review() -> None:
    families = Families(dict.fromkeys("ABC", "one"))
    assert [at(families, name, F2) for name in "ABC"] == [True] * 3
    assert families.let_go() == ["A"]
    for step in (F3, F2, F3):
        assert not at(families, "A", step, first=False)
        assert families.let_go() == []
    assert at(families, "A", F4, first=False)
    assert families.let_go() == ["A"]
    assert not at(families, "A", F5)
    assert families.let_go() == ["B", "C"]
    assert list(families.stand_in("C")) == ["A"]


def test_findings_are_compared_when_nobody_looks_any_more() -> None:
    families = Families({"A": "one", "B": "two"})
    assert [at(families, name, F2) for name in "AB"] == [True, True]
    assert families.let_go() == ["A", "B"]
    assert at(families, "A", F4)
    assert families.let_go() == []
    assert not at(families, "B", F2, first=False)
    assert families.let_go() == []
    assert at(families, "B", F4)
    assert families.let_go() == ["A", "B"]


def test_when_the_first_fails_the_next_is_investigated() -> None:
    families = Families(dict.fromkeys("ABC", "one"))
    for name in "ABC":
        at(families, name, F2)
    assert families.let_go() == ["A"]
    families.held(Case("A", F3, status="ended", end="FAILED"), first=False, healthy=False)
    assert families.let_go() == ["B"]
    assert list(families.stand_in("C")) == []


def test_a_case_that_is_sent_back_is_not_held_again() -> None:
    families = Families({"A": "one"})
    at(families, "A", F2)
    families.let_go()
    at(families, "A", F5)
    assert not at(families, "A", F2, first=False)
    assert not at(families, "A", F3, first=True)


def test_after_a_restart_the_one_at_work_is_waited_for() -> None:
    families = Families(dict.fromkeys("ABC", "one"))
    families.remember("A", F3, "open", worked=True)
    families.remember("B", F2, "open", worked=False)
    assert at(families, "B", F2)
    assert at(families, "C", F2)
    assert families.let_go() == []
    at(families, "A", F5)
    assert families.let_go() == ["B", "C"]


@given(st.lists(st.integers(0, 4), min_size=1, max_size=30))
def test_everybody_is_let_go_exactly_once(kin: list[int]) -> None:
    family_of = {f"C{index}": f"K{family}" for index, family in enumerate(kin)}
    families = Families(family_of)
    for name in family_of:
        at(families, name, F0)
    for name in family_of:
        at(families, name, F2)
    gone: list[str] = []
    while out := families.let_go():
        gone += out
        for name in out:
            at(families, name, F5)
    assert sorted(gone) == sorted(family_of)
