"""A plan written as Markdown: headings for phases and tasks, labelled fields, two tables.

Reads tolerantly: any heading levels, fields in any order, bold or not, what is optional may be
missing. What cannot be read is remarked upon, never guessed. Refuses to judge the plan.

A plan's text line by line: which lines are alive, which are headings, which open a field.

Knows fences, comments, headings of any level, rules and field labels, bold or not. Lines inside a
fence or a comment are text and never more. Refuses to know what the fields of a task mean.

The tables of a Markdown plan: verification commands and environments.

A table is known by the names in its head, in any order; verification commands may also be a list
under their heading. Knows rows and cells. Refuses to know tasks: what stands inside one is theirs.

A plan written as Markdown, in the form that plan_markdown reads back to the same plan.

A text that would be taken for more than text, such as a task's heading inside a task's work, is
indented, which makes it code. Knows records. Refuses to know files.
"""

import re
import shlex
from collections.abc import Iterable, Iterator, Sequence
from typing import Final, NamedTuple

import msgspec

from interlock.delivery.checks.records import CHECK_TIMEOUT, Check, Environment
from interlock.delivery.plan.fields import (
    DASHES,
    code,
    document,
    environment_name,
    exit_code,
    file_path,
    ids,
    items,
    lines_of,
    one_line,
    paths,
    plain_title,
    prefix,
    tidy,
    timeout,
    words,
)
from interlock.delivery.plan.plan import Phase, Plan, PlanFinding, Task
from interlock.system.errors import SourceError

_FENCE: Final = re.compile(
    r"[ \t]*+(?:(?:[-*+]|\d{1,4}[.)])[ \t]++)*+(`{3,}+|~{3,}+)(.*)", re.DOTALL
)
_BOLD: Final = re.compile(
    r" {0,3}([-*+][ \t]++)?+(\*{1,3}+|_{1,3}+)[ \t]*+([A-Za-z][A-Za-z \t/-]{0,39}+)(:?)[ \t]*+\2"
    r"[ \t]*+(:?)[ \t]*+(.*)",
    re.DOTALL,
)
_PLAIN: Final = re.compile(r"([A-Za-z][A-Za-z \t]{0,39}+):(?:[ \t]++(.*))?+$", re.DOTALL)
_DEEPEST: Final = 6
_DEEP: Final = ("    ", "\t", " \t", "  \t", "   \t")

FIELDS: Final = {
    "work": "work",
    "description": "work",
    "acceptance criteria": "criteria",
    "acceptance criterion": "criteria",
    "criteria": "criteria",
    "blocked by": "blocked_by",
    "depends on": "blocked_by",
    "dependencies": "blocked_by",
    "required reading": "reading",
    "reading": "reading",
    "environment": "environment",
    "target files": "target_files",
    "target file": "target_files",
    "files": "target_files",
}
"""What a label of a task may be called, and the field it opens."""


class PlanLine(NamedTuple):
    """One line. `live` is false inside fences; lines of comments are empty."""

    number: int
    text: str
    live: bool = True


class Heading(NamedTuple):
    """A heading: how deep it is, and its words."""

    level: int
    words: str


class Label(NamedTuple):
    """The beginning of a field: its name here, empty if unknown, and what follows on the line."""

    field: str
    bold: bool
    rest: str


def scan(text: str) -> tuple[list[PlanLine], list[PlanFinding]]:
    """All lines, and what is wrong with their fences and comments.

    A fence that stands deep, inside a point of a list, ends with that point at the latest.
    """
    found: list[PlanLine] = []
    fence, deep, comment, opened = "", False, False, 0
    for number, raw in enumerate(lines_of(text), 1):
        line = raw.rstrip()
        if fence and deep and line and not line.startswith(_DEEP):
            fence = ""
        if fence:
            found.append(PlanLine(number, line, live=False))
            fence = "" if _closes(line, fence) else fence
        elif comment or _opens_comment(line):
            opened = opened if comment else number
            comment = "-->" not in (line if comment else line.lstrip()[4:])
            found.append(PlanLine(number, ""))
        else:
            fence = _opened(line)
            opened, deep = (number, line.startswith(_DEEP)) if fence else (opened, deep)
            found.append(PlanLine(number, line, live=not fence))
    if comment or (fence and not deep):
        return found, [_unclosed("comment" if comment else "fence", opened)]
    return found, []


def _opened(line: str) -> str:
    """The marks of the fence that this line opens, if it does."""
    found = _FENCE.match(line)
    if not found or (found[1][0] == "`" and "`" in found[2]):
        return ""
    return found[1]


