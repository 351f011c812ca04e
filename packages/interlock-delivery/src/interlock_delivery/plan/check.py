"""Check by rules that a plan can be delivered, and that a task is ready for a developer.

`check_plan` lists everything wrong with a plan at once, each finding with what to do. `assess_task`
decides if a task is ready, can be expanded from the repository, or has a question among its
criteria, which only a human can answer. The analyst role judges what words leave open.
"""

import difflib
import re
from collections import Counter
from collections.abc import Collection, Iterator
from typing import Final, Literal

import msgspec

from interlock.signals.grammar import is_outside_workspace
from interlock_delivery.plan.fields import means_nothing
from interlock_delivery.plan.plan import (
    ID_RULE,
    Level,
    Plan,
    PlanFinding,
    Task,
    find_cycles,
    find_startable,
    index_tasks,
    is_legal_id,
)

_SEEN: Final = re.compile(
    r"`[^`]+`"  # code
    r"|\"[^\"]+\"|“[^“”]+”|(?<!\w)'[^']+'(?!\w)"  # words to look for
    r"|\d"  # a number
    r"|(?<![\w./*-])[\w.-]++/[\w./*-]|(?<![\w.-])[\w-][\w.-]+\.[a-z]{1,4}\b"  # a path or a file
    r"|\b[A-Z][A-Z0-9]*_[A-Z0-9_]+\b|\b[A-Za-z_]\w*(?:Error|Exception|\(\))"  # a name in code
    r"|(?<!\w)--?[a-z][\w-]+"  # an option
)
_PLACEHOLDER: Final = re.compile(
    r"\W*(?:\[[^\]]*\]|<[^>]*>|\{[^}]*\}|\.\.\.|…|tb[dac]|todo|xxx|fixme)\W*", re.IGNORECASE
)
_FEWEST: Final = 3
_LONGEST: Final = 200
_LOOKED_AT: Final = 2_000


def is_placeholder(criterion: str) -> bool:
    """Return True if a criterion is the template's words or a note to come back."""
    return len(criterion) < _LONGEST and _PLACEHOLDER.fullmatch(criterion) is not None


def is_too_short(criterion: str) -> bool:
    """Return True if a criterion is a word or two that name nothing to look at."""
    text = criterion[:_LOOKED_AT]
    return len(text.split()) < _FEWEST and not _SEEN.search(text)


MOST_CYCLES: Final = 20
_SHOWN_PATH: Final = 12
_SHOWN: Final = 60
_COMPARED: Final = 500
"""The most names to search for a similar one, since comparing is slow."""


def check_plan(plan: Plan, *, allow_untestable: bool = False) -> tuple[PlanFinding, ...]:
    """Return all findings, by line; the plan can be delivered if none is an error."""
    found = [
        *plan.remarks,
        *_check_whole(plan),
        *_check_ids(plan),
        *_check_phases(plan),
        *_check_blockers(plan),
        *_check_cycles(plan),
        *(each for task in plan.tasks for each in _check_task(task, allow_untestable)),
        *_check_environments(plan),
    ]
    return tuple(sorted(found, key=lambda each: (each.line, each.level, each.code, each.sentence)))


def has_errors(findings: tuple[PlanFinding, ...]) -> bool:
    return any(finding.level == "error" for finding in findings)


def _check_whole(plan: Plan) -> Iterator[PlanFinding]:
    if not plan.tasks:
        yield PlanFinding(
            "error",
            "plan.no-tasks",
            "the plan has no tasks; write at least one, with a heading such as "
            "'#### Task 1-1-1: Add the login form'",
        )
    elif not find_startable(plan):
        yield PlanFinding(
            "error",
            "plan.nothing-startable",
            "every task is blocked by another, so none can start; unblock one of them",
        )
    if not plan.checks:
        yield PlanFinding(
            "error",
            "plan.no-checks",
            "no checks verify the work; add a table 'Verification Commands' to the plan, or "
            "[[check]] to interlock.toml",
        )
    if not plan.title:
        yield PlanFinding("warning", "plan.no-title", "the plan has no title; give it one", line=1)


def _check_ids(plan: Plan) -> Iterator[PlanFinding]:
    first: dict[str, Task] = {}
    folded: dict[str, Task] = {}
    for task in plan.tasks:
        if not is_legal_id(task.id):
            yield _error(
                task, "task.illegal-id", f"{_name_task(task)} has an invalid id; use {ID_RULE}"
            )
        elif means_nothing(task.id):
            yield _error(
                task,
                "task.illegal-id",
                f"{_name_task(task)} has an id that Blocked By reads as 'none'; choose another",
            )
        other = first.setdefault(task.id, task)
        alike = folded.setdefault(task.id.casefold(), task)
        if other is not task and task.id:
            yield _error(
                task,
                "task.duplicate",
                f"{_name_task(task)} is also in line {other.line}; give one of them another id",
            )
        elif alike is not task:
            yield _error(
                task,
                "task.look-alike",
                f"{_name_task(task)} differs from {alike.id!r} in line {alike.line} only in case, "
                "which some file systems ignore; rename one",
            )


