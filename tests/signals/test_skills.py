"""The skill pack: legal by its own linter, silent when repeated, stamped. The block for prompts."""

from typing import get_args

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from interlock.signals.catalogue import ANYONE, WORKING, legal_for, rows
from interlock.signals.lines import LineReader, LineSignal
from interlock.signals.reading import SignalRefused
from interlock.signals.skills import (
    BEGIN,
    END,
    FOLDERS,
    NAME,
    Agent,
    managed_block,
    signal_block,
    skill_files,
    stamp_of,
    version_numbers,
    with_block,
)
from interlock.signals.text import read_message
from interlock.testing.lint import is_prompt, lint_prompt

AGENTS: tuple[Agent, ...] = get_args(Agent)
BLOCK = managed_block(FOLDERS.values())
TEXTS = [
    BLOCK,
    *(text for agent in AGENTS for text in skill_files(agent, "1.2.3").values()),
]


@pytest.mark.parametrize("agent", AGENTS)
def test_a_skill_has_the_frontmatter_that_agents_ask_for(agent: Agent) -> None:
    files = skill_files(agent, "1.2.3")
    text = files[f"{FOLDERS[agent]}/{NAME}/SKILL.md"]
    head = yaml.safe_load(text.split("---\n")[1])
    assert head["name"] == NAME
    assert 1 <= len(head["description"]) <= 1024
    assert head["metadata"]["version"] == "1.2.3"
    assert len(text.splitlines()) < 500
    links = [path for path in files if "/references/" in path]
    assert all(f"references/{path.rpartition('/')[2]}" in text for path in links)


@pytest.mark.parametrize("text", TEXTS)
def test_the_linter_finds_no_fault(text: str) -> None:
    assert lint_prompt(text) == []
    assert is_prompt(text)


@given(st.sampled_from(TEXTS), st.sampled_from([*WORKING, ANYONE]), st.data())
def test_no_part_of_a_skill_is_live(text: str, role: str, data: st.DataObject) -> None:
    """Also not when an agent repeats only some of its lines."""
    lines = text.split("\n")
    start = data.draw(st.integers(0, len(lines) - 1))
    stop = data.draw(st.integers(start, len(lines)))
    part = "\n".join(lines[start:stop])
    assert isinstance(read_message(part, role=role, task_id=None), SignalRefused)
    for mode in ("raw", "message"):
        reader = LineReader("raw" if mode == "raw" else "message")
        found = [*reader.feed(part), *reader.close(ended_by_itself=True)]
        assert not any(isinstance(one, LineSignal) for one in found)


def test_every_signal_is_taught() -> None:
    whole = "\n".join(skill_files("claude", "1.2.3").values())
    for row in rows():
        form = row.name.partition(":")[2] if row.protocol == "file" else row.template
        assert form.partition("\n")[0] in whole or row.name in whole
    for row in rows("text"):
        assert all(f"    {line}\n" in whole for line in row.template.splitlines() if line)


def test_the_stamp_is_read_back() -> None:
    text = skill_files("cursor", "0.10.2")[f".cursor/skills/{NAME}/SKILL.md"]
    assert stamp_of(text) == (0, 10, 2)
    assert stamp_of("no stamp") is None
    assert version_numbers("0.9.9") < version_numbers("0.10.2")


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("", "BLOCK\n"),
        ("# Mine\n", "# Mine\n\nBLOCK\n"),
        ("# Mine", "# Mine\n\nBLOCK\n"),
        ("# Mine\r\n", "# Mine\r\n\r\nBLOCK\r\n"),
        (f"a\n{BEGIN}\nold\n{END}\nb\n", "a\nBLOCK\nb\n"),
        (f"{BEGIN}{END}", "BLOCK"),
    ],
)
def test_the_block_is_put_in_and_the_users_text_stays(before: str, after: str) -> None:
    block = BLOCK.replace("\n", "\r\n") if "\r" in before else BLOCK
    assert with_block(before, BLOCK) == after.replace("BLOCK", block)


@pytest.mark.parametrize("text", [BEGIN, END, f"{BEGIN}{BEGIN}{END}{END}", f"{END}\n{BEGIN}"])
def test_damaged_markers_are_not_touched(text: str) -> None:
    assert with_block(text, BLOCK) is None


@given(st.text(st.characters(exclude_characters="\r"), max_size=60))
def test_putting_it_in_twice_is_putting_it_in_once(text: str) -> None:
    once = with_block(text, BLOCK)
    assert once is not None
    assert once.startswith(text)
    assert with_block(once, BLOCK) == once


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
