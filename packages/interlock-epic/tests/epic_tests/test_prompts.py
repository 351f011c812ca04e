"""Compare every prompt of an epic with a file that a person has read.

`python -m epic_tests.test_prompts` writes the files again.
"""

from pathlib import Path

import msgspec
import pytest

from interlock.api.circuits import Circuit
from interlock.engine.case import Case
from interlock.runtime.prompts import render_prompt
from interlock_epic.checkpoints.record import (
    Checkpoint,
    Epic,
    EpicFailure,
    Hitl,
    NextAction,
    Position,
    Recovery,
    Story,
)
from interlock_epic.config import EpicConfig, EpicSettings
from interlock_epic.epic_file import EpicStory, EpicTask
from interlock_epic.hooks import build_parameters
from interlock_epic.status import Status

FILES = Path(__file__).with_name("prompts")
CONFIG = EpicConfig(
    epic_id="epic-3",
    root="/project",
    db="/project/.interlock/interlock.db",
    title="Boats",
    file="docs/epics/epic-3.md",
    stories=(
        EpicStory(
            id="3-1",
            title="Login",
            acceptance_criteria=("A sailor can log in.", "A pirate cannot."),
            tasks=(EpicTask("The table", done=True), EpicTask("The form")),
        ),
        EpicStory(id="3-2", title="Logout"),
        EpicStory(id="3-3"),
    ),
)
BARE = EpicConfig(epic_id="epic-4", root="/project", db="/project/.interlock/interlock.db")
CHECKPOINT = Checkpoint(
    epic=Epic(id="epic-3"),
    stories=(Story(id="3-1"), Story(id="3-9", status=Status.DONE)),
    position=Position(story_id="3-1", phase="phase-2", task="5"),
    next_action=NextAction(type="revise", description="shorten the form"),
    hitl=Hitl(issue=42),
    failures=(
        EpicFailure(at="2026-01-02T03:04:05+00:00", type="CRASH", message="exit 1"),
        EpicFailure(at="2026-01-02T03:14:05+00:00", type="IDLE_TIMEOUT", message="silent for 30m"),
    ),
    recoveries=(Recovery(number=1, state="stashed", reason="files have changed since: a.txt"),),
    note="The form's test is flaky.",
)
PROMPTS = {
    "session": ("SESSION", CHECKPOINT, CONFIG),
    "session-first": ("SESSION", None, BARE),
    "session-own": (
        "SESSION",
        CHECKPOINT,
        msgspec.structs.replace(BARE, settings=EpicSettings(resume_prompt="/assistant *resume")),
    ),
    "review": ("REVIEW", CHECKPOINT, CONFIG),
    "review-bare": ("REVIEW", None, BARE),
    "git-gate": ("GIT_GATE", CHECKPOINT, CONFIG),
}


def render(name: str) -> str:
    step, checkpoint, config = PROMPTS[name]
    circuit = Circuit.load("epic").source.circuit
    case = Case(config.epic_id, step, context={"question": "HEAD is behind the checkpoint"})
    return render_prompt(circuit, case, build_parameters(checkpoint, config))


@pytest.mark.parametrize("name", PROMPTS)
def test_prompt(name: str) -> None:
    assert render(name) == (FILES / f"{name}.txt").read_text()


if __name__ == "__main__":
    for name in PROMPTS:
        (FILES / f"{name}.txt").write_text(render(name))
