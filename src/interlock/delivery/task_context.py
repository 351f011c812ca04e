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


def open_points(story: Iterable[PastDecision]) -> tuple[Point, ...]:
    """What judges hold against the work and have not taken back, oldest first."""
    points: list[Point] = []
    for past in story:
        verdict, judge = past.tags.get(VERDICT), past.tags.get(BY, "")
        if verdict == ACCEPTS:
            points = [point for point in points if point.by != judge]
        elif verdict == OBJECTS:
            points.append(Point(judge, past.decision.attempt, _told(past.answer)))
    return tuple(points)


def guidance(story: Iterable[PastDecision]) -> tuple[str, ...]:
    """What humans said about the task, oldest first."""
    return tuple(
        str(past.answer["text"])
        for past in story
        if past.decision.step in steps.GATES and past.answer.get("text")
    )


def last_of(story: Iterable[PastDecision], *names: str) -> Mapping[str, Any]:
    """The latest answer at one of these steps."""
    found: Mapping[str, Any] = {}
    for past in story:
        if past.decision.step in names and past.decision.signal == "artifact":
            found = past.answer
    return found


def _told(answer: Mapping[str, Any]) -> str:
    return str(answer.get("text") or answer.get("summary") or "")


_LEAST: Final = 100
_MOST: Final = 200_000
_HEAD: Final = re.compile(r"\A---\n(.*?)\n---\n", re.DOTALL)
_FIELD: Final = re.compile(r"^(domain|description|name):[ \t]*(.+?)[ \t]*$", re.MULTILINE)
_NAME: Final = re.compile(ID)


class Experts:
    """The experts of a run: those of the project, and those that were made for it."""

    def __init__(self, project: Path, made: Path) -> None:
        self._folders = (made, project)
        self._made = made

    def known(self, name: str) -> bool:
        return bool(self.text(name))

    def text(self, name: str) -> str:
        """What makes the agent an expert; empty if there is no usable text."""
        for folder in self._folders if is_name(name) else ():
            if text := _read(folder / f"{name}.md"):
                return text
        return ""

    def all(self) -> tuple[Expert, ...]:
        found: dict[str, Expert] = {}
        for folder in self._folders:
            for path in sorted(folder.glob("*.md")) if folder.is_dir() else ():
                text = _read(path) if path.stem not in found and is_name(path.stem) else ""
                if text:
                    found[path.stem] = _expert(path.stem, text)
        return tuple(found[name] for name in sorted(found))

    def place_for(self, name: str) -> Path:
        """Where the text of a new expert belongs; its folder is made."""
        self._made.mkdir(parents=True, exist_ok=True)
        return self._made / f"{name}.md"


def is_name(name: str) -> bool:
    """Whether it can be the name of an expert, and so of a file: an id without a folder."""
    return _NAME.fullmatch(name) is not None and "/" not in name


def asked_for(case: Case) -> str:
    """The expert whom the step that a detour left asked for last; empty if it asked for none."""
    asker = case.stack[-1] if case.stack else ""
    found = case.answers.get(asker, {})
    return str(found.get("target_agent", "")) if isinstance(found, Mapping) else ""


def _read(path: Path) -> str:
    try:
        if path.is_symlink() or not path.is_file() or path.stat().st_size > _MOST:
            return ""
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return ""
    return text if len(text) >= _LEAST else ""


def _expert(name: str, text: str) -> Expert:
    head = _HEAD.match(text)
    fields = dict(_FIELD.findall(head[1])) if head else {}
    return Expert(name, fields.get("domain", ""), fields.get("description", ""))


class Briefs:
    """Briefs for the tasks of one plan."""

    def __init__(
        self,
        env: TaskEnvironment,
        checking: CheckHandler,
        experts: Experts,
        fence: Callable[[], str] = lambda: secrets.token_hex(8),
    ) -> None:
        self._env = env
        self._checking = checking
        self._experts = experts
        self._fence = fence

    def brief(
        self, case: Case, story: Sequence[PastDecision], premises: ExecutionContext
    ) -> TaskContext:
        plan = self._env.plan
        look = last_of(story, steps.CHECK, steps.PROVE)
        seen = self._seen(case, look)
        wanted = asked_for(case)
        made = case.step == steps.RECRUIT
        return TaskContext(
            task=self._env.task(case.case_id),
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
            experts=self._experts.all(),
            guidance=guidance(story),
            feedback=open_points(story),
            changed=seen.paths,
            diff=seen.patch,
            checks=tuple(map(_check_line, look.get("results", ()))),
            tells=tuple(look.get("tells", ())),
            claims=tuple(map(_claim_line, look.get("claims", ()))),
            expert=self._experts.text(wanted) if case.step == steps.CONSULT else "",
            expert_file=str(self._experts.place_for(wanted)) if made else "",
            request_id=premises.request_id,
            nonce=premises.nonce if premises.strict else "",
        )

    def _seen(self, case: Case, look: Mapping[str, Any]) -> Diff:
        """The work as it was recorded last; looked up anew after a restart."""
        known, sha = self._checking.seen, look.get("snapshot")
        if case.case_id not in known and sha:
            tree = self._env.tree_of(case.case_id, steps.CHECK)
            known[case.case_id] = tree.diff(look.get("base") or tree.base, sha)
        return known.get(case.case_id, Diff())


def _check_line(row: Mapping[str, Any]) -> str:
    how = "passes" if row.get("passed") else f"exit code {row.get('exit_code')}"
    note = f" ({row['note']})" if row.get("note") else ""
    return f"{row.get('check')} ({row.get('environment')}): {how}{note}"


def _claim_line(claim: Mapping[str, Any]) -> str:
    where = f" ({claim['environment']})" if claim.get("environment") else ""
    return f"{claim.get('check')}{where}: {claim.get('found')}; {claim.get('sentence')}"
