"""Kinds, codes and states: every case has exactly one of each."""

import pytest

from interlock.rca.records import CaseFinding
from interlock.rca.report.words import (
    DEFECTS,
    defect_meaning,
    kind_of,
    severity_rank,
    state_of,
    step_name,
    trust_of,
)


def case(**fields: str) -> CaseFinding:
    return CaseFinding(case_id="a", case_no=1, test_name="t", **fields)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("category", "code", "kind"),
    [
        ("product", "", "product"),
        ("Product ", "ab001", "product"),
        ("environment", "", "infra"),
        ("flaky", "", "flake"),
        ("", "pb001", "product"),
        ("", "AU001", "automation"),
        ("", "en001", "infra"),
        ("", "fw001", "firmware"),
        ("", "nd001", "flake"),
        ("", "ti001", "unknown"),
        ("made up", "", "unknown"),
        ("", "", "unknown"),
    ],
)
def test_kind_is_the_category_or_what_the_code_says(category: str, code: str, kind: str) -> None:
    assert kind_of(case(category=category, defect_type=code)) == kind


@pytest.mark.parametrize(
    ("fields", "state"),
    [
        ({"status": "closed", "decision": "approve"}, "closed"),
        ({"status": "reviewed"}, "reviewed"),
        ({"status": "investigated", "decision": "overturn"}, "reviewed"),
        ({"status": "investigated", "decision": "whatever", "step": "F5_REVIEW"}, "waiting"),
        ({"status": "triaged", "step": "F5_REVIEW"}, "waiting"),
        ({"status": "triaged", "step": "review"}, "waiting"),
        ({"status": "triaged", "step": "F5_REVIEW", "stuck": "why"}, "stopped"),
        ({"status": "triaged", "step": "F3_INVESTIGATE"}, "working"),
        ({"status": "open"}, "working"),
    ],
)
def test_state_says_who_is_waited_for(fields: dict[str, str], state: str) -> None:
    assert state_of(case(**fields)) == state


@pytest.mark.parametrize(
    ("fields", "trust"),
    [
        ({}, "unreviewed"),
        ({"decision": "whatever", "reviewed_by": "ines"}, "unreviewed"),
        ({"decision": "approve", "reviewed_by": "ines"}, "human"),
        ({"decision": "overturn", "reviewed_by": "Auto: above 0.9"}, "auto"),
        ({"decision": "approve"}, "auto"),
    ],
)
def test_only_a_named_person_counts_as_human(fields: dict[str, str], trust: str) -> None:
    assert trust_of(case(**fields)) == trust


def test_codes_have_a_meaning_and_foreign_ones_say_so() -> None:
    assert all(defect_meaning(code) for code in DEFECTS)
    assert defect_meaning("PB001") == "Product bug"
    assert defect_meaning("pb_1k2") == "Product bug, the project's own code"
    assert defect_meaning("zz") == "the project's own code"
    assert defect_meaning("") == ""


def test_severities_rank_and_unknown_ones_come_last() -> None:
    ranked = sorted(["", "low", "critical", "odd", "High", "medium"], key=severity_rank)
    assert ranked == ["critical", "High", "medium", "low", "", "odd"]


def test_steps_have_one_name() -> None:
    assert [step_name(step) for step in ("F5_REVIEW", "f5", "review", "")] == ["review"] * 3 + [""]
