"""The sandbox in which Jinja renders prompt templates.

A circuit may come from anywhere, so its templates get no attribute of Python's own, and every turn
of a loop and every call counts towards a limit. It is a module of its own because Jinja takes long
to import and most templates do not need it.
"""

from collections.abc import Iterable, Iterator
from typing import Any

from jinja2 import StrictUndefined, TemplateRuntimeError, nodes, pass_context
from jinja2.runtime import Context
from jinja2.sandbox import ImmutableSandboxedEnvironment

MAX_TURNS = 100_000
MAX_REPEATED = 1_000_000
_TURNS = "turns of loops"


class _BoundedContext(Context):
    """The names a template sees, and the turns it has taken."""

    turns = 0

    def count_turn(self) -> None:
        self.turns += 1
        if self.turns > MAX_TURNS:
            raise TemplateRuntimeError(f"it takes more than {MAX_TURNS:,} turns and calls")


class PromptSandbox(ImmutableSandboxedEnvironment):
    """A Jinja environment without Python's own attributes, missing names or endless work."""

    context_class = _BoundedContext
    intercepted_binops = frozenset(["*", "**"])

    def __init__(self) -> None:
        super().__init__(
            undefined=StrictUndefined,
            keep_trailing_newline=True,
            trim_blocks=True,
            lstrip_blocks=True,
        )
        self.filters[_TURNS] = _count_turns

    def _parse(self, source: str, name: str | None, filename: str | None) -> nodes.Template:
        tree = super()._parse(source, name, filename)
        for loop in tree.find_all(nodes.For):
            loop.iter = nodes.Filter(loop.iter, _TURNS, [], [], None, None, lineno=loop.lineno)
        return tree

    def call(self, context: Any, function: Any, /, *args: Any, **kwargs: Any) -> Any:
        context.count_turn()
        return super().call(context, function, *args, **kwargs)

    def call_binop(self, context: Context, operator: str, left: Any, right: Any) -> Any:
        if operator == "**" or _is_too_large(left, right) or _is_too_large(right, left):
            raise TemplateRuntimeError(f"{operator} could produce too much; write the value out")
        return super().call_binop(context, operator, left, right)


@pass_context
def _count_turns(context: _BoundedContext, items: Iterable[Any]) -> Iterator[Any]:
    for item in items:
        context.count_turn()
        yield item


def _is_too_large(many: Any, times: Any) -> bool:
    return isinstance(many, str | list | tuple) and len(many) * times > MAX_REPEATED
