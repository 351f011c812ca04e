"""Limits of what may be spent: by the run, by each role in it, and by all runs of a day.

Knows the words in which users say them (`tokens=200000`, `role.investigate.money=5`, `day.time=8h`)
and what has been spent of each. Refuses to know when it was spent, and on what.
"""

import math
from collections.abc import Collection, Mapping
from typing import Any

import msgspec

from interlock.engine.circuit_file import seconds_of
from interlock.engine.schedule import NO_LIMITS, Budget, Spent, used
from interlock.system.errors import CircuitError, SourceError

LOW = 0.8
"""The part of a limit from which on users are warned."""
_KINDS = {"dispatches": "dispatches", "tokens": "tokens", "money": "money", "time": "seconds"}
_WORDS = {field: word for word, field in _KINDS.items()}
Words = Mapping[str, str | int | float]


class BudgetLimits(msgspec.Struct, frozen=True):
    """What may be spent."""

    run: Budget = NO_LIMITS
    roles: Mapping[str, Budget] = {}
    day: Budget = NO_LIMITS


class BudgetUsage(msgspec.Struct, frozen=True):
    """What is spent, by the same measures; `day` is what all runs spent today."""

    run: Spent = Spent()
    roles: Mapping[str, Spent] = {}
    day: Spent = Spent()


def read_limits(words: Mapping[str, object], roles: Collection[str] = ()) -> BudgetLimits:
    """Limits in a user's words; SourceError if they are none, or name a role that is not there."""
    found: dict[str, dict[str, Any]] = {}
    for name, text in words.items():
        scope, _, kind = name.rpartition(".")
        if kind not in _KINDS or not _is_scope(scope):
            raise SourceError(
                f"budget {name!r} is unknown; use dispatches, tokens, money, time, "
                "alone or behind 'role.ROLE.' or 'day.'"
            )
        role = scope.removeprefix("role.")
        if scope.startswith("role.") and roles and role not in roles:
            known = ", ".join(sorted(roles))
            raise SourceError(f"budget {name}: no step has the role {role!r}; roles are {known}")
        found.setdefault(scope, {})[_KINDS[kind]] = _amount(name, kind, text)
    of_roles = {
        scope.removeprefix("role."): Budget(**given)
        for scope, given in found.items()
        if scope.startswith("role.")
    }
    return BudgetLimits(Budget(**found.get("", {})), of_roles, Budget(**found.get("day", {})))


def flat(table: Mapping[str, Any], before: str = "") -> dict[str, str | int | float]:
    """The words of nested tables: what interlock.toml calls [budget.role.X]."""
    words: dict[str, str | int | float] = {}
    for name, value in table.items():
        if isinstance(value, Mapping):
            words |= flat(value, f"{before}{name}.")
        else:
            words[f"{before}{name}"] = value
    return words


def parts(limits: BudgetLimits, spending: BudgetUsage) -> dict[str, float]:
    """For each limit, by its word, the part of it that is spent: 1.0 is all."""
    found = _parts("", limits.run, spending.run)
    for role, budget in sorted(limits.roles.items()):
        found |= _parts(f"role.{role}.", budget, spending.roles.get(role, Spent()))
    return found | _parts("day.", limits.day, spending.day)


def low(word: str, part: float) -> str:
    """What is said of a limit that is nearly or wholly spent."""
    return f"{part:.0%} of the budget's {word} is spent"


def _parts(before: str, budget: Budget, spent: Spent) -> dict[str, float]:
    return {f"{before}{_WORDS[name]}": part for name, part in used(budget, spent).items()}


def _is_scope(scope: str) -> bool:
    kind, _, role = scope.partition(".")
    return scope in ("", "day") or (kind == "role" and bool(role))


def _amount(name: str, kind: str, text: object) -> float | int:
    try:
        if kind == "time":
            amount: float = seconds_of(str(text))
        elif kind == "money":
            amount = float(str(text))
        else:
            amount = int(str(text))
    except (ValueError, CircuitError):
        raise SourceError(_no_amount(name, kind, text)) from None
    if not 0 <= amount < math.inf:
        raise SourceError(_no_amount(name, kind, text))
    return amount


def _no_amount(name: str, kind: str, text: object) -> str:
    example = {"time": "2h", "money": "2.50"}.get(kind, "100")
    return f"budget {name}={text}: {str(text)!r} is no amount; write {name}={example}"
