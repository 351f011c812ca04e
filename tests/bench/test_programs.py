"""The programs of the bench import what there is: no type checker sees scripts that peers run."""

import ast
from importlib import import_module

from tests.world.places import ROOT

PROGRAMS = ROOT / "bench" / "programs"


def test_every_import_of_ours_is_there() -> None:
    missing = []
    for file in sorted(PROGRAMS.glob("*.py")):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("interlock."):
                module = import_module(str(node.module))
                names = [alias.name for alias in node.names]
                missing += [f"{file.name}: {name}" for name in names if not hasattr(module, name)]
    assert missing == []
