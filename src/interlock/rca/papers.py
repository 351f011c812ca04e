"""The papers of an investigation: what its files are called, and to which phase a step belongs."""

from pathlib import Path

from interlock.agents.files.case_folder import Names, Papers
from interlock.rca.steps import ARTIFACTS, TRIAGE, named_prompt, numbered_prompt
from interlock.signals.batch import Phase

CALIBRATE = ".asterisk/calibrate"
"""Where watchers look for signals."""
INVESTIGATIONS = ".asterisk/investigations"
"""Where the manual flow writes its prompts."""


def names(root: Path) -> Names:
    """Prompts are numbered below `investigations`, and called by family everywhere else."""
    prompt = numbered_prompt if root.name == Path(INVESTIGATIONS).name else named_prompt

    def papers(step: str, attempt: int) -> Papers:
        return Papers(prompt(step, attempt), ARTIFACTS[step])

    return papers


def phase_of(step: str) -> Phase:
    return "triage" if step in TRIAGE else "investigation"
