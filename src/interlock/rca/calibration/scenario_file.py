"""Scenarios as files: the seeds' JSON form, a YAML form, and those that come with Interlock.

Knows both forms and what may stand in them; refuses to judge labels (that is `scenario_check.py`).
Nothing is lost in silence: a field nobody reads becomes a note.
"""

from collections.abc import Iterator, Mapping
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any, NamedTuple, Union, get_args, get_origin, get_type_hints

import msgspec

from interlock.rca.calibration.scenario import Scenario
from interlock.system.errors import CircuitError, SourceError
from interlock.system.yaml_text import MAX_CHARACTERS, read_yaml

LARGEST = 20_000_000
_SHELF = resources.files("interlock.rca.calibration") / "scenarios"
_ENVELOPE = ("kind", "version", "metadata")
_RUNTIME = ("rp_issue_type", "rp_auto_analyzed", "expected_verdict")
"""Fields of the seeds' form that are no labels."""


class ScenarioFile(NamedTuple):
    """A scenario as it was read, and what in the file was not understood."""

    scenario: Scenario
    unread: tuple[str, ...]


def shipped() -> list[str]:
    """The names of the scenarios that come with Interlock."""
    return sorted(
        each.name.removesuffix(".yaml") for each in _SHELF.iterdir() if each.name.endswith(".yaml")
    )


def find_scenario(name: str) -> ScenarioFile:
    """One that comes with Interlock, by its name, or a file, by its path."""
    if name in shipped():
        return read_scenario((_SHELF / f"{name}.yaml").read_bytes(), f"{name}.yaml")
    path = Path(name)
    if not path.is_file():
        known = ", ".join(shipped())
        raise SourceError(f"there is no scenario and no file {name!r}; there is {known}")
    try:
        with path.open("rb") as file:
            return read_scenario(file.read(LARGEST + 1), name)
    except OSError as error:
        raise SourceError(f"{name} cannot be read: {error.strerror}") from None


def read_scenario(content: bytes, file: str) -> ScenarioFile:
    """JSON if it looks like JSON, else YAML."""
    if len(content) > LARGEST:
        raise SourceError(f"{file}: more than {LARGEST:,} bytes; split the scenario")
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise SourceError(f"{file}: byte {error.start} is not UTF-8; save it as UTF-8") from None
    value = _json(text, file) if text.lstrip()[:1] in ("{", "[") else _yaml(text, file)
    plain = _unwrapped(_without_nulls(value), file)
    try:
        scenario = msgspec.convert(plain, Scenario)
    except msgspec.ValidationError as error:
        hint = "; put quotes around it" if "`str`, got" in str(error) else ""
        raise SourceError(f"{file}: {str(error).replace('`', '')}{hint}") from None
    return ScenarioFile(scenario, tuple(_unread(plain, Scenario, "")))


def _json(text: str, file: str) -> Any:
    try:
        return msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError) as error:
        raise SourceError(f"{file}: this is not readable as JSON: {error}") from None


def _yaml(text: str, file: str) -> Any:
    if len(text) > MAX_CHARACTERS:
        most = f"{MAX_CHARACTERS:,} characters"
        raise SourceError(f"{file}: a scenario in YAML has at most {most}; write it as JSON")
    try:
        return read_yaml(text, file).value
    except CircuitError as error:
        raise SourceError(str(error)) from None


def _without_nulls(value: Any) -> Any:
    """Absent and null are the same: some writers say null for an empty list."""
    if isinstance(value, dict):
        return {name: _without_nulls(each) for name, each in value.items() if each is not None}
    if isinstance(value, list):
        return [_without_nulls(each) for each in value]
    return value


def _unwrapped(value: Any, file: str) -> dict[str, Any]:
    """Without the envelope that the YAML form may have."""
    if not isinstance(value, dict):
        raise SourceError(f"{file}: a scenario is an object with name, rcas, symptoms and cases")
    metadata = value.get("metadata")
    plain = {name: each for name, each in value.items() if name not in _ENVELOPE}
    if isinstance(metadata, dict):
        plain = {
            name: metadata[name] for name in ("name", "description") if name in metadata
        } | plain
    if "source_pack" in plain:
        plain.setdefault("workspace", plain.pop("source_pack"))
    if "cases" not in plain:
        raise SourceError(f"{file}: there are no cases; a scenario has name, rcas and cases")
    return plain


def _unread(value: Any, kind: Any, place: str) -> Iterator[str]:
    """The places in a plain value that no record has a field for."""
    if get_origin(kind) is Union or type(kind).__name__ == "UnionType":
        kind = next((each for each in get_args(kind) if each is not type(None)), Any)
    arguments = get_args(kind)
    if isinstance(value, list) and arguments:
        for number, each in enumerate(value):
            yield from _unread(each, arguments[0], f"{place}[{number}]")
    elif isinstance(value, dict) and isinstance(kind, type) and issubclass(kind, msgspec.Struct):
        yield from _unread_fields(value, _kinds(kind), place)


@cache
def _kinds(record: type) -> dict[str, Any]:
    return get_type_hints(record)


def _unread_fields(value: Mapping[str, Any], kinds: Mapping[str, Any], place: str) -> Iterator[str]:
    for name, each in value.items():
        here = f"{place}.{name}" if place else name
        if name in kinds:
            yield from _unread(each, kinds[name], here)
        elif name not in _RUNTIME:
            yield here
