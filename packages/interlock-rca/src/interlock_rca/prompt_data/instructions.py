"""A prompt's requests and warnings: the fields of each family's artifact, and guards G1 to G34.

The rows are in `instructions.toml`. The circuit holds the shape that answers are checked against;
the fields repeat it in words, with an example. A guard warns of a mistake that agents make, and is
shown while its condition holds.
"""

import tomllib
from collections.abc import Collection, Mapping, Sequence
from functools import cache
from importlib.resources import files
from typing import Any

import msgspec


class ArtifactField(msgspec.Struct, frozen=True):
    """One field: its permitted values, and an example; None leaves it out of the example."""

    name: str
    kind: str
    required: bool
    meaning: str
    example: Any = None


class PromptGuard(msgspec.Struct, frozen=True):
    """One guard; an empty condition always holds."""

    number: int
    name: str
    families: tuple[str, ...]
    sentence: str
    condition: str = ""

    @property
    def mark(self) -> str:
        return f"G{self.number}" if self.number else self.name


class Instructions(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Conditions in words, the artifact of each family, and the guards."""

    conditions: Mapping[str, str]
    artifacts: Mapping[str, tuple[ArtifactField, ...]]
    guards: tuple[PromptGuard, ...]


@cache
def read_instructions() -> Instructions:
    """Return the table, checked once and trusted from then on."""
    text = files("interlock_rca.prompt_data").joinpath("instructions.toml").read_text("utf-8")
    return msgspec.convert(tomllib.loads(text), Instructions)


def format_example(fields: Sequence[ArtifactField]) -> str:
    """Return an example artifact as JSON."""
    example = {field.name: field.example for field in fields if field.example is not None}
    return msgspec.json.format(msgspec.json.encode(example), indent=2).decode()


def format_schema(fields: Sequence[ArtifactField]) -> str:
    """Return the fields as a table, then an example."""
    lines = (
        f"| `{field.name}` | {field.kind} | {'yes' if field.required else 'no'} | {field.meaning} |"
        for field in fields
    )
    table = ("| field | value | required | meaning |", "|---|---|---|---|", *lines)
    return "\n".join((*table, "", "```json", format_example(fields), "```"))


def select_guards(family: str, holding: Collection[str]) -> tuple[PromptGuard, ...]:
    """Return the guards of a family (`F3`) that apply under these conditions."""
    return tuple(
        guard
        for guard in read_instructions().guards
        if family in guard.families and (not guard.condition or guard.condition in holding)
    )
