"""Sections as data: files with their change, issues with file and line, checks, criteria.

Knows the layouts agents use for one and the same thing. Refuses to judge: an item that fits no
layout is kept as text.
"""

import re
from collections.abc import Callable
from typing import Any, Final

import msgspec

from interlock.signals.body import SectionText


class FileNote(msgspec.Struct, frozen=True):
    """A file and what was done to it."""

    file: str
    note: str = ""


class ReviewIssue(msgspec.Struct, frozen=True):
    """Something found, with the place where the agent gave one."""

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
# In small letters it is a result only if nothing but its evidence follows.
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


def value_of(part: SectionText) -> Any:
    """The section as data, in the shape its kind has in the catalogue."""
    return KINDS[part.section.kind](part)


def is_negative(check: ReportedCheck) -> bool:
    return bool(_IS_NEGATIVE.match(check.status.upper()))


def lines_of(part: SectionText) -> list[str]:
    """Every entry of a section, however it was laid out: items, rows, or lines of text."""
    entries = [" ".join(item).strip() for item in part.items]
    entries += [" | ".join(row) for row in _data_rows(part)]
    return entries or [line for line in part.text if line]


def _data_rows(part: SectionText) -> list[list[str]]:
    rows = [row for row in part.table if not all(_SEPARATOR_CELL.match(c) for c in row)]
    return rows[1:] if len(rows) < len(part.table) else rows


def _text(part: SectionText) -> str:
    pieces = [*part.text, *(f"- {' '.join(item)}" for item in part.items)]
    pieces += [" | ".join(row) for row in _data_rows(part)]
    return "\n".join([*pieces, *part.fences]).strip()


def _name(part: SectionText) -> str:
    return _text(part).strip("`*_ \t")


def _names(part: SectionText) -> list[str]:
    entries = [" ".join(item) for item in part.items] or re.split(r"[,;]", " ".join(part.text))
    return [name for entry in entries if (name := entry.strip("`*_ \t"))]


def _choice(part: SectionText) -> str:
    text = _name(part)
    return next((c for c in part.section.choices if c.lower() == text.lower()), text)


def _list(part: SectionText) -> list[str]:
    if part.items or part.table or part.fences:
        return lines_of(part) or [line for fence in part.fences for line in fence.split("\n")]
    return _names(part) if len(part.text) == 1 else [line for line in part.text if line]


def _files(part: SectionText) -> list[FileNote]:
    return [FileNote(*_split(entry)) for entry in lines_of(part)]


def _pairs(part: SectionText) -> list[Pair]:
    return [Pair(*_split(entry)) for entry in lines_of(part)]


def _split(entry: str) -> tuple[str, str]:
    name, mark, note = entry.partition(": ")
    if not mark:
        name, mark, note = re.sub(rf"[ \t][-{_DASHES}][ \t]", "\0", entry, count=1).partition("\0")
    return name.strip("`*_: \t"), note.strip()


def _issues(part: SectionText) -> list[ReviewIssue]:
    return [_issue(entry) for entry in lines_of(part)]


def _issue(entry: str) -> ReviewIssue:
    place = _PLACE.match(entry)
    if not place:
        return ReviewIssue(entry)
    return ReviewIssue(
        entry[place.end() :].lstrip(f"-{_DASHES} \t"), place[1].strip("`* "), int(place[2])
    )


def _criteria(part: SectionText) -> list[Criterion]:
    found = []
    for entry in lines_of(part):
        box = _BOX.match(entry)
        found.append(Criterion(entry[box.end() :] if box else entry, bool(box and box[1] != " ")))
    return found


def _checks(part: SectionText) -> list[ReportedCheck]:
    checks = [_check(" ".join(item)) for item in part.items] + _table_checks(part)
    checks = checks or [_check(line) for line in part.text if line]
    return checks or [_check(line) for fence in part.fences for line in fence.split("\n") if line]


def _check(entry: str) -> ReportedCheck:
    box = _BOX.match(entry)
    entry = entry[box.end() :] if box else entry
    status = _STATUS.search(entry)
    if not status:
        sign = "FAIL" if _CROSS.search(entry) else "PASS" if _TICK.search(entry) else ""
        return ReportedCheck(entry, "UNCHECKED" if box and box[1] == " " else sign)
    name, environment = _without_environment(entry[: status.start()])
    detail = entry[status.end() :].strip()
    if not environment and detail.startswith("("):
        environment, _, detail = detail[1:].partition(")")
    return ReportedCheck(name, status[1], environment.strip(), detail.lstrip(f"-{_DASHES}:, \t"))


def _without_environment(name: str) -> tuple[str, str]:
    name = name.strip("*_` \t")
    found = _ENVIRONMENT.match(name)
    return (found[1], found[2]) if found else (name, "")


def _table_checks(part: SectionText) -> list[ReportedCheck]:
    rows = _data_rows(part)
    if len(rows) == len(part.table):
        return [_check(": ".join(row)) for row in rows]
    header = [_COLUMNS.get(cell.strip("*_ ").lower(), "detail") for cell in part.table[0]]
    return [_row_check(dict(zip(header, row, strict=False))) for row in rows]


def _row_check(cells: dict[str, str]) -> ReportedCheck:
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


KINDS: Final[dict[str, Callable[[SectionText], Any]]] = {
    "text": _text,
    "list": _list,
    "files": _files,
    "issues": _issues,
    "checks": _checks,
    "criteria": _criteria,
    "pairs": _pairs,
    "names": _names,
    "name": _name,
    "choice": _choice,
}
