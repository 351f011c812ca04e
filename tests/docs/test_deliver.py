"""docs/howto/deliver-a-plan.md says what is so: its settings, its keys, its exit codes."""

import re
import tomllib
from pathlib import Path

import msgspec

from interlock.cli.app import ExitCode
from interlock.runtime.circuits import find_circuit
from interlock.runtime.settings import Settings
from interlock_delivery.config import DeliverySettings, DeliveryTables
from tests.world.places import ROOT

TEXT = (ROOT / "docs" / "howto" / "deliver-a-plan.md").read_text("utf-8")


def test_its_settings_are_settings() -> None:
    (block,) = re.findall(r"```toml\n(.*?)```", TEXT, re.DOTALL)
    written = tomllib.loads(block)
    tables = Settings(written=written).read_tables(DeliveryTables)
    found = msgspec.convert({"roles": written["roles"]}, Settings)
    assert found.roles["developer"].slots == 4
    assert tables.delivery.setup == ("make", "deps")


def test_it_names_every_role_that_an_agent_plays() -> None:
    circuit = find_circuit("delivery", Path()).open().circuit
    roles = set(circuit.roles) - {"worktrees", "checks", "merge"}
    assert [role for role in sorted(roles) if not re.search(rf"\b{role}\b", TEXT)] == []


def test_it_names_every_key_with_its_default() -> None:
    rows = re.findall(r"^\| (`[^|]*`) \| ([^|]*) \|", TEXT, re.MULTILINE)
    output = {
        name: visible.strip("` ")
        for names, default in rows
        for name, visible in zip(re.findall(r"`(\w+)`", names), default.split(", "), strict=True)
    }
    assert output == {
        name: "none" if value == () else msgspec.json.encode(value).decode()
        for name, value in msgspec.structs.asdict(DeliverySettings()).items()
    }


def test_its_exit_codes_are_those_of_the_door() -> None:
    rows = re.findall(r"^\| ([\d, ]+) \| [A-Z, ]+ \|", TEXT, re.MULTILINE)
    codes = {int(code) for row in rows for code in row.split(", ")}
    assert codes == {
        ExitCode.DONE,
        ExitCode.FAILED,
        ExitCode.UNHEALTHY,
        ExitCode.WAITING,
        ExitCode.BUDGET,
        ExitCode.RATE_LIMITED,
    }
