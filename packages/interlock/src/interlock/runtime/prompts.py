"""Fill a step's template with the values of a case.

A name that is missing is an error, never an empty place. A step without a template gets its values
as JSON. A repeated prompt includes the reason the last answer was refused. Templates that only put
plain values in places are filled without Jinja.
"""

import re
from collections.abc import Collection, Mapping
from functools import cache
from types import MappingProxyType
from typing import Any

import msgspec

from interlock.engine.case import Case
from interlock.engine.circuit import Circuit
from interlock.system.errors import CircuitError

PROMPT_NAMES = (
    "circuit",
    "case_id",
    "step",
    "attempt",
    "case",
    "answers",
    "context",
    "loops",
    "thresholds",
    "complaint",
)
"""The names that every template can read."""
_PLACE = re.compile(r"\{\{ *([A-Za-z][A-Za-z0-9_]*(?:\.[A-Za-z][A-Za-z0-9_]*)*) *\}\}")
_PLAIN = (str, int, float)
_FAULTS = (TypeError, ValueError, LookupError, ArithmeticError, RecursionError, MemoryError)


def render_prompt(
    circuit: Circuit, case: Case, more: Mapping[str, Any] = MappingProxyType({})
) -> str:
    """Return the prompt for the case's step; CircuitError if it cannot be filled.

    An application adds its own values as `more`.
    """
    template = circuit.steps[case.step].prompt
    values: dict[str, Any] = {
        "circuit": circuit.name,
        "case_id": case.case_id,
        "step": case.step,
        "attempt": case.attempt,
        "case": _read_input(case) if not template or "case" in template else {},
        "answers": case.answers,
        "context": case.context,
        "loops": case.loops,
        "thresholds": circuit.thresholds,
        "complaint": case.complaint,
        **more,
    }
    if not template:
        return _format_json(values)
    text = _fill_places(template, values) or _render_with_jinja(template, values, case.step)
    if case.complaint and "complaint" not in template:
        text = f"{text.rstrip()}\n\nYour last answer could not be used. {case.complaint}\n"
    return text


def _read_input(case: Case) -> dict[str, Any]:
    """Return the input as a dict; a long one is read from the database only here."""
    return case.input if isinstance(case.input, dict) else dict(case.input.items())


def check_prompt(template: str, known: Collection[str] = PROMPT_NAMES) -> str:
    """Return what is wrong with a template before any case is known; empty if nothing is."""
    if "{" not in template:
        return ""
    parts = _split_places(template)
    if parts is not None and all(path[0] in known for path in parts[1]):
        return ""
    from jinja2 import TemplateError

    try:
        unknown = sorted(list_names(template) - {*known})
    except TemplateError as error:
        return f"it is not a valid template: {error}"
    return f"it reads unknown names: {', '.join(map(repr, unknown))}" if unknown else ""


@cache
def list_names(template: str) -> frozenset[str]:
    """Return the names that a template reads from outside."""
    from jinja2 import meta

    return frozenset(meta.find_undeclared_variables(_compile(template).environment.parse(template)))


def _fill_places(template: str, values: dict[str, Any]) -> str | None:
    """Fill a template that only puts plain values in places, as Jinja would but much faster; return
    None for any other template or value."""
    parts = _split_places(template)
    if parts is None:
        return None
    texts, paths = parts
    pieces = [texts[0]]
    for path, text in zip(paths, texts[1:], strict=True):
        value: Any = values
        for name in path:
            if type(value) is not dict or name not in value:
                return None
            value = value[name]
        if type(value) not in _PLAIN:
            return None
        pieces += (str(value), text)
    filled = "".join(pieces)
    return filled if filled.isascii() or _is_encodable(filled) else None


@cache
def _split_places(template: str) -> tuple[list[str], list[list[str]]] | None:
    """Return the texts of a template and the paths between them; None if it has anything else."""
    parts = _PLACE.split(template)
    texts, paths = parts[::2], [path.split(".") for path in parts[1::2]]
    special = any(mark in text for text in texts for mark in ("{{", "{%", "{#", "}}", "\r"))
    # Jinja would find a dict's method before its key: `{{ case.items }}`.
    methods = any(hasattr(dict, name) for path in paths for name in path)
    return None if special or methods else (texts, paths)


def _is_encodable(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _render_with_jinja(template: str, values: dict[str, Any], step: str) -> str:
    from jinja2 import TemplateError

    try:
        compiled = _compile(template)
        # What render() does, without copying all of Jinja's own globals.
        context = compiled.new_context({"range": range, **values}, shared=True)
        text = "".join(compiled.root_render_func(context))
        text.encode()
    except (*_FAULTS, TemplateError) as error:
        raise CircuitError(f"the prompt of step {step!r} cannot be filled: {error}") from None
    return text


@cache
def _compile(template: str) -> Any:
    from interlock.runtime.sandbox import PromptSandbox

    environment = PromptSandbox()
    environment.filters["json"] = _format_json
    return environment.from_string(template)


def _format_json(value: Any) -> str:
    return msgspec.json.format(msgspec.json.encode(value), indent=2).decode()
