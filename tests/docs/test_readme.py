"""What the README and the how-to show is true: the circuit is sound, the links lead somewhere."""

import re
from pathlib import Path

import pytest

from interlock.engine.circuit_file import CircuitText, RuleText, StepText, read_circuit
from interlock.engine.verify import verify
from tests.world.places import ROOT

PAGES = sorted([ROOT / "README.md", *(ROOT / "docs").rglob("*.md")])


def test_the_circuit_in_the_readme_is_sound() -> None:
    found = re.search(r"```yaml\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    assert found is not None
    assert verify(read_circuit(found[1], "note.yaml")).sound


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_to_files(page: Path) -> None:
    links = re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", page.read_text(encoding="utf-8"))
    missing = [link for link in links if not (page.parent / link).exists()]
    assert missing == []


def test_every_key_of_the_format_is_in_the_reference() -> None:
    text = (ROOT / "docs" / "reference" / "circuit.md").read_text(encoding="utf-8")
    keys = {
        *CircuitText.__struct_fields__,
        *StepText.__struct_fields__,
        *RuleText.__struct_fields__,
    }
    assert [key for key in sorted(keys) if f"`{key}" not in text] == []
