"""The committed reference pages are the ones the catalogue makes."""

import pytest

from docs.pages.protocols import render_pages
from interlock.signals.catalogue import WORKING, list_signals
from interlock.signals.reading import SignalRefused
from interlock.signals.text import read_message
from tests.world.places import ROOT

DOCS = ROOT / "docs" / "protocols"


def test_the_committed_pages_are_current() -> None:
    made = render_pages()
    assert {name: (DOCS / name).read_text() for name in made} == made
    by_hand = {path.name for path in DOCS.glob("*.md")} - made.keys()
    assert all(f"]({name})" in made["README.md"] for name in by_hand), "the index names them all"


def test_every_signal_is_explained() -> None:
    pages = render_pages()
    for row in list_signals("text"):
        assert f"### `{row.name}`" in pages["text-signals.md"]
        assert row.asks in pages["text-signals.md"]
    for row in list_signals("line"):
        assert f"`{row.template}`" in pages["line-signals.md"]
    for row in list_signals("file"):
        assert row.asks in pages["files.md"]


@pytest.mark.parametrize("role", WORKING)
def test_a_page_that_is_echoed_says_nothing(role: str) -> None:
    for text in render_pages().values():
        assert isinstance(read_message(text, role=role, task_id=None), SignalRefused)
