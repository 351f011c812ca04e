"""The names that programs build on: they change only on purpose, and the golden files show how.

`python -m kernel_tests.api.test_signatures` writes them anew.
"""

from pathlib import Path
from types import ModuleType

import pytest

import interlock
from docs.pages.python import list_signatures
from interlock import testing
from interlock.api import extend

GOLDEN = Path(__file__).parent / "signatures"
MODULES = [interlock, testing, extend]


def signatures(module: ModuleType) -> str:
    return "\n".join(list_signatures(module)) + "\n"


@pytest.mark.parametrize("module", MODULES, ids=lambda each: str(each.__name__))
def test_promised_names_are_as_they_were(module: ModuleType) -> None:
    file = GOLDEN / f"{module.__name__}.txt"
    assert signatures(module) == file.read_text(encoding="utf-8"), "a promise changes"


if __name__ == "__main__":
    for each in MODULES:
        (GOLDEN / f"{each.__name__}.txt").write_text(signatures(each), encoding="utf-8")
