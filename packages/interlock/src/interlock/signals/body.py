"""Read the body under a signal line: its labelled sections, and everything beside them.

First the pieces of each section are collected (text, items, tables, fences), and every line that
belongs to none is noted. Then each section becomes data by its kind: files, issues, checks,
criteria. Agents lay out the same thing in many ways; an item that fits no layout is kept as text.
"""

import re
from collections.abc import Callable
from functools import cache
from typing import Any, Final

import msgspec

from interlock.signals.catalogue import Section, SignalRow
from interlock.signals.own_words import Unit, split_units

LONGEST_BODY: Final = 1 << 18
_BLANK: Final = re.compile(r"[ \t]*\Z")
_RULE: Final = re.compile(r" {0,3}(?:(?:-[ \t]*+){3,}+|(?:\*[ \t]*+){3,}+|(?:_[ \t]*+){3,}+)\Z")
_ITEM: Final = re.compile(r"[ \t]*+(?:[-+*•]|\d{1,9}[.)])(?:[ \t]++(.*+)|\Z)", re.DOTALL)
_TABLE: Final = re.compile(r"[ \t]*+\|")
_DISPATCH: Final = re.compile(r"[*_]*Dispatch:[*_]*[ \t]+`?([A-Za-z0-9._-]{1,128})`?[ \t]*\Z")
_FOREIGN_LABEL: Final = re.compile(
    r"[*_#]*+[ \t]*+[A-Z][\w/()-]*+(?:[ \t]++[\w/()-]++){0,5}+[*_]*+:(?:[*_]*+(?:[ \t]|\Z))"
)
_PROMPT: Final = "Prompt"
_DEEPEST_LABEL: Final = 3


class SectionText(msgspec.Struct):
    """The pieces of one section, as they were written."""

    section: Section
    line: int
    text: list[str] = msgspec.field(default_factory=list)
    items: list[list[str]] = msgspec.field(default_factory=list)
    table: list[list[str]] = msgspec.field(default_factory=list)
    fences: list[str] = msgspec.field(default_factory=list)

    @property
    def is_empty(self) -> bool:
        return not (self.text or self.items or self.table or self.fences)


class SignalBody(msgspec.Struct):
    """A block without its signal lines."""

    parts: dict[str, SectionText] = msgspec.field(default_factory=dict)
    nonces: list[str] = msgspec.field(default_factory=list)
    remarks: list[int] = msgspec.field(default_factory=list)
    prose_after_line: int | None = None

    def add(self, other: "SignalBody") -> None:
        """Add the sections of another block of the same signal."""
        for label, part in other.parts.items():
            mine = self.parts.setdefault(label, SectionText(part.section, part.line))
            mine.text += part.text
            mine.items += part.items
            mine.table += part.table
            mine.fences += part.fences
        self.nonces += other.nonces
        self.remarks += other.remarks


@cache
def _build_label_pattern(row: SignalRow) -> re.Pattern[str] | None:
    labels = "|".join(re.escape(s.label) for s in row.sections if s.label != _PROMPT)
    if not labels:
        return None
    named = rf"(?:{labels})(?:[ \t]*+\([^()\n]*+\))?+"
    mark = r"[*_]{0,3}+"
    return re.compile(
        rf"(?:\#{{1,6}}[ \t]++)?+{mark}(?P<label>{named}){mark}[ \t]*+:{mark}"
        rf"(?:[ \t]++(?P<rest>.*+)|\Z)"
        rf"|(?:\#{{1,6}}[ \t]++{mark}|[*_]{{2,3}}+)(?P<bare>{named}){mark}[ \t]*\Z",
        re.IGNORECASE | re.DOTALL,
    )


def read_body(text: str, line: int, row: SignalRow) -> SignalBody:
    """Read the text after a signal line, from its newline on; `line` is its first line's number."""
    reader = _BodyReader(row, line)
    for unit in split_units(text[:LONGEST_BODY]):
        reader.read_unit(unit)
    return reader.body


