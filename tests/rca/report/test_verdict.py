"""The verdict: one paragraph, in plain words, with numbers that add up."""

import re

import msgspec
import pytest
from hypothesis import given
from tests.rca.report.strategies import findings_of_any_kind
from tests.world.findings import example

from interlock.rca.records import CaseFinding, FindingFamily, Findings
from interlock.rca.report.outline import outline
from interlock.rca.report.summary import history, made_by, standing, trust, verdict


def test_the_whole_sentence() -> None:
    assert verdict(outline(example())) == (
        "40 failures, 6 causes: 1 product regression (14 failures), 1 product bug (5 failures), "
        "1 automation bug (7 failures), 1 infrastructure problem (8 failures), 1 cause of unknown "
        "kind (3 failures), 1 flake (3 failures). 3 were seen before. 3 causes (17 failures) wait "
        "for review. 2 failures still in analysis. 1 failure could not be analysed to the end."
    )


@given(findings_of_any_kind())
def test_numbers_in_brackets_and_the_loose_ones_make_the_total(findings: Findings) -> None:
    told = outline(findings)
    first = verdict(told).partition(". ")[0]
    sizes = [int(number) for number in re.findall(r"\((\d+) failure", first)]
    loose = re.search(r"; (\d+) not grouped yet", first)
    if told.families:
        assert sum(sizes) + (int(loose[1]) if loose else 0) == told.total


def _suite(**fields: str) -> Findings:
    case = CaseFinding(case_id="a", case_no=1, test_name="a", **fields)  # type: ignore[arg-type]
    family = FindingFamily(family_id="f", title="t", members=("a",))
    return Findings(suite_id=1, name="s", made_at="", families=(family,), cases=(case,))


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"status": "triaged", "step": "F5_REVIEW"}, "Nothing is reviewed yet"),
        ({"status": "closed"}, "Everything is reviewed."),
        ({"step": "F1_TRIAGE"}, "1 failure still in analysis."),
        ({"stuck": "why"}, "1 failure could not be analysed to the end."),
    ],
)
def test_where_it_stands(fields: dict[str, str], said: str) -> None:
    assert said in verdict(outline(_suite(**fields)))


def test_nothing_and_nothing_grouped() -> None:
    suite = _suite(step="F5_REVIEW")
    empty = msgspec.structs.replace(suite, cases=(), families=())
    assert verdict(outline(empty)) == "No failures. There is nothing to explain."
    loose = msgspec.structs.replace(suite, families=())
    assert verdict(outline(loose)).startswith("1 failure, not grouped yet. Nothing is reviewed")


def test_words_for_one_cause() -> None:
    first, second, third, *_ = outline(example()).causes
    assert standing(first) == "9 wait for review, 5 closed"
    assert standing(second) == "Waits for review"
    assert history(first) == "Came back: seen before, first on 2030-09-14"
    assert history(second) == "New: not seen before"
    assert [trust(cause) for cause in (first, second, third)] == [
        "unreviewed",
        "unreviewed",
        "auto",
    ]


@pytest.mark.parametrize(
    ("agent", "said"),
    [
        ("", ""),
        ("basic", "the built-in analyst"),
        ("human=manual, manual", "hand"),
        ("basic, investigate=exec:./look", "the built-in analyst, investigate=exec:./look"),
        ("batch-file", "agents that answer in batches of files"),
    ],
)
def test_who_analysed_it_is_said_in_words(agent: str, said: str) -> None:
    assert made_by(outline(msgspec.structs.replace(example(), agent=agent))) == said
