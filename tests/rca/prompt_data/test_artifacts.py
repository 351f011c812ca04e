"""The answers prompts ask for: the fields outside agents know, with examples that hold them."""

import json
from typing import Any

import pytest

from interlock.rca.prompt_data.instructions import (
    ARTIFACTS,
    DECISIONS,
    LOOP_TARGETS,
    example_of,
    schema_text,
)
from interlock.rca.steps import FAMILIES
from interlock.rca.taxonomy import TAXONOMY

REQUIRED = {
    "recall": {"match", "confidence", "reasoning"},
    "triage": {
        "symptom_category",
        "defect_type_hypothesis",
        "candidate_repos",
        "skip_investigation",
    },
    "resolve": {"selected_repos"},
    "investigate": {"rca_message", "defect_type", "convergence_score", "evidence_refs"},
    "correlate": {"is_duplicate", "confidence", "reasoning"},
    "review": {"decision"},
    "report": {
        "case_id",
        "test_name",
        "summary",
        "description",
        "defect_type",
        "priority",
        "component",
        "evidence_refs",
        "regression_table",
    },
}


def test_every_family_has_an_artifact() -> None:
    assert set(ARTIFACTS) == {family.name for family in FAMILIES} == set(REQUIRED)


@pytest.mark.parametrize("name", REQUIRED)
def test_the_example_is_an_artifact(name: str) -> None:
    fields = {field.name: field for field in ARTIFACTS[name]}
    example: dict[str, Any] = json.loads(example_of(ARTIFACTS[name]))
    assert {field.name for field in fields.values() if field.required} == REQUIRED[name]
    assert REQUIRED[name] <= set(example) <= set(fields)
    kinds: dict[str, Any] = {
        "boolean": bool,
        "string": str,
        "integer": int,
        "number 0 to 1": float,
        "list of strings": list,
        "list of objects": list,
        "object": dict,
    }
    for field, value in example.items():
        assert isinstance(value, kinds.get(fields[field].kind, str)), field
        assert value != ""
        if fields[field].kind == "defect code":
            assert TAXONOMY.code(str(value)) == value


def test_a_reviewer_is_told_every_decision_and_target() -> None:
    text = schema_text(ARTIFACTS["review"])
    assert all(word in text for word in (*DECISIONS, *LOOP_TARGETS))


@pytest.mark.parametrize("name", REQUIRED)
def test_the_text_has_a_row_for_each_field_and_the_example(name: str) -> None:
    text = schema_text(ARTIFACTS[name])
    for field in ARTIFACTS[name]:
        need = "yes" if field.required else "no"
        assert f"| `{field.name}` | {field.kind} | {need} | {field.meaning} |" in text
    assert json.loads(text.split("```json\n")[1].split("\n```")[0])