def _closes(line: str, fence: str) -> bool:
    bare = line.strip()
    return len(bare) >= len(fence) and not bare.strip(fence[0])


def _opens_comment(line: str) -> bool:
    return line.startswith(("<!--", " <!--", "  <!--", "   <!--"))


def _unclosed(what: str, line: int) -> PlanFinding:
    return PlanFinding(
        "error",
        f"text.unclosed-{what}",
        f"the {what} opened in line {line} is never closed, so all that follows belongs to it; "
        f"close it with {'the same marks' if what == 'fence' else '-->'}",
        line=line,
    )


def heading_of(line: PlanLine) -> Heading | None:
    """The heading on a line. `#Word` is a tag, `##Word` a heading whose blank was forgotten."""
    text = line.text
    if not line.live or "#" not in text[:4] or text[:4].lstrip(" ")[:1] != "#":
        return None
    text = text.lstrip(" ")
    words = text.lstrip("#")
    level = len(text) - len(words)
    joined = words and not words[0].isspace()
    if not 1 <= level <= _DEEPEST or (joined and (level == 1 or not words[0].isalpha())):
        return None
    return Heading(level, words.strip())


def is_rule(line: PlanLine) -> bool:
    """Whether the line is a separator such as ---."""
    marks = "" if line.text.startswith(_DEEP) else line.text.replace(" ", "")
    return line.live and len(marks) >= 3 and marks[0] in "-*_" and not marks.strip(marks[0])


def label_of(line: PlanLine) -> Label | None:
    """The label at the start of a line: any bold one with a colon, or a known one without."""
    if not line.live:
        return None
    bold = _BOLD.match(line.text)
    if bold:
        point, _, name, inner, outer, rest = bold.groups()
        field = FIELDS.get(one_line(name).casefold(), "")
        opens = field and (inner or outer or not rest)
        return Label(field, True, rest) if opens or ((inner or outer) and not point) else None
    plain = _PLAIN.match(line.text)
    field = FIELDS.get(one_line(plain[1]).casefold(), "") if plain else ""
    return Label(field, False, plain[2] or "") if plain and field else None


def quiet(text: str) -> bool:
    """Whether a text, put into a plan as it is, stays nothing but text."""
    lines, problems = scan(text)
    return not problems and not any(_loud(line) for line in lines) and _shown(lines) == text


def _loud(line: PlanLine) -> bool:
    return bool(heading_of(line) or label_of(line) or is_rule(line))


def _shown(lines: list[PlanLine]) -> str:
    return "\n".join(line.text for line in lines)


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
    """What the tables of a plan say."""

    checks: tuple[Check, ...]
    environments: tuple[Environment, ...]
    remarks: tuple[PlanFinding, ...]


def read_tables(lines: Sequence[PlanLine]) -> Tables:
    """All checks and environments in the lines that belong to no task."""
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
        heading = heading_of(line)
        if heading:
            name = plain_title(heading.words).rstrip(": ").casefold()
            self.listing = name in _COMMANDS_HEADING
        if line.live and "|" in line.text and not _NO_ROW.match(line.text):
            self._row(line)
            return
        self.inside = False
        point = _POINT.fullmatch(line.text) if self.listing and line.live else None
        if point and len(line.text) < _LONGEST_LINE:
            self._point(point[1], point[2], line)

    def _row(self, line: PlanLine) -> None:
        cells = list(_cells(line.text))
        if self.inside and len(cells) > len(self.columns):
            cells = list(_cells(line.text, code_holds=True))
        if not self.inside:
            self.inside = True
            self.columns = [_COLUMNS.get(plain_title(cell).casefold(), "") for cell in cells]
            return
        if all(not cell.strip(" :-") for cell in cells):
            return
        row = dict(zip(self.columns, cells, strict=False))
        try:
            if "command" in self.columns and "check" in self.columns:
                self._check(row, line)
            elif "name" in self.columns and "how" in self.columns:
                self._environment(row, line)
        except SourceError as error:
            self._remark(error, line)

    def _check(self, row: dict[str, str], line: PlanLine) -> None:
        command = code(row.get("command", ""))
        argv = words(command)
        name = plain_title(code(row.get("check", ""))) or one_line(command)
        made = Check(
            name=name,
            command=argv,
            exit_code=exit_code(row.get("exit_code", "")),
            timeout=timeout(row.get("timeout", ""), CHECK_TIMEOUT),
            purpose=one_line(row.get("purpose", "")),
            line=line.number,
        )
        self.checks += spread(made, row.get("environment", ""))

    def _environment(self, row: dict[str, str], line: PlanLine) -> None:
        self.environments.append(
            Environment(
                place_name(row.get("name", "")),
                prefix(row.get("how", "")),
                one_line(row.get("purpose", "")),
                line.number,
            )
        )

    def _point(self, name: str, rest: str, line: PlanLine) -> None:
        span = _SPAN.match(rest)
        if not span:
            return
        command = span[2].strip()
        try:
            name = plain_title(name.strip(f" \t:*{DASHES}")) or one_line(command)
            self.checks.append(Check(name, words(command), line=line.number))
        except SourceError as error:
            self._remark(error, line)

    def _remark(self, error: SourceError, line: PlanLine) -> None:
        self.remarks.append(PlanFinding("error", "table.row", str(error), line=line.number))


