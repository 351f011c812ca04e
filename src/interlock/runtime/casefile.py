"""Cases as a user gives them: a JSON object per line.

`id` names the case, `after` the cases that must end well before it starts, `priority` puts it
before others. Everything else is the case's own input, read as `case.NAME` in rules and prompts.
"""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from interlock.engine.schedule import refuse_cycles
from interlock.journal.runs import NewCase
from interlock.system.errors import SourceError, StateError
from interlock.system.runner_strict_json import decode

MAX_LINE = 1024 * 1024
MAX_PRIORITY = 1_000_000
_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._#-]{0,127}")


class _Line(msgspec.Struct):
    id: str | int
    after: list[str | int] = []
    priority: int = 0


def read_cases(path: Path) -> tuple[list[NewCase], bytes]:
    """The cases in a file, checked, and the file's bytes."""
    try:
        content = path.read_bytes()
    except OSError as error:
        raise SourceError(f"{path} cannot be read: {error.strerror}") from None
    cases: list[NewCase] = []
    seen: dict[str, int] = {}
    for number, line in _lines(content):
        case = _case(line, f"{path}:{number}")
        if case.case_id in seen:
            first = seen[case.case_id]
            raise SourceError(f"{path}:{number}: case {case.case_id!r} stands in line {first} too")
        seen[case.case_id] = number
        cases.append(case)
    if not cases:
        raise SourceError(f'{path} has no cases; write one per line, for example {{"id": "C1"}}')
    try:
        refuse_cycles({case.case_id: case.needs for case in cases})
    except StateError as error:
        raise SourceError(f"{path}: {error}") from None
    return cases, content


def _lines(content: bytes) -> Iterator[tuple[int, bytes]]:
    for number, line in enumerate(content.splitlines(), 1):
        if line.strip():
            yield number, line


def _case(line: bytes, place: str) -> NewCase:
    if len(line) > MAX_LINE:
        raise SourceError(f"{place}: a case has at most {MAX_LINE:,} bytes, this one {len(line):,}")
    try:
        fields: dict[str, Any] = decode(line)
        head = msgspec.convert(fields, _Line)
    except ValueError as error:
        hint = 'write one JSON object, for example {"id": "C1", "topic": "login"}'
        raise SourceError(f"{place}: {error}; {hint}") from None
    names = [str(name) for name in (head.id, *head.after)]
    for name in names:
        if not _ID.fullmatch(name):
            raise SourceError(
                f"{place}: {name[:60]!r} is no case id: letters, digits, '.', '_', '#' and '-', "
                "at most 128, starting with a letter or digit"
            )
    if not -MAX_PRIORITY <= head.priority <= MAX_PRIORITY:
        raise SourceError(f"{place}: a priority is from -{MAX_PRIORITY:,} to {MAX_PRIORITY:,}")
    inputs = {key: value for key, value in fields.items() if key not in ("after", "priority")}
    return NewCase(names[0], inputs, head.priority, tuple(dict.fromkeys(names[1:])))
