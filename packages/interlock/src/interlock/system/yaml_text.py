"""Read YAML: one document, plain values, and the line of each one.

Stricter than YAML: no anchors or aliases (so no bombs), no tags, no duplicate keys, nothing huge or
deep. Words stay words: `on`, `yes` and `no` are text; only true, false and null are special.
"""

import gc
import math
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import msgspec
import yaml

from interlock.system.errors import CircuitError

MAX_CHARACTERS = 4_000_000
"""About fifteen thousand steps, which take seconds to read."""
MAX_DEPTH = 40
_INTEGER = re.compile(r"[-+]?[0-9]{1,18}")
_FLOAT = re.compile(r"[-+]?([0-9]+\.[0-9]*|\.[0-9]+|[0-9]+)([eE][-+]?[0-9]{1,3})?")
_WORDS = {"true": True, "false": False, "null": None, "~": None, "": None}
_QUOTED = ("'", '"', "|", ">")
_Loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class YamlDocument(msgspec.Struct, frozen=True):
    """A document's value, and the line of every key and item by its path."""

    file: str
    value: Any
    lines: dict[tuple[str | int, ...], int]

    def line(self, *path: str | int) -> int:
        """Return the line of that place, or of the nearest place around it."""
        while path and path not in self.lines:
            path = path[:-1]
        return self.lines.get(path, 1)


def read_yaml(text: str, file: str = "") -> YamlDocument:
    """Return the one plain value in `text`; raise CircuitError if it is not readable."""
    if len(text) > MAX_CHARACTERS:
        raise CircuitError(
            f"{len(text):,} characters are too many; a circuit has at most {MAX_CHARACTERS:,}",
            file=file,
        )
    try:
        with _pause_collection():
            _refuse_references(text, file)
            node = yaml.compose(text, Loader=_Loader)
    except yaml.MarkedYAMLError as error:
        raise _yaml_error(error, text, file) from None
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        detail = str(error).splitlines()[0] if str(error) else "nested too deeply"
        raise CircuitError(
            f"this is not readable as YAML: {detail}", file=file, line=_line_of(error, text)
        ) from None
    if node is None:
        raise CircuitError("the file is empty", file=file)
    lines: dict[tuple[str | int, ...], int] = {}
    with _pause_collection():
        value = _Reader(file, lines).value(node, ())
    return YamlDocument(file, value, lines)


@contextmanager
def _pause_collection() -> Iterator[None]:
    """Pause the garbage collector: it would take longer than reading, and find nothing."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


def _refuse_references(text: str, file: str) -> None:
    depth = 0
    for event in _events(text):
        line = event.start_mark.line + 1
        if isinstance(event, yaml.AliasEvent) or getattr(event, "anchor", None):
            raise CircuitError(
                "anchors and aliases (&name, *name) are not used here; write the value out",
                file=file,
                line=line,
            )
        if getattr(event, "tag", None):
            raise CircuitError(
                "tags (!name, !!name) are not used here; write the plain value",
                file=file,
                line=line,
            )
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1
        if depth > MAX_DEPTH:
            raise CircuitError(f"nested deeper than {MAX_DEPTH} levels", file=file, line=line)


def _events(text: str) -> Iterator[Any]:
    yield from yaml.parse(text, Loader=_Loader)


class _Reader:
    def __init__(self, file: str, lines: dict[tuple[str | int, ...], int]) -> None:
        self.file = file
        self.lines = lines

    def value(self, node: yaml.Node, path: tuple[str | int, ...]) -> Any:
        self.lines.setdefault(path, node.start_mark.line + 1)
        if isinstance(node, yaml.MappingNode):
            return self._mapping(node, path)
        if isinstance(node, yaml.SequenceNode):
            return [self.value(item, (*path, index)) for index, item in enumerate(node.value)]
        return self._scalar(node)

    def _mapping(self, node: yaml.MappingNode, path: tuple[str | int, ...]) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for key, item in node.value:
            line = key.start_mark.line + 1
            if not isinstance(key, yaml.ScalarNode):
                raise CircuitError("a key must be a word", file=self.file, line=line)
            name = str(key.value)
            if name in found:
                raise CircuitError(
                    f"{name!r} is written twice; keep one of them", file=self.file, line=line
                )
            self.lines[*path, name] = line
            found[name] = self.value(item, (*path, name))
        return found

    def _scalar(self, node: yaml.Node) -> Any:
        text = str(node.value)
        if getattr(node, "style", None) in _QUOTED:
            return text
        if text in _WORDS:
            return _WORDS[text]
        if _INTEGER.fullmatch(text):
            return int(text)
        if _FLOAT.fullmatch(text) and math.isfinite(float(text)):
            return float(text)
        return text


def _line_of(error: Exception, text: str) -> int:
    """Return the line of a character that YAML forbids, 0 if the error names none."""
    place = getattr(error, "position", getattr(error, "start", None))
    return text.count("\n", 0, place) + 1 if isinstance(place, int) else 0


def _yaml_error(error: yaml.MarkedYAMLError, text: str, file: str) -> CircuitError:
    mark = error.problem_mark or error.context_mark
    line = mark.line + 1 if mark else 0
    problem = error.problem or "not readable as YAML"
    rows = text.splitlines()
    if 0 < line <= len(rows) and "\t" in rows[line - 1]:
        problem = "there is a tab; YAML is indented with spaces"
    return CircuitError(problem, file=file, line=line)
