"""Every shipped circuit does what its behaviour table says, and no rule of it is idle.

Each rule is removed and altered in turn, each limit moved: verify or the table must notice.
"""

import json
from collections.abc import Callable, Iterator

import pytest

from interlock.engine.circuit_file import parse_circuit, read_circuit
from interlock.engine.verify import verify
from interlock.system.errors import CircuitError
from interlock.system.yaml_text import YamlDocument, read_yaml
from tests.circuits.behaviour_tables import SHIPPED, Behaviour, behaviours, difference
from tests.circuits.mutants import Mutant, Value, limit_mutants, rule_mutants

_MANY = 1000


@pytest.mark.parametrize("circuit", SHIPPED)
def test_a_shipped_circuit_does_what_its_table_says(circuit: str) -> None:
    table = read_circuit(SHIPPED[circuit].read_text(encoding="utf-8"), circuit).circuit
    wrong = []
    for wanted in behaviours(circuit):
        problems = [difference(table, wanted)]
        for step, answer in wanted.answers:
            if isinstance(answer, dict) and answer.keys() != {"signal", "data"}:
                problems.append(str(table.steps[step].shape.find_problem(answer) or ""))
        wrong += [f"{wanted.name}: {problem}" for problem in problems if problem]
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("circuit", SHIPPED)
def test_a_shipped_circuit_has_no_finding_but_rules_that_go_first(circuit: str) -> None:
    findings = verify(read_circuit(SHIPPED[circuit].read_text(encoding="utf-8"), circuit)).findings
    assert [each for each in findings if each.id != "circuit.overlap"] == []


@pytest.mark.parametrize("circuit", SHIPPED)
@pytest.mark.parametrize("break_it", [rule_mutants, limit_mutants])
def test_every_mutant_of_a_shipped_circuit_is_noticed(
    request: pytest.FixtureRequest, circuit: str, break_it: Callable[[Value], Iterator[Mutant]]
) -> None:
    """Of a large circuit every seventh is tried, and with --soak all of them."""
    value = read_yaml(SHIPPED[circuit].read_text(encoding="utf-8"), circuit).value
    wanted = behaviours(circuit)
    mutants = list(break_it(value))
    few = len(mutants) < _MANY or request.config.getoption("--soak")
    tried = mutants if few else mutants[::7]
    survivors = [what for what, text in tried if not _noticed(text, wanted)]
    assert not survivors, "\n".join(survivors)
    assert len(mutants) > len(value["rules"] if break_it is rule_mutants else value["loops"])


def _noticed(text: str, wanted: list[Behaviour]) -> bool:
    """By the behaviour table, or by a finding: the unbroken circuit has none."""
    try:
        written = parse_circuit(YamlDocument("mutant.yaml", json.loads(text), {}))
    except CircuitError:
        return True
    if any(difference(written.circuit, each) for each in wanted):
        return True
    return any(finding.level != "note" for finding in verify(written).findings)
