"""Code that was commented out instead of deleted. Pure.

Careful by design: two lines in a row at least, each of the form of code, and in Python the whole of
them must parse. An example in prose is let pass rather than a reviewer bothered.
"""

import ast
import re
import textwrap
from collections.abc import Iterator, Sequence
from typing import Final

from interlock.delivery.diff_findings.source_text import SourceText
from interlock.delivery.diff_findings.tell import DiffFinding
from interlock.delivery.diff_findings.tell_python import parse

_LEAST: Final = 2
_MARK: Final = re.compile(r"\s*(?://(?!/|\t| {3})|#(?![!:#]))")
"""Not what is set in after the slashes: that is how examples are written."""
_PYTHON: Final = re.compile(
    r"\s*(?:import \w|from [\w.]+ import |(?:async )?def \w+\(|class \w+[(:]|return\b|raise \w"
    r"|(?:el)?if .+:$|else:$|for .+ in .+:$|while .+:$|with .+:$|try:$|except\b.*:$|await \w"
    r"|[\w.\[\]'\"]+ ?[-+*/|&]?= ?\S|[\w.]+\(.*$|@\w|[)\]}]+,?$)"
)
_BRACES: Final = re.compile(
    r"\s*(?:\}?.*[;{]$|\}[);,]*$|.*\) ?=> ?[{(]$|\w[\w.,\s]* := \S.*$|\w[\w.]*\([^()]*\)[;,]?$)"
)
_ACTS: Final = re.compile(r"[=(]")
_STRONG: Final = (
    ast.Assign,
    ast.AugAssign,
    ast.Call,
    ast.Import,
    ast.ImportFrom,
    ast.FunctionDef,
    ast.Return,
    ast.Raise,
)


def dead_comments(path: str, text: SourceText, lines: Sequence[int]) -> Iterator[DiffFinding]:
    """`lines` are looked at alone: a run that goes on beyond them is judged by its new part."""
    for run in _runs(text, lines):
        body = [_MARK.sub("", text.comment_lines[number - 1], count=1) for number in run]
        if _is_code(text.language, body):
            sentence = f"{len(run)} lines of code that are commented out: delete them"
            yield DiffFinding(path, run[0], "commented_code", sentence, "notice")


def _runs(text: SourceText, lines: Sequence[int]) -> Iterator[list[int]]:
    form = _PYTHON if text.language == "python" else _BRACES
    run: list[int] = []
    for number in lines:
        comment = text.comment_lines[number - 1]
        marked = _MARK.match(comment)
        alone = not text.code_lines[number - 1].strip()
        fits = bool(marked) and alone and form.match(comment, marked.end() if marked else 0)
        if run and (not fits or number != run[-1] + 1):
            yield run
            run = []
        if fits:
            run.append(number)
    yield run


def _is_code(language: str, body: list[str]) -> bool:
    if len(body) < _LEAST:
        return False
    if language != "python":
        return any(_ACTS.search(line) for line in body)
    inside = textwrap.indent(textwrap.dedent("\n".join(body)), " ")
    tree = parse(f"async def _():\n{inside}\n")
    if tree is None:
        return False
    return sum(isinstance(node, _STRONG) for node in ast.walk(tree.body[0])) >= _LEAST
