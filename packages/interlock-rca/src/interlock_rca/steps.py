"""The seven steps F0 to F6: their names here, in files and in prompts.

The one table of these names. Two folders have two customs: `calibrate/` names prompts by family,
`investigations/` by number. A step's instructions are in `prompt_data/instructions`.
"""

from pathlib import Path
from typing import Final

import msgspec

from interlock.carriers.files import DispatchFiles, NameFiles
from interlock.signals.batch import Phase
from interlock.system.errors import CircuitError


class StepFamily(msgspec.Struct, frozen=True):
    """A kind of step. `template` lies below the prompts folder, `artifact` in the case's folder."""

    short: str
    step: str
    name: str
    template: str
    artifact: str


FAMILIES: Final = (
    StepFamily("F0", "F0_RECALL", "recall", "recall/judge-similarity.md", "recall-result.json"),
    StepFamily("F1", "F1_TRIAGE", "triage", "triage/classify-symptoms.md", "triage-result.json"),
    StepFamily("F2", "F2_RESOLVE", "resolve", "resolve/select-repo.md", "resolve-result.json"),
    StepFamily("F3", "F3_INVESTIGATE", "investigate", "investigate/deep-rca.md", "artifact.json"),
    StepFamily(
        "F4", "F4_CORRELATE", "correlate", "correlate/match-cases.md", "correlate-result.json"
    ),
    StepFamily("F5", "F5_REVIEW", "review", "review/present-findings.md", "review-decision.json"),
    StepFamily("F6", "F6_REPORT", "report", "report/regression-table.md", "jira-draft.json"),
)
_BY_WORD: Final = {
    word.lower(): family for family in FAMILIES for word in (family.short, family.step, family.name)
}


def find_family(word: str) -> StepFamily | None:
    """Return the family of a step's name: `F3`, `F3_INVESTIGATE` or `investigate`."""
    return _BY_WORD.get(word.lower())


def get_family(step: str) -> StepFamily:
    """Return the family of a step; raise an error if it has none."""
    found = find_family(step)
    if found is None:
        known = ", ".join(family.step for family in FAMILIES)
        raise CircuitError(f"step {step!r} is not a step of the analysis; use one of {known}")
    return found


STEPS = tuple(family.step for family in FAMILIES)
F0, F1, F2, F3, F4, F5, F6 = STEPS
TRIAGE_STEPS = (F0, F1)
"""The steps of the triage phase; all others are the investigation."""
ARTIFACT_FILES = {family.step: family.artifact for family in FAMILIES}
"""The file of each step's answer."""
LINKED = "linked"
"""The signal by which a case takes over the finding of its family."""


def name_prompt_by_number(step: str, attempt: int) -> str:
    """Return `prompt-f3.md`; the second pass is `prompt-f3-loop-2.md`."""
    again = f"-loop-{attempt}" if attempt > 1 else ""
    return f"prompt-{get_family(step).short.lower()}{again}.md"


def name_prompt_by_family(step: str, attempt: int) -> str:
    """Return `prompt-investigate.md`; the first repetition is `prompt-investigate-loop-1.md`."""
    again = f"-loop-{attempt - 1}" if attempt > 1 else ""
    return f"prompt-{get_family(step).name}{again}.md"


CALIBRATE_FOLDER = ".asterisk/calibrate"
"""The folder in which watchers look for signals."""
INVESTIGATIONS_FOLDER = ".asterisk/investigations"
"""The folder of the manual flow's prompts."""


def choose_names(root: Path) -> NameFiles:
    """Return numbered names below `investigations`, and family names everywhere else."""
    prompt = (
        name_prompt_by_number
        if root.name == Path(INVESTIGATIONS_FOLDER).name
        else name_prompt_by_family
    )

    def name_files(step: str, attempt: int) -> DispatchFiles:
        return DispatchFiles(prompt(step, attempt), ARTIFACT_FILES[step])

    return name_files


def find_phase(step: str) -> Phase:
    return "triage" if step in TRIAGE_STEPS else "investigation"
