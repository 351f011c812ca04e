"""No file and no function is so long that it must be read in parts; each file says what it is.

Limits are where reading gets hard, not what to aim at.
"""

import ast
from collections.abc import Iterator
from pathlib import Path

from tests.world.places import ROOT

SOURCE = ROOT / "packages" / "interlock" / "src" / "interlock"
FILE_LINES, FUNCTION_LINES = 600, 60
TOO_LONG: set[str] = set()  # only shrinks


def test_files_and_functions_can_be_read_in_one_go() -> None:
    assert [problem for file in sorted(SOURCE.rglob("*.py")) for problem in problems(file)] == []


def problems(file: Path) -> Iterator[str]:
    name = file.relative_to(SOURCE)
    text = file.read_text(encoding="utf-8")
    tree = ast.parse(text)
    if str(name) in TOO_LONG:
        return
    if text.count("\n") > FILE_LINES:
        yield f"{name} has {text.count(chr(10))} lines"
    if text.strip() and not ast.get_docstring(tree):
        yield f"{name} does not say what it is"
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.end_lineno:
            length = node.end_lineno - node.lineno + 1
            if length > FUNCTION_LINES:
                yield f"{name}: {node.name} has {length} lines"
