"""The written form of a circuit: which keys a circuit file has and what may stand behind each.

The published JSON Schema is made from these records, so the format and its documentation are one.
"""

import re
from typing import Any, Literal

import msgspec

from interlock.engine.circuit import ARTIFACT, Language
from interlock.system.errors import CircuitError

Name = str
"""Limits beyond the plain type are checked by notation: msgspec 0.22 can crash when a constrained
text stands beside a list in a union (msgspec issue 717)."""
_UNITS = {"ms": 0.001, "s": 1, "m": 60, "h": 3600, "d": 86400}
Scalar = str | int | float | bool | None


class RoleText(msgspec.Struct, forbid_unknown_fields=True):
    """A role: how many dispatches it takes at once, and its rank when places are few."""

    slots: int | None = None
    priority: int = 0
    why: str = ""


class LoopText(msgspec.Struct, forbid_unknown_fields=True):
    """A loop: how often (a number, or the threshold that holds it), counted over the whole case or
    anew at each visit of a step."""

    max: int | str
    per: Literal["case", "step"] = "case"


class StepText(msgspec.Struct, forbid_unknown_fields=True):
    """A step: who answers, with which prompt, in which shape, how soon."""

    role: Name = ""
    prompt: str = ""
    answer: str | dict[str, Any] = "object"
    timeout: str | float | None = None
    writes: bool = False
    gate: bool = False
    signals: list[str] = msgspec.field(default_factory=lambda: [ARTIFACT])
    judges: Name | list[Name] = []
    family: bool = False
    language: Language = "json"
    why: str = ""


class RuleText(msgspec.Struct, forbid_unknown_fields=True):
    """A rule: at a step, on a signal, when the expression holds, go there."""

    at: Name | list[Name]
    id: Name = ""
    on: str | list[str] = ARTIFACT
    when: str | bool | None = None
    to: Name | None = None
    loop: Name | None = None
    detour: bool = False
    adds: dict[str, Any] = {}
    hold: Name | None = None
    release: Name | None = None
    why: str = ""


class OtherwiseText(msgspec.Struct, forbid_unknown_fields=True):
    """Where a case goes when no rule takes its signal."""

    to: Name
    adds: dict[str, Any] = {}
    why: str = ""


class CircuitText(msgspec.Struct, forbid_unknown_fields=True):
    """A circuit as it is written: steps, rules, loop limits, thresholds."""

    circuit: Name
    start: Name
    ends: list[Name] | dict[Name, Literal["healthy", "unhealthy", "halting"]]
    steps: dict[Name, StepText]
    rules: list[RuleText]
    version: int = 1
    thresholds: dict[Name, Scalar] = {}
    loops: dict[Name, int | str | LoopText] = {}
    max_steps: int = 100
    roles: list[Name] | dict[Name, RoleText | None] = []
    otherwise: Name | OtherwiseText | None = None
    why: str = ""


NAMED_SHAPES: dict[str, dict[str, Any]] = {
    "object": {"type": "object"},
    "text": {
        "type": "object",
        "properties": {"text": {"type": "string"}},
        "required": ["text"],
    },
    "approval": {
        "type": "object",
        "properties": {
            "decision": {"type": "string", "enum": ["approve", "revise", "reject"]},
            "comment": {"type": "string"},
        },
        "required": ["decision"],
    },
}


def circuit_schema() -> dict[str, Any]:
    """The JSON Schema of a circuit file."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Interlock circuit",
        **msgspec.json.schema(CircuitText),
    }


def seconds_of(duration: str | float) -> float:
    """`90s`, `10m`, `2h`, `7d` or a number of seconds."""
    found = re.fullmatch(r"([0-9]{1,9}(?:\.[0-9]{1,9})?)(ms|s|m|h|d)?", str(duration))
    seconds = float(found[1]) * _UNITS[found[2] or "s"] if found else 0.0
    if seconds <= 0:
        raise CircuitError(f"{duration!r} is no duration; write 90s, 10m, 2h or 7d")
    return seconds


def proper_name(name: str) -> bool:
    """Names of circuits, steps, rules, roles, loops, thresholds and ends."""
    return re.fullmatch(r"[A-Za-z][A-Za-z0-9_-]{0,63}", name) is not None
