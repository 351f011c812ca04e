"""Gather everything an agent is told about its task.

`TaskContext` is the record that prompts are made of: the plan, earlier decisions and open points,
the recorded work, and the experts. `parameters` decides how a prompt shows it.
"""

import re
import secrets
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import msgspec

from interlock.carriers.contract import ExecutionContext
from interlock.engine.case import Case
from interlock.signals.grammar import ID
from interlock.system.files import save_file
from interlock_delivery import steps
from interlock_delivery.checks.records import Check, Environment
from interlock_delivery.inspection import TaskEnvironment
from interlock_delivery.open_tasks import OpenTasks, PastDecision, requested_expert
from interlock_delivery.plan.plan import Task
from interlock_delivery.worktrees.diff import Diff


class Point(msgspec.Struct, frozen=True):
    """One judge's objection. `by` is critic, auditor, checks or merge; `attempt` is its visit."""

    by: str
    attempt: int
    text: str


class Expert(msgspec.Struct, frozen=True):
    """An expert, and when to ask it."""

    name: str
    domain: str = ""
    ask_when: str = ""


class TaskContext(msgspec.Struct, frozen=True, kw_only=True):
    """Everything a prompt can show beside the case itself.

    `fence` is 8 to 64 random hexadecimal digits, new for each prompt.
    """

    task: Task
    fence: str
    plan: str = ""
    """An excerpt of the plan around the task."""
    commands: tuple[Check, ...] = ()
    places: tuple[Environment, ...] = ()
    experts: tuple[Expert, ...] = ()
    guidance: tuple[str, ...] = ()
    """Guidance by humans about this task, oldest first."""
    notices: tuple[str, ...] = ()
    """The outcome of the agent's last report, in our words."""
    feedback: tuple[Point, ...] = ()
    """The open objections of judges, oldest first."""
    changed: tuple[str, ...] = ()
    diff: str = ""
    checks: tuple[str, ...] = ()
    """One line for each check in each environment, as Interlock observed it."""
    weakened_tests: tuple[str, ...] = ()
    owed: tuple[str, ...] = ()
    """Findings that this judge must answer before it passes the work."""
    claims: tuple[str, ...] = ()
    """One line for each claim of an agent, with what was found."""
    expert: str = ""
    """The text that defines the asked expert."""
    expert_file: str = ""
    """The path for a new expert's text."""
    snapshot: str = ""
    """The file that the asking agent named as context."""
    request_id: str = ""
    nonce: str = ""
    """The word that an answer must repeat, if signals are strict."""


def find_open_points(history: Iterable[PastDecision]) -> tuple[Point, ...]:
    """Return the objections that judges have not taken back, oldest first."""
    points: list[Point] = []
    for past in history:
        verdict, judge = past.tags.get(steps.VERDICT), past.tags.get(steps.BY, "")
        if verdict == steps.ACCEPTS:
            points = [point for point in points if point.by != judge]
        elif verdict == steps.OBJECTS:
            text = str(past.answer.get("text") or past.answer.get("summary") or "")
            points.append(Point(judge, past.decision.attempt, text))
    return tuple(points)


def find_guidance(history: Iterable[PastDecision]) -> tuple[str, ...]:
    """Return what humans said about the task, oldest first."""
    return tuple(
        str(past.answer["text"])
        for past in history
        if past.decision.step in steps.GATES and past.answer.get("text")
    )


def find_last_answer(history: Sequence[PastDecision], *names: str) -> Mapping[str, Any]:
    """Return the latest answer at one of these steps, or {}."""
    for past in reversed(history):
        if past.decision.step in names and past.decision.signal == "artifact":
            return past.answer
    return {}


def list_unanswered(history: Sequence[PastDecision], role: str, text: str = "") -> list[str]:
    """Return the findings that a judge must answer and whose files its verdict does not name."""
    inspected = steps.INSPECTED_FOR.get(role, ())
    owed = find_last_answer(history, *inspected).get("owed", ()) if inspected else ()
    return [
        f"{finding['path']}: {finding['sentence']}"
        for finding in owed
        if finding["judge"] == role and finding["path"] not in text
    ]


_LARGEST_EXPERT: Final = 200_000
_FRONT_MATTER: Final = re.compile(r"\A---\n(.*?)\n---\n", re.DOTALL)
_FIELD: Final = re.compile(r"^(domain|description|name):[ \t]*(.+?)[ \t]*$", re.MULTILINE)
_NAME: Final = re.compile(ID)


