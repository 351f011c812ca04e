"""What an agent of a delivery is told about its task, gathered from where it is known.

`TaskContext` is the record that prompts are made of: the plan, earlier decisions and their open
points, the work as it was recorded last, and the experts that can be asked. How a prompt shows it
is decided in `parameters`.
"""

import re
import secrets
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import msgspec

from interlock.carriers.contract import ExecutionContext
from interlock.engine.case import Case, Decision
from interlock.signals.grammar import ID
from interlock.system.files import save_file
from interlock_delivery import steps
from interlock_delivery.checks.records import Check, Environment
from interlock_delivery.handlers import CheckHandler
from interlock_delivery.inspection import TaskEnvironment
from interlock_delivery.plan.plan import Task
from interlock_delivery.worktrees.diff import Diff


class Point(msgspec.Struct, frozen=True):
    """What one judge held against the work: `by` is critic, auditor, checks or merge, `attempt`
    counts that judge's visits."""

    by: str
    attempt: int
    text: str


class Expert(msgspec.Struct, frozen=True):
    """An expert that can be asked, and what for."""

    name: str
    domain: str = ""
    ask_when: str = ""


class TaskContext(msgspec.Struct, frozen=True, kw_only=True):
    """All that a prompt can be made of beside the case itself. `fence` is 8 to 64 random
    hexadecimal digits, new for each prompt; the rest is in the order of the work."""

    task: Task
    fence: str
    plan: str = ""
    """An excerpt of the plan around the task."""
    commands: tuple[Check, ...] = ()
    places: tuple[Environment, ...] = ()
    experts: tuple[Expert, ...] = ()
    guidance: tuple[str, ...] = ()
    """What humans said about this task, oldest first."""
    notices: tuple[str, ...] = ()
    """What became of the last thing that the agent reported, in our words."""
    feedback: tuple[Point, ...] = ()
    """What judges hold against the work and is still open, oldest first."""
    changed: tuple[str, ...] = ()
    diff: str = ""
    checks: tuple[str, ...] = ()
    """One line for each check in each environment, as we saw it."""
    weakened_tests: tuple[str, ...] = ()
    owed: tuple[str, ...] = ()
    """Findings that this judge must answer to pass the work."""
    claims: tuple[str, ...] = ()
    """One line for each claim of an agent, with what we found."""
    expert: str = ""
    """The text that makes the asked expert one."""
    expert_file: str = ""
    """Where a new expert's text belongs."""
    snapshot: str = ""
    """The file that whoever asks an expert has named as context."""
    request_id: str = ""
    nonce: str = ""
    """What an answer must repeat, where signals are strict."""


class PastDecision(msgspec.Struct, frozen=True):
    """One decision about a case: what it was made on, and the tags of the rule that was taken."""

    decision: Decision
    answer: Mapping[str, Any]
    tags: Mapping[str, str] = {}


def find_open_points(history: Iterable[PastDecision]) -> tuple[Point, ...]:
    """What judges hold against the work and have not taken back, oldest first."""
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
    """What humans said about the task, oldest first."""
    return tuple(
        str(past.answer["text"])
        for past in history
        if past.decision.step in steps.GATES and past.answer.get("text")
    )


def find_last_answer(history: Sequence[PastDecision], *names: str) -> Mapping[str, Any]:
    """The latest answer at one of these steps."""
    for past in reversed(history):
        if past.decision.step in names and past.decision.signal == "artifact":
            return past.answer
    return {}


def list_unanswered(history: Sequence[PastDecision], role: str, text: str = "") -> list[str]:
    """The findings that this judge must answer and whose files this verdict does not name."""
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
    """The experts of a run: those of the project, and those that were made for it."""

    def __init__(self, project: Path, made: Path, seed_folder: str = "") -> None:
        """`seed_folder` is where agents write new experts, seen from their worktree."""
        self._folders = (made, project)
        self._made = made
        self._seed_folder = seed_folder

    def has(self, name: str) -> bool:
        return bool(self.read_text(name))

    def read_text(self, name: str) -> str:
        """What makes the agent an expert; empty if there is no usable text."""
        for folder in self._folders if is_expert_name(name) else ():
            if text := read_small_text(folder / f"{name}.md"):
                return text
        return ""

    def list_experts(self) -> tuple[Expert, ...]:
        names = {path.stem for folder in self._folders for path in folder.glob("*.md")}
        texts = {name: self.read_text(name) for name in sorted(names)}
        return tuple(_parse_expert(name, text) for name, text in texts.items() if text)

    def seed_path(self, name: str) -> str:
        """Where the text of a new expert belongs, seen from the worktree of whoever writes it."""
        return f"{self._seed_folder}/{name}.md" if self._seed_folder else f"{name}.md"

    def adopt(self, name: str, written: Path) -> None:
        """Move an expert's text out of a worktree, where it would become part of the task's work,
        to those of the run. What the project has already stays with it."""
        text = read_small_text(written) if is_expert_name(name) and not self.has(name) else ""
        if text:
            self._made.mkdir(parents=True, exist_ok=True)
            save_file(self._made / f"{name}.md", text.encode())
        if text or read_small_text(self._made / f"{name}.md"):
            _remove_empty(written)


def is_expert_name(name: str) -> bool:
    """Whether it can be the name of an expert, and so of a file: an id without a folder."""
    return _NAME.fullmatch(name) is not None and "/" not in name


def requested_expert(case: Case) -> str:
    """The expert whom the step that a detour left asked for last; empty if it asked for none."""
    asker = case.stack[-1] if case.stack else ""
    answer = case.answers.get(asker, {})
    return str(answer.get("target_agent", "")) if isinstance(answer, Mapping) else ""


def read_small_text(path: Path) -> str:
    """The text of a plain file of a sane size; empty for anything else, and for blanks."""
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
        checking: CheckHandler,
        experts: ExpertFiles,
        fence: Callable[[], str] = lambda: secrets.token_hex(8),
    ) -> None:
        self._environment = environment
        self._checking = checking
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
        """The file that whoever asks has named, if it lies in the worktree."""
        named = case.answers.get(case.stack[-1], {}).get("context_snapshot") if case.stack else ""
        folder = Path(execution.folder).resolve()
        path = folder / str(named or "")
        if not named or not path.resolve().is_relative_to(folder):
            return ""
        return read_small_text(path)

    def _find_diff(self, case: Case, inspected: Mapping[str, Any]) -> Diff:
        """The work as it was recorded last; read again after a restart."""
        known, sha = self._checking.diffs, inspected.get("snapshot")
        if case.case_id not in known and sha:
            tree = self._environment.tree_of(case.case_id, steps.CHECK)
            known[case.case_id] = tree.diff(inspected.get("base") or tree.base, sha)
        return known.get(case.case_id, Diff())


def _format_check(row: Mapping[str, Any]) -> str:
    how = "passes" if row.get("passed") else f"exit code {row.get('exit_code')}"
    note = f" ({row['note']})" if row.get("note") else ""
    return f"{row.get('check')} ({row.get('environment')}): {how}{note}"


def _format_claim(claim: Mapping[str, Any]) -> str:
    where = f" ({claim['environment']})" if claim.get("environment") else ""
    return f"{claim.get('check')}{where}: {claim.get('found')}; {claim.get('sentence')}"


def _remove_empty(file: Path) -> None:
    """The file, and the folders above it that are empty without it."""
    with suppress(OSError):
        file.unlink()
        for folder in file.parents:
            folder.rmdir()
