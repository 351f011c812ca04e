"""What the linter finds in prompts and skills, and what it leaves alone."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from docs.pages.protocols import render_pages
from interlock.signals.catalogue import ANYONE, WORKING, list_signals
from interlock.signals.lines import LineReader, LineSignal
from interlock.signals.reading import SignalRefused
from interlock.signals.skills import render_signal_block
from interlock.signals.text import read_message
from interlock.testing.lint import LARGEST, MOST_FINDINGS, is_prompt, lint_prompt
from tests.world.places import ROOT

DOCS = ROOT / "docs" / "protocols"
GOOD = "End with\n\n    READY_FOR_REVIEW: [task_id]\n"


def found(text: str, role: str | None = None) -> list[tuple[str, int]]:
    return [(one.id, one.line) for one in lint_prompt(text, role)]


LIVE = ("signal.live-example", 3)
FINDINGS = [
    # an example that would be taken for real
    ("End with\n\nREADY_FOR_REVIEW: t1\n", [LIVE]),
    ("End with\r\n\r\nREADY_FOR_REVIEW: t1\r\n", [LIVE]),
    ("End with\n\nREMEDIATION_COMPLETE\n", [LIVE]),
    ("End with\n\nFILE CONFLICT: src/a.py\n", [LIVE]),
    ("Print\n\nSAGE_SIGNAL:EPIC_STARTED:{epic_id}\n", [LIVE]),
    ("Print\n\nSAGE_SIGNAL:CHECKPOINT:MISSING\n", [LIVE]),
    ("End with\n\n```\nREADY_FOR_REVIEW: t1\n```\n", []),
    ("End with\n\n    READY_FOR_REVIEW: t1\n", []),
    ("End with\n\n> READY_FOR_REVIEW: t1\n", []),
    ("End with\n\nREADY_FOR_REVIEW: [task_id]\n", []),
    # spelled as no signal is
    (GOOD + "\n    READY_FOR_REVIEW:[task_id]\n", [("signal.malformed", 5)]),
    (GOOD + "\n    READY FOR REVIEW: [task_id]\n", [("signal.malformed", 5)]),
    (GOOD + "\n```\nready_for_review: [task_id]\n```\n", [("signal.malformed", 6)]),
    (GOOD + "\nSay `READY_FOR_REVIEW - t1` then.\n", [("signal.malformed", 5)]),
    (GOOD + "\n    HEALTH_AUDIT: SICK\n", [("signal.malformed", 5)]),
    (GOOD + "\nREADY_FOR_REVIEW means that you are done.\n", [("signal.malformed", 5)]),
    (GOOD + "\n    SAGE_SIGNAL:CHECKPOINT:WRITE:{epic_id}\n", [("signal.malformed", 5)]),
    (GOOD + '\n    echo "SAGE_SIGNAL:story_started:3-1"\n', [("signal.malformed", 5)]),
    (GOOD + "\nUse `AUDIT_PASSED`, not `Audit Passed`.\n", []),
    (GOOD + "\n### READY_FOR_REVIEW\n\n- READY_FOR_REVIEW: you are done\n", []),
    (GOOD + "\n| `READY_FOR_REVIEW` | you are done |\n", []),
    (GOOD + "\n```\n^READY_FOR_REVIEW:\\s*(\\S+)\n```\n", []),
    (GOOD + "\nFile conflicts are rare. Checkpoints are not.\n", []),
    # no signal at all
    (GOOD + "\n    WORK_DONE: [task_id]\n", [("signal.unknown", 5)]),
    (GOOD + "\nThe other signal is `WORK_DONE: t1`.\n", [("signal.unknown", 5)]),
    (GOOD + "\n    READY_FOR_REVEW: t1\n", [("signal.unknown", 5)]),
    (GOOD + "\n    SAGE_SIGNAL:STORY_DONE:3-1\n", [("signal.unknown", 5)]),
    (GOOD + "\n    MAX_RETRIES: 3\n", []),
    (GOOD + "\nIt is a signal.\nSet `MY_TOKEN` before.\n", []),
    (GOOD + "\nThe signal is this:\n\n    ALL_FINE\n", [("signal.unknown", 7)]),
    (GOOD + "\n`ALL_FINE: [id]` is no signal.\n", []),
    (GOOD + "\n    SAGE_SIGNAL:TYPE:PAYLOAD\n    SAGE_SIGNAL:<TYPE>\n", []),
    (GOOD + "\n    SAGE_SIGNAL:FATAL_ERROR:NO_CHECKPOINT\n    NO_CHECKPOINT\n", []),
    # what the signal needs
    ("    TASK_INCOMPLETE: [task_id]\n", [("signal.missing-section", 1)]),
    ("    TASK_INCOMPLETE: [task_id]\n\n    Blocker: [what]\n", []),
    ("    EXPERT_REQUEST\n    Target Agent: [name]\n", [("signal.missing-section", 1)]),
    # nothing is taught
    ("", [("signal.none", 1)]),
    ("Do good work.\n", [("signal.none", 1)]),
    ("You may say `READY_FOR_REVIEW`.\n", [("signal.none", 1)]),
    ("Echo the `dispatch_id` of `signal.json`.\n", []),
    ("Print `SAGE_SIGNAL:EPIC_STARTED:{epic_id}`.\n", []),
    ("\ufeff" + GOOD, []),
]


@pytest.mark.parametrize(("text", "expected"), FINDINGS)
def test_finds(text: str, expected: list[tuple[str, int]]) -> None:
    assert found(text) == expected


@pytest.mark.parametrize("one", lint_prompt("READY_FOR_REVIEW: t1\n\n    WORK_DONE: [x]\n"))
def test_every_finding_says_what_to_do(one: object) -> None:
    assert getattr(one, "message", "")
    assert getattr(one, "fix", "")


@pytest.mark.parametrize("role", WORKING)
@pytest.mark.parametrize("taught", WORKING)
def test_a_role_is_taught_only_its_own(role: str, taught: str) -> None:
    own = {row.name for row in list_signals("text") if role in row.roles}
    visible = {row.name for row in list_signals("text") if taught in row.roles}
    wrong = [
        one for one in lint_prompt(render_signal_block(taught), role) if one.id != "signal.none"
    ]
    assert {one.id for one in wrong} <= {"signal.wrong-role"}
    assert bool(wrong) == bool(visible - own)


def test_the_protocols_own_pages_are_clean() -> None:
    for name in render_pages():
        assert found((DOCS / name).read_text(encoding="utf-8")) == [], name


def test_huge_and_hostile_texts_are_bounded() -> None:
    assert found("x" * (LARGEST + 1)) == [("prompt.too-large", 1)]
    assert len(found("REMEDIATION_COMPLETE\n" * (MOST_FINDINGS + 10))) == MOST_FINDINGS


@pytest.mark.parametrize(
    ("text", "prompt"),
    [
        ("---\nname: x\n---\nWork.\n", True),
        ("End with READY_FOR_REVIEW: [task_id]\n", True),
        ("Say `READY_FOR_REVIEW: t1` at the end.\n", True),
        ("You are the developer.\n", True),
        ("", True),
        ("Done.\n\nREADY_FOR_REVIEW: t1\n", False),
        ("**READY_FOR_REVIEW: t1**\n", False),
        ("SAGE_SIGNAL:STORY_STARTED:3-1\n", False),
        ("x\n" * 400_000 + "READY_FOR_REVIEW: t1\n", False),
    ],
)
def test_tells_prompts_from_transcripts(text: str, prompt: bool) -> None:
    assert is_prompt(text) is prompt


pieces = st.sampled_from(
    [
        *(f"{row.grammar}\n" for row in list_signals("text") if row.template),
        *(f"{row.template}\n" for row in list_signals("line")),
        "READY_FOR_REVIEW: t1\n",
        "FILE CONFLICT: a.py\n",
        "HEALTH_AUDIT: HEALTHY\n",
        "```\n",
        "> ",
        "    ",
        "`",
        "<!--",
        "-->",
        "text\n",
        "\n",
        "Blocker: x\n",
        "WORK_DONE: t1\n",
    ]
)


@given(st.lists(pieces, max_size=10).map("".join) | st.text(max_size=100))
def test_a_text_without_live_examples_says_nothing(text: str) -> None:
    """The law of the linter: what it does not call live is not heard, and what it does is."""
    live = any(one.id == "signal.live-example" for one in lint_prompt(text))
    reader = LineReader("message")
    lines = [*reader.feed(text), *reader.close(ended_by_itself=True)]
    received = any(isinstance(one, LineSignal) for one in lines)
    if not live:
        assert isinstance(read_message(text, role=ANYONE, task_id=None), SignalRefused)
        assert not received
