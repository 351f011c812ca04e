"""`report.md`: causes first, small enough for a comment, nothing in it that somebody planted.

`regression-report.md`: what came back, or plainly that nothing did.
"""

import re

import msgspec
from hypothesis import given, settings

from interlock_rca.records import Findings
from interlock_rca.report.markdown import MAX_LENGTH, render_markdown, render_regressions
from interlock_rca.report.outline import build_outline
from rca_tests.report.strategies import findings_of_any_kind
from rca_tests.worlds.findings import example, hostile, many
from tests.world.markdown_markup import assert_inert


def test_the_overview_comes_first_and_adds_up() -> None:
    result = render_markdown(build_outline(example()))
    assert result.startswith("# Lantern nightly\n\n**40 failures, 6 causes: 1 product regression")
    rows = re.findall(r"^\| \d \|.*", result, re.MULTILINE)
    assert [int(row.split(" | ")[3]) for row in rows] == [14, 5, 7, 8, 3, 3]
    assert "| | **all** | | **40** | | | |" in result
    assert result.index("| 6 |") < result.index("## 1. ")


def test_a_cause_has_its_suspect_evidence_and_tests() -> None:
    result = render_markdown(build_outline(example()))
    for part in (
        "*Product · regression · pb001 (Product bug) · critical severity · confidence 0.86",
        "- [`4be1c07d92`](<https://git.example.com/lantern/shop/commit/4be1c07d92aa41c5b7e0f3d8c6",
        ">) Round discounts per line instead of per basket by Mara Lindqvist, 2031-03-03 (+1,204",
        "- ✗ missing: `lantern-shop:shop/pricing/quote.py:cents`",
        "<details><summary>14 failing tests</summary>",
        "- [nightly-e2e #\u200b412](<https://reports.example.com/ui/lantern/launches/881>)",
    ):
        assert part in result


@settings(max_examples=40)
@given(findings_of_any_kind())
def test_any_findings_stay_text(findings: Findings) -> None:
    assert_inert(render_markdown(build_outline(findings)))


def test_hostile_texts_stay_text() -> None:
    assert_inert(render_markdown(build_outline(hostile())))


def test_a_comment_can_hold_it() -> None:
    result = render_markdown(build_outline(many(10_000, 500)))
    assert len(result) < MAX_LENGTH + 200
    assert "more causes in `report.html` and `report.json`" in result
    assert "| | *470 more causes* | | 9,400 | | | |" in result


def test_many_tests_are_counted_not_listed() -> None:
    assert "| *and 9,980 more in `report.html`* | | |" in render_markdown(
        build_outline(many(10_000, 1))
    )


def test_no_failures() -> None:
    empty = msgspec.structs.replace(example(), cases=(), families=())
    assert "**No failures.** There is nothing to explain." in render_markdown(build_outline(empty))


def test_the_row_of_a_regression() -> None:
    result = render_regressions(build_outline(example()))
    assert "**1 symptom came back, in 14 failing tests.**" in result
    (row,) = [row for row in result.split("\n") if "(symptom 12)" in row]
    cells = [cell.strip() for cell in row.strip("|").split(" | ")]
    assert cells[1:5] == ["2030-09-14", "2030-11-02", "RCA 31, 2030-11-05", "`5.2.0-rc1`"]
    assert cells[5].startswith("14: `test_discount_is_rounded_once[EUR]`<br>")
    assert cells[5].endswith("<br>and 9 more")
    assert cells[6].startswith("[`4be1c07d92`](<https://")


def test_new_and_known_add_up() -> None:
    result = render_regressions(build_outline(example()))
    assert "Of 6 causes: 3 new, 2 known, 1 back." in result
    sizes = re.findall(r"^\| \d+ \|[^|]*\|[^|]*\| (\d+) \|", result, re.MULTILINE)
    assert sum(map(int, sizes)) == 40


def test_no_regressions_is_said_plainly() -> None:
    cases = tuple(msgspec.structs.replace(case, regression=False) for case in example().cases)
    result = render_regressions(build_outline(msgspec.structs.replace(example(), cases=cases)))
    assert "**No regressions.** Nothing that was resolved or dormant came back." in result
    assert "came back, in" not in result


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
    result = render_regressions(build_outline(msgspec.structs.replace(example(), cases=(bare,))))
    assert "| not known | not known | none | not known | 1: `test_discount" in result
    assert "| none found |" in result


@settings(max_examples=40)
@given(findings_of_any_kind())
def test_any_findings_make_a_report(findings: Findings) -> None:
    result = render_regressions(build_outline(findings))
    result.encode()
    assert_inert(result)
    assert ("No regressions" in result) != any(case.regression for case in findings.cases)


def test_no_regressions_without_failures() -> None:
    result = render_regressions(
        build_outline(msgspec.structs.replace(example(), cases=(), families=()))
    )
    assert "No regressions" in result
    assert "No failures." in result