def _check_phases(plan: Plan) -> Iterator[PlanFinding]:
    counts = Counter(phase.id for phase in plan.phases)
    filled = {task.phase for task in plan.tasks}
    for phase in plan.phases:
        if counts[phase.id] > 1:
            yield PlanFinding(
                "warning",
                "phase.duplicate",
                f"there are {counts[phase.id]} phases {phase.id!r}; number them differently",
                line=phase.line,
            )
        elif phase.id not in filled:
            yield PlanFinding(
                "warning",
                "phase.empty",
                f"phase {phase.id!r} has no tasks; add some or remove it",
                line=phase.line,
            )


def _check_blockers(plan: Plan) -> Iterator[PlanFinding]:
    known = index_tasks(plan)
    for task in plan.tasks:
        for name in task.blocked_by:
            if name not in known:
                hint = _suggest_name(name, list(known), "write the id of a task, or none")
                yield _error(
                    task,
                    "task.unknown-blocker",
                    f"{_name_task(task)} is blocked by {name[:_SHOWN]!r}, which is not a task of "
                    f"this plan; {hint}",
                )


def _check_cycles(plan: Plan) -> Iterator[PlanFinding]:
    found = find_cycles(plan, MOST_CYCLES + 1)
    known = index_tasks(plan)
    for path in found.paths[:MOST_CYCLES]:
        task = known[path[0]]
        if len(path) == 1:
            sentence = f"{_name_task(task)} is blocked by itself; remove that"
        else:
            sentence = (
                f"these tasks block each other in a cycle: {_format_cycle(path)}; "
                "remove one of these blockers"
            )
        yield PlanFinding("error", "plan.cycle", sentence, task.id, task.line, path)
    if len(found.paths) > MOST_CYCLES:
        yield PlanFinding(
            "error",
            "plan.more-cycles",
            f"there are more cycles than the {MOST_CYCLES} shown; {len(found.caught)} tasks are "
            "part of them; resolve the ones shown first",
        )


def _format_cycle(path: tuple[str, ...]) -> str:
    """Format a cycle as a path back to its start, without the middle of a very long one."""
    names = [name[:_SHOWN] for name in (*path, path[0])]
    if len(path) > _SHOWN_PATH:
        half = _SHOWN_PATH // 2
        names[half:-half] = [f"… {len(names) - 2 * half} more …"]
    return " → ".join(names)


def _check_task(task: Task, allow_untestable: bool) -> Iterator[PlanFinding]:
    held: Level = "warning" if allow_untestable else "error"
    if not task.criteria:
        yield _build_finding(
            task,
            held,
            "criteria.missing",
            f"{_name_task(task)} has no acceptance criteria, so nobody can tell when it is done; "
            "list what must be true, or pass --allow-untestable",
        )
    for criterion in task.criteria:
        if is_placeholder(criterion):
            sentence = (
                f"the criterion {criterion[:_SHOWN]!r} of {_name_task(task)} was never filled in"
            )
            yield _build_finding(
                task, held, "criteria.placeholder", f"{sentence}; write it or remove it"
            )
            continue
        if is_too_short(criterion):
            yield _warning(
                task,
                "criteria.short",
                f"the criterion {criterion[:_SHOWN]!r} of {_name_task(task)} says too little; name "
                "a command, a value, a file or a number",
            )
    if not task.work:
        yield _warning(
            task,
            "task.no-work",
            f"{_name_task(task)} does not say what to do; describe it under Work",
        )
    if not task.title:
        yield _warning(task, "task.no-title", f"{_name_task(task)} has no title; give it one")
    for path in task.target_files:
        if is_outside_workspace(path):
            yield _error(
                task,
                "task.file-outside",
                f"{_name_task(task)} names the file {path[:_SHOWN]!r}, which lies outside the "
                "repository; write a path inside it",
            )


def _check_environments(plan: Plan) -> Iterator[PlanFinding]:
    """Yield undeclared environments; for a task it is only a warning if none is declared."""
    known = [environment.name for environment in plan.environments]
    for name, count in Counter(known).items():
        if count > 1:
            line = max(each.line for each in plan.environments if each.name == name)
            yield PlanFinding(
                "error",
                "environment.duplicate",
                f"there are {count} environments {name!r}; keep one",
                line=line,
            )
    places = {"", *known}
    for task in plan.tasks:
        if task.environment not in places:
            sentence = _describe_undeclared(_name_task(task), task.environment, known)
            yield _build_finding(
                task, "error" if known else "warning", "environment.unknown", sentence
            )
    for check in plan.checks:
        if check.environment not in places:
            sentence = _describe_undeclared(
                f"check {check.name[:_SHOWN]!r}", check.environment, known
            )
            yield PlanFinding("error", "environment.unknown", sentence, line=check.line)
    yield from _check_duplicates(plan)


