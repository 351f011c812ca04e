"""Read checks and environments from the tables of a plan and of interlock.toml.

A table is recognised by the names of its columns, in any order; checks may also be a list under
their heading. The library's table rule is not used: in plans, bars stand unescaped in commands,
rows are longer than their head, and the line of dashes is missing or too short. The rule would drop
such cells or the whole table, and with it a check.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

import msgspec

from interlock.system.errors import SourceError
from interlock_delivery.checks.records import (
    CHECK_TIMEOUT,
    Check,
    CheckText,
    Environment,
    EnvironmentText,
)
from interlock_delivery.plan.blocks import PlanLine
from interlock_delivery.plan.fields import (
    DASHES,
    clean_title,
    join_lines,
    parse_environment,
    parse_exit_code,
    parse_prefix,
    parse_timeout,
    split_command,
    strip_backticks,
)
from interlock_delivery.plan.plan import Plan, PlanFinding

_COLUMNS: Final = {
    "check": "check",
    "name": "name",
    "environment": "environment",
    "environments": "environment",
    "env": "environment",
    "command": "command",
    "exit code": "exit_code",
    "exit": "exit_code",
    "required exit code": "exit_code",
    "timeout": "timeout",
    "purpose": "purpose",
    "description": "purpose",
    "how to execute": "how",
    "how to run": "how",
    "prefix": "how",
}
_POINT: Final = re.compile(
    r"[ \t]*+(?:[-*+]|\d{1,4}[.)])[ \t]++(?:\[.?\][ \t]++)?+([^`]*+)(`.*)", re.DOTALL
)
_SPAN: Final = re.compile(r"(`++)(.+?)\1(?!`)", re.DOTALL)
_COMMANDS_HEADING: Final = frozenset(("verification commands", "verification", "checks"))
_NO_ROW: Final = re.compile(r"[ \t]*+(?:[>#]|[-*+][ \t]|\d{1,4}[.)][ \t])")
_LONGEST_LINE: Final = 20_000


class Tables(msgspec.Struct, frozen=True):
    """The checks and environments of a plan, with remarks."""

    checks: tuple[Check, ...]
    environments: tuple[Environment, ...]
    remarks: tuple[PlanFinding, ...]


def read_tables(lines: Sequence[PlanLine]) -> Tables:
    """Return all checks and environments in the lines that belong to no task."""
    reader = _TableReader()
    for line in lines:
        reader.take(line)
    return Tables(tuple(reader.checks), tuple(reader.environments), tuple(reader.remarks))


class _TableReader:
    def __init__(self) -> None:
        self.checks: list[Check] = []
        self.environments: list[Environment] = []
        self.remarks: list[PlanFinding] = []
        self.columns: list[str] = []
        self.inside = False
        self.listing = False

    def take(self, line: PlanLine) -> None:
        if line.heading:
            name = clean_title(line.heading.text).rstrip(": ").casefold()
            self.listing = name in _COMMANDS_HEADING
        if not line.is_code and "|" in line.text and not _NO_ROW.match(line.text):
            self._take_row(line)
            return
        self.inside = False
        point = _POINT.fullmatch(line.text) if self.listing and not line.is_code else None
        if point and len(line.text) < _LONGEST_LINE:
            self._take_point(point[1], point[2], line)

    def _take_row(self, line: PlanLine) -> None:
        cells = list(_split_cells(line.text))
        if self.inside and len(cells) > len(self.columns):
            cells = list(_split_cells(line.text, code_holds=True))
        if not self.inside:
            self.inside = True
            self.columns = [_COLUMNS.get(clean_title(cell).casefold(), "") for cell in cells]
            return
        if all(not cell.strip(" :-") for cell in cells):
            return
        row = dict(zip(self.columns, cells, strict=False))
        try:
            if "command" in self.columns and "check" in self.columns:
                self._add_check(row, line)
            elif "name" in self.columns and "how" in self.columns:
                self._add_environment(row, line)
        except SourceError as error:
            self._add_remark(error, line)

    def _add_check(self, row: dict[str, str], line: PlanLine) -> None:
        command = strip_backticks(row.get("command", ""))
        argv = split_command(command)
        name = clean_title(strip_backticks(row.get("check", ""))) or join_lines(command)
        made = Check(
            name=name,
            command=argv,
            exit_code=parse_exit_code(row.get("exit_code", "")),
            timeout=parse_timeout(row.get("timeout", ""), CHECK_TIMEOUT),
            purpose=join_lines(row.get("purpose", "")),
            line=line.number,
        )
        self.checks += expand_environments(made, row.get("environment", ""))

    def _add_environment(self, row: dict[str, str], line: PlanLine) -> None:
        self.environments.append(
            Environment(
                check_environment_name(row.get("name", "")),
                parse_prefix(row.get("how", "")),
                join_lines(row.get("purpose", "")),
                line.number,
            )
        )

    def _take_point(self, name: str, rest: str, line: PlanLine) -> None:
        span = _SPAN.match(rest)
        if not span:
            return
        command = span[2].strip()
        try:
            name = clean_title(name.strip(f" \t:*{DASHES}")) or join_lines(command)
            self.checks.append(Check(name, split_command(command), line=line.number))
        except SourceError as error:
            self._add_remark(error, line)

    def _add_remark(self, error: SourceError, line: PlanLine) -> None:
        self.remarks.append(PlanFinding("error", "table.row", str(error), line=line.number))


def check_environment_name(text: str) -> str:
    """Return the name of a declared environment, or raise SourceError if it cannot be one."""
    name = clean_title(strip_backticks(text))
    if "," in name or not name or parse_environment(name) != name:
        raise SourceError(
            f"{name[:60]!r} cannot name an environment; use a name without commas that does "
            "not mean all or none"
        )
    return name


def expand_environments(check: Check, environments: str) -> list[Check]:
    """Return the check once per environment it names, or once if it names none."""
    names = dict.fromkeys(parse_environment(name) for name in environments.split(","))
    if "" in names:
        return [check]
    return [msgspec.structs.replace(check, environment=name) for name in names]


def add_project_checks(
    plan: Plan, checks: Iterable[CheckText], environments: Iterable[EnvironmentText]
) -> Plan:
    """Return the plan with the project's checks and environments; of two with one name, the plan's.

    Raise SourceError if one of the project's cannot be used.
    """
    own = {check.name for check in plan.checks}
    places = {environment.name for environment in plan.environments}
    try:
        usual = [check for text in checks for check in _build_checks(text)]
        around = [_build_environment(text) for text in environments]
    except SourceError as error:
        raise SourceError(f"interlock.toml: {error}") from None
    return msgspec.structs.replace(
        plan,
        checks=(*(check for check in usual if check.name not in own), *plan.checks),
        environments=(*(place for place in around if place.name not in places), *plan.environments),
    )


def _build_checks(text: CheckText) -> list[Check]:
    """Return one check for each environment named, or one for all of them."""
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
    )
    return expand_environments(check, named if isinstance(named, str) else ",".join(named))


def _build_environment(text: EnvironmentText) -> Environment:
    prefix = text.prefix
    if isinstance(prefix, str):
        before = parse_prefix(prefix)
    else:
        before = split_command(prefix) if prefix else ()
    return Environment(check_environment_name(text.name), before, join_lines(text.description))


def _split_cells(line: str, code_holds: bool = False) -> Iterator[str]:
    """Yield the cells of a row; a bar after a backslash, or in code if asked, separates nothing."""
    cell: list[str] = []
    inside = False
    for sign in line.strip().removeprefix("|"):
        if sign == "|" and cell and cell[-1] == "\\":
            cell[-1] = sign
        elif sign == "|" and not inside:
            yield "".join(cell).strip()
            cell = []
        else:
            inside = inside != (code_holds and sign == "`")
            cell.append(sign)
    rest = "".join(cell).strip()
    if rest:
        yield rest
