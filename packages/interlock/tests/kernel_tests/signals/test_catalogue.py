"""The catalogue against the seeds: every signal, word for word."""

import re
from pathlib import Path

import pytest

from interlock.signals.catalogue import (
    WORKING,
    SignalRow,
    find_signal,
    list_role_signals,
    list_signals,
    normalize_role,
)

GOLDEN = Path(__file__).parent / "golden" / "text"
HANDLERS = {
    "ready_for_review": "DISPATCH_CRITIC",
    "task_incomplete": "LOG_AND_FILL_SLOTS",
    "infra_blocked": "ENTER_REMEDIATION",
    "review_passed": "DISPATCH_AUDITOR",
    "review_failed": "DISPATCH_DEVELOPER_REWORK",
    "audit_passed": "MARK_COMPLETE",
    "audit_failed": "DISPATCH_DEVELOPER_REWORK",
    "audit_blocked": "ENTER_REMEDIATION",
    "expanded_spec": "PROCESS_EXPANSION",
    "remediation_complete": "DISPATCH_HEALTH_AUDITOR",
    "health_healthy": "EXIT_REMEDIATION",
    "health_unhealthy": "RETRY_REMEDIATION",
    "divine_clarification": "AWAIT_DIVINE_RESPONSE",
    "expert_request": "DISPATCH_EXPERT",
    "expert_advice": "DELIVER_TO_REQUESTING_AGENT",
    "expert_unsuccessful": "ESCALATE_TO_DIVINE",
    "expert_created": "REGISTER_EXPERT",
    "file_conflict": "QUEUE_OR_COORDINATE",
    "checkpoint": "PROCESS_CHECKPOINT",
    "unknown": "REQUEST_CLARIFICATION",
}
TEXT = [row for row in list_signals("text") if row.key != "unknown"]


def test_the_keys_and_handlers_of_the_seed_are_all_there() -> None:
    assert {row.key: row.handler for row in list_signals("text")} == HANDLERS


@pytest.mark.parametrize("row", TEXT, ids=lambda row: row.key)
def test_templates_are_the_seeds_own(row: SignalRow) -> None:
    name = row.name.replace(": ", "-").replace(" ", "_")
    assert row.template == (GOLDEN / f"{name}.txt").read_text()


def test_every_golden_template_has_a_row() -> None:
    assert len(list(GOLDEN.iterdir())) == len(TEXT) == 19


@pytest.mark.parametrize("row", TEXT, ids=lambda row: row.key)
def test_required_sections_exist_and_sections_stand_in_the_template(row: SignalRow) -> None:
    labels = {section.label for section in row.sections}
    assert {label for some in row.requires for label in some} <= labels
    for label in labels - {"Task", "Prompt"}:
        assert re.search(rf"(?m)^{re.escape(label)}(?: \(.*\))?:", row.template)


def test_names_are_unique_within_a_protocol() -> None:
    names = [(row.protocol, row.name) for row in list_signals()]
    assert len(names) == len(set(names))
    assert {row.protocol for row in list_signals()} == {"text", "line", "file"}


@pytest.mark.parametrize("row", list_signals(), ids=lambda row: f"{row.protocol}-{row.name}")
def test_every_row_says_what_it_asks_in_one_sentence(row: SignalRow) -> None:
    assert re.fullmatch(r"[A-Z][^.]*(?:\.\w[^.]*)*\.", row.asks)


def test_the_priority_list_of_the_seed() -> None:
    levels = {row.name: row.level for row in TEXT}
    assert {name for name, level in levels.items() if level == 1} == {
        "INFRA_BLOCKED",
        "AUDIT_BLOCKED",
    }
    assert levels["SEEKING_DIVINE_CLARIFICATION"] == 2
    assert levels["EXPERT_REQUEST"] == 3
    assert levels["FILE CONFLICT"] == 4
    assert levels["CHECKPOINT"] == 6
    assert sum(level == 5 for level in levels.values()) == 13


def test_passes_and_verdicts() -> None:
    passing = {row.name for row in TEXT if row.passing}
    verdicts = {row.name for row in TEXT if row.verdict}
    assert verdicts == {"REVIEW_PASSED", "AUDIT_PASSED", "HEALTH_AUDIT: HEALTHY"}
    assert passing == verdicts | {"READY_FOR_REVIEW", "REMEDIATION_COMPLETE"}
    assert [row.name for row in TEXT if not row.terminal] == ["CHECKPOINT"]


def test_nobody_may_pass_their_own_work() -> None:
    for role in WORKING:
        names = {row.name for row in list_role_signals(role)}
        assert len(names & {"READY_FOR_REVIEW", "REVIEW_PASSED", "AUDIT_PASSED"}) <= 1


def test_baseline_agents_may_ask_and_experts_may_not() -> None:
    for name in ("SEEKING_DIVINE_CLARIFICATION", "EXPERT_REQUEST"):
        row = find_signal("text", name)
        assert row is not None
        assert row.roles == WORKING[:-2]
        assert WORKING[-2:] == ("expert", "expert-creator")
    assert find_signal("text", "SAY_WHAT") is None


@pytest.mark.parametrize(
    ("spelt", "role"),
    [
        ("developer", "developer"),
        (" Developer ", "developer"),
        ("BA", "business-analyst"),
        ("business_analyst", "business-analyst"),
        ("Health Auditor", "health-auditor"),
        ("orchestrator", "expert-creator"),
        ("expert-maker", "expert-creator"),
        ("janitor", "janitor"),
    ],
)
def test_roles_have_one_spelling(spelt: str, role: str) -> None:
    assert normalize_role(spelt) == role


def test_statuses_that_may_follow_exist() -> None:
    for row in list_signals("file"):
        file = row.name.partition(":")[0]
        assert all(find_signal("file", f"{file}:{status}") for status in row.then)
