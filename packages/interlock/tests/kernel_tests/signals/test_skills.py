"""The skill pack: legal by its own linter, silent when repeated, stamped. The block for prompts."""

from typing import get_args

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from interlock.signals.catalogue import ANYONE, WORKING, list_role_signals, list_signals
from interlock.signals.lines import LineReader, LineSignal
from interlock.signals.reading import SignalRefused
from interlock.signals.skills import (
    BEGIN,
    END,
    FOLDERS,
    SKILL_NAME,
    Agent,
    insert_block,
    parse_version,
    read_version,
    render_managed_block,
    render_signal_block,
    render_skill_files,
)
from interlock.signals.text import read_message
from interlock.testing.lint import is_prompt, lint_prompt

AGENTS: tuple[Agent, ...] = get_args(Agent)
BLOCK = render_managed_block(FOLDERS.values())
TEXTS = [
    BLOCK,
    *(text for agent in AGENTS for text in render_skill_files(agent, "1.2.3").values()),
]


@pytest.mark.parametrize("agent", AGENTS)
def test_a_skill_has_the_frontmatter_that_agents_ask_for(agent: Agent) -> None:
    files = render_skill_files(agent, "1.2.3")
    text = files[f"{FOLDERS[agent]}/{SKILL_NAME}/SKILL.md"]
    head = yaml.safe_load(text.split("---\n")[1])
    assert head["name"] == SKILL_NAME
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
    whole = "\n".join(render_skill_files("claude", "1.2.3").values())
    for row in list_signals():
        form = row.name.partition(":")[2] if row.protocol == "file" else row.template
        assert form.partition("\n")[0] in whole or row.name in whole
    for row in list_signals("text"):
        assert all(f"    {line}\n" in whole for line in row.template.splitlines() if line)


def test_the_stamp_is_read_back() -> None:
    text = render_skill_files("cursor", "0.10.2")[f".cursor/skills/{SKILL_NAME}/SKILL.md"]
    assert read_version(text) == (0, 10, 2)
    assert read_version("no stamp") is None
    assert parse_version("0.9.9") < parse_version("0.10.2")


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
    assert insert_block(before, BLOCK) == after.replace("BLOCK", block)


@pytest.mark.parametrize("text", [BEGIN, END, f"{BEGIN}{BEGIN}{END}{END}", f"{END}\n{BEGIN}"])
def test_damaged_markers_are_not_touched(text: str) -> None:
    assert insert_block(text, BLOCK) is None


@given(st.text(st.characters(exclude_characters="\r"), max_size=60))
def test_putting_it_in_twice_is_putting_it_in_once(text: str) -> None:
    once = insert_block(text, BLOCK)
    assert once is not None
    assert once.startswith(text)
    assert insert_block(once, BLOCK) == once


@pytest.mark.parametrize("role", WORKING)
def test_teaches_what_the_role_may_say_and_nothing_else(role: str) -> None:
    block = render_signal_block(role)
    for row in list_role_signals(role):
        assert f"\n    {row.grammar}\n" in block
        assert row.asks in block
    others = {row.name for other in WORKING for row in list_role_signals(other)}
    for name in others - {row.name for row in list_role_signals(role)}:
        assert f"\n    {name}" not in block


@pytest.mark.parametrize("role", WORKING)
@pytest.mark.parametrize("speaker", WORKING)
def test_an_echoed_block_says_nothing(role: str, speaker: str) -> None:
    block = render_signal_block(role, task_id="t1", nonce="n1")
    for text in (block, "Understood:\n\n" + block, block + "\nReady when you are.\n"):
        assert isinstance(read_message(text, role=speaker, task_id="t1"), SignalRefused)


def test_fills_in_the_task_and_the_nonce() -> None:
    block = render_signal_block("developer", task_id="t1", nonce="n1")
    assert "\n    READY_FOR_REVIEW: t1\n    Dispatch: n1\n" in block
    assert "[task_id]" not in block


def test_a_verdict_comes_with_its_rule() -> None:
    assert "must stand alone" in render_signal_block("auditor")
    assert "must stand alone" not in render_signal_block("developer")


def test_a_session_is_taught_lines_that_say_nothing_when_echoed() -> None:
    block = render_signal_block("session")
    assert "\n    SAGE_SIGNAL:CHECKPOINT:WRITE:{epic_id}:{story_id}:{phase}:{task}\n" in block
    reader = LineReader("raw")
    found = [*reader.feed(block), *reader.close(ended_by_itself=True)]
    assert found
    assert not any(isinstance(one, LineSignal) for one in found)


def test_a_role_without_signals_is_refused() -> None:
    with pytest.raises(ValueError, match="janitor"):
        render_signal_block("janitor")