class ExpertFiles:
    """The experts of a run: the project's, and those made during the run."""

    def __init__(self, project: Path, made: Path, seed_folder: str = "") -> None:
        """Take the folder, relative to a worktree, where agents write new experts."""
        self._folders = (made, project)
        self._made = made
        self._seed_folder = seed_folder

    def has(self, name: str) -> bool:
        return bool(self.read_text(name))

    def read_text(self, name: str) -> str:
        """Return the text that defines an expert, or "" if there is no usable one."""
        for folder in self._folders if is_expert_name(name) else ():
            if text := read_small_text(folder / f"{name}.md"):
                return text
        return ""

    def list_experts(self) -> tuple[Expert, ...]:
        names = {path.stem for folder in self._folders for path in folder.glob("*.md")}
        texts = {name: self.read_text(name) for name in sorted(names)}
        return tuple(_parse_expert(name, text) for name, text in texts.items() if text)

    def seed_path(self, name: str) -> str:
        """Return the path of a new expert's text, relative to the worktree."""
        return f"{self._seed_folder}/{name}.md" if self._seed_folder else f"{name}.md"

    def adopt(self, name: str, written: Path) -> None:
        """Move an expert's text from a worktree to the run, where it is no part of the task's work.

        An expert of the project is never replaced.
        """
        text = read_small_text(written) if is_expert_name(name) and not self.has(name) else ""
        if text:
            self._made.mkdir(parents=True, exist_ok=True)
            save_file(self._made / f"{name}.md", text.encode())
        if text or read_small_text(self._made / f"{name}.md"):
            _remove_empty(written)


def is_expert_name(name: str) -> bool:
    """Return True if a name can be an expert's, and so a file's: an id without a slash."""
    return _NAME.fullmatch(name) is not None and "/" not in name


def read_small_text(path: Path) -> str:
    """Return the text of a plain file of at most 200,000 bytes; "" for anything else."""
    try:
        if path.is_symlink() or not path.is_file() or path.stat().st_size > _LARGEST_EXPERT:
            return ""
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError, ValueError):
        return ""
    return text if text.strip() else ""


def _parse_expert(name: str, text: str) -> Expert:
    head = _FRONT_MATTER.match(text)
    fields = dict(_FIELD.findall(head[1])) if head else {}
    return Expert(name, fields.get("domain", ""), fields.get("description", ""))


class TaskContextBuilder:
    """Builds the contexts of the tasks of one plan."""

    def __init__(
        self,
        environment: TaskEnvironment,
        tasks: OpenTasks,
        experts: ExpertFiles,
        fence: Callable[[], str] = lambda: secrets.token_hex(8),
    ) -> None:
        self._environment = environment
        self._tasks = tasks
        self._experts = experts
        self._fence = fence

    def build(
        self,
        case: Case,
        role: str,
        history: Sequence[PastDecision],
        execution: ExecutionContext,
        notices: Sequence[str] = (),
    ) -> TaskContext:
        plan = self._environment.plan
        inspected = find_last_answer(history, steps.CHECK, steps.PROVE)
        diff = self._find_diff(case, inspected)
        wanted = requested_expert(case)
        is_consulted = case.step == steps.CONSULT
        return TaskContext(
            task=self._environment.find_task(case.case_id),
            fence=self._fence(),
            plan=plan.overview,
            commands=plan.checks,
            places=plan.environments,
            experts=self._experts.list_experts(),
            guidance=find_guidance(history),
            notices=tuple(notices),
            feedback=find_open_points(history),
            changed=diff.paths,
            diff=diff.patch,
            checks=tuple(map(_format_check, inspected.get("results", ()))),
            weakened_tests=tuple(inspected.get("weakened_tests", ())),
            owed=tuple(list_unanswered(history, role)),
            claims=tuple(map(_format_claim, inspected.get("claims", ()))),
            expert=self._experts.read_text(wanted) if is_consulted else "",
            expert_file=self._experts.seed_path(wanted) if case.step == steps.RECRUIT else "",
            snapshot=self._read_snapshot(case, execution) if is_consulted else "",
            request_id=execution.request_id,
            nonce=execution.nonce if execution.strict else "",
        )

    def _read_snapshot(self, case: Case, execution: ExecutionContext) -> str:
        """Return the file that the asking agent named, if it lies in the worktree."""
        named = case.answers.get(case.stack[-1], {}).get("context_snapshot") if case.stack else ""
        folder = Path(execution.folder).resolve()
        path = folder / str(named or "")
        if not named or not path.resolve().is_relative_to(folder):
            return ""
        return read_small_text(path)

    def _find_diff(self, case: Case, inspected: Mapping[str, Any]) -> Diff:
        """Return the task's recorded work, read again after a restart."""
        sha, found = inspected.get("snapshot"), self._tasks.last_diff(case.case_id)
        if found is None and sha:
            tree = self._environment.tree_of(case.case_id, steps.CHECK)
            base = inspected.get("base") or tree.base
            return self._tasks.read_diff(case.case_id, tree, base, sha)
        return found or Diff()


def _format_check(row: Mapping[str, Any]) -> str:
    how = "passes" if row.get("passed") else f"exit code {row.get('exit_code')}"
    note = f" ({row['note']})" if row.get("note") else ""
    return f"{row.get('check')} ({row.get('environment')}): {how}{note}"


def _format_claim(claim: Mapping[str, Any]) -> str:
    where = f" ({claim['environment']})" if claim.get("environment") else ""
    return f"{claim.get('check')}{where}: {claim.get('found')}; {claim.get('sentence')}"


def _remove_empty(file: Path) -> None:
    """Remove a file, and the folders above it that become empty."""
    with suppress(OSError):
        file.unlink()
        for folder in file.parents:
            folder.rmdir()
