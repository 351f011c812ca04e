"""Define checks, the environments they run in, and their results.

Also builds the matrix of checks and environments, in which one name may be spelled in several ways.
"""

import re
from collections.abc import Iterable, Sequence
from math import isfinite
from typing import Final

import msgspec

from interlock.system.errors import SourceError

_EVERYWHERE = ("", "all", "any", "*")
_MARKS = re.compile(r"[\s_*`\"'-]+")


CHECK_TIMEOUT: Final = 600.0
"""The seconds a check may take by default."""


class Check(msgspec.Struct, frozen=True):
    """One verification command. `environment` has names with commas; "" or ALL means all."""

    name: str
    command: tuple[str, ...]
    environment: str = ""
    exit_code: int = 0
    timeout: float = CHECK_TIMEOUT
    purpose: str = ""
    line: int = 0


class Environment(msgspec.Struct, frozen=True):
    """A place where commands run; `prefix` goes before each command."""

    name: str
    prefix: tuple[str, ...] = ()
    description: str = ""
    line: int = 0


class CheckText(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A check as `[[check]]` in interlock.toml declares it."""

    name: str
    command: str | list[str]
    environment: str | list[str] = ""
    exit_code: int | str = ""
    timeout: float | str = ""
    purpose: str = ""


class EnvironmentText(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """An environment as `[[environment]]` in interlock.toml declares it."""

    name: str
    prefix: str | list[str] = ""
    description: str = ""


NATIVE = Environment("native", (), "this machine")


class CheckCell(msgspec.Struct, frozen=True):
    """One check in one environment."""

    check: Check
    environment: Environment

    @property
    def argv(self) -> tuple[str, ...]:
        return (*self.environment.prefix, *self.check.command)

    @property
    def pair(self) -> tuple[str, str]:
        return self.check.name, self.environment.name


class CheckResult(msgspec.Struct, frozen=True, kw_only=True):
    """The result of a check in an environment, as Interlock observed it."""

    check: str
    environment: str
    exit_code: int | None
    """Negative for a signal; None if the check never ran or could not be awaited."""
    expected: int
    passed: bool
    timed_out: bool = False
    unavailable: bool = False
    """True if the command or its environment is missing, which says nothing about the work."""
    seconds: float = 0.0
    output_head: str = ""
    """The beginning of the output, if it was too long to keep whole."""
    output_tail: str = ""
    left_out: int = 0
    """The number of bytes between head and tail."""
    test_count: int | None = None
    """The number of tests that ran, if a known runner printed it."""
    failed_count: int | None = None
    failed_tests: tuple[str, ...] = ()
    note: str = ""
    """One sentence about anything unusual."""

    @property
    def pair(self) -> tuple[str, str]:
        return self.check, self.environment


def normalize_name(name: str) -> str:
    """Return one spelling for `Unit Tests`, `unit_tests` and `**unit-tests**`."""
    return _MARKS.sub(" ", name).strip().casefold()


def build_matrix(
    checks: Sequence[Check], environments: Sequence[Environment] = ()
) -> tuple[CheckCell, ...]:
    """Return every check in every environment it names, in the order of both."""
    places = {normalize_name(each.name): each for each in environments or (NATIVE,)}
    cells: dict[tuple[str, str], CheckCell] = {}
    for check in checks:
        _check_valid(check)
        for place in _find_environments(check, places):
            cell = CheckCell(check, place)
            pair = normalize_name(check.name), normalize_name(place.name)
            if pair in cells:
                raise SourceError(
                    f"two checks are called {check.name!r} in {place.name!r}: rename one of them"
                )
            _check_no_nul(check.name, cell.argv)
            cells[pair] = cell
    return tuple(cells.values())


def _find_environments(check: Check, places: dict[str, Environment]) -> Iterable[Environment]:
    if check.environment.strip().casefold() in _EVERYWHERE:
        return list(places.values())
    found = {}
    for name in check.environment.split(","):
        place = places.get(normalize_name(name))
        if place is None:
            known = ", ".join(each.name for each in places.values())
            raise SourceError(
                f"the check {check.name!r} names the environment {name.strip()!r}, which is not"
                f" known: write ALL or one of {known}"
            )
        found[place.name] = place
    return found.values()


def _check_valid(check: Check) -> None:
    if not normalize_name(check.name):
        raise SourceError(f"a check has no name: give {' '.join(check.command)!r} one")
    if not check.command or not check.command[0].strip():
        raise SourceError(f"the check {check.name!r} has no command: write one")
    if not (isfinite(check.timeout) and check.timeout > 0):
        raise SourceError(
            f"the check {check.name!r} has the timeout {check.timeout:g}: write seconds above 0"
        )


def _check_no_nul(name: str, argv: tuple[str, ...]) -> None:
    if any("\0" in word for word in argv):
        raise SourceError(f"the command of the check {name!r} has a NUL in it: take it out")