def place_name(text: str) -> str:
    """The name of an environment that is declared."""
    name = plain_title(code(text))
    if "," in name or not name or environment_name(name) != name:
        raise SourceError(
            f"{name[:60]!r} is no name for an environment; write one that has no comma and does "
            "not mean all or none"
        )
    return name


def spread(check: Check, environments: str) -> list[Check]:
    """The check once for each environment that is named; once without one for all."""
    names = dict.fromkeys(environment_name(name) for name in environments.split(","))
    if "" in names:
        return [check]
    return [msgspec.structs.replace(check, environment=name) for name in names]


def _cells(line: str, code_holds: bool = False) -> Iterator[str]:
    """The cells of a row. A bar after a backslash divides nothing; nor one in code, if asked."""
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


_TASK: Final = re.compile(r"\**+task(?![a-z0-9])\**+(.*)", re.IGNORECASE | re.DOTALL)
_NAMED: Final = re.compile(
    r"\s++[`*]*+([^\s:`*]++)[`*]*+\s*+(?::|[-\u2013\u2014]++(?=\s|$))\**+(.*)", re.DOTALL
)
_NUMBERED: Final = re.compile(r"\s++[`*]*+([A-Za-z-]*+\d[^\s:`*]*+)[`*]*+(?=\s|$)(.*)", re.DOTALL)
_PHASE: Final = re.compile(
    r"\**+phase(?![a-z0-9])\**+(?:\s++([^\s:]++))?+\s*+(?::|[-\u2013\u2014]++(?=\s|$))?+(.*)",
    re.IGNORECASE | re.DOTALL,
)
_OVERVIEW: Final = frozenset(("overview", "summary", "goal", "goals"))
_SECTIONS: Final = frozenset(
    ("phases", "tasks", "environments", "verification commands", "verification", "checks")
)
_TITLE: Final = re.compile(r"plan\s*+:\s*+(?=\S)", re.IGNORECASE)


def read_markdown(text: str) -> Plan:
    """The plan written in `text`; whatever it holds, a plan comes out, with remarks."""
    lines, problems = scan(text.removeprefix("\ufeff"))
    reader = _Reader(problems)
    for line in lines:
        reader.take(line)
    return reader.plan()


