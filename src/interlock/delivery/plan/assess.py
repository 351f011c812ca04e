"""Can a developer begin with a task as it is written? Ready, to be expanded, or to be asked.

Judged by rules. Five things must be there: a clear scope, criteria, where the work is, how to go
about it, and blockers that exist. What is missing can be worked out from the repository, so an
analyst expands the task; what the plan itself leaves open only a human can say.
"""

import re
from collections.abc import Collection
from typing import Final, Literal

import msgspec

from interlock.delivery.plan.criteria import is_placeholder, vague
from interlock.delivery.plan.plan import Task

Verdict = Literal["IMPLEMENTABLE", "NEEDS_EXPANSION", "NEEDS_CLARIFICATION"]
_FENCED: Final = re.compile(r"^[ \t]*(```|~~~).*?(?:^[ \t]*\1|\Z)", re.DOTALL | re.MULTILINE)
_CODE: Final = re.compile(r"`[^`\n]+`")
_PLACE: Final = re.compile(
    r"`[^`\n]++`|(?<![\w./*-])[\w.-]++/[\w./*-]|(?<![\w.-])[\w-][\w.-]+\.[a-z]{1,4}\b"
)
_STEP: Final = re.compile(r"^[ \t]*(?:[-*+]|\d{1,3}[.)])[ \t]+\S", re.MULTILINE)
_OPEN: Final = (
    re.compile(r"\bTB[DAC]\b|\?\?+|\bXXX\b"),
    re.compile(
        r"\bto be (?:decided|determined|defined|confirmed|agreed|clarified)\b", re.IGNORECASE
    ),
    re.compile(
        r"\b(?:ask|check with|confirm with|clarify with|agree with)\s+(?:the\s+)?"
        r"(?:user|customer|client|product owner|owner|team|stakeholders?|business|management)\b",
        re.IGNORECASE,
    ),
    re.compile(r"\bnot (?:yet )?(?:decided|clear|known|agreed|defined)\b", re.IGNORECASE),
    re.compile(
        r"\bopen questions?\b|\b(?:decision|answer) (?:is )?(?:pending|outstanding)\b",
        re.IGNORECASE,
    ),
    re.compile(r"(?<=\w)\?(?=\s|$)"),
)
_SCOPE_WORDS: Final = 6
_APPROACH_WORDS: Final = 12
_AROUND: Final = 40
_READ: Final = 100_000


class Assessment(msgspec.Struct, frozen=True):
    """What was decided about a task, what it lacks, and why, in sentences."""

    task_id: str
    verdict: Verdict
    missing: tuple[str, ...] = ()
    reasons: tuple[str, ...] = ()


def assess(task: Task, known: Collection[str]) -> Assessment:
    """How ready the task is, in a plan with these task ids."""
    questions = _questions(task)
    gaps = _gaps(task, known)
    missing = tuple(gaps)
    reasons = (*questions, *gaps.values())
    if questions or not (task.work or _usable(task)):
        alone = () if questions else ("there is neither a description nor a usable criterion",)
        return Assessment(task.id, "NEEDS_CLARIFICATION", missing, (*alone, *reasons))
    if gaps:
        return Assessment(task.id, "NEEDS_EXPANSION", missing, reasons)
    return Assessment(task.id, "IMPLEMENTABLE")


def _gaps(task: Task, known: Collection[str]) -> dict[str, str]:
    """What is missing of the five, each with its sentence."""
    work = task.work[:_READ]
    words = len(f"{task.title} {work}".split())
    text = "\n".join((task.title, work, *task.criteria))[:_READ]
    located = bool(task.target_files or _PLACE.search(text))
    guided = bool(task.reading or _STEP.search(work) or len(work.split()) >= _APPROACH_WORDS)
    unknown = [name for name in task.blocked_by if name not in known]
    gaps = {
        "scope": ("" if work and words >= _SCOPE_WORDS else "the work is not described"),
        "criteria": "" if _usable(task) else "no criterion can be tested",
        "location": "" if located else "it names no file, folder or piece of code",
        "approach": "" if guided else "it gives neither steps nor anything to read",
        "dependencies": f"it waits for {unknown[0]!r}, which is no task" if unknown else "",
    }
    return {name: sentence for name, sentence in gaps.items() if sentence}


def _usable(task: Task) -> list[str]:
    return [each for each in task.criteria if not is_placeholder(each) and not vague(each)]


def _questions(task: Task) -> list[str]:
    """What the plan leaves open in so many words; code is no question."""
    text = _FENCED.sub(" ", task.work[:_READ])
    whole = _CODE.sub("`…`", "\n".join((task.title, text, *task.criteria)))
    found: list[str] = []
    for pattern in _OPEN:
        hit = pattern.search(whole)
        if hit:
            around = whole[max(0, hit.start() - _AROUND) : hit.end() + _AROUND]
            found.append(f"it leaves something open: {' '.join(around.split())!r}")
    return found
