"""The outline: every case once, in order of importance, whatever the findings say.

Anchors: the same for a case in every report, never two alike, never odd.
"""

import re
from typing import Any

import msgspec
import pytest
from hypothesis import given

from interlock_rca.records import CaseFinding, FindingFamily, Findings, Suspect
from interlock_rca.report.outline import build_anchors, build_outline, is_known
from interlock_rca.report.summary import format_kind
from interlock_rca.report.words import KINDS, STATES
from rca_tests.report.strategies import findings_of_any_kind
from rca_tests.worlds.findings import example


def test_families_by_importance() -> None:
    output = build_outline(example())
    assert [(cause.kind, cause.size) for cause in output.causes] == [
        ("product", 14),
        ("product", 5),
        ("automation", 7),
        ("infra", 8),
        ("unknown", 3),
        ("flake", 3),
    ]
    assert [cause.number for cause in output.causes] == [1, 2, 3, 4, 5, 6]


@given(findings_of_any_kind())
def test_everything_adds_up(findings: Findings) -> None:
    output = build_outline(findings)
    visible = sorted(id(case) for cause in output.causes for case in cause.cases)
    assert visible == sorted(map(id, findings.cases))
    assert sum(output.kinds.values()) == sum(output.states.values()) == output.total
    assert all(sum(cause.states.values()) == cause.size > 0 for cause in output.causes)
    assert output.kinds.keys() <= KINDS.keys()
    assert output.states.keys() <= STATES.keys()
    assert not any(cause.loose for cause in output.causes[:-1])


def test_a_family_is_summed_up_over_its_cases() -> None:
    first = CaseFinding(case_id="a", case_no=1, test_name="a", severity="low", version="2")
    second = CaseFinding(
        case_id="b",
        case_no=2,
        test_name="b",
        severity="high",
        version="1",
        category="infra",
        message="the disk is full",
        score=0.4,
    )
    family = FindingFamily(family_id="f", title="", members=("a", "b", "nobody"))
    output = build_outline(
        Findings(suite_id=1, name="s", made_at="", families=(family,), cases=(first, second))
    )
    (cause,) = output.causes
    assert (cause.lead, cause.kind, cause.severity) == (first, "infra", "high")
    assert (cause.message, cause.score, cause.versions) == ("the disk is full", 0.4, ("1", "2"))
    assert cause.title == "a"


def test_cases_without_a_family_are_no_cause() -> None:
    findings = msgspec.structs.replace(example(), families=example().families[:2])
    output = build_outline(findings)
    assert len(output.families) == 2
    assert output.causes[-1].loose
    assert output.causes[-1].size == 21
    assert output.causes[-1].message == ""


def test_many_times_in_one_suite_is_not_before() -> None:
    case = CaseFinding(case_id="a", case_no=1, test_name="a", symptom_id=3, seen=2)
    assert not is_known(case, {3: 2})
    assert is_known(case, {3: 1})
    assert is_known(msgspec.structs.replace(case, recalled=True), {3: 2})
    assert is_known(msgspec.structs.replace(case, inherited=True), {3: 2}), "its cause is older"
    assert not is_known(msgspec.structs.replace(case, symptom_id=0, seen=1), {})


def test_known_since_the_earliest_time() -> None:
    output = build_outline(example())
    assert [cause.since[:10] for cause in output.causes if cause.known] == [
        "2030-09-14",
        "2030-12-19",
        "2031-01-11",
    ]


def _entitled(title: str, message: str) -> Findings:
    case = CaseFinding(case_id="a", case_no=1, test_name="a", message=message)
    family = FindingFamily(family_id="f", title=title, members=("a",))
    return msgspec.structs.replace(example(), cases=(case,), families=(family,))


@pytest.mark.parametrize(
    ("title", "message", "whole", "beyond"),
    [
        ("disk f…", "disk full at a.py:3. Suspect: b.", "disk full at a.py:3", "Suspect: b."),
        ("disk f…", "disk full", "disk full", ""),
        ("disk f…", "no space", "disk f…", "no space"),
        ("disk f", "disk full", "disk f", "disk full"),
        ("disk full", "disk full: no space", "disk full", "no space"),
        ("disk full", "disk full. at a.py:3", "disk full", "disk full. at a.py:3"),
        ("disk f…", "disk f" + "u" * 500, "disk f" + "u" * 153 + "…", "disk f" + "u" * 500),
    ],
)
def test_a_title_that_was_cut_is_made_whole(
    title: str, message: str, whole: str, beyond: str
) -> None:
    (cause,) = build_outline(_entitled(title, message)).causes
    assert (cause.title, cause.beyond) == (whole, beyond)


