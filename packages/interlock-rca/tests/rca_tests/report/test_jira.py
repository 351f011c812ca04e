"""Jira drafts: one per family, complete, honest about review and evidence, with safe names."""

import json
import re

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from interlock_rca.records import Findings
from interlock_rca.report.jira import (
    build_draft,
    format_case_draft,
    format_plain_text,
    name_files,
    render_drafts,
)
from interlock_rca.report.outline import build_outline
from rca_tests.report.strategies import findings_of_any_kind
from rca_tests.worlds.findings import example, hostile

FIELDS = {
    "schema_version",
    "family_id",
    "summary",
    "description",
    "defect_type",
    "priority",
    "components",
    "evidence_refs",
    "affected_versions",
    "labels",
    "reviewed",
    "case_ids",
}


def test_a_file_for_each_family() -> None:
    found = render_drafts(build_outline(example()))
    assert len(found) == 6
    assert "jira-drafts/family-rca-31.json" in found
    assert all(set(json.loads(text)) == FIELDS for text in found.values())


def test_what_f6_wrote_comes_first() -> None:
    draft = build_draft(build_outline(example()).causes[0])
    assert draft.summary == "Basket totals are one cent too high with three discounted lines"
    assert draft.description == "Discounts are rounded per line since 4be1c07d92."
    assert draft.priority == "Highest"
    assert draft.labels == ("interlock", "product", "regression", "unreviewed")
    assert len(draft.case_ids) == 14


def test_a_reference_that_was_not_found_is_no_evidence() -> None:
    draft = build_draft(build_outline(example()).causes[0])
    assert draft.evidence_refs == (
        "lantern-shop:shop/pricing/discount.py:88",
        "lantern-shop:4be1c07d92",
    )


def test_gaps_are_filled_from_the_family() -> None:
    draft = build_draft(build_outline(example()).causes[1])
    assert draft.summary == "A book without a cover makes its page fail"
    assert draft.priority == "High"
    assert "- catalogue.covers.TestCovers.test_cover_is_shown[zoom]" in draft.description
    assert "Error: NullPointerException: cover is null" in draft.description
    assert draft.components == ("catalogue",)


def test_reviewed_only_if_all_cases_are() -> None:
    reviewed = [build_draft(cause).reviewed for cause in build_outline(example()).causes]
    assert reviewed == [False, False, True, True, False, False]


def test_text_to_paste() -> None:
    result = format_plain_text(build_draft(build_outline(example()).causes[0]))
    assert result.startswith("Basket totals are one cent too high")
    assert "Defect type: pb001 (Product bug)" in result
    closed = next(case for case in example().cases if case.draft)
    assert format_case_draft(closed).startswith("summary: Basket totals")
    assert format_case_draft(example().cases[0]) == ""


@given(st.lists(st.text(max_size=60), max_size=20))
def test_file_names_are_safe_stable_and_different(ids: list[str]) -> None:
    names = name_files(ids)
    assert all(re.fullmatch(r"family[-_a-z0-9]{1,70}", name) for name in names)
    assert len(set(names)) == len(names)
    assert name_files(dict.fromkeys(ids)) == [names[ids.index(each)] for each in dict.fromkeys(ids)]


def test_plain_ids_name_their_file_and_others_get_a_mark() -> None:
    assert name_files(["rca-31", "con", "rca-31"]) == [
        "family-rca-31",
        "family-con",
        "family-rca-31_2",
    ]
    for odd in ("RCA-31", "rca 31", "../rca-31", "rca-31" * 40, ""):
        (name,) = name_files([odd])
        assert re.fullmatch(r"family(-[-a-z0-9]+)?_[0-9a-f]{10}", name)


@settings(max_examples=40)
@given(findings_of_any_kind())
def test_any_findings_make_drafts(findings: Findings) -> None:
    found = render_drafts(build_outline(findings))
    assert len(found) == len(build_outline(findings).families)
    for text in found.values():
        text.encode()


def test_hostile_drafts_are_inert() -> None:
    found = render_drafts(build_outline(hostile()))
    assert len(found) == 15
    for name, text in found.items():
        assert re.fullmatch(r"jira-drafts/family[-_a-z0-9]*\.json", name)
        assert set(json.loads(text)) == FIELDS
        assert "\n" not in json.loads(text)["summary"]


def test_loose_cases_get_no_draft() -> None:
    assert render_drafts(build_outline(msgspec.structs.replace(example(), families=()))) == {}
