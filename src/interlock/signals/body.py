"""The body under a signal line: labelled sections, and what stands there besides them.

Knows labels, lists, tables, fences and paragraphs. Refuses to know what a section means: it keeps
the pieces of each one, and notes every line that belongs to none.
"""

import re
from collections.abc import Callable
from functools import cache
from typing import Final

import msgspec

from interlock.signals.columns import Section, SignalRow
from interlock.signals.own_words import Unit, units

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
_LITTLE: Final = 3


class SectionText(msgspec.Struct):
    """The pieces of one section, as they were written."""

    section: Section
    line: int
    text: list[str] = msgspec.field(default_factory=list)
    items: list[list[str]] = msgspec.field(default_factory=list)
    table: list[list[str]] = msgspec.field(default_factory=list)
    fences: list[str] = msgspec.field(default_factory=list)


class SignalBody(msgspec.Struct):
    """All of a block after its signal lines."""

    parts: dict[str, SectionText] = msgspec.field(default_factory=dict)
    nonces: list[str] = msgspec.field(default_factory=list)
    remarks: list[int] = msgspec.field(default_factory=list)
    prose_after_line: int | None = None

    def add(self, other: "SignalBody") -> None:
        """Count another block of the same signal together with this one."""
        for label, part in other.parts.items():
            mine = self.parts.setdefault(label, SectionText(part.section, part.line))
            mine.text += part.text
            mine.items += part.items
            mine.table += part.table
            mine.fences += part.fences
        self.nonces += other.nonces
        self.remarks += other.remarks


@cache
def _label_pattern(row: SignalRow) -> re.Pattern[str] | None:
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
    """Read what follows a signal line, from its newline on; `line` is the number of the first."""
    reader = _Reader(row, line)
    for unit in units(text[:LONGEST_BODY]):
        reader.take(unit)
    return reader.body


class _Reader:
    """Walks the units of a block; `_part` is the section that is open."""

    def __init__(self, row: SignalRow, line: int) -> None:
        self.body = SignalBody()
        self._row = row
        self._sections = {s.label.lower(): s for s in row.sections}
        self._part: SectionText | None = None
        self._line = line
        self._before = "signal"
        self._listed = False
        self._indent = 0

    def take(self, unit: Unit) -> None:
        now = self._inert(unit) if unit.kind != "line" else self._live(unit.text)
        self._before = now
        self._line += source_lines(unit)

    def _inert(self, unit: Unit) -> str:
        if unit.kind == "prompt" and _PROMPT.lower() in self._sections:
            self._take_prompt(unit.text)
        elif unit.kind == "fence" and self._part:
            self._part.fences.append(_inside_fence(unit.text))
        else:
            self._remark()
        return unit.kind

    def _take_prompt(self, text: str) -> None:
        inside = text.split("\n")[1:]
        if inside and "DELEGATION PROMPT END" in inside[-1]:
            part = self._open(self._sections[_PROMPT.lower()])
            part.text += inside[:-1]
        self._part = None

    def _live(self, line: str) -> str:
        if _BLANK.match(line):
            return "blank"
        if dispatch := _DISPATCH.match(line):
            self.body.nonces.append(dispatch[1])
            return "dispatch"
        if label := self._plain_label(line):
            return self._take_label(label)
        if _RULE.match(line) or line.strip() == self._row.closing:
            self._part = None
            return "closing"
        return self._take_line(line)

    def _take_label(self, label: re.Match[str]) -> str:
        section = self._sections[
            (label["label"] or label["bare"]).partition("(")[0].strip().lower()
        ]
        self._part, self._listed = self._open(section), False
        rest = (label["rest"] or "").strip()
        if rest:
            self._part.text.append(rest)
        return "paragraph" if rest else "label"

    def _plain_label(self, line: str) -> re.Match[str] | None:
        """A label may be indented a little, as long as that does not put it into a section."""
        pattern, indent = _label_pattern(self._row), len(line) - len(line.lstrip(" "))
        if pattern is None or indent > _LITTLE:
            return None
        if indent and self._part is not None and indent != self._indent:
            return None
        label = pattern.match(line, indent)
        self._indent = indent if label else self._indent
        return label

    def _listed_label(self, item: str) -> re.Match[str] | None:
        """A label may stand in a list of its own: `- Blocker: …`. A verdict keeps to its form."""
        pattern = _label_pattern(self._row)
        inside = self._part is not None and not self._listed
        return None if self._row.verdict or inside or not pattern else pattern.match(item)

    def _open(self, section: Section) -> SectionText:
        return self.body.parts.setdefault(section.label, SectionText(section, self._line))

    def _take_line(self, line: str) -> str:
        if item := _ITEM.match(line):
            if label := self._listed_label(item[1] or ""):
                self._take_label(label)
                self._listed = True
                return "item"
            return self._keep("item", lambda part: part.items.append([item[1] or ""]))
        if _TABLE.match(line):
            cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
            return self._keep("table", lambda part: part.table.append(cells))
        if line[0] in " \t":
            return self._keep(self._before, lambda part: _continue(part, line, self._before))
        return self._take_text(line)

    def _keep(self, kind: str, put: Callable[[SectionText], None]) -> str:
        if self._part is None:
            self._remark()
        else:
            put(self._part)
        return kind

    def _take_text(self, line: str) -> str:
        foreign = self._row.verdict and _FOREIGN_LABEL.match(line)
        first = self._part is not None and self._before in ("label", "paragraph")
        waiting = self._part is not None and self._before == "blank" and _is_empty(self._part)
        if self._part and (first or waiting) and not foreign:
            self._part.text.append(line.strip())
            return "paragraph"
        if self._before == "signal":
            self.body.prose_after_line = self._line
        self._part = None
        self._remark()
        return "remark"

    def _remark(self) -> None:
        self.body.remarks.append(self._line)


def source_lines(unit: Unit) -> int:
    return unit.text.count("\n") + 1


def _is_empty(part: SectionText) -> bool:
    return not (part.text or part.items or part.table or part.fences)


def _continue(part: SectionText, line: str, before: str) -> None:
    if part.items and before in ("item", "blank"):
        part.items[-1].append(line.strip())
    else:
        part.text.append(line.strip())


def _inside_fence(text: str) -> str:
    lines = text.split("\n")
    closed = len(lines) > 1 and lines[-1].strip(" \t`~") == ""
    return "\n".join(lines[1:-1] if closed else lines[1:])
