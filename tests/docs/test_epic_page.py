"""The page about epics says what the tables say."""

import msgspec

from interlock.engine.circuit_file import read_circuit
from interlock.runtime.circuits import list_installed_circuits
from interlock_epic.cli.epic import _CODES
from interlock_epic.config import EpicSettings
from interlock_epic.status import LOCKED_EXIT, OUTCOMES, list_exit_codes
from tests.world.places import ROOT

PAGE = (ROOT / "docs" / "howto" / "run-an-epic.md").read_text()


def test_every_outcome_is_in_the_help_with_its_code() -> None:
    for _, code, _ in list_exit_codes():
        assert f" {code} " in f" {_CODES.replace('.', ' ').replace(',', ' ')} "
    codes = [each.exit_code for each in OUTCOMES.values()]
    assert len({*codes, LOCKED_EXIT}) == len(codes) + 1, "each outcome has a code of its own"


def test_the_circuit_ends_as_the_table_says() -> None:
    file = list_installed_circuits()["epic"]
    assert set(read_circuit(file.read_text(), "epic").circuit.ends) == set(OUTCOMES)


def test_every_setting_is_in_the_page() -> None:
    for field in msgspec.structs.fields(EpicSettings):
        wanted = "[epic.git]" if field.name == "git" else f"\n{field.name} = "
        assert wanted in PAGE
