"""The block that teaches an agent its signals."""

import pytest

from interlock.signals.catalogue import WORKING, legal_for
from interlock.signals.lines import LineReader, LineSignal
from interlock.signals.reading import SignalRefused
from interlock.signals.skills import signal_block
from interlock.signals.text import read_message


@pytest.mark.parametrize("role", WORKING)
def test_teaches_what_the_role_may_say_and_nothing_else(role: str) -> None:
    block = signal_block(role)
    for row in legal_for(role):
        assert f"\n    {row.grammar}\n" in block
        assert row.asks in block
    others = {row.name for other in WORKING for row in legal_for(other)}
    for name in others - {row.name for row in legal_for(role)}:
        assert f"\n    {name}" not in block


@pytest.mark.parametrize("role", WORKING)
@pytest.mark.parametrize("speaker", WORKING)
def test_an_echoed_block_says_nothing(role: str, speaker: str) -> None:
    block = signal_block(role, task_id="t1", nonce="n1")
    for text in (block, "Understood:\n\n" + block, block + "\nReady when you are.\n"):
        assert isinstance(read_message(text, role=speaker, task_id="t1"), SignalRefused)


def test_fills_in_the_task_and_the_nonce() -> None:
    block = signal_block("developer", task_id="t1", nonce="n1")
    assert "\n    READY_FOR_REVIEW: t1\n    Dispatch: n1\n" in block
    assert "[task_id]" not in block


def test_a_verdict_comes_with_its_rule() -> None:
    assert "must stand alone" in signal_block("auditor")
    assert "must stand alone" not in signal_block("developer")


def test_a_session_is_taught_lines_that_say_nothing_when_echoed() -> None:
    block = signal_block("session")
    assert "\n    SAGE_SIGNAL:CHECKPOINT:WRITE:{epic_id}:{story_id}:{phase}:{task}\n" in block
    reader = LineReader("raw")
    found = [*reader.feed(block), *reader.close(ended_by_itself=True)]
    assert found
    assert not any(isinstance(one, LineSignal) for one in found)


def test_a_role_without_signals_is_refused() -> None:
    with pytest.raises(ValueError, match="janitor"):
        signal_block("janitor")
