"""The verdict counts what was found next to what was planted."""

from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from interlock_rca.demo.history import PlantedFault
from interlock_rca.demo.verdict import (
    TABLE_HEAD,
    DemoRow,
    format_sentences,
    format_table,
    judge_findings,
)
from interlock_rca.records import CaseFinding, FindingFamily, Findings, Suspect

GUILTY = "c0ffee0" + "0" * 33
OTHER = "bad5eed" + "0" * 33
TRUTH = (
    PlantedFault(
        family_id="bug",
        title="A bug",
        category="product",
        defect_type="pb001",
        repo="shop",
        commit=GUILTY,
        tests=("tests.a.One.test_x", "tests.a.Two.test_x", "tests.a.Two.test_y"),
    ),
    PlantedFault(
        family_id="old",
        title="An old one",
        category="infra",
        defect_type="si001",
        repo="deploy",
        commit=OTHER,
        seen_before=True,
        tests=("tests.b.Three.test_z",),
    ),
    PlantedFault(
        family_id="flake",
        title="A flake",
        category="flake",
        defect_type="nd001",
        tests=("tests.b.Four.test_w",),
    ),
)
SUSPECT = Suspect(repo="shop", commit=GUILTY)
STRANGER = Suspect(repo="shop", commit="f" * 40)
CASES = {
    "C1": CaseFinding(
        case_id="C1",
        case_no=1,
        class_name="tests.a.One",
        test_name="test_x",
        category="product",
        defect_type="pb001",
        suspects=(SUSPECT, STRANGER),
    ),
    "C2": CaseFinding(
        case_id="C2",
        case_no=2,
        class_name="tests.a.Two",
        test_name="test_x",
        category="product",
        defect_type="pb001",
    ),
    "C3": CaseFinding(
        case_id="C3",
        case_no=3,
        test_name="tests.a.Two.test_y",
        category="product",
        defect_type="pb001",
    ),
    "C4": CaseFinding(
        case_id="C4",
        case_no=4,
        class_name="Three",
        test_name="test_z",
        category="infra",
        defect_type="si001",
        recalled=True,
        suspects=(Suspect(repo="deploy", commit=OTHER[:8]),),
    ),
    "C5": CaseFinding(
        case_id="C5",
        case_no=5,
        class_name="tests.b.Four",
        test_name="test_w",
        category="flake",
        defect_type="nd001",
    ),
}


def found(families: Mapping[str, str], cases: Mapping[str, CaseFinding] = CASES) -> Findings:
    """Findings with these families, each given as the numbers of its cases: "123"."""
    return Findings(
        suite_id=1,
        name="s",
        made_at="",
        families=tuple(
            FindingFamily(family_id=name, title=name, members=tuple(f"C{each}" for each in members))
            for name, members in families.items()
        ),
        cases=tuple(cases.values()),
    )


def but(case: str, **fields: Any) -> dict[str, CaseFinding]:
    return {**CASES, case: replace(CASES[case], **fields)}


def judge(families: Mapping[str, str], cases: Mapping[str, CaseFinding] = CASES) -> list[DemoRow]:
    return judge_findings(found(families, cases), TRUTH)


def test_everything_right() -> None:
    rows = judge({"F1": "123", "F2": "4", "F3": "5"})
    assert format_table(rows) == [
        ("bug", "3", "3/3", "0", "product 3/3", "#1", "-", "right"),
        ("old", "1", "1/1", "0", "infra 1/1", "#1", "1/1", "right"),
        ("flake", "1", "1/1", "0", "flake 1/1", "-", "-", "right"),
    ]
    assert {len(row) for row in format_table(rows)} == {len(TABLE_HEAD)}
    whole, first = format_sentences(rows)
    assert whole.startswith("3 of 3 ")
    assert "2 of 2" in first


def test_one_family_for_everything_is_impure() -> None:
    rows = judge({"F1": "12345"})
    assert [row.is_right for row in rows] == [False, False, False]
    assert rows[0].strangers == ("Four.test_w", "Three.test_z")


def test_a_family_in_pieces_is_not_found() -> None:
    rows = judge({"F1": "12", "F2": "4"})
    assert (rows[0].together, rows[0].strangers) == (2, ())
    assert [row.is_right for row in rows] == [False, True, True]


@pytest.mark.parametrize(
    ("suspects", "rank"),
    [
        ((STRANGER, SUSPECT), 2),
        ((STRANGER,), 0),
        ((), 0),
        ((Suspect(repo="deploy", commit=GUILTY),), 0),
        ((Suspect(repo="shop", commit=GUILTY[:6]),), 0),
        ((Suspect(repo="", commit=GUILTY[:7]),), 1),
    ],
)
def test_the_culprit_is_found_by_repository_and_hash(
    suspects: tuple[Suspect, ...], rank: int
) -> None:
    families = {"F1": "123", "F2": "4", "F3": "5"}
    assert judge(families, but("C1", suspects=suspects))[0].culprit_rank == rank


def test_the_first_member_with_suspects_speaks_for_the_family() -> None:
    cases = but("C2", suspects=(STRANGER, SUSPECT))
    assert judge({"F1": "213"}, cases)[0].culprit_rank == 2
    assert judge({"F1": "312"}, cases)[0].culprit_rank == 1


@pytest.mark.parametrize("recalled", ["recalled", "regression"])
def test_of_two_launches_the_newer_counts(recalled: str) -> None:
    first = replace(CASES["C4"], at="2026-10-22T05:30:00Z", category="unknown", recalled=False)
    later = replace(CASES["C4"], case_id="C6", case_no=6, at="2026-11-12T05:30:00Z", recalled=False)
    later = replace(later, **{recalled: True})
    for order in ({"C4": first, "C6": later}, {"C6": later, "C4": first}):
        old = judge({"F1": "123", "F2": "46"}, {**CASES, **order})[1]
        assert (old.is_right, old.category_right, old.recalled) == (True, 1, 1)


def test_nothing_found_is_nothing_right() -> None:
    cases = {"C9": replace(CASES["C1"], case_id="C9", class_name="Other")}
    assert [row.is_right for row in judge({}, cases)] == [False, False, False]


@given(st.lists(st.integers(0, 3), min_size=5, max_size=5))
def test_right_means_the_same_tests_and_no_others(homes: list[int]) -> None:
    members: dict[str, str] = {}
    for number, home in enumerate(homes, 1):
        members[f"F{home}"] = members.get(f"F{home}", "") + str(number)
    planted = {"bug": "123", "old": "4", "flake": "5"}
    for row in judge(members):
        assert row.is_right == (planted[row.planted.family_id] in members.values())
