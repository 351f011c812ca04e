"""What a task said it would write, against what it wrote, and against what others said.

Knows patterns: `*` and `?` stay within a folder, `**` does not, a folder means all in it. Pure.
Refuses to know what follows from a difference.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache

import msgspec


class WriteSet(msgspec.Struct, frozen=True):
    """Each path once: `others` are those that an open task has declared and this one has not."""

    inside: tuple[str, ...] = ()
    outside: tuple[str, ...] = ()
    others: tuple[tuple[str, str], ...] = ()
    """Path and task id; a path that several declared has several rows."""

    @property
    def is_kept(self) -> bool:
        return not self.outside and not self.others


def compare(
    actual: Iterable[str],
    declared: Sequence[str],
    open_tasks: Mapping[str, Sequence[str]] | None = None,
    prefix: str = "",
) -> WriteSet:
    """Sort the paths that were written. Without a declaration nothing is outside.

    Patterns are seen from the user's folder, which lies at `prefix` in the repository.
    """
    inside: list[str] = []
    outside: list[str] = []
    others: list[tuple[str, str]] = []
    for path in sorted(set(actual)):
        if declared and covers(declared, path, prefix):
            inside.append(path)
            continue
        owners = sorted(
            task_id
            for task_id, patterns in (open_tasks or {}).items()
            if covers(patterns, path, prefix)
        )
        others += [(path, task_id) for task_id in owners]
        if not owners:
            (outside if declared else inside).append(path)
    return WriteSet(tuple(inside), tuple(outside), tuple(others))


def covers(patterns: Iterable[str], path: str, prefix: str = "") -> bool:
    """Whether one of the patterns means this path."""
    return any(
        _compiled(prefix + pattern.removeprefix("./")).fullmatch(path) for pattern in patterns
    )


def overlap(one: Iterable[str], other: Iterable[str], paths: Iterable[str]) -> tuple[str, ...]:
    """Which of these paths both declarations mean."""
    first, second = tuple(one), tuple(other)
    return tuple(sorted(path for path in paths if covers(first, path) and covers(second, path)))


def may_meet(one: Sequence[str], other: Sequence[str]) -> bool:
    """Whether two declarations plainly mean some file both: one pattern covers the other."""
    return any(covers(one, pattern) for pattern in other) or any(
        covers(other, pattern) for pattern in one
    )


@lru_cache(maxsize=4_096)
def _compiled(pattern: str) -> re.Pattern[str]:
    words = pattern.rstrip("/")
    parts = re.split(r"(\*\*/|/\*\*$|\*\*|\*|\?)", words)
    meaning = {"**/": "(?:[^/]+/)*", "/**": "/.*", "**": ".*", "*": "[^/]*", "?": "[^/]"}
    return re.compile(
        "".join(meaning.get(part, re.escape(part)) for part in parts) + "(?:/.*)?", re.DOTALL
    )
