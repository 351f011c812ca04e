"""Words of the command line that carry more than a text: name=value pairs, budgets, thresholds."""

import re
from collections.abc import Iterable, Mapping
from typing import Any

from interlock.engine.circuit import Circuit
from interlock.system.errors import CircuitError, SourceError
from interlock.system.yaml_text import read_yaml


def pairs(words: Iterable[str], option: str) -> dict[str, str]:
    """`name=value`, any number of them."""
    found: dict[str, str] = {}
    for word in words:
        name, equals, value = word.partition("=")
        if not equals or not name or not value:
            raise SourceError(f"{option} {word!r}: write {option} name=value")
        found[name.strip()] = value.strip()
    return found


def thresholds(circuit: Circuit, words: Iterable[str]) -> dict[str, Any]:
    """`--set name=value` for thresholds the circuit has, of the kind they have."""
    changes: dict[str, Any] = {}
    for name, text in pairs(words, "--set").items():
        changes[name] = plain(text)
    return checked_thresholds(circuit, changes)


def checked_thresholds(circuit: Circuit, changes: Mapping[str, Any]) -> dict[str, Any]:
    for name, value in changes.items():
        if name not in circuit.thresholds:
            known = ", ".join(circuit.thresholds) or "none"
            raise SourceError(f"{circuit.name} has no threshold {name!r}; it has {known}")
        usual = circuit.thresholds[name]
        if _kind(usual) != _kind(value):
            raise SourceError(f"threshold {name} is {_kind(usual)} ({usual}), not {value!r}")
    return dict(changes)


def counts(words: Iterable[str], option: str) -> dict[str, int]:
    found: dict[str, int] = {}
    for name, text in pairs(words, option).items():
        if not re.fullmatch(r"[0-9]{1,9}", text):
            raise SourceError(f"{option} {name}={text}: {text!r} is no whole number")
        found[name] = int(text)
    return found


def plain(text: str) -> Any:
    """One value, as YAML reads it: a number, true, false or a text."""
    try:
        value = read_yaml(text).value
    except CircuitError as error:
        raise SourceError(f"--set takes a plain value, not {text!r}: {error}") from None
    if isinstance(value, dict | list):
        raise SourceError(f"--set takes a plain value, not {text!r}")
    return value


def _kind(value: Any) -> str:
    if isinstance(value, bool):
        return "true or false"
    return "a number" if isinstance(value, int | float) else "a text"
