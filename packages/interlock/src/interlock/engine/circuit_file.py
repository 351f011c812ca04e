"""Read circuit files: YAML to a Circuit, or an error with its line and what to write instead.

The records at the top are the format; the published JSON Schema is made from them, so that format
and documentation are one. `verify` judges whether a circuit is sound; this module does not.
"""

import difflib
import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Literal

import msgspec

from interlock.engine.case import OTHERWISE
from interlock.engine.circuit import (
    AGAIN,
    ANY,
    ARTIFACT,
    BACK,
    HUMAN,
    MAX_LIMIT,
    Circuit,
    Language,
    Loop,
    Role,
    Rule,
    Step,
    read_loop_limit,
)
from interlock.engine.expression import Expression, parse_expression
from interlock.engine.shape import read_shape
from interlock.system.errors import CircuitError, UsageError
from interlock.system.time import parse_duration
from interlock.system.yaml_text import YamlDocument, read_yaml

Name = str
"""Limits beyond the plain type are checked by our own code: msgspec 0.22 can crash when a
constrained text stands beside a list in a union (msgspec issue 717)."""
Scalar = str | int | float | bool | None


class RoleText(msgspec.Struct, forbid_unknown_fields=True):
    """A role: how many dispatches it takes at once, and its rank when places are few."""

    slots: int | None = None
    priority: int = 0
    why: str = ""


class LoopText(msgspec.Struct, forbid_unknown_fields=True):
    """A loop: its limit (a number, or a threshold's name), counted per case or per visit of a
    step."""

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
    tags: dict[str, str] = {}
    why: str = ""


class OtherwiseText(msgspec.Struct, forbid_unknown_fields=True):
    """The target of a case when no rule takes its signal."""

    to: Name
    adds: dict[str, Any] = {}
    why: str = ""


class CircuitText(msgspec.Struct, forbid_unknown_fields=True):
    """A written circuit: steps, rules, loop limits, thresholds."""

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


_SECTIONS: dict[str, type[msgspec.Struct]] = {
    "rules": RuleText,
    "steps": StepText,
    "roles": RoleText,
    "loops": LoopText,
    "otherwise": OtherwiseText,
}
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


