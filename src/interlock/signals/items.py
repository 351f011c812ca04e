"""Sections as data: files with their change, issues with file and line, checks, criteria.

Knows the layouts agents use for one and the same thing. Refuses to judge: an item that fits no
layout is kept as text.
"""

import re
from collections.abc import Callable
from typing import Any, Final

import msgspec

from interlock.signals.body import Part


class FileNote(msgspec.Struct, frozen=True):
    """A file and what was done to it."""

    file: str
    note: str = ""


class Issue(msgspec.Struct, frozen=True):
    """Something found, with the place where the agent gave one."""

    text: str
    file: str | None = None
    line: int | None = None


class Check(msgspec.Struct, frozen=True):
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


def value_of(part: Part) -> Any:
    """The section as data, in the shape its kind has in the catalogue."""
    return KINDS[part.section.kind](part)


def is_negative(check: Check) -> bool:
    return bool(_IS_NEGATIVE.match(check.status.upper()))


def lines_of(part: Part) -> list[str]:
    """Every entry of a section, however it was laid out: items, rows, or lines of text."""
    entries = [" ".join(item).strip() for item in part.items]
    entries += [" | ".join(row) for row in _data_rows(part)]
    return entries or [line for line in part.text if line]


def _data_rows(part: Part) -> list[list[str]]:
    rows = [row for row in part.table if not all(_SEPARATOR_CELL.match(c) for c in row)]
    return rows[1:] if len(rows) < len(part.table) else rows


def _text(part: Part) -> str:
    pieces = [*part.text, *(f"- {' '.join(item)}" for item in part.items)]
    pieces += [" | ".join(row) for row in _data_rows(part)]
    return "\n".join([*pieces, *part.fences]).strip()


def _name(part: Part) -> str:
    return _text(part).strip("`*_ \t")


def _names(part: Part) -> list[str]:
    entries = [" ".join(item) for item in part.items] or re.split(r"[,;]", " ".join(part.text))
    return [name for entry in entries if (name := entry.strip("`*_ \t"))]


def _choice(part: Part) -> str:
    text = _name(part)
    return next((c for c in part.section.choices if c.lower() == text.lower()), text)


def _list(part: Part) -> list[str]:
    if part.items or part.table or part.fences:
        return lines_of(part) or [line for fence in part.fences for line in fence.split("\n")]
    return _names(part) if len(part.text) == 1 else [line for line in part.text if line]


def _files(part: Part) -> list[FileNote]:
    return [FileNote(*_split(entry)) for entry in lines_of(part)]


def _pairs(part: Part) -> list[Pair]:
    return [Pair(*_split(entry)) for entry in lines_of(part)]


def _split(entry: str) -> tuple[str, str]:
    name, mark, note = entry.partition(": ")
    if not mark:
        name, mark, note = re.sub(rf"[ \t][-{_DASHES}][ \t]", "\0", entry, count=1).partition("\0")
    return name.strip("`*_: \t"), note.strip()


def _issues(part: Part) -> list[Issue]:
    return [_issue(entry) for entry in lines_of(part)]


def _issue(entry: str) -> Issue:
    place = _PLACE.match(entry)
    if not place:
        return Issue(entry)
    return Issue(
        entry[place.end() :].lstrip(f"-{_DASHES} \t"), place[1].strip("`* "), int(place[2])
    )


def _criteria(part: Part) -> list[Criterion]:
    found = []
    for entry in lines_of(part):
        box = _BOX.match(entry)
        found.append(Criterion(entry[box.end() :] if box else entry, bool(box and box[1] != " ")))
    return found


def _checks(part: Part) -> list[Check]:
    checks = [_check(" ".join(item)) for item in part.items] + _table_checks(part)
    checks = checks or [_check(line) for line in part.text if line]
    return checks or [_check(line) for fence in part.fences for line in fence.split("\n") if line]


def _check(entry: str) -> Check:
    box = _BOX.match(entry)
    entry = entry[box.end() :] if box else entry
    status = _STATUS.search(entry)
    if not status:
        sign = "FAIL" if _CROSS.search(entry) else "PASS" if _TICK.search(entry) else ""
        return Check(entry, "UNCHECKED" if box and box[1] == " " else sign)
    name, environment = _without_environment(entry[: status.start()])
    detail = entry[status.end() :].strip()
    if not environment and detail.startswith("("):
        environment, _, detail = detail[1:].partition(")")
    return Check(name, status[1], environment.strip(), detail.lstrip(f"-{_DASHES}:, \t"))


def _without_environment(name: str) -> tuple[str, str]:
    name = name.strip("*_` \t")
    found = _ENVIRONMENT.match(name)
    return (found[1], found[2]) if found else (name, "")


def _table_checks(part: Part) -> list[Check]:
    rows = _data_rows(part)
    if len(rows) == len(part.table):
        return [_check(": ".join(row)) for row in rows]
    header = [_COLUMNS.get(cell.strip("*_ ").lower(), "detail") for cell in part.table[0]]
    return [_row_check(dict(zip(header, row, strict=False))) for row in rows]


def _row_check(cells: dict[str, str]) -> Check:
    status = cells.get("status", "").strip("*_` ")
    if _CROSS.match(status):
        status = "FAIL"
    elif found := _CELL_STATUS.match(status):
        status = found[1]
    return Check(
        cells.get("name", "").strip("*_` "),
        status,
        cells.get("environment", "").strip("*_` "),
        cells.get("detail", ""),
    )


KINDS: Final[dict[str, Callable[[Part], Any]]] = {
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