class _Reader:
    """Goes through the lines once and knows in which part of the plan it is."""

    def __init__(self, remarks: list[PlanFinding]) -> None:
        self.remarks = remarks
        self.title: str | None = None
        self.overview: list[str] = []
        self.loose: list[PlanLine] = []
        self.phases: list[Phase] = []
        self.tasks: list[Task] = []
        self.part = "overview"
        self.level = 0
        self.task: _Draft | None = None
        self.phase_lines: list[str] = []

    def take(self, line: PlanLine) -> None:
        heading = heading_of(line)
        if heading and self._turn(heading, line):
            return
        if is_rule(line):
            line = PlanLine(line.number, "")
        if self.task:
            self.task.take(line, heading)
        elif self.part == "overview":
            self.overview.append(line.text)
        elif self.part == "phase":
            self.phase_lines.append(line.text)
        else:
            self.loose.append(line)

    def _turn(self, heading: Heading, line: PlanLine) -> bool:
        """Go where a heading leads; false if it is only part of the text."""
        title = plain_title(heading.words)
        task, phase = _TASK.fullmatch(title), _PHASE.fullmatch(title)
        if task and self._begin_task(task[1], heading, line):
            return True
        if phase:
            self._begin_phase(phase[1], phase[2], heading, line)
            return True
        name = title.rstrip(": ").casefold()
        if self.task and (heading.level > self.level or name in FIELDS):
            return False
        return self._begin_section(name, title, heading, line)

    def _begin_section(self, name: str, title: str, heading: Heading, line: PlanLine) -> bool:
        inside = self.part in ("overview", "phase") and heading.level > self.level > 0
        known = name in _OVERVIEW or name in _SECTIONS
        if inside and not known:
            return False
        self._close()
        self.level = heading.level
        if self.title is None and not known and not self.tasks and not self.phases:
            self.title = _TITLE.sub("", title, count=1)
            self.part, self.level = "overview", 0
            return True
        self.title = self.title or ""
        self.part = "overview" if name in _OVERVIEW else "loose"
        self.loose.append(line)
        return True

    def _begin_task(self, rest: str, heading: Heading, line: PlanLine) -> bool:
        name, title = _name_and_title(rest)
        if not name and not rest.lstrip().startswith(":"):
            self.remarks.append(
                PlanFinding(
                    "warning",
                    "task.unread",
                    f"{one_line(heading.words)[:80]!r} is not read as a task; if it is one, write "
                    "its heading as 'Task <id>: <title>'",
                    line=line.number,
                )
            )
            return False
        self._close()
        self.level = heading.level
        phase = self.phases[-1].id if self.phases else ""
        self.task = _Draft(name, plain_title(title), phase, line.number)
        return True

    def _begin_phase(self, name: str | None, title: str, heading: Heading, line: PlanLine) -> None:
        self._close()
        self.part, self.level = "phase", heading.level
        name = (name or str(len(self.phases) + 1)).strip("`*")
        self.phases.append(Phase(name, plain_title(title), line=line.number))

    def _close(self) -> None:
        """End what was being read."""
        if self.task:
            self.tasks.append(self.task.task())
            self.remarks += self.task.remarks
            self.task = None
        if self.part == "phase" and self.phases and self.phase_lines:
            last = self.phases[-1]
            text = tidy("\n".join(self.phase_lines))
            self.phases[-1] = Phase(last.id, last.name, text, last.line)
        self.phase_lines = []
        self.part = "loose"

    def plan(self) -> Plan:
        self._close()
        tables = read_tables(self.loose)
        remarks = [*self.remarks, *tables.remarks]
        return Plan(
            title=self.title or "",
            overview=tidy("\n".join(self.overview)),
            phases=tuple(self.phases),
            tasks=_resolved(self.tasks),
            checks=tables.checks,
            environments=tables.environments,
            source_form="markdown",
            remarks=tuple(sorted(remarks, key=lambda each: each.line)),
        )


def _name_and_title(rest: str) -> tuple[str, str]:
    """The id and title in what follows the word Task; no id if this is no task's heading."""
    found = _NAMED.fullmatch(rest) or _NUMBERED.fullmatch(rest)
    if found:
        return found[1], found[2]
    name, colon, title = rest.partition(":")
    return (one_line(name), title) if colon else ("", "")


def _resolved(tasks: list[Task]) -> tuple[Task, ...]:
    """A full stop after the last blocker is no part of its id, unless there is such a task."""
    known = {task.id for task in tasks}

    def meant(name: str) -> str:
        bare = name.rstrip(".")
        return bare if name not in known and bare in known else name

    return tuple(
        task
        if known.issuperset(task.blocked_by)
        else msgspec.structs.replace(
            task, blocked_by=tuple(dict.fromkeys(map(meant, task.blocked_by)))
        )
        for task in tasks
    )


