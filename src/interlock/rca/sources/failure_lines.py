"""Failures as JSON lines, the form of `interlock analyst`, read without trust.

Knows that parts may be missing or null. Refuses to know files.
"""

from collections.abc import Iterable
from typing import Any, Final

import msgspec

from interlock.rca.failure import Failure
from interlock.system.bounded import bounded

_MOST_NOTES: Final = 5


def read_failures(lines: Iterable[str], name: str) -> tuple[list[Failure], list[str]]:
    """The failures in the lines, and notes on lines that hold none."""
    found: list[Failure] = []
    bad: list[str] = []
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            found.append(_failure(msgspec.json.decode(line)))
        except (msgspec.MsgspecError, RecursionError, TypeError) as error:
            bad.append(f"{name}:{number}: skipped, no failure: {error}")
    if len(bad) > _MOST_NOTES:
        bad = [*bad[:_MOST_NOTES], f"{name}: {len(bad) - _MOST_NOTES} more lines are no failures"]
    return found, bad


def _failure(row: Any) -> Failure:
    if not isinstance(row, dict):
        raise TypeError("it is no object")
    told = {key: value for key, value in row.items() if value is not None}
    told["id"] = str(told.get("id", ""))
    facts = told.get("attributes", {})
    if isinstance(facts, dict):
        told["attributes"] = {key: _word(value) for key, value in facts.items()}
    failure = msgspec.convert(told, Failure, strict=False)
    log, log_cut = bounded(failure.log)
    stack, stack_cut = bounded(failure.stack)
    return msgspec.structs.replace(
        failure,
        log=log,
        stack=stack,
        log_truncated=failure.log_truncated or log_cut or stack_cut,
    )


def _word(value: Any) -> str:
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()
