"""Filling prompts: a step's template with what the case knows, in a sandbox.

A name that is not there is an error, never an empty place. A step without a template gets its facts
as JSON, which is what programs like best. Who is asked again because an answer could not be used is
told why.

The sandbox of prompt templates: what a template cannot reach, and how much it may do.

A template is part of a circuit, and a circuit may come from anywhere: it gets no attribute of
Python's own, and every turn of a loop and every call counts towards a limit.
"""

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from functools import cache
from types import MappingProxyType
from typing import Any

import msgspec
from jinja2 import StrictUndefined, TemplateRuntimeError, nodes, pass_context
from jinja2.runtime import Context
from jinja2.sandbox import ImmutableSandboxedEnvironment

from interlock.engine.case import Case
from interlock.engine.circuit import Circuit
from interlock.system.errors import CircuitError

_PLACE = re.compile(r"\{\{ *([A-Za-z][A-Za-z0-9_]*(?:\.[A-Za-z][A-Za-z0-9_]*)*) *\}\}")
_PLAIN = (str, int, float)
_FAULTS = (TypeError, ValueError, LookupError, ArithmeticError, RecursionError, MemoryError)


def fill(circuit: Circuit, case: Case, more: Mapping[str, Any] = MappingProxyType({})) -> str:
    """The prompt for the step where the case stands; CircuitError if it cannot be filled. An
    application gives `more` facts than a case has."""
    facts: dict[str, Any] = {
        "circuit": circuit.name,
        "case_id": case.case_id,
        "step": case.step,
        "attempt": case.attempt,
        "case": case.input,
        "answers": case.answers,
        "context": case.context,
        "loops": case.loops,
        "thresholds": circuit.thresholds,
        "complaint": case.complaint,
        **more,
    }
    template = circuit.steps[case.step].prompt
    if not template:
        return msgspec.json.format(msgspec.json.encode(facts), indent=2).decode()
    text = _placed(template, facts) or _filled(template, facts, case.step)
    if case.complaint and "complaint" not in template:
        text = f"{text.rstrip()}\n\nYour last answer could not be used. {case.complaint}\n"
    return text


def _placed(template: str, facts: dict[str, Any]) -> str | None:
    """What Jinja would make of a template that only puts plain values in places, in a fraction of
    its time; None for any other template, or value."""
    parts = _parts(template)
    if parts is None:
        return None
    texts, paths = parts
    found = [texts[0]]
    for path, text in zip(paths, texts[1:], strict=True):
        value: Any = facts
        for name in path:
            if type(value) is not dict or name not in value:
                return None
            value = value[name]
        if type(value) not in _PLAIN:
            return None
        found += (str(value), text)
    filled = "".join(found)
    return filled if filled.isascii() or _is_text(filled) else None


def _is_text(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


@cache
def _parts(template: str) -> tuple[list[str], list[list[str]]] | None:
    """The texts of a template and the paths between them, if there is nothing else in it."""
    parts = _PLACE.split(template)
    texts, paths = parts[::2], [path.split(".") for path in parts[1::2]]
    special = any(mark in text for text in texts for mark in ("{{", "{%", "{#", "}}", "\r"))
    methods = any(hasattr(dict, name) for path in paths for name in path)
    return None if special or methods else (texts, paths)


def _filled(template: str, facts: dict[str, Any], step: str) -> str:
    from jinja2 import TemplateError

    try:
        compiled = _compiled(template)
        # What render() does, without copying all of Jinja's own globals.
        context = compiled.new_context({"range": range, **facts}, shared=True)
        text = "".join(compiled.root_render_func(context))
        text.encode()
    except (*_FAULTS, TemplateError) as error:
        raise CircuitError(f"the prompt of step {step!r} cannot be filled: {error}") from None
    return text


@cache
def _compiled(template: str) -> Any:

    environment = Sandbox()
    environment.filters["json"] = _as_json
    return environment.from_string(template)


def _as_json(value: Any) -> str:
    return msgspec.json.format(msgspec.json.encode(value), indent=2).decode()


FACTS = (
    *("circuit", "case_id", "step", "attempt", "case", "answers", "context", "loops"),
    *("thresholds", "complaint"),
)
"""The names a template can read."""


def unfillable(template: str, known: Collection[str] = FACTS) -> str:
    """What is wrong with a template before any case is known; empty if it may well be filled."""
    from jinja2 import TemplateError, meta

    if "{" not in template:
        return ""
    try:
        tree = _compiled(template).environment.parse(template)
    except TemplateError as error:
        return f"it is no template: {error}"
    unknown = sorted(meta.find_undeclared_variables(tree) - {*known})
    return f"it reads {', '.join(map(repr, unknown))}, which no prompt can" if unknown else ""


MOST_TURNS = 100_000
MOST_REPEATED = 1_000_000
_TURNS = "turns of loops"


class _BoundedContext(Context):
    """What a template sees while it is filled once, and how many turns that took."""

    turns = 0

    def turn(self) -> None:
        self.turns += 1
        if self.turns > MOST_TURNS:
            raise TemplateRuntimeError(f"it takes more than {MOST_TURNS:,} turns and calls")


class Sandbox(ImmutableSandboxedEnvironment):
    """An environment without Python's own attributes, missing names or endless work."""

    context_class = _BoundedContext
    intercepted_binops = frozenset(["*", "**"])

    def __init__(self) -> None:
        super().__init__(
            undefined=StrictUndefined,
            keep_trailing_newline=True,
            trim_blocks=True,
            lstrip_blocks=True,
        )
        self.filters[_TURNS] = _counted

    def _parse(self, source: str, name: str | None, filename: str | None) -> nodes.Template:
        tree = super()._parse(source, name, filename)
        for loop in tree.find_all(nodes.For):
            loop.iter = nodes.Filter(loop.iter, _TURNS, [], [], None, None, lineno=loop.lineno)
        return tree

    def call(self, context: Any, function: Any, /, *args: Any, **kwargs: Any) -> Any:
        context.turn()
        return super().call(context, function, *args, **kwargs)

    def call_binop(self, context: Context, operator: str, left: Any, right: Any) -> Any:
        if operator == "**" or _large(left, right) or _large(right, left):
            raise TemplateRuntimeError(f"{operator} can make too much; write the value out")
        return super().call_binop(context, operator, left, right)


@pass_context
def _counted(context: _BoundedContext, items: Iterable[Any]) -> Iterator[Any]:
    for item in items:
        context.turn()
        yield item


def _large(many: Any, times: Any) -> bool:
    return isinstance(many, str | list | tuple) and len(many) * times > MOST_REPEATED
