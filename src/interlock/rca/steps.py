"""The seven steps as code names them, and the files that belong to each; both from `families.py`.

Two folders have two customs: `calibrate/` names prompts by family, `investigations/` by number.
"""

from interlock.rca.families import FAMILIES, family_of

STEPS = tuple(family.step for family in FAMILIES)
F0, F1, F2, F3, F4, F5, F6 = STEPS
TRIAGE = (F0, F1)
"""The steps of the triage phase; all others are the investigation."""
ARTIFACTS = {family.step: family.artifact for family in FAMILIES}
"""The file of each step's answer."""
LINKED = "linked"
"""The signal by which a case takes over what was found for another of its family."""


def numbered_prompt(step: str, attempt: int) -> str:
    """`prompt-f3.md`; the second pass is `prompt-f3-loop-2.md`."""
    again = f"-loop-{attempt}" if attempt > 1 else ""
    return f"prompt-{family_of(step).short.lower()}{again}.md"


def named_prompt(step: str, attempt: int) -> str:
    """`prompt-investigate.md`; the first repetition is `prompt-investigate-loop-1.md`."""
    again = f"-loop-{attempt - 1}" if attempt > 1 else ""
    return f"prompt-{family_of(step).name}{again}.md"
