"""The verdict: one paragraph, in plain words, with numbers that add up.

The summary on a terminal: whole text, any width, nothing a terminal would obey.
"""

import re

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from interlock.system.text import count_columns
from interlock_rca.records import CaseFinding, FindingFamily, Findings
from interlock_rca.report.outline import build_outline
from interlock_rca.report.summary import (
    find_trust,
    format_analysts,
    format_history,
    format_standing,
    format_summary,
    format_verdict,
    wrap_text,
)
from rca_tests.report.strategies import findings_of_any_kind
from rca_tests.worlds.findings import example, hostile, many


def test_the_whole_sentence() -> None:
    assert format_verdict(build_outline(example())) == (
        "40 failures, 6 causes: 1 product regression (14 failures), 1 product bug (5 failures), "
        "1 automation bug (7 failures), 1 infrastructure problem (8 failures), 1 cause of unknown "
        "kind (3 failures), 1 flake (3 failures). 2 were seen before. 3 causes (17 failures) wait "
        "for review. 2 failures still in analysis. 1 failure could not be analysed to the end."
    )


@given(findings_of_any_kind())
def test_numbers_in_brackets_and_the_loose_ones_make_the_total(findings: Findings) -> None:
    output = build_outline(findings)
    first = format_verdict(output).partition(". ")[0]
    sizes = [int(number) for number in re.findall(r"\((\d+) failure", first)]
    loose = re.search(r"; (\d+) not grouped yet", first)
    if output.families:
        assert sum(sizes) + (int(loose[1]) if loose else 0) == output.total


def _suite(**fields: str) -> Findings:
    case = CaseFinding(case_id="a", case_no=1, test_name="a", **fields)  # type: ignore[arg-type]
    family = FindingFamily(family_id="f", title="t", members=("a",))
    return Findings(suite_id=1, name="s", made_at="", families=(family,), cases=(case,))


@pytest.mark.parametrize(
    ("fields", "result"),
    [
        ({"status": "triaged", "step": "F5_REVIEW"}, "Nothing is reviewed yet"),
        ({"status": "closed"}, "Everything is reviewed."),
        ({"step": "F1_TRIAGE"}, "1 failure still in analysis."),
        ({"stuck": "why"}, "1 failure could not be analysed to the end."),
    ],
)
def test_where_it_stands(fields: dict[str, str], result: str) -> None:
    assert result in format_verdict(build_outline(_suite(**fields)))


def test_nothing_and_nothing_grouped() -> None:
    suite = _suite(step="F5_REVIEW")
    empty = msgspec.structs.replace(suite, cases=(), families=())
    assert format_verdict(build_outline(empty)) == "No failures. There is nothing to explain."
    loose = msgspec.structs.replace(suite, families=())
    assert format_verdict(build_outline(loose)).startswith(
        "1 failure, not grouped yet. Nothing is reviewed"
    )


def test_words_for_one_cause() -> None:
    first, second, third, *_ = build_outline(example()).causes
    assert format_standing(first) == "9 wait for review, 5 closed"
    assert format_standing(second) == "Waits for review"
    assert format_history(first) == "Came back: seen before, first on 2030-09-14"
    assert format_history(second) == "New: not seen before"
    assert [find_trust(cause) for cause in (first, second, third)] == [
        "unreviewed",
        "unreviewed",
        "auto",
    ]


@pytest.mark.parametrize(
    ("agent", "result"),
    [
        ("", ""),
        ("basic", "the built-in analyst"),
        ("human=manual, manual", "hand"),
        ("basic, investigate=exec:./look", "the built-in analyst, investigate=exec:./look"),
        ("batch-file", "agents that answer in batches of files"),
    ],
)
def test_who_analysed_it_is_said_in_words(agent: str, result: str) -> None:
    assert format_analysts(build_outline(msgspec.structs.replace(example(), agent=agent))) == result


