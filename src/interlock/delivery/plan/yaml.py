"""A plan written as YAML, and checks and environments as YAML plans and interlock.toml have them.

Reads to the same records as Markdown, and names the line and the field where something is wrong.
Where a project and a plan declare the same check or environment, the plan's counts.
"""

import difflib
import re
from collections.abc import Iterable
from typing import Any, Final

import msgspec
import yaml

from interlock.delivery.checks.records import CHECK_TIMEOUT, Check, Environment
from interlock.delivery.plan.fields import (
    DASHES,
    clean_document,
    clean_file_path,
    clean_title,
    drop_empty_points,
    join_lines,
    parse_environment,
    parse_exit_code,
    parse_ids,
    parse_items,
    parse_paths,
    parse_prefix,
    parse_timeout,
    split_command,
    split_lines,
    strip_backticks,
    tidy_text,
)
from interlock.delivery.plan.plan import Phase, Plan, PlanFinding, Task
from interlock.delivery.plan.tables import check_environment_name, expand_environments
from interlock.system.errors import CircuitError, SourceError
from interlock.system.yaml_text import YamlDocument, read_yaml


class CheckText(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A check as a user writes it: `[[check]]` in interlock.toml, `checks:` in a YAML plan."""

    name: str
    command: str | list[str]
    environment: str | list[str] = ""
    exit_code: int | str = ""
    timeout: float | str = ""
    purpose: str = ""


class EnvironmentText(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """An environment as a user writes it: `[[environment]]`, or `environments:` in a YAML plan."""

    name: str
    prefix: str | list[str] = ""
    description: str = ""


def build_checks(text: CheckText, line: int = 0) -> list[Check]:
    """The checks that are written there: one for each environment named, or one for all."""
    name = clean_title(strip_backticks(text.name))
    if not name:
        raise SourceError("a check has no name; give it one")
    named = text.environment
    check = Check(
        name=name,
        command=split_command(text.command),
        exit_code=parse_exit_code(text.exit_code),
        timeout=parse_timeout(text.timeout, CHECK_TIMEOUT),
        purpose=join_lines(text.purpose),
        line=line,
    )
    return expand_environments(check, named if isinstance(named, str) else ",".join(named))


def build_environment(text: EnvironmentText, line: int = 0) -> Environment:
    """The environment that is written there."""
    prefix = text.prefix
    if isinstance(prefix, str):
        before = parse_prefix(prefix)
    else:
        before = split_command(prefix) if prefix else ()
    return Environment(
        check_environment_name(text.name), before, join_lines(text.description), line
    )


def add_project_checks(
    plan: Plan, checks: Iterable[CheckText], environments: Iterable[EnvironmentText]
) -> Plan:
    """The plan with the project's checks and environments; of two with one name, the plan's."""
    own = {check.name for check in plan.checks}
    places = {environment.name for environment in plan.environments}
    try:
        usual = [check for text in checks for check in build_checks(text)]
        around = [build_environment(text) for text in environments]
    except SourceError as error:
        raise SourceError(f"interlock.toml: {error}") from None
    return msgspec.structs.replace(
        plan,
        checks=(*(check for check in usual if check.name not in own), *plan.checks),
        environments=(*(place for place in around if place.name not in places), *plan.environments),
    )


MOST: Final = 10_000_000
_PHASE_ID: Final = re.compile(r"[^\s:`*]+")
_Lines = str | list[str]


class _Strict(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    pass


class PlanTaskText(_Strict, frozen=True):
    """A task as it is written."""

    id: str
    title: str = ""
    work: str = ""
    criteria: _Lines = ""
    blocked_by: _Lines = ""
    reading: _Lines = ""
    environment: str = ""
    target_files: _Lines = ""


class PhaseText(_Strict, frozen=True):
    """A phase as it is written, with its tasks."""

    id: str = ""
    name: str = ""
    overview: str = ""
    tasks: list[PlanTaskText] = []


class PlanText(_Strict, frozen=True):
    """A plan as it is written. `tasks` are those of no phase."""

    title: str = ""
    overview: str = ""
    environments: list[EnvironmentText] = []
    checks: list[CheckText] = []
    phases: list[PhaseText] = []
    tasks: list[PlanTaskText] = []


def read_yaml_plan(text: str, file: str = "") -> Plan:
    """The plan written in `text`."""
    try:
        document = read_yaml(text.removeprefix("\ufeff"), file, most=MOST, only_words=True)
        written = msgspec.convert(_fill_empty_lists(document.value), PlanText, strict=False)
    except CircuitError as error:
        raise SourceError(str(error)) from None
    except msgspec.ValidationError as error:
        raise SourceError(_explain_error(str(error), document)) from None
    return _Builder(written, document).build_plan()


def _fill_empty_lists(value: Any) -> Any:
    """A list that was left empty has no items; YAML says it is an empty word."""
    if not isinstance(value, dict):
        return value
    lists = ("environments", "checks", "phases", "tasks")
    return {key: [] if key in lists and given == "" else given for key, given in value.items()}


class _Builder:
    def __init__(self, text: PlanText, document: YamlDocument) -> None:
        self.text = text
        self.document = document
        self.remarks: list[PlanFinding] = []

    def build_plan(self) -> Plan:
        text = self.text
        tasks = [self._build_task(task, "", "tasks", at) for at, task in enumerate(text.tasks)]
        phases: list[Phase] = []
        for at, given in enumerate(text.phases):
            phase = self._build_phase(given, at)
            phases.append(phase)
            tasks += [
                self._build_task(task, phase.id, "phases", at, "tasks", index)
                for index, task in enumerate(given.tasks)
            ]
        return Plan(
            title=clean_title(text.title),
            overview=tidy_text(text.overview),
            phases=tuple(phases),
            tasks=tuple(tasks),
            checks=tuple(
                check
                for at, given in enumerate(text.checks)
                for check in self._build_or_remark(build_checks, given, "checks", at) or ()
            ),
            environments=tuple(
                place
                for at, given in enumerate(text.environments)
                if (place := self._build_or_remark(build_environment, given, "environments", at))
            ),
            source_form="yaml",
            remarks=tuple(self.remarks),
        )

    def _build_or_remark(self, build: Any, given: Any, *path: str | int) -> Any:
        line = self.document.line(*path)
        try:
            return build(given, line)
        except SourceError as error:
            self.remarks.append(PlanFinding("error", "table.row", str(error), line=line))
        return None

    def _build_phase(self, given: PhaseText, at: int) -> Phase:
        line = self.document.line("phases", at)
        name = given.id.strip() or str(at + 1)
        if not _PHASE_ID.fullmatch(name):
            place = f"{self.document.file}:{line}: " if self.document.file else ""
            raise SourceError(f"{place}the phase {name[:60]!r} needs an id of one word, such as 1")
        return Phase(
            name, clean_title(given.name).lstrip(f": {DASHES}"), tidy_text(given.overview), line
        )

    def _build_task(self, given: PlanTaskText, phase: str, *path: str | int) -> Task:
        return Task(
            id=join_lines(given.id),
            title=clean_title(given.title),
            phase=phase,
            work=tidy_text(given.work),
            criteria=_as_points(given.criteria),
            blocked_by=parse_ids(_as_lines(given.blocked_by)),
            reading=tuple(map(clean_document, _as_paths(given.reading))),
            environment=parse_environment(given.environment),
            target_files=tuple(map(clean_file_path, _as_paths(given.target_files))),
            line=self.document.line(*path),
        )


def _as_lines(given: _Lines) -> list[str]:
    return (
        split_lines(given)
        if isinstance(given, str)
        else [f"- {join_lines(each)}" for each in given]
    )


def _as_points(given: _Lines) -> tuple[str, ...]:
    return parse_items(split_lines(given)) if isinstance(given, str) else drop_empty_points(given)


def _as_paths(given: _Lines) -> tuple[str, ...]:
    return parse_paths(split_lines(given)) if isinstance(given, str) else drop_empty_points(given)


def _explain_error(message: str, document: YamlDocument) -> str:
    """msgspec's complaint, with the line it is about and what to write instead."""
    problem, _, where = message.partition(" - at `$")
    path = [
        int(index) if index else name
        for name, index in re.findall(r"\.([^.\[\]`]+)|\[(\d+)\]", where)
    ]
    unknown = re.search(r"unknown field `(.+?)`", problem)
    line = document.line(*path, unknown[1]) if unknown else document.line(*path)
    place = f"{document.file}:{line}: " if document.file else f"line {line}: "
    if unknown:
        known = _list_fields(path)
        near = difflib.get_close_matches(unknown[1], known, 1)
        hint = f"did you mean {near[0]!r}?" if near else f"use {', '.join(known)}"
        return f"{place}{unknown[1][:60]!r} is not a field here; {hint}"
    if "got `object`" in problem and path and isinstance(path[-1], int):
        return f"{place}a colon made this a field; put the whole item in quotes"
    named = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in path)
    return f"{place}{named.lstrip('.') or 'a plan'}: {problem[:1].lower()}{problem[1:]}"