class _BodyReader:
    """Read the units of a block; `_part` is the open section."""

    def __init__(self, row: SignalRow, line: int) -> None:
        self.body = SignalBody()
        self._row = row
        self._sections = {s.label.lower(): s for s in row.sections}
        self._part: SectionText | None = None
        self._line = line
        self._before = "signal"
        self._listed = False
        self._indent = 0

    def read_unit(self, unit: Unit) -> None:
        now = self._read_inert(unit) if unit.kind != "line" else self._read_live(unit.text)
        self._before = now
        self._line += unit.text.count("\n") + 1

    def _read_inert(self, unit: Unit) -> str:
        if unit.kind == "prompt" and _PROMPT.lower() in self._sections:
            self._read_prompt(unit.text)
        elif unit.kind == "fence" and self._part:
            self._part.fences.append(_read_fence(unit.text))
        else:
            self._note_remark()
        return unit.kind

    def _read_prompt(self, text: str) -> None:
        inside = text.split("\n")[1:]
        if inside and "DELEGATION PROMPT END" in inside[-1]:
            part = self._open_section(self._sections[_PROMPT.lower()])
            part.text += inside[:-1]
        self._part = None

    def _read_live(self, line: str) -> str:
        if _BLANK.match(line):
            return "blank"
        if dispatch := _DISPATCH.match(line):
            self.body.nonces.append(dispatch[1])
            return "dispatch"
        if label := self._match_label(line):
            return self._open_label(label)
        if _RULE.match(line) or line.strip() == self._row.closing:
            self._part = None
            return "closing"
        return self._read_line(line)

    def _open_label(self, label: re.Match[str]) -> str:
        section = self._sections[
            (label["label"] or label["bare"]).partition("(")[0].strip().lower()
        ]
        self._part, self._listed = self._open_section(section), False
        rest = (label["rest"] or "").strip()
        if rest:
            self._part.text.append(rest)
        return "paragraph" if rest else "label"

    def _match_label(self, line: str) -> re.Match[str] | None:
        """Match a label, which may be indented a little unless that puts it into a section."""
        pattern, indent = _build_label_pattern(self._row), len(line) - len(line.lstrip(" "))
        if pattern is None or indent > _DEEPEST_LABEL:
            return None
        if indent and self._part is not None and indent != self._indent:
            return None
        label = pattern.match(line, indent)
        self._indent = indent if label else self._indent
        return label

    def _match_listed_label(self, item: str) -> re.Match[str] | None:
        """Match a label in a list (`- Blocker: …`), except under a verdict, whose form is
        strict."""
        pattern = _build_label_pattern(self._row)
        inside = self._part is not None and not self._listed
        return None if self._row.alone or inside or not pattern else pattern.match(item)

    def _open_section(self, section: Section) -> SectionText:
        return self.body.parts.setdefault(section.label, SectionText(section, self._line))

    def _read_line(self, line: str) -> str:
        if item := _ITEM.match(line):
            if label := self._match_listed_label(item[1] or ""):
                self._open_label(label)
                self._listed = True
                return "item"
            return self._add_to_section("item", lambda part: part.items.append([item[1] or ""]))
        if _TABLE.match(line):
            cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
            return self._add_to_section("table", lambda part: part.table.append(cells))
        if line[0] in " \t" and not self._is_prose(line):
            return self._add_to_section(
                self._before, lambda part: _continue_section(part, line, self._before)
            )
        return self._read_text(line)

    def _add_to_section(self, kind: str, put: Callable[[SectionText], None]) -> str:
        if self._part is None:
            self._note_remark()
        else:
            put(self._part)
        return kind

    def _read_text(self, line: str) -> str:
        foreign = self._row.alone and _FOREIGN_LABEL.match(line)
        first = self._part is not None and self._before in ("label", "paragraph")
        waiting = self._part is not None and self._before == "blank" and self._part.is_empty
        if self._part and (first or waiting) and not foreign:
            self._part.text.append(line.strip())
            return "paragraph"
        if not self.body.parts and self.body.prose_after_line is None:
            self.body.prose_after_line = self._line
        self._part = None
        self._note_remark()
        return "remark"

    def _is_prose(self, line: str) -> bool:
        """Return True if an indented line belongs to nothing above it and is not code."""
        indent = len(line) - len(line.lstrip(" "))
        return self._part is None and self._before != "item" and 0 < indent <= _DEEPEST_LABEL

    def _note_remark(self) -> None:
        self.body.remarks.append(self._line)


def _continue_section(part: SectionText, line: str, before: str) -> None:
    if part.items and before in ("item", "blank"):
        part.items[-1].append(line.strip())
    else:
        part.text.append(line.strip())


def _read_fence(text: str) -> str:
    lines = text.split("\n")
    closed = len(lines) > 1 and lines[-1].strip(" \t`~") == ""
    return "\n".join(lines[1:-1] if closed else lines[1:])