WHOLE = """\
Lantern nightly
40 failures, 6 causes: 1 product regression (14 failures), 1 product bug (5
failures), 1 automation bug (7 failures), 1 infrastructure problem (8 failures),
1 cause of unknown kind (3 failures), 1 flake (3 failures). 2 were seen before.
3 causes (17 failures) wait for review. 2 failures still in analysis. 1 failure
could not be analysed to the end.

 1  product, regression, 14 failures
    Discounts are rounded for each line, so totals are a cent too high
    at lantern-shop:shop/pricing/discount.py:88
    suspect 4be1c07d92 by Mara Lindqvist: Round discounts per line instead of p…
      the first commit after the last green run that touches discount.py, which
      14 of 14 stacks name
    pb001, critical, confidence 0.86; Came back: seen before, first on
    2030-09-14; 9 wait for review, 5 closed

 2  product, 5 failures
    A book without a cover makes its page fail
    pb001, high, confidence 0.72; New: not seen before; Waits for review

 3  automation, 7 failures
    Tests wait for the old sign-in button
    at lantern-tests:pages/login.py:17
    suspect 9d41e77 by Yuki Sato: Rename the sign-in button
      renames the id that the tests wait for
    ab001, medium, confidence 0.91; New: not seen before; Reviewed

 4  infrastructure, 8 failures
    The search database of the test environment was down
    en001, high, confidence 0.80; Seen before, first on 2030-12-19; Reviewed

 5  unknown, 3 failures
    The import was killed, nobody knows why
    ti001; New: not seen before; 1 stopped, 2 in analysis

 6  flake, 3 failures
    Stock counts differ when readers race
    nd001, low, confidence 0.55; Seen before, first on 2031-01-11; Waits for
    review

Waiting
  17 failures  for a person's review
  1 failure    for a look at why it stopped
  1 failure    for an answer to investigate
  1 failure    for an answer to recall

No suspect was found for 1 cause: that clears no commit. Looked at, as far as it
could be found: the lines of the stack and who wrote them; the failing test's
source, what it imports and calls, and the code it came with; names and words of
the message and of the changes; renamed and removed files; changed dependencies,
settings and submodules. Not looked at: what the code does when it runs, data,
services, submodules that are not checked out, and repositories that were not
named.

Files
  out/report.html
  out/report.md"""


def test_the_whole_text() -> None:
    lines = format_summary(example(), ["out/report.html", "out/report.md"])
    assert "\n".join(line.text for line in lines) == WHOLE


def test_styles_name_what_a_line_is() -> None:
    lines = format_summary(example(), ["out/report.html"])
    assert {line.style for line in lines} == {"head", "alarm", "cause", "plain", "detail", "file"}
    assert [line.text for line in lines if line.style == "alarm"] == [
        " 1  product, regression, 14 failures"
    ]


@settings(max_examples=60)
@given(findings_of_any_kind(), st.integers(30, 120))
def test_every_line_fits_and_is_printable(findings: Findings, width: int) -> None:
    for line in format_summary(findings, width=width):
        assert count_columns(line.text) <= width
        assert line.text.isprintable()


@pytest.mark.parametrize("width", [0, 30, 80, 200])
def test_hostile_texts_fit_too(width: int) -> None:
    for line in format_summary(hostile(), width=width):
        assert count_columns(line.text) <= max(width, 30)
        assert line.text.isprintable()


def test_wide_characters_are_folded_by_columns() -> None:
    assert wrap_text("漢字漢字 漢字漢字", 10) == ["漢字漢字", "漢字漢字"]
    assert wrap_text("漢字漢字漢字", 9, "  ") == ["  漢字漢…"]


def test_many_causes_are_counted() -> None:
    result = "\n".join(line.text for line in format_summary(many(100, 20, 0)))
    assert "and 8 more causes with 40 failures, in the report" in result


def test_nothing_waits_when_all_is_reviewed() -> None:
    cases = tuple(msgspec.structs.replace(case, status="closed") for case in example().cases)
    lines = format_summary(msgspec.structs.replace(example(), cases=cases))
    assert "Waiting" not in [line.text for line in lines]


def test_a_suspect_of_an_earlier_night_is_called_so() -> None:
    cases = tuple(
        msgspec.structs.replace(
            case, suspects=tuple(msgspec.structs.replace(each, then=True) for each in case.suspects)
        )
        for case in example().cases
    )
    result = [line.text for line in format_summary(msgspec.structs.replace(example(), cases=cases))]
    assert any(line.startswith("    suspect then 4be1c07d92 by Mara Lindqvist") for line in result)


def test_reasons_against_a_suspect_are_whole_or_say_that_they_are_cut() -> None:
    def list_reasons(why: str) -> list[str]:
        def with_why(case: CaseFinding) -> CaseFinding:
            suspects = tuple(msgspec.structs.replace(each, why=why) for each in case.suspects)
            return msgspec.structs.replace(case, suspects=suspects)

        cases = tuple(map(with_why, example().cases))
        lines = format_summary(msgspec.structs.replace(example(), cases=cases), (), 80)
        return [line.text.strip() for line in lines if line.text.startswith("      ")][:2]

    many = list_reasons("it changed the lid; " + "; ".join(["it is named like the test"] * 9))
    assert many[-1].endswith("it is named like the test")
    assert list_reasons("word " * 60)[-1].endswith("…")


def test_who_named_no_repository_is_told_how() -> None:
    bare = tuple(msgspec.structs.replace(case, suspects=()) for case in example().cases)
    alone = msgspec.structs.replace(example(), repos=(), cases=bare)
    result = " ".join(line.text for line in format_summary(alone))
    assert 'Name it and analyse again: --repo "NAME=PATH:PURPOSE".' in result
    assert "--repo" not in " ".join(line.text for line in format_summary(example()))
