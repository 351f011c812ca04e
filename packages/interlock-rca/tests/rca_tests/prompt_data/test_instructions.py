"""The answers prompts ask for: the fields outside agents know, with examples that hold them.

Every guard stands in the prompts of its families while its condition holds, and only there.
"""

import json
import re
from typing import Any

import msgspec
import pytest

from interlock.system.test_output import TestCounts
from interlock_rca.prompt_data.instructions import (
    format_example,
    format_schema,
    read_instructions,
    select_guards,
)
from interlock_rca.records import PriorKnowledge
from interlock_rca.steps import F1, F2, F3, FAMILIES
from interlock_rca.taxonomy import TAXONOMY
from rca_tests.world import BARE, FAILURE, LAUNCH, RICH, SHORTS, rendered

TABLE = read_instructions()
ARTIFACTS, GUARDS = TABLE.artifacts, TABLE.guards
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
    example: dict[str, Any] = json.loads(format_example(ARTIFACTS[name]))
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
            assert TAXONOMY.find_code(str(value)) == value


def test_a_reviewer_is_told_every_decision_and_target() -> None:
    text = format_schema(ARTIFACTS["review"])
    assert all(word in text for word in ("approve", "reassess", "overturn", F1, F2, F3))


@pytest.mark.parametrize("name", REQUIRED)
def test_the_text_has_a_row_for_each_field_and_the_example(name: str) -> None:
    text = format_schema(ARTIFACTS[name])
    for field in ARTIFACTS[name]:
        need = "yes" if field.required else "no"
        assert f"| `{field.name}` | {field.kind} | {need} | {field.meaning} |" in text
    assert json.loads(text.split("```json\n")[1].split("\n```")[0])


LABELS = {
    "clock-skew": "F1",
    "G1": "F1 F3",
    "G2": "F1 F3",
    "G3": "F1 F3",
    "G4": "F0 F1 F2 F3 F4 F5 F6",
    "G5": "F0",
    "G6": "F1 F4",
    "G7": "F1",
    "G8": "F1 F3",
    "G9": "F1",
    "G10": "F3",
    "G11": "F1 F3",
    "G12": "F3",
    "G13": "F1 F3",
    "G14": "F3 F5",
    "G15": "F3",
    "G16": "F3",
    "G17": "F3",
    "G18": "F2 F3",
    "G19": "F3",
    "G20": "F1 F3",
    "G21": "F3",
    "G22": "F3",
    "G23": "F4",
    "G24": "F4",
    "G25": "F4",
    "G26": "F1 F3",
    "G27": "F3",
    "G28": "F2 F3",
    "G29": "F3 F6",
    "G30": "F3",
    "G31": "F3",
    "G32": "F3 F5",
    "G33": "F1 F3",
    "G34": "F3",
}
WHEN = {
    "G1": "cut",
    "G2": "no_log",
    "G3": "noise",
    "G4": "missing",
    "G5": "candidates",
    "G6": "siblings",
    "G7": "timeout_words",
    "G8": "siblings",
    "G9": "many_skipped",
    "G10": "siblings",
    "G31": "no_git",
}
CALM: dict[str, Any] = RICH | {"siblings": (), "siblings_total": 0, "history": PriorKnowledge()}


def failing(**parts: Any) -> dict[str, Any]:
    return {"failure": msgspec.structs.replace(FAILURE, **parts)}


def launched(**parts: Any) -> dict[str, Any]:
    return {"launch": msgspec.structs.replace(LAUNCH, **parts)}


STIRS: dict[str, tuple[set[str], dict[str, Any]]] = {
    "nothing": (set(), {}),
    "the source cut the log": ({"cut"}, failing(log_truncated=True)),
    "a log too long": ({"cut"}, failing(log="line\n" * 9_000)),
    "no log": ({"no_log", "missing"}, failing(log="")),
    "a blank log": ({"no_log"}, failing(log=" \n")),
    "colours": ({"noise"}, failing(message="\x1b[31mred\x1b[0m")),
    "no version": ({"missing"}, launched(version="")),
    "no branch": ({"missing"}, launched(branch="")),
    "no git facts": ({"missing", "no_git"}, launched(branch="", commit="")),
    "candidates": ({"candidates"}, {"history": RICH["history"]}),
    "siblings": ({"siblings"}, {"siblings": RICH["siblings"], "siblings_total": 2}),
    "itself as a sibling": (
        set(),
        {"siblings": (msgspec.convert({"id": FAILURE.id}, type(RICH["siblings"][0])),)},
    ),
    "a time-out": ({"timeout_words"}, failing(message="Timed out after 5 s")),
    "a deadline in the log": ({"timeout_words"}, failing(log="context deadline exceeded")),
    "as many skipped as usual": (set(), launched(tally=TestCounts(tests=100, skipped=40))),
    "more skipped": ({"many_skipped"}, launched(tally=TestCounts(tests=100, skipped=41))),
    "no tests counted": (set(), launched(tally=TestCounts(skipped=41))),
    "no launch": ({"missing", "no_git"}, {"launch": None}),
}


@pytest.mark.parametrize("short", SHORTS)
@pytest.mark.parametrize("stir", STIRS)
def test_a_prompt_holds_the_guards_it_needs(stir: str, short: str) -> None:
    holding, changes = STIRS[stir]
    marks = re.findall(r"\((G\d+|clock-skew)\)", rendered(short, CALM | changes))
    wanted = {
        mark
        for mark, families in LABELS.items()
        if short in families.split() and (mark not in WHEN or WHEN[mark] in holding)
    }
    assert sorted(marks) == sorted(wanted)


def test_the_table_is_whole() -> None:
    assert {guard.mark: " ".join(guard.families) for guard in GUARDS} == LABELS
    assert {guard.mark: guard.condition for guard in GUARDS if guard.condition} == WHEN
    assert [guard.number for guard in GUARDS] == list(range(35))
    assert set(WHEN.values()) | {""} == set(TABLE.conditions)


def test_every_condition_is_stirred_above() -> None:
    assert set().union(*(holding for holding, _ in STIRS.values())) == set(WHEN.values())


def test_guards_say_what_to_do_in_one_or_two_lines() -> None:
    for guard in GUARDS:
        assert 40 < len(guard.sentence) < 260, guard.name
        assert guard.sentence.endswith(".")
        assert not re.search(r"[`{}|]|\(G\d", guard.sentence), guard.name


def test_guards_of_a_family_by_condition() -> None:
    assert [guard.mark for guard in select_guards("F0", set())] == []
    assert [guard.mark for guard in select_guards("F0", {"candidates"})] == ["G5"]
    assert [guard.mark for guard in select_guards("F4", set())] == ["G23", "G24", "G25"]


def test_a_bare_failure_still_has_a_prompt_for_every_step() -> None:
    for short in SHORTS:
        assert "(missing)" in rendered(short, BARE)
