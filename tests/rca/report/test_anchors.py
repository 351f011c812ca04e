"""Anchors: the same for a case in every report, never two alike, never odd."""

import re

import msgspec
from hypothesis import given
from tests.rca.report.strategies import findings_of_any_kind
from tests.world.findings import example

from interlock.rca.records import CaseFinding, Findings
from interlock.rca.report.outline import anchors, outline


@given(findings_of_any_kind())
def test_all_differ_and_are_plain(findings: Findings) -> None:
    told = outline(findings)
    found = anchors(told)
    names = [*found.causes, *found.cases]
    assert len(names) == len(set(names)) == len(told.causes) + told.total
    assert all(re.fullmatch(r"[a-z]+[A-Za-z0-9-]*", name) for name in names)


def test_a_link_to_a_case_holds_when_the_report_is_written_anew() -> None:
    before, told = example(), outline(example())
    place = {case.case_id: n for n, case in enumerate(_in_order(before), 1)}
    after = msgspec.structs.replace(before, cases=before.cases[5:])
    later = {case.case_id: n for n, case in enumerate(_in_order(after), 1)}
    moved = [name for name in later if later[name] != place[name]]
    assert moved
    for name in moved:
        assert anchors(outline(after)).case(later[name]) == anchors(told).case(place[name])


def _in_order(findings: Findings) -> list[CaseFinding]:
    return [case for cause in outline(findings).causes for case in cause.cases]


def test_odd_and_doubled_ids_get_a_number() -> None:
    first, second, third = example().cases[:3]
    ids = ("C1", "C1", "<b>")
    cases = [
        msgspec.structs.replace(case, case_id=name)
        for case, name in zip((first, second, third), ids, strict=True)
    ]
    told = outline(msgspec.structs.replace(example(), cases=tuple(cases), families=()))
    assert anchors(told).cases == ("c1", "c2", "c3")
    assert anchors(told).causes == ("f1",)
