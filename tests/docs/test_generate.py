"""Generated pages say what the tables say today."""

from pathlib import Path

import pytest

from docs.generate import DOCS, pages

MADE = pages()


@pytest.mark.parametrize("name", sorted(MADE))
def test_committed_page_is_what_make_docs_writes(name: str) -> None:
    assert (DOCS / name).read_text(encoding="utf-8") == MADE[name], "run 'make docs'"


def test_no_page_is_left_of_a_circuit_that_is_gone() -> None:
    on_disk = {str(path.relative_to(DOCS)) for path in Path(DOCS / "circuits").glob("*.md")}
    assert on_disk <= set(MADE)