def _describe_undeclared(who: str, name: str, known: list[str]) -> str:
    hint = _suggest_name(name, known, "add it to the table 'Environments', or name none")
    return f"{who} needs the environment {name[:_SHOWN]!r}, which is not declared; {hint}"


def _check_duplicates(plan: Plan) -> Iterator[PlanFinding]:
    seen: dict[str, set[str]] = {}
    for check in plan.checks:
        places = seen.setdefault(check.name, set())
        if places & {"", check.environment} or (places and not check.environment):
            yield PlanFinding(
                "error",
                "check.duplicate",
                f"there are two checks {check.name!r} for one environment; rename one",
                line=check.line,
            )
        places.add(check.environment)


def _name_task(task: Task) -> str:
    return f"task {task.id[:_SHOWN]!r}" if task.id else f"the task {task.title[:_SHOWN]!r}"


def _build_finding(task: Task, level: Level, code: str, sentence: str) -> PlanFinding:
    return PlanFinding(level, code, sentence, task.id, task.line)


def _error(task: Task, code: str, sentence: str) -> PlanFinding:
    return _build_finding(task, "error", code, sentence)


def _warning(task: Task, code: str, sentence: str) -> PlanFinding:
    return _build_finding(task, "warning", code, sentence)


def _suggest_name(name: str, known: list[str], otherwise: str) -> str:
    near = difflib.get_close_matches(name[:_SHOWN], known, 1) if len(known) <= _COMPARED else []
    return f"did you mean {near[0]!r}?" if near else otherwise


Verdict = Literal["IMPLEMENTABLE", "NEEDS_EXPANSION", "NEEDS_CLARIFICATION"]
_PLACE: Final = re.compile(
    r"`[^`\n]++`|(?<![\w./*-])[\w.-]++/[\w./*-]|(?<![\w.-])[\w-][\w.-]+\.[a-z]{1,4}\b"
)
_STEP: Final = re.compile(r"^[ \t]*(?:[-*+]|\d{1,3}[.)])[ \t]+\S", re.MULTILINE)
_SCOPE_WORDS: Final = 6
_APPROACH_WORDS: Final = 12
_READ: Final = 100_000


class Assessment(msgspec.Struct, frozen=True):
    """The verdict on a task, with what it lacks and why."""

    task_id: str
    verdict: Verdict
    missing: tuple[str, ...] = ()
    reasons: tuple[str, ...] = ()


def assess_task(task: Task, known: Collection[str]) -> Assessment:
    """Return how ready a task is, in a plan with these task ids."""
    questions = [
        f"the criterion {each[:_SHOWN]!r} is a question" for each in task.criteria if _asks(each)
    ]
    gaps = _find_gaps(task, known)
    verdict: Verdict = "NEEDS_EXPANSION" if gaps else "IMPLEMENTABLE"
    if questions:
        verdict = "NEEDS_CLARIFICATION"
    return Assessment(task.id, verdict, tuple(gaps), (*questions, *gaps.values()))


def _asks(criterion: str) -> bool:
    return criterion.rstrip(" *_").endswith("?")


def _find_gaps(task: Task, known: Collection[str]) -> dict[str, str]:
    """Return what the task lacks of the five requirements, with a sentence each."""
    work = task.work[:_READ]
    words = len(f"{task.title} {work}".split())
    text = "\n".join((task.title, work, *task.criteria))[:_READ]
    located = bool(task.target_files or _PLACE.search(text))
    guided = bool(task.reading or _STEP.search(work) or len(work.split()) >= _APPROACH_WORDS)
    unknown = [name for name in task.blocked_by if name not in known]
    gaps = {
        "scope": ("" if work and words >= _SCOPE_WORDS else "the work is not described"),
        "criteria": "" if _usable_criteria(task) else "no criterion says what must be true",
        "location": "" if located else "it names no file, folder or piece of code",
        "approach": "" if guided else "it gives neither steps nor anything to read",
        "dependencies": f"it is blocked by {unknown[0]!r}, which is not a task" if unknown else "",
    }
    return {name: sentence for name, sentence in gaps.items() if sentence}


def _usable_criteria(task: Task) -> list[str]:
    return [each for each in task.criteria if not is_placeholder(each) and not is_too_short(each)]
