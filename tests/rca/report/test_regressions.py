"""`regression-report.md`: what came back, or plainly that nothing did."""

import re

import msgspec
from hypothesis import given, settings
from tests.rca.report.marked import assert_inert
from tests.rca.report.strategies import findings_of_any_kind
from tests.world.findings import example

from interlock.rca.records import Findings
from interlock.rca.report.markdown import regressions


def test_the_row_of_a_regression() -> None:
    said = regressions(example())
    assert "**1 symptom came back, in 14 failing tests.**" in said
    (row,) = [row for row in said.split("\n") if "(symptom 12)" in row]
    cells = [cell.strip() for cell in row.strip("|").split(" | ")]
    assert cells[1:5] == ["2030-09-14", "2030-11-02", "RCA 31, 2030-11-05", "`5.2.0-rc1`"]
    assert cells[5].startswith("14: `test_discount_is_rounded_once[EUR]`<br>")
    assert cells[5].endswith("<br>and 9 more")
    assert cells[6].startswith("[`4be1c07d92`](<https://")


def test_new_and_known_add_up() -> None:
    said = regressions(example())
    assert "Of 6 causes: 3 new, 2 known, 1 back." in said
    sizes = re.findall(r"^\| \d+ \|.*\| (\d+) \| [^|]* \|$", said, re.MULTILINE)
    assert sum(map(int, sizes)) == 40


def test_no_regressions_is_said_plainly() -> None:
    cases = tuple(msgspec.structs.replace(case, regression=False) for case in example().cases)
    said = regressions(msgspec.structs.replace(example(), cases=cases))
    assert "**No regressions.** Nothing that was resolved or dormant came back." in said
    assert "came back, in" not in said


def test_what_is_not_known_is_said() -> None:
    bare = msgspec.structs.replace(
        example().cases[0],
        first_seen="",
        last_seen="",
        rca_id=0,
        suspects=(),
        version="",
        symptom_id=0,
    )
    said = regressions(msgspec.structs.replace(example(), cases=(bare,)))
    assert "| not known | not known | none | not known | 1: `test_discount" in said
    assert "| none found |" in said


@settings(max_examples=40)
@given(findings_of_any_kind())
def test_any_findings_make_a_report(findings: Findings) -> None:
    said = regressions(findings)
    said.encode()
    assert_inert(said)
    assert ("No regressions" in said) != any(case.regression for case in findings.cases)


def test_no_failures() -> None:
    said = regressions(msgspec.structs.replace(example(), cases=(), families=()))
    assert "No regressions" in said
    assert "No failures." in said
