"""Read a plan written as Markdown: headings for phases and tasks, labelled fields, two tables.

The reader is tolerant: any heading levels, fields in any order, bold or not, optional parts
missing. What cannot be read becomes a remark with its line, and is never guessed.
"""

import re
from typing import Final

import msgspec

from interlock_delivery.plan.blocks import (
    FIELDS,
    Heading,
    Label,
    PlanLine,
    find_label,
    read_lines,
)
from interlock_delivery.plan.fields import (
    clean_document,
    clean_file_path,
    clean_title,
    join_lines,
    parse_environment,
    parse_ids,
    parse_items,
    parse_paths,
    tidy_text,
)
from interlock_delivery.plan.plan import Phase, Plan, PlanFinding, Task
from interlock_delivery.plan.tables import read_tables

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
    """Return the plan in a text, with remarks on whatever could not be read."""
    lines, problems = read_lines(text.removeprefix("\ufeff"))
    reader = _Reader(problems)
    for line in lines:
        reader.take(line)
    return reader.build_plan()


class _Reader:
    """Reads the lines once, keeping track of the current part of the plan."""

    def __init__(self, remarks: list[PlanFinding]) -> None:
        self.remarks = remarks
        self.title: str | None = None
        self.overview: list[str] = []
        self.loose: list[PlanLine] = []
        self.phases: list[Phase] = []
        self.tasks: list[Task] = []
        self.part = "overview"
        self.level = 0
        self.task: _TaskDraft | None = None
        self.phase_lines: list[str] = []

    def take(self, line: PlanLine) -> None:
        if line.heading and self._follow_heading(line.heading, line):
            return
        if line.is_rule:
            line = PlanLine(line.number, "")
        if self.task:
            self.task.take(line)
        elif self.part == "overview":
            self.overview.append(line.text)
        elif self.part == "phase":
            self.phase_lines.append(line.text)
        else:
            self.loose.append(line)

    def _follow_heading(self, heading: Heading, line: PlanLine) -> bool:
        """Enter the part that a heading opens; return False if the heading is only text."""
        title = clean_title(heading.text)
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
        name, title = _parse_task_heading(rest)
        if not name and not rest.lstrip().startswith(":"):
            self.remarks.append(
                PlanFinding(
                    "warning",
                    "task.unread",
                    f"{join_lines(heading.text)[:80]!r} is not read as a task; if it is one, write "
                    "its heading as 'Task <id>: <title>'",
                    line=line.number,
                )
            )
            return False
        self._close()
        self.level = heading.level
        phase = self.phases[-1].id if self.phases else ""
        self.task = _TaskDraft(name, clean_title(title), phase, line.number)
        return True

    def _begin_phase(self, name: str | None, title: str, heading: Heading, line: PlanLine) -> None:
        self._close()
        self.part, self.level = "phase", heading.level
        name = (name or str(len(self.phases) + 1)).strip("`*")
        self.phases.append(Phase(name, clean_title(title), line=line.number))

    def _close(self) -> None:
        """Finish the part being read."""
        if self.task:
            self.tasks.append(self.task.build_task())
            self.remarks += self.task.remarks
            self.task = None
        if self.part == "phase" and self.phases and self.phase_lines:
            last = self.phases[-1]
            text = tidy_text("\n".join(self.phase_lines))
            self.phases[-1] = Phase(last.id, last.name, text, last.line)
        self.phase_lines = []
        self.part = "loose"

    def build_plan(self) -> Plan:
        self._close()
        tables = read_tables(self.loose)
        remarks = [*self.remarks, *tables.remarks]
        return Plan(
            title=self.title or "",
            overview=tidy_text("\n".join(self.overview)),
            phases=tuple(self.phases),
            tasks=_resolve_blockers(self.tasks),
            checks=tables.checks,
            environments=tables.environments,
            remarks=tuple(sorted(remarks, key=lambda each: each.line)),
        )


def _parse_task_heading(rest: str) -> tuple[str, str]:
    """Return the id and title after the word Task, or an empty id if it is not a task's heading."""
    found = _NAMED.fullmatch(rest) or _NUMBERED.fullmatch(rest)
    if found:
        return found[1], found[2]
    name, colon, title = rest.partition(":")
    return (join_lines(name), title) if colon else ("", "")


def _resolve_blockers(tasks: list[Task]) -> tuple[Task, ...]:
    """Drop a full stop after the last blocker, unless a task has that id."""
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


class _TaskDraft:
    """A task whose lines are still being read; lines outside any field belong to its work."""

    def __init__(self, task_id: str, title: str, phase: str, line: int) -> None:
        self.id = task_id
        self.title = title
        self.phase = phase
        self.line = line
        self.field = "work"
        self.fields: dict[str, list[str]] = {"work": []}
        self.opened: set[str] = set()
        self.remarks: list[PlanFinding] = []

    def take(self, line: PlanLine) -> None:
        if line.heading:
            name = clean_title(line.heading.text).rstrip(": ").casefold()
            label: Label | None = Label(FIELDS.get(name, ""), True, "")
        else:
            found = find_label(line)
            taken = found and (found.is_bold or found.field not in self.opened)
            label = found if found and taken else None
        if label is None:
            self.fields[self.field].append(line.text)
        elif not label.field:
            self._end_field(line)
        else:
            self._open_field(label, line)

    def _end_field(self, line: PlanLine) -> None:
        """End a list at an unknown label or heading, which becomes part of the work."""
        self.field = "work"
        self.fields["work"].append(line.text)

    def _open_field(self, label: Label, line: PlanLine) -> None:
        if label.field in self.opened:
            self.remarks.append(
                PlanFinding(
                    "warning",
                    "task.field-twice",
                    f"task {self.id!r} has this field twice; both were combined, keep one",
                    self.id,
                    line.number,
                )
            )
        self.opened.add(label.field)
        self.field = label.field
        lines = self.fields.setdefault(label.field, [])
        lines += ["", label.rest] if lines else [label.rest]

    def build_task(self) -> Task:
        fields = self.fields
        environment = next((line for line in fields.get("environment", ()) if line.strip()), "")
        return Task(
            id=self.id,
            title=self.title,
            phase=self.phase,
            work=tidy_text("\n".join(fields["work"])),
            criteria=parse_items(fields.get("criteria", ())),
            blocked_by=parse_ids(fields.get("blocked_by", ())),
            reading=tuple(map(clean_document, parse_paths(fields.get("reading", ())))),
            environment=parse_environment(environment),
            target_files=tuple(map(clean_file_path, parse_paths(fields.get("target_files", ())))),
            line=self.line,
        )
