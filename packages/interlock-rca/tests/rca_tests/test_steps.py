"""The seven steps by name: one table for code, circuit, prompts and files."""

from pathlib import Path

import pytest

from interlock.runtime.circuits import find_circuit
from interlock.system.errors import CircuitError
from interlock_rca.steps import (
    ARTIFACT_FILES,
    F0,
    F3,
    F6,
    FAMILIES,
    LINKED,
    STEPS,
    TRIAGE_STEPS,
    get_family,
    name_prompt_by_family,
    name_prompt_by_number,
)
from rca_tests.world import PROMPTS


def test_the_steps_are_those_of_the_circuit(tmp_path: Path) -> None:
    circuit = find_circuit("rca", tmp_path).open().circuit
    assert tuple(circuit.steps) == STEPS == tuple(ARTIFACT_FILES)
    assert circuit.start == F0
    assert {name for name, step in circuit.steps.items() if LINKED in step.signals} == {
        rule_step for rule in circuit.rules if rule.id == LINKED for rule_step in rule.at
    }
    assert set(TRIAGE_STEPS) < set(STEPS)


def test_each_family_has_a_template_and_an_artifact_of_its_own() -> None:
    assert all((PROMPTS / family.template).is_file() for family in FAMILIES)
    assert len({family.artifact for family in FAMILIES}) == len(FAMILIES)
    assert ARTIFACT_FILES[F3] == "artifact.json"
    assert ARTIFACT_FILES[F6] == "jira-draft.json"


@pytest.mark.parametrize(
    ("attempt", "numbered", "named"),
    [
        (1, "prompt-f3.md", "prompt-investigate.md"),
        (2, "prompt-f3-loop-2.md", "prompt-investigate-loop-1.md"),
        (3, "prompt-f3-loop-3.md", "prompt-investigate-loop-2.md"),
    ],
)
def test_prompts_are_numbered_in_one_folder_and_named_in_the_other(
    attempt: int, numbered: str, named: str
) -> None:
    assert name_prompt_by_number(F3, attempt) == numbered
    assert name_prompt_by_family(F3, attempt) == named


@pytest.mark.parametrize("word", ["F7", "", "F3_INVESTIGATE ", "../F3", "investigate.md"])
def test_what_is_no_step_has_no_family(word: str) -> None:
    with pytest.raises(CircuitError, match="is not a step of the analysis; use one of F0_RECALL"):
        get_family(word)
