"""All tells of a change: which ways of looking apply to which file, and what of it is new. Pure.

Knows the lines that were added and, where there is one, the whole new text. Documents, vendored
and generated files, and data of tests are looked at for secrets and conflict markers alone.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from interlock.apps.delivery.braces import brace_tells
from interlock.apps.delivery.dead_comments import dead_comments
from interlock.apps.delivery.file_kind import FileKind, kind_of, language_of
from interlock.apps.delivery.source_text import take_apart
from interlock.apps.delivery.tell import Severity, Tell
from interlock.apps.delivery.tell_python import parse, python_tells
from interlock.apps.delivery.tell_rows import by_rows
from interlock.apps.delivery.tell_secrets import secrets

MOST: Final = 1_000
_LARGEST: Final = 1_000_000
_LONGEST_LINE: Final = 2_000
_MARKER: Final = re.compile(r"(?:<{7}|>{7}|\|{7})(?: .*)?\Z")
_SCRIPT_FOLDERS: Final = frozenset(
    {"scripts", "script", "bin", "tools", "examples", "example", "bench", "benchmarks"}
    | {"demo", "demos", "cli", "cmd", "hack", "notebooks"}
)
_SCRIPT_NAME: Final = re.compile(
    r"__main__\.py|setup\.py|manage\.py|conf\.py|noxfile\.py|cli\.\w+|main\.(?:rs|go)|build\.rs"
    r"|.+\.config\.\w+|(?:gulp|grunt)file\.js"
)
_SCRIPT_TEXT: Final = re.compile(r"\A#!|^package main$|__name__ == [\"']__main__", re.MULTILINE)

Added = Mapping[str, Sequence[tuple[int, str]]]


def find_tells(added: Added, texts: Mapping[str, str]) -> tuple[Tell, ...]:
    """From `{path: [(line number, text)]}` and the new texts of files to tells, in order.

    A file without a text is judged by its added lines alone.
    """
    found: list[Tell] = []
    for path in sorted(added):
        found += sorted(set(_of_file(path, added[path], texts.get(path))))
        if len(found) >= MOST:
            break
    return tuple(found[:MOST])


def _of_file(path: str, added: Sequence[tuple[int, str]], text: str | None) -> Iterator[Tell]:
    kind = kind_of(path)
    lines = sorted(added)
    yield from _markers(path, kind, lines, text)
    if kind in ("vendored", "generated"):
        return
    yield from secrets(path, kind, lines)
    if kind not in ("source", "test") or not language_of(path):
        return
    if text is not None and len(text) <= _LARGEST:
        yield from _in_text(path, kind, text, {number for number, _ in lines})
    else:
        numbers = [number for number, _ in lines]
        partial = "\n".join(line[:_LONGEST_LINE].replace("\n", " ") for _, line in lines)
        for tell in _by_line(path, kind, partial[:_LARGEST], range(1, len(lines) + 1)):
            yield Tell(path, numbers[tell.line - 1], tell.kind, tell.sentence, tell.severity)


def _in_text(path: str, kind: FileKind, text: str, new: set[int]) -> Iterator[Tell]:
    yield from _by_line(path, kind, text, sorted(new))
    tree = parse(text) if path.endswith((".py", ".pyi")) else None
    script = is_script(path, text)
    whole = (
        python_tells(path, kind, tree, script)
        if tree
        else brace_tells(path, kind, take_apart(path, text))
    )
    yield from (tell for tell in whole if tell.line in new)


def _by_line(path: str, kind: FileKind, text: str, numbers: Sequence[int]) -> Iterator[Tell]:
    apart = take_apart(path, text)
    shown = [
        n for n in numbers if 0 < n <= len(apart.code_lines) and _is_short(apart.code_lines[n - 1])
    ]
    yield from by_rows(path, kind, apart, shown, is_script(path, text))
    if apart.language != "data":
        yield from dead_comments(path, apart, shown)


def _is_short(line: str) -> bool:
    return len(line) <= _LONGEST_LINE


def is_script(path: str, text: str) -> bool:
    """Whether people start it and read what it prints."""
    *folders, name = path.split("/")
    named = bool(_SCRIPT_NAME.fullmatch(name)) or bool(_SCRIPT_FOLDERS.intersection(folders))
    return named or bool(_SCRIPT_TEXT.search(text))


def _markers(
    path: str, kind: FileKind, lines: Sequence[tuple[int, str]], text: str | None
) -> Iterator[Tell]:
    found = [number for number, line in lines if _MARKER.match(line.rstrip("\r"))]
    if not found or (path.endswith(".py") and text is not None and parse(text) is not None):
        return  # in Python that parses, such a line is part of a string
    severity: Severity = "warning" if kind == "fixture" else "error"
    for number in found:
        sentence = "a conflict marker is left: resolve the conflict"
        yield Tell(path, number, "conflict_marker", sentence, severity)