class _Draft:
    """A task while its lines come in. What belongs to no field belongs to its work."""

    def __init__(self, task_id: str, title: str, phase: str, line: int) -> None:
        self.id = task_id
        self.title = title
        self.phase = phase
        self.line = line
        self.field = "work"
        self.fields: dict[str, list[str]] = {"work": []}
        self.opened: set[str] = set()
        self.remarks: list[PlanFinding] = []

    def take(self, line: PlanLine, heading: Heading | None) -> None:
        if heading:
            name = plain_title(heading.words).rstrip(": ").casefold()
            label: Label | None = Label(FIELDS.get(name, ""), True, "")
        else:
            found = label_of(line)
            taken = found and (found.bold or found.field not in self.opened)
            label = found if found and taken else None
        if label is None:
            self.fields[self.field].append(line.text)
        elif not label.field:
            self._leave(line)
        else:
            self._open(label, line)

    def _leave(self, line: PlanLine) -> None:
        """A label or heading we do not know: it ends a list, and is told with the work."""
        self.field = "work"
        self.fields["work"].append(line.text)

    def _open(self, label: Label, line: PlanLine) -> None:
        if label.field in self.opened:
            self.remarks.append(
                PlanFinding(
                    "warning",
                    "task.field-twice",
                    f"task {self.id!r} has this field twice; both are taken together, keep one",
                    self.id,
                    line.number,
                )
            )
        self.opened.add(label.field)
        self.field = label.field
        lines = self.fields.setdefault(label.field, [])
        lines += ["", label.rest] if lines else [label.rest]

    def task(self) -> Task:
        fields = self.fields
        environment = next((line for line in fields.get("environment", ()) if line.strip()), "")
        return Task(
            id=self.id,
            title=self.title,
            phase=self.phase,
            work=tidy("\n".join(fields["work"])),
            criteria=items(fields.get("criteria", ())),
            blocked_by=ids(fields.get("blocked_by", ())),
            reading=tuple(map(document, paths(fields.get("reading", ())))),
            environment=environment_name(environment),
            target_files=tuple(map(file_path, paths(fields.get("target_files", ())))),
            line=self.line,
        )


_INDENT = "    "


def write_markdown(plan: Plan) -> str:
    """The plan as Markdown."""
    blocks = [*_head(plan), *_tables(plan), "## Phases"]
    blocks += [_task(task) for task in plan.tasks if not task.phase]
    for phase in plan.phases:
        blocks += _phase(phase)
        blocks += [_task(task) for task in plan.tasks if task.phase == phase.id]
    return "\n\n".join(blocks) + "\n"


def _head(plan: Plan) -> Iterator[str]:
    if plan.title:
        yield f"# Plan: {plan.title}"
    if plan.overview:
        yield f"## Overview\n\n{_safe(plan.overview)}"


def _phase(phase: Phase) -> Iterator[str]:
    yield f"### {phase.label}"
    if phase.overview:
        yield _safe(phase.overview)


def _task(task: Task) -> str:
    blocks = [f"#### Task {task.id}: {task.title}".rstrip()]
    if task.work:
        blocks.append(f"**Work**:\n\n{_safe(task.work)}")
    if task.criteria:
        blocks.append(_listed("Acceptance Criteria", (f"[ ] {each}" for each in task.criteria)))
    blocks.append(f"**Blocked By**: {', '.join(task.blocked_by) or 'none'}")
    if task.reading:
        blocks.append(_listed("Required Reading", task.reading))
    if task.target_files:
        blocks.append(_listed("Target Files", task.target_files))
    if task.environment:
        blocks.append(f"**Environment**: {task.environment}")
    return "\n\n".join((*blocks, "---"))


def _listed(label: str, points: Iterable[str]) -> str:
    return "\n".join((f"**{label}**:", "", *(f"- {point}" for point in points)))


def _safe(text: str) -> str:
    if quiet(text):
        return text
    return "\n".join(f"{_INDENT}{line}" if line else "" for line in text.split("\n"))


def _tables(plan: Plan) -> Iterator[str]:
    if plan.environments:
        yield _table(
            "Environments",
            ("Name", "Description", "How to Execute"),
            (
                (each.name, each.description, _code(_joined(each.prefix)) or "directly")
                for each in plan.environments
            ),
        )
    if plan.checks:
        yield _table(
            "Verification Commands",
            ("Check", "Environment", "Command", "Exit Code", "Timeout", "Purpose"),
            (
                (
                    each.name,
                    each.environment,
                    _code(_joined(each.command)),
                    str(each.exit_code),
                    _seconds(each.timeout),
                    each.purpose,
                )
                for each in plan.checks
            ),
        )


def _joined(words: tuple[str, ...]) -> str:
    """The words as one command. Bare dots at its end would stand for what is run."""
    return " ".join("'...'" if word == "..." else shlex.quote(word) for word in words)


def _seconds(timeout: float) -> str:
    if timeout == CHECK_TIMEOUT:
        return ""
    return f"{timeout:.9f}".rstrip("0").rstrip(".")


def _table(title: str, head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    lines = [_row(head), _row("---" for _ in head), *map(_row, rows)]
    return "\n".join((f"## {title}", "", *lines))


def _row(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"


def _code(text: str) -> str:
    """The text between as many backticks as it needs."""
    if not text:
        return ""
    marks = "`"
    while marks in text:
        marks += "`"
    blank = " " if text.startswith("`") or text.endswith("`") else ""
    return f"{marks}{blank}{text}{blank}{marks}"