@pytest.mark.parametrize(
    ("suspect", "is_named"),
    [
        ({"score": 0.7}, True),
        ({"score": 0.69}, False),
        ({"score": 0.2, "proof": "proven"}, True),
        ({"score": 0.9, "proof": "cleared"}, False),
        ({"score": 0.9, "then": True}, False),
        ({"score": 0.9, "subject": ""}, False),
        ({"score": float("nan")}, False),
    ],
)
def test_a_clear_suspect_names_the_cause(suspect: dict[str, Any], is_named: bool) -> None:
    (case,) = (findings := _entitled("no such key", "no such key")).cases
    known = {"repo": "shop", "commit": "4be1c07d92aa00", "subject": "Drop the key"}
    suspects = (Suspect(**known | suspect),)
    case = msgspec.structs.replace(case, error="no such key: 'tax'", suspects=suspects)
    (cause,) = build_outline(msgspec.structs.replace(findings, cases=(case,))).causes
    assert ("Drop the key" in cause.title and "4be1c07d92aa" in cause.title) is is_named
    assert cause.message == "no such key"


def test_an_explanation_stays_the_title_beside_a_clear_suspect() -> None:
    (case,) = (findings := _entitled("The key is gone", "The key is gone")).cases
    suspect = Suspect(repo="shop", commit="4be1c07d92aa00", subject="Drop the key", score=0.9)
    case = msgspec.structs.replace(case, error="no such key", suspects=(suspect,))
    (cause,) = build_outline(msgspec.structs.replace(findings, cases=(case,))).causes
    assert cause.title == "The key is gone"


@pytest.mark.parametrize(
    ("category", "triaged", "at_first", "label"),
    [
        ("unknown", "product", "product", "Unknown, at first sight product"),
        ("", " Environment", "infra", "Unknown, at first sight infrastructure"),
        ("unknown", "unknown", "", "Unknown"),
        ("unknown", "a mystery", "", "Unknown"),
        ("flake", "product", "", "Flake"),
    ],
)
def test_an_unsure_cause_keeps_what_it_was_taken_for(
    category: str, triaged: str, at_first: str, label: str
) -> None:
    (case,) = (findings := _entitled("t", "m")).cases
    case = msgspec.structs.replace(case, category=category, triaged=triaged, defect_type="ti001")
    (cause,) = build_outline(msgspec.structs.replace(findings, cases=(case,))).causes
    assert (cause.at_first, format_kind(cause)) == (at_first, label)


@given(findings_of_any_kind())
def test_all_differ_and_are_plain(findings: Findings) -> None:
    output = build_outline(findings)
    found = build_anchors(output)
    names = [*found.causes, *found.cases]
    assert len(names) == len(set(names)) == len(output.causes) + output.total
    assert all(re.fullmatch(r"[a-z]+[A-Za-z0-9-]*", name) for name in names)


def test_a_link_to_a_case_holds_when_the_report_is_written_anew() -> None:
    before, output = example(), build_outline(example())
    place = {case.case_id: n for n, case in enumerate(_in_order(before), 1)}
    after = msgspec.structs.replace(before, cases=before.cases[5:])
    later = {case.case_id: n for n, case in enumerate(_in_order(after), 1)}
    moved = [name for name in later if later[name] != place[name]]
    assert moved
    for name in moved:
        assert build_anchors(build_outline(after)).case(later[name]) == build_anchors(output).case(
            place[name]
        )


def _in_order(findings: Findings) -> list[CaseFinding]:
    return [case for cause in build_outline(findings).causes for case in cause.cases]


def test_odd_and_doubled_ids_get_a_number() -> None:
    first, second, third = example().cases[:3]
    ids = ("C1", "C1", "<b>")
    cases = [
        msgspec.structs.replace(case, case_id=name)
        for case, name in zip((first, second, third), ids, strict=True)
    ]
    output = build_outline(msgspec.structs.replace(example(), cases=tuple(cases), families=()))
    assert build_anchors(output).cases == ("c1", "c2", "c3")
    assert build_anchors(output).causes == ("f1",)
