"""Every prompt of every shipped circuit, filled with realistic values: compared with files that a
person has read.

`python -m tests.circuits.test_prompts` writes the files again; look at the difference before you
keep it. The prompts of an epic have files of their own, beside its tests.
"""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from delivery_tests import briefs
from interlock.api.circuits import Circuit
from interlock.engine.case import Case
from interlock.runtime.circuits import list_installed_circuits
from interlock.runtime.prompts import render_prompt
from rca_tests.world import RICH, SHORTS, case_at, rendered
from tests.world.change import CHANGE_FILE
from tests.world.places import ROOT

FILES = Path(__file__).with_name("prompts")
EPIC = ROOT / "packages/interlock-epic/tests/epic_tests/prompts"
DRAFT = {"text": "Ask for the password again after ten minutes.\nLog who was asked."}
REVIEW = {"score": 0.7, "risky": True, "remarks": ["say how long", "name the log"]}
CHANGE: Mapping[str, dict[str, Any]] = {
    "draft": {},
    "draft-again": {"answers": {"draft": DRAFT}, "context": {"remarks": REVIEW["remarks"]}},
    "review": {"answers": {"draft": DRAFT}},
    "approve": {"answers": {"draft": DRAFT, "review": REVIEW}},
    "approve-warned": {
        "answers": {"draft": DRAFT, "review": REVIEW},
        "context": {"warning": "The critic calls this change risky."},
    },
    "publish": {"answers": {"draft": DRAFT, "review": REVIEW}},
}


def render_change(name: str) -> str:
    circuit = Circuit.load(str(CHANGE_FILE)).source.circuit
    case = Case("T1", name.partition("-")[0], input={"topic": "log in again"}, **CHANGE[name])
    return render_prompt(circuit, case)


def render_all() -> dict[str, str]:
    """The text of each file."""
    found = {f"rca-{short}": rendered(short, RICH, case_at(short)) for short in SHORTS}
    for step in briefs.PROMPTED:
        found[f"delivery-{step}"] = briefs.filled(briefs.case_at(step), briefs.RICH)
    return found | {f"change-{name}": render_change(name) for name in CHANGE}


@pytest.mark.parametrize("name", render_all())
def test_a_prompt_is_as_it_was_read(name: str) -> None:
    written = (FILES / f"{name}.txt").read_text(encoding="utf-8")
    assert render_all()[name] == written, "see the first lines of this file"


def test_no_prompt_is_left_out() -> None:
    names = {path.stem.lower() for path in FILES.iterdir()}
    names |= {f"epic-{path.stem.replace('-', '_')}".lower() for path in EPIC.iterdir()}
    assert {path.stem for path in FILES.iterdir()} == set(render_all())
    for circuit in list_installed_circuits():
        for step, each in Circuit.load(circuit).source.circuit.steps.items():
            short = step.split("_")[0] if circuit == "rca" else step
            assert not each.prompt or f"{circuit}-{short}".lower() in names, (circuit, step)


def test_no_line_break_is_lost_or_doubled() -> None:
    for name, text in render_all().items():
        ours = [line for line in text.splitlines() if not line.startswith("> ")]
        assert not [line for line in ours if line != line.rstrip()], name
        assert "\n\n\n" not in text, name
        # A heading stands alone, with a blank line before it.
        assert not re.search(r"[^\n]\n#{1,3} ", text), name


if __name__ == "__main__":
    FILES.mkdir(exist_ok=True)
    for path in FILES.iterdir():
        path.unlink()
    for name, text in render_all().items():
        (FILES / f"{name}.txt").write_text(text, encoding="utf-8")
