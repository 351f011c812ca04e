"""What an agent of a delivery is told about its task, gathered from where it is known.

`TaskContext` is the record that prompts are made of: the plan, earlier decisions and their open
points, the work as it was recorded last, and the experts that can be asked. How a prompt shows it
is decided in `parameters`.
"""

import re
import secrets
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, Protocol

import msgspec

from interlock.agents.carrier import ExecutionContext
from interlock.delivery import steps
from interlock.delivery.handlers import CheckHandler
from interlock.delivery.inspection import TaskEnvironment
from interlock.delivery.rule_tags import ACCEPTS, BY, OBJECTS, VERDICT
from interlock.delivery.worktrees.diff import Diff
from interlock.engine.case import Case, Decision
from interlock.signals.grammar import ID


class TaskDescription(Protocol):
    """A task as a plan has it. Any record with these fields will do."""

    @property
    def id(self) -> str: ...
    @property
    def title(self) -> str: ...
    @property
    def work(self) -> str: ...
    @property
    def criteria(self) -> tuple[str, ...]: ...
    @property
    def blocked_by(self) -> tuple[str, ...]: ...
    @property
    def reading(self) -> tuple[str, ...]: ...
    @property
    def environment(self) -> str: ...
    @property
    def target_files(self) -> tuple[str, ...]: ...


class Point(msgspec.Struct, frozen=True):
    """What one judge held against the work: `by` is critic, auditor, checks or merge, `attempt` the
    how-manieth look of that judge it comes from."""

    by: str
    attempt: int
    text: str


class Expert(msgspec.Struct, frozen=True):
    """An expert that can be asked, and what for."""

    name: str
    domain: str = ""
    ask_when: str = ""


class CheckLocation(msgspec.Struct, frozen=True):
    """An environment in which checks run, and how a command is run there."""

    name: str
    description: str = ""
    how: str = ""


class CheckCommand(msgspec.Struct, frozen=True):
    """A check that must hold: what is run, where, and which exit code it must have."""

    check: str
    command: str
    environment: str = ""
    exit_code: int = 0


class TaskContext(msgspec.Struct, frozen=True, kw_only=True):
    """All that a prompt can be made of beside the case itself. `fence` is 8 to 64 hexadecimal
    digits of chance, new for each prompt; the rest is in the order of the work."""

    task: TaskDescription
    fence: str
    plan: str = ""
    """An excerpt of the plan around the task."""
    commands: tuple[CheckCommand, ...] = ()
    places: tuple[CheckLocation, ...] = ()
    experts: tuple[Expert, ...] = ()
    guidance: tuple[str, ...] = ()
    """What humans said about this task, oldest first."""
    feedback: tuple[Point, ...] = ()
    """What judges hold against the work and is still open, oldest first."""
    changed: tuple[str, ...] = ()
    diff: str = ""
    checks: tuple[str, ...] = ()
    """One line for each check in each environment, as we saw it."""
    tells: tuple[str, ...] = ()
    claims: tuple[str, ...] = ()
    """One line for each claim of an agent, with what we found."""
    expert: str = ""
    """The text that makes the asked expert one."""
    expert_file: str = ""
    """Where a new expert's text belongs."""
    request_id: str = ""
    nonce: str = ""
    """What an answer must repeat, where signals are strict."""


class PastDecision(msgspec.Struct, frozen=True):
    """One decision, the answer it was made on, and the tags of the rule that made it."""

    decision: Decision
    answer: Mapping[str, Any]
    tags: Mapping[str, str] = {}


def find_open_points(story: Iterable[PastDecision]) -> tuple[Point, ...]:
    """What judges hold against the work and have not taken back, oldest first."""
    points: list[Point] = []
    for past in story:
        verdict, judge = past.tags.get(VERDICT), past.tags.get(BY, "")
        if verdict == ACCEPTS:
            points = [point for point in points if point.by != judge]
        elif verdict == OBJECTS:
            points.append(Point(judge, past.decision.attempt, _answer_text(past.answer)))
    return tuple(points)


def find_guidance(story: Iterable[PastDecision]) -> tuple[str, ...]:
    """What humans said about the task, oldest first."""
    return tuple(
        str(past.answer["text"])
        for past in story
        if past.decision.step in steps.GATES and past.answer.get("text")
    )


def find_last_answer(story: Iterable[PastDecision], *names: str) -> Mapping[str, Any]:
    """The latest answer at one of these steps."""
    found: Mapping[str, Any] = {}
    for past in story:
        if past.decision.step in names and past.decision.signal == "artifact":
            found = past.answer
    return found


def _answer_text(answer: Mapping[str, Any]) -> str:
    return str(answer.get("text") or answer.get("summary") or "")


_LEAST: Final = 100
_MOST: Final = 200_000
_HEAD: Final = re.compile(r"\A---\n(.*?)\n---\n", re.DOTALL)
_FIELD: Final = re.compile(r"^(domain|description|name):[ \t]*(.+?)[ \t]*$", re.MULTILINE)
_NAME: Final = re.compile(ID)