class FileNote(msgspec.Struct, frozen=True):
    """A file and what was done to it."""

    file: str
    note: str = ""


class ReviewIssue(msgspec.Struct, frozen=True):
    """A finding, with its place if the agent gave one."""

    text: str
    file: str | None = None
    line: int | None = None


class ReportedCheck(msgspec.Struct, frozen=True):
    """One line of a verification: what, where, with which result, on which evidence."""

    name: str
    status: str = ""
    environment: str = ""
    detail: str = ""


class Criterion(msgspec.Struct, frozen=True):
    """An acceptance criterion of a new specification."""

    text: str
    done: bool = False


class Pair(msgspec.Struct, frozen=True):
    """A named remark: an option and why not, an issue and its fix."""

    name: str
    text: str = ""


_NEGATIVE: Final = (
    r"NOT[ _-](?:VERIFIED|PASSED|MET|RUN|TESTED|CHECKED|DONE|APPLICABLE)|UNVERIFIED|UNTESTED"
    r"|FAIL(?:ED|URE|S|ING)?|ERRORS?|SKIP(?:PED)?|BLOCKED|PENDING|PARTIAL(?:LY)?|UNKNOWN|TODO|TBD"
    r"|INCOMPLETE|BROKEN|NON-?COMPLIANT|INADEQUATE|INCONSISTENT|MISALIGNED|UNCHECKED|TIMEOUT"
)
_POSITIVE: Final = (
    r"VERIFIED|PASS(?:ED|ES|ING)?|OK|DONE|MET|CONFIRMED|COMPLIANT|ADEQUATE|CONSISTENT|ALIGNED|YES"
)
_DASHES: Final = "\u2013\u2014"
# In lower case, a word is a result only if nothing but its evidence follows.
_WORD: Final = (
    rf"[*_`]*+((?:{_NEGATIVE}|{_POSITIVE})(?![\w-])"
    rf"|(?i:{_NEGATIVE}|{_POSITIVE})(?=[*_`]*+(?:\.?\Z|[ \t]*+[(]|[ \t]++[-{_DASHES}])))[*_`]*+"
)
_STATUS: Final = re.compile(rf"(?:[:=\u2192|][ \t]*+|[ \t][-{_DASHES}][ \t]++){_WORD}")
_CELL_STATUS: Final = re.compile(_WORD)
_IS_NEGATIVE: Final = re.compile(rf"(?:{_NEGATIVE})\Z")
_CROSS: Final = re.compile(r"[❌✗✘🔴]")
_TICK: Final = re.compile(r"[✅✓✔🟢]")
_BOX: Final = re.compile(r"\[([ xX])\](?:[ \t]+|\Z)")
_ENVIRONMENT: Final = re.compile(r"(.*\S)[ \t]*\(([^()]*)\)\Z", re.DOTALL)
_PLACE: Final = re.compile(
    r"[*_]*`?([^\s:`][^:`\n]{0,400}+)`?:(\d{1,9})(?:[-:]\d{1,9})?`?[*_]*:?[ \t]*"
)
_SEPARATOR_CELL: Final = re.compile(r":?-+:?\Z")
_COLUMNS: Final = {
    "check": "name",
    "criterion": "name",
    "command": "name",
    "name": "name",
    "environment": "environment",
    "env": "environment",
    "result": "status",
    "status": "status",
    "exit code": "detail",
    "evidence": "detail",
    "detail": "detail",
}


def parse_section(part: SectionText) -> Any:
    """Return the section as data, in the shape the catalogue gives its kind."""
    return SECTION_PARSERS[part.section.kind](part)


def is_negative(check: ReportedCheck) -> bool:
    return bool(_IS_NEGATIVE.match(check.status.upper()))


def list_entries(part: SectionText) -> list[str]:
    """Return every entry of a section in any layout: items, rows, or lines of text."""
    entries = [" ".join(item).strip() for item in part.items]
    entries += [" | ".join(row) for row in _list_data_rows(part)]
    return entries or [line for line in part.text if line]


def _list_data_rows(part: SectionText) -> list[list[str]]:
    rows = [row for row in part.table if not all(_SEPARATOR_CELL.match(c) for c in row)]
    return rows[1:] if len(rows) < len(part.table) else rows


def _parse_text(part: SectionText) -> str:
    pieces = [*part.text, *(f"- {' '.join(item)}" for item in part.items)]
    pieces += [" | ".join(row) for row in _list_data_rows(part)]
    return "\n".join([*pieces, *part.fences]).strip()