def build_circuit_schema() -> dict[str, Any]:
    """Return the JSON Schema of a circuit file."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Interlock circuit",
        **msgspec.json.schema(CircuitText),
    }


def is_valid_name(name: str) -> bool:
    """Return True if circuits, steps, rules, roles, loops, thresholds and ends may have that
    name."""
    return re.fullmatch(r"[A-Za-z][A-Za-z0-9_-]{0,63}", name) is not None


RESERVED = (AGAIN, ANY, BACK)


class CircuitSource(msgspec.Struct, frozen=True):
    """A circuit with the text it came from, for errors that name a line."""

    circuit: Circuit
    document: YamlDocument

    @property
    def file(self) -> str:
        return self.document.file

    def find_line(self, *path: str | int) -> int:
        return self.document.line(*path)


def read_circuit(
    text: str, file: str = "", shapes: Mapping[str, dict[str, Any]] | None = None
) -> CircuitSource:
    """Return the circuit written in `text`; `shapes` are answer types beside the built-in ones."""
    return parse_circuit(read_yaml(text, file), shapes) if shapes else _read_plain(text, file)


@lru_cache(maxsize=32)
def _read_plain(text: str, file: str) -> CircuitSource:
    # A run reads its circuit three times: for the prompts, for the proof, and to work.
    return parse_circuit(read_yaml(text, file))


def parse_circuit(
    page: YamlDocument, shapes: Mapping[str, dict[str, Any]] | None = None
) -> CircuitSource:
    """Return the circuit in a document that was read before."""
    try:
        written = msgspec.convert(page.value, CircuitText)
    except msgspec.ValidationError as error:
        raise _explain_error(str(error), page) from None
    return CircuitSource(_Builder(written, page, {**NAMED_SHAPES, **(shapes or {})}).build(), page)


class _Builder:
    """Build a circuit from its written form, and name the line of anything invalid."""

    def __init__(
        self, text: CircuitText, page: YamlDocument, shapes: Mapping[str, dict[str, Any]]
    ) -> None:
        self.text = text
        self.document = page
        self.shapes = shapes

    def build(self) -> Circuit:
        text = self.text
        self._check_names()
        self._check_range(1, text.version, "version")
        self._check_range(1, text.max_steps, "max_steps")
        healthy = text.ends if isinstance(text.ends, dict) else dict.fromkeys(text.ends, "healthy")
        return Circuit(
            name=text.circuit,
            version=text.version,
            start=text.start,
            ends={name: health == "healthy" for name, health in healthy.items()},
            thresholds=text.thresholds,
            loops={name: self._build_loop(name, given) for name, given in text.loops.items()},
            max_steps=text.max_steps,
            roles=self._build_roles(),
            steps={name: self._build_step(name, given) for name, given in text.steps.items()},
            rules=self._build_rules(),
            otherwise=self._build_otherwise(),
            halts=frozenset(name for name, health in healthy.items() if health == "halting"),
        )

    def _check_names(self) -> None:
        text = self.text
        self._check_name(text.circuit, "circuit")
        for section in ("ends", "thresholds", "loops", "roles", "steps"):
            for name in getattr(text, section):
                self._check_name(name, section, name)
        for index, rule in enumerate(text.rules):
            self._check_name(rule.id or "unnamed", "rules", index, "id")
        clash = next((name for name in text.steps if name in text.ends), None)
        if clash is not None:
            raise self._build_error(
                f"{clash!r} is both a step and an end; rename one", "steps", clash
            )

    def _check_name(self, name: str, *path: str | int) -> None:
        if not is_valid_name(name) or name in RESERVED:
            raise self._build_error(
                f"{name[:80]!r} is not a valid name here: a letter, then letters, digits, - and _, "
                f"at most 64, and not {', '.join(RESERVED)}",
                *path,
            )

    def _check_range(self, least: int, value: int, *path: str | int) -> None:
        if not least <= value <= MAX_LIMIT:
            raise self._build_error(
                f"{path[-1]} must be from {least} to {MAX_LIMIT:,}, not {value}", *path
            )

    def _build_loop(self, name: str, given: int | str | LoopText) -> Loop:
        limit = given.max if isinstance(given, LoopText) else given
        per_step = isinstance(given, LoopText) and given.per == "step"
        if isinstance(limit, str):
            try:
                most = read_loop_limit(limit, self.text.thresholds)
            except CircuitError as error:
                raise self._build_error(str(error), "loops", name) from None
            return Loop(name, most, per_step, limit)
        self._check_range(0, limit, "loops", name)
        return Loop(name, limit, per_step)

    def _build_roles(self) -> dict[str, Role]:
        given = self.text.roles
        if isinstance(given, list):
            given = dict.fromkeys(given)
        for name, role in given.items():
            self._check_range(
                1, role.slots if role and role.slots is not None else 1, "roles", name
            )
        roles = {
            name: Role(name, role.slots, role.priority) if role else Role(name)
            for name, role in given.items()
        }
        for step in self.text.steps.values():
            if not given:
                roles.setdefault(step.role or HUMAN, Role(step.role or HUMAN))
        roles.setdefault(HUMAN, Role(HUMAN))
        return roles

    def _build_step(self, name: str, given: StepText) -> Step:
        role = given.role or (HUMAN if given.gate else "")
        if not role:
            raise self._build_error(
                f"step {name!r} needs a role, for example role: author", "steps", name
            )
        if given.gate and role != HUMAN:
            raise self._build_error(
                f"step {name!r} is a gate, so its role is {HUMAN}, not {role!r}",
                "steps",
                name,
                "role",
            )
        if given.family and not given.gate:
            raise self._build_error(
                f"step {name!r} is not a gate: family is for answers from people",
                "steps",
                name,
                "family",
            )
        if given.language == "text" and (given.gate or ARTIFACT in given.signals):
            raise self._build_error(
                f"step {name!r} is answered in text: give it the signals its role may say, and no "
                "gate",
                "steps",
                name,
                "language",
            )
        try:
            shape = read_shape(self._find_schema(given.answer))
        except CircuitError as error:
            raise self._build_error(f"step {name!r}: {error}", "steps", name, "answer") from None
        return Step(
            name=name,
            role=role,
            shape=shape,
            prompt=given.prompt,
            timeout=self._read_timeout(name, given),
            writes=given.writes,
            signals=tuple(given.signals),
            judges=_as_tuple(given.judges),
            family=given.family,
            language=given.language,
        )

    def _read_timeout(self, name: str, given: StepText) -> float | None:
        try:
            return None if given.timeout is None else parse_duration(given.timeout)
        except UsageError as error:
            raise self._build_error(f"timeout: {error}", "steps", name, "timeout") from None

    def _find_schema(self, answer: str | dict[str, Any]) -> dict[str, Any]:
        if isinstance(answer, dict):
            return answer
        if answer not in self.shapes:
            raise CircuitError(
                f"answer {answer!r} is not a known type; use {', '.join(sorted(self.shapes))} "
                "or a JSON Schema"
            )
        return self.shapes[answer]

    def _build_rules(self) -> tuple[Rule, ...]:
        rules = tuple(self._build_rule(index, given) for index, given in enumerate(self.text.rules))
        seen: set[str] = set()
        for index, rule in enumerate(rules):
            if rule.id in seen or rule.id == OTHERWISE:
                raise self._build_error(
                    f"there are two rules {rule.id!r}; ids are unique", "rules", index
                )
            seen.add(rule.id)
        return rules

    def _build_rule(self, index: int, given: RuleText) -> Rule:
        rule_id = given.id or f"rule-{index + 1}"
        if given.to is None and not given.adds:
            raise self._build_error(
                f"rule {rule_id!r} needs 'to: STEP', or 'adds:' if it only adds to the context",
                "rules",
                index,
            )
        return Rule(
            id=rule_id,
            at=_as_tuple(given.at),
            on=_as_tuple(given.on),
            to=given.to,
            guard=self._parse_guard(given.when, rule_id, index),
            loop=given.loop,
            detour=given.detour,
            adds=self._parse_adds(given.adds, "rules", index),
            hold=given.hold,
            release=given.release,
            tags=given.tags,
            why=given.why,
        )

    def _parse_guard(self, when: str | bool | None, rule_id: str, index: int) -> Expression | None:
        if when is None or when is True:
            return None
        try:
            return parse_expression(str(when))
        except CircuitError as error:
            raise self._build_error(f"rule {rule_id!r}: {error}", "rules", index, "when") from None

    def _parse_adds(self, given: dict[str, Any], *place: str | int) -> dict[str, Any]:
        adds: dict[str, Any] = {}
        for name, value in given.items():
            if isinstance(value, str) and value.startswith("="):
                try:
                    adds[name] = parse_expression(value[1:])
                except CircuitError as error:
                    raise self._build_error(
                        f"adds {name!r}: {error}", *place, "adds", name
                    ) from None
            else:
                adds[name] = value
        return adds

    def _build_otherwise(self) -> Rule | None:
        given = self.text.otherwise
        if given is None:
            return None
        if isinstance(given, str):
            return Rule(OTHERWISE, (), (), given)
        adds = self._parse_adds(given.adds, "otherwise")
        return Rule(OTHERWISE, (), (), given.to, adds=adds, why=given.why)

    def _build_error(self, message: str, *path: str | int) -> CircuitError:
        return CircuitError(message, file=self.document.file, line=self.document.line(*path))


def _as_tuple(given: str | list[str]) -> tuple[str, ...]:
    return (given,) if isinstance(given, str) else tuple(given)


def _explain_error(message: str, page: YamlDocument) -> CircuitError:
    """Return msgspec's complaint with its line and the word that was probably meant."""
    problem, _, where = message.partition(" - at `$")
    path = [
        int(index) if index else name
        for name, index in re.findall(r"\.([^.\[\]`]+)|\[(\d+)\]", where)
    ]
    if path and where.startswith(f".{path[0]}[...]"):
        path[1:1] = _find_key(message, page, str(path[0]))
    unknown = re.search(r"unknown field `(.+?)`", problem)
    if unknown:
        known = _SECTIONS.get(str(path[0]) if path else "", CircuitText).__struct_fields__
        near = difflib.get_close_matches(unknown[1], known, 1)
        hint = f"did you mean {near[0]!r}?" if near else f"use {', '.join(known)}"
        return CircuitError(
            f"{unknown[1]!r} is not a field of {_describe_place(path)}; {hint}",
            file=page.file,
            line=page.line(*path, unknown[1]),
        )
    return CircuitError(
        f"{_describe_place(path)}: {problem[:1].lower()}{problem[1:]}",
        file=page.file,
        line=page.line(*path),
    )


def _find_key(message: str, page: YamlDocument, section: str) -> list[str]:
    """Return the name under which the fault lies, which msgspec does not report."""
    for name, value in page.value[section].items():
        try:
            msgspec.convert({**page.value, section: {name: value}}, CircuitText)
        except msgspec.ValidationError as error:
            if str(error) == message:
                return [name]
    return []


def _describe_place(path: list[str | int]) -> str:
    words = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in path)
    return words.lstrip(".") or "the circuit"
