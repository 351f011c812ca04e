"""Suspicious things in a change that a reviewer should look at: which checks apply to which file.

Looks at the lines that were added and, where there is one, the whole new text. Documents, vendored
and generated files, and test data are searched for secrets and conflict markers only. Pure.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

import msgspec

from interlock.delivery.diff_findings.braces import find_brace_issues, find_commented_code
from interlock.delivery.diff_findings.patterns import find_secrets, match_patterns
from interlock.delivery.diff_findings.python import find_python_issues, parse_python
from interlock.delivery.diff_findings.source import DiffFinding, Severity, SourceText, split_source
from interlock.system.file_kinds import FileKind, find_kind, find_language

MOST: Final = 1_000
_LARGEST: Final = 1_000_000
_LONGEST_LINE: Final = 2_000
_RANK: Final[dict[Severity, int]] = {"error": 0, "warning": 1, "notice": 2}
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


def find_diff_issues(added: Added, texts: Mapping[str, str]) -> tuple[DiffFinding, ...]:
    """From `{path: [(line number, text)]}` and the new texts of files to findings, in order.

    A file without a text is judged by its added lines alone. Of too many the gravest are kept.
    """
    found = {
        finding for path in added for finding in _check_file(path, added[path], texts.get(path))
    }
    gravest = sorted(found, key=lambda finding: (_RANK[finding.severity], finding))[:MOST]
    return tuple(sorted(gravest))


def _check_file(
    path: str, added: Sequence[tuple[int, str]], text: str | None
) -> Iterator[DiffFinding]:
    kind = find_kind(path)
    lines = sorted(added)
    yield from _find_conflict_markers(path, kind, lines, text)
    if kind in ("vendored", "generated"):
        return
    yield from find_secrets(path, kind, lines)
    if kind not in ("source", "test") or not find_language(path):
        return
    if text is not None and len(text) <= _LARGEST:
        yield from _check_text(path, kind, text, {number for number, _ in lines})
    else:
        yield from _check_lines(path, kind, lines)


def _check_text(path: str, kind: FileKind, text: str, new: set[int]) -> Iterator[DiffFinding]:
    source, script = split_source(path, text), is_script(path, text)
    yield from _check_each_line(path, kind, source, sorted(new), script)
    tree = parse_python(text) if source.language == "python" else None
    whole = (
        find_python_issues(path, kind, tree, script)
        if tree
        else find_brace_issues(path, kind, source)
    )
    yield from (finding for finding in whole if finding.line in new)


def _check_lines(
    path: str, kind: FileKind, lines: Sequence[tuple[int, str]]
) -> Iterator[DiffFinding]:
    """The added lines as if they were a text of their own."""
    text = "\n".join(line[:_LONGEST_LINE].replace("\n", " ") for _, line in lines)[:_LARGEST]
    source, script = split_source(path, text), is_script(path, text)
    for finding in _check_each_line(path, kind, source, range(1, len(lines) + 1), script):
        yield msgspec.structs.replace(finding, line=lines[finding.line - 1][0])


def _check_each_line(
    path: str, kind: FileKind, source: SourceText, numbers: Sequence[int], script: bool
) -> Iterator[DiffFinding]:
    code = source.code_lines
    shown = [n for n in numbers if 0 < n <= len(code) and len(code[n - 1]) <= _LONGEST_LINE]
    yield from match_patterns(path, kind, source, shown, script)
    if source.language != "data":
        yield from find_commented_code(path, source, shown)


def is_script(path: str, text: str) -> bool:
    """Whether people start it and read what it prints."""
    *folders, name = path.split("/")
    named = bool(_SCRIPT_NAME.fullmatch(name)) or bool(_SCRIPT_FOLDERS.intersection(folders))
    return named or bool(_SCRIPT_TEXT.search(text))


def _find_conflict_markers(
    path: str, kind: FileKind, lines: Sequence[tuple[int, str]], text: str | None
) -> Iterator[DiffFinding]:
    found = [number for number, line in lines if _MARKER.match(line.rstrip("\r"))]
    if not found or (path.endswith(".py") and text is not None and parse_python(text) is not None):
        return  # in Python that parses, such a line is part of a string
    severity: Severity = "warning" if kind == "fixture" else "error"
    for number in found:
        sentence = "a conflict marker is left: resolve the conflict"
        yield DiffFinding(path, number, "conflict_marker", sentence, severity)