def _parse_name(part: SectionText) -> str:
    return _parse_text(part).strip("`*_ \t")


def _parse_names(part: SectionText) -> list[str]:
    entries = [" ".join(item) for item in part.items] or re.split(r"[,;]", " ".join(part.text))
    return [name for entry in entries if (name := entry.strip("`*_ \t"))]


def _parse_choice(part: SectionText) -> str:
    text = _parse_name(part)
    return next((c for c in part.section.choices if c.lower() == text.lower()), text)


def _parse_list(part: SectionText) -> list[str]:
    if part.items or part.table or part.fences:
        return list_entries(part) or [line for fence in part.fences for line in fence.split("\n")]
    return _parse_names(part) if len(part.text) == 1 else [line for line in part.text if line]


def _split_entry(entry: str) -> tuple[str, str]:
    name, mark, note = entry.partition(": ")
    if not mark:
        name, mark, note = re.sub(rf"[ \t][-{_DASHES}][ \t]", "\0", entry, count=1).partition("\0")
    return name.strip("`*_: \t"), note.strip()


def _parse_issue(entry: str) -> ReviewIssue:
    place = _PLACE.match(entry)
    if not place:
        return ReviewIssue(entry)
    return ReviewIssue(
        entry[place.end() :].lstrip(f"-{_DASHES} \t"), place[1].strip("`* "), int(place[2])
    )


def _parse_criteria(part: SectionText) -> list[Criterion]:
    found = []
    for entry in list_entries(part):
        box = _BOX.match(entry)
        found.append(Criterion(entry[box.end() :] if box else entry, bool(box and box[1] != " ")))
    return found


def _parse_checks(part: SectionText) -> list[ReportedCheck]:
    checks = [_parse_check(" ".join(item)) for item in part.items] + _parse_table_checks(part)
    checks = checks or [_parse_check(line) for line in part.text if line]
    return checks or [
        _parse_check(line) for fence in part.fences for line in fence.split("\n") if line
    ]


def _parse_check(entry: str) -> ReportedCheck:
    box = _BOX.match(entry)
    entry = entry[box.end() :] if box else entry
    status = _STATUS.search(entry)
    if not status:
        sign = "FAIL" if _CROSS.search(entry) else "PASS" if _TICK.search(entry) else ""
        return ReportedCheck(entry, "UNCHECKED" if box and box[1] == " " else sign)
    name, environment = _split_environment(entry[: status.start()])
    detail = entry[status.end() :].strip()
    if not environment and detail.startswith("("):
        environment, _, detail = detail[1:].partition(")")
    return ReportedCheck(name, status[1], environment.strip(), detail.lstrip(f"-{_DASHES}:, \t"))


def _split_environment(name: str) -> tuple[str, str]:
    name = name.strip("*_` \t")
    found = _ENVIRONMENT.match(name)
    return (found[1], found[2]) if found else (name, "")


def _parse_table_checks(part: SectionText) -> list[ReportedCheck]:
    rows = _list_data_rows(part)
    if len(rows) == len(part.table):
        return [_parse_check(": ".join(row)) for row in rows]
    header = [_COLUMNS.get(cell.strip("*_ ").lower(), "detail") for cell in part.table[0]]
    return [_parse_row_check(dict(zip(header, row, strict=False))) for row in rows]


def _parse_row_check(cells: dict[str, str]) -> ReportedCheck:
    status = cells.get("status", "").strip("*_` ")
    if _CROSS.match(status):
        status = "FAIL"
    elif found := _CELL_STATUS.match(status):
        status = found[1]
    return ReportedCheck(
        cells.get("name", "").strip("*_` "),
        status,
        cells.get("environment", "").strip("*_` "),
        cells.get("detail", ""),
    )


SECTION_PARSERS: Final[dict[str, Callable[[SectionText], Any]]] = {
    "text": _parse_text,
    "list": _parse_list,
    "files": lambda part: [FileNote(*_split_entry(entry)) for entry in list_entries(part)],
    "issues": lambda part: [_parse_issue(entry) for entry in list_entries(part)],
    "checks": _parse_checks,
    "criteria": _parse_criteria,
    "pairs": lambda part: [Pair(*_split_entry(entry)) for entry in list_entries(part)],
    "names": _parse_names,
    "name": _parse_name,
    "choice": _parse_choice,
}
