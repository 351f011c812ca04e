"""Test the tags of delivery's rules: a user's own, and unknown values."""

import msgspec
import pytest

from delivery_tests.briefs import CIRCUIT
from interlock.engine.circuit import Circuit
from interlock.system.errors import CircuitError
from interlock_delivery.steps import read_rule_tags


def retagged(**tags: dict[str, str]) -> Circuit:
    """Return the circuit with these tags and no others."""
    rules = tuple(
        msgspec.structs.replace(rule, tags=tags.get(rule.id, {})) for rule in CIRCUIT.rules
    )
    return msgspec.structs.replace(CIRCUIT, rules=rules)


def test_a_users_own_tags_count_alone() -> None:
    own = {"verdict": "objects", "by": "critic"}
    found = read_rule_tags(retagged(failing=own))
    assert {rule_id: tags for rule_id, tags in found.items() if tags} == {"failing": own}


@pytest.mark.parametrize("tags", [{"waits": "long"}, {"verdict": "yes", "by": "x"}])
def test_an_unknown_value_is_refused_with_its_rule(tags: dict[str, str]) -> None:
    with pytest.raises(CircuitError, match=r"rule 'failing' has the tag .* use one of"):
        read_rule_tags(retagged(failing=tags))


def test_a_verdict_without_a_judge_is_refused() -> None:
    with pytest.raises(CircuitError, match="say whose it is"):
        read_rule_tags(retagged(failing={"verdict": "objects"}))
