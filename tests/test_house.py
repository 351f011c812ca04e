"""The worst file and the worst function decide how a house feels: both have a limit."""

import ast
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[1] / "src" / "interlock"
FILES = sorted(SOURCE.rglob("*.py"))
_LIMITS = {"core/engine.py": 250}


@pytest.mark.parametrize("file", FILES, ids=lambda file: str(file.relative_to(SOURCE)))
def test_file_and_functions_are_small_and_say_what_they_know(file: Path) -> None:
    text = file.read_text(encoding="utf-8")
    tree = ast.parse(text)
    assert text.count("\n") <= _LIMITS.get(str(file.relative_to(SOURCE)), 500)
    assert ast.get_docstring(tree) or not text.strip(), "a file opens with what it knows"
    long = [
        f"{node.name} has {node.end_lineno - node.lineno + 1} lines"
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and node.end_lineno is not None
        and node.end_lineno - node.lineno >= 60
    ]
    assert long == []
