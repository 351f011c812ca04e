"""Test that docs/protocols/checkpoint.md agrees with the tables."""

import msgspec

from interlock_epic.checkpoints.record import Checkpoint, Epic, Hitl
from interlock_epic.recovery.policy import DEFAULTS
from interlock_epic.status import ALIASES, NEXT, Status
from tests.world.places import ROOT

PAGE = (ROOT / "docs" / "protocols" / "checkpoint.md").read_text()
ROWS = [[cell.strip() for cell in line.split("|")[1:-1]] for line in PAGE.splitlines()]


def words(names: object) -> str:
    return ", ".join(f"`{name}`" for name in names)  # type: ignore[attr-defined]


def test_statuses() -> None:
    for status in Status:
        follow = words(NEXT[status]) or "nothing"
        assert [f"`{status}`", words(ALIASES.get(status, ())), follow] in ROWS


def test_git_on_resume() -> None:
    output = {row[0].strip("`"): row[2] for row in ROWS if len(row) == 3}
    assert {finding: output[finding] for finding in DEFAULTS} == {
        finding: action.word for finding, action in DEFAULTS.items()
    }


def test_every_field_is_named() -> None:
    fields = {row[0]: row[1] for row in ROWS if len(row) == 2}
    example = Checkpoint(epic=Epic(id="e"), hitl=Hitl())
    for name, value in msgspec.to_builtins(example).items():
        cell = next(text for head, text in fields.items() if f"`{name}`" in head)
        inner = value if isinstance(value, dict) else {}
        assert [each for each in inner if f"`{each}`" not in cell] == []