class ExpertFiles:
    """The experts of a run: those of the project, and those that were made for it."""

    def __init__(self, project: Path, made: Path) -> None:
        self._folders = (made, project)
        self._made = made

    def has(self, name: str) -> bool:
        return bool(self.read_text(name))

    def read_text(self, name: str) -> str:
        """What makes the agent an expert; empty if there is no usable text."""
        for folder in self._folders if is_expert_name(name) else ():
            if text := _read_expert(folder / f"{name}.md"):
                return text
        return ""

    def list_experts(self) -> tuple[Expert, ...]:
        found: dict[str, Expert] = {}
        for folder in self._folders:
            for path in sorted(folder.glob("*.md")) if folder.is_dir() else ():
                text = (
                    _read_expert(path)
                    if path.stem not in found and is_expert_name(path.stem)
                    else ""
                )
                if text:
                    found[path.stem] = _parse_expert(path.stem, text)
        return tuple(found[name] for name in sorted(found))

    def path_for(self, name: str) -> Path:
        """Where the text of a new expert belongs; its folder is made."""
        self._made.mkdir(parents=True, exist_ok=True)
        return self._made / f"{name}.md"


def is_expert_name(name: str) -> bool:
    """Whether it can be the name of an expert, and so of a file: an id without a folder."""
    return _NAME.fullmatch(name) is not None and "/" not in name


def requested_expert(case: Case) -> str:
    """The expert whom the step that a detour left asked for last; empty if it asked for none."""
    asker = case.stack[-1] if case.stack else ""
    found = case.answers.get(asker, {})
    return str(found.get("target_agent", "")) if isinstance(found, Mapping) else ""


def _read_expert(path: Path) -> str:
    try:
        if path.is_symlink() or not path.is_file() or path.stat().st_size > _MOST:
            return ""
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return ""
    return text if len(text) >= _LEAST else ""


def _parse_expert(name: str, text: str) -> Expert:
    head = _HEAD.match(text)
    fields = dict(_FIELD.findall(head[1])) if head else {}
    return Expert(name, fields.get("domain", ""), fields.get("description", ""))


class TaskContextBuilder:
    """Briefs for the tasks of one plan."""

    def __init__(
        self,
        env: TaskEnvironment,
        checking: CheckHandler,
        experts: ExpertFiles,
        fence: Callable[[], str] = lambda: secrets.token_hex(8),
    ) -> None:
        self._env = env
        self._checking = checking
        self._experts = experts
        self._fence = fence

    def build(
        self, case: Case, story: Sequence[PastDecision], premises: ExecutionContext
    ) -> TaskContext:
        plan = self._env.plan
        look = find_last_answer(story, steps.CHECK, steps.PROVE)
        seen = self._find_diff(case, look)
        wanted = requested_expert(case)
        made = case.step == steps.RECRUIT
        return TaskContext(
            task=self._env.find_task(case.case_id),
            fence=self._fence(),
            plan=plan.overview,
            commands=tuple(
                CheckCommand(each.name, " ".join(each.command), each.environment, each.exit_code)
                for each in plan.checks
            ),
            places=tuple(
                CheckLocation(each.name, each.description, " ".join(each.prefix))
                for each in plan.environments
            ),
            experts=self._experts.list_experts(),
            guidance=find_guidance(story),
            feedback=find_open_points(story),
            changed=seen.paths,
            diff=seen.patch,
            checks=tuple(map(_format_check, look.get("results", ()))),
            tells=tuple(look.get("tells", ())),
            claims=tuple(map(_format_claim, look.get("claims", ()))),
            expert=self._experts.read_text(wanted) if case.step == steps.CONSULT else "",
            expert_file=str(self._experts.path_for(wanted)) if made else "",
            request_id=premises.request_id,
            nonce=premises.nonce if premises.strict else "",
        )

    def _find_diff(self, case: Case, look: Mapping[str, Any]) -> Diff:
        """The work as it was recorded last; looked up anew after a restart."""
        known, sha = self._checking.diffs, look.get("snapshot")
        if case.case_id not in known and sha:
            tree = self._env.tree_of(case.case_id, steps.CHECK)
            known[case.case_id] = tree.diff(look.get("base") or tree.base, sha)
        return known.get(case.case_id, Diff())


def _format_check(row: Mapping[str, Any]) -> str:
    how = "passes" if row.get("passed") else f"exit code {row.get('exit_code')}"
    note = f" ({row['note']})" if row.get("note") else ""
    return f"{row.get('check')} ({row.get('environment')}): {how}{note}"


def _format_claim(claim: Mapping[str, Any]) -> str:
    where = f" ({claim['environment']})" if claim.get("environment") else ""
    return f"{claim.get('check')}{where}: {claim.get('found')}; {claim.get('sentence')}"