def _list_fields(path: list[str | int]) -> tuple[str, ...]:
    match path:
        case [*_, "tasks", int()]:
            return PlanTaskText.__struct_fields__
        case ["phases", *_]:
            return PhaseText.__struct_fields__
        case ["checks", *_]:
            return CheckText.__struct_fields__
        case ["environments", *_]:
            return EnvironmentText.__struct_fields__
    return PlanText.__struct_fields__


def write_yaml_plan(plan: Plan) -> str:
    """The plan as YAML; what is empty is left out."""
    by_phase: dict[str, list[dict[str, Any]]] = {"": [], **{each.id: [] for each in plan.phases}}
    for task in plan.tasks:
        by_phase[task.phase].append(_to_mapping(task, ("line", "phase")))
    document = _to_mapping(
        plan, ("phases", "tasks", "checks", "environments", "source_form", "remarks")
    )
    document |= {
        "environments": [_to_mapping(each, ("line",)) for each in plan.environments],
        "checks": [_to_mapping(each, ("line",)) for each in plan.checks],
        "tasks": by_phase.pop(""),
        "phases": [
            {**_to_mapping(phase, ("line",)), "tasks": by_phase[phase.id]} for phase in plan.phases
        ],
    }
    filled = {name: value for name, value in document.items() if value}
    text: str = yaml.dump(filled, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=100)
    return text


def _to_mapping(record: msgspec.Struct, but: tuple[str, ...]) -> dict[str, Any]:
    fields: dict[str, Any] = msgspec.to_builtins(record)
    return {name: value for name, value in fields.items() if name not in but and value}


class _Dumper(yaml.SafeDumper):
    """Texts of several lines are written as they are; the same list twice needs no anchor."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


def _represent_text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    odd = any(not sign.isprintable() and sign != "\n" for sign in text)
    style = '"' if odd else "|" if "\n" in text else None
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


_Dumper.add_representer(str, _represent_text)
