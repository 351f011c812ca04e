"""Test the matrix of checks and environments, and what it refuses."""

from math import inf, nan

import pytest

from interlock.system.errors import SourceError
from interlock_delivery.checks.records import Check, Environment, build_matrix, normalize_name

MAC = Environment("Mac")
BOX = Environment("Dev Container", ("docker", "exec", "app"))


def pairs(*checks: Check, places: tuple[Environment, ...] = (MAC, BOX)) -> list[tuple[str, str]]:
    return [cell.pair for cell in build_matrix(checks, places)]


@pytest.mark.parametrize(
    "name", ["", "ALL", " all ", "*", "mac, dev_container", "MAC,DEV-CONTAINER"]
)
def test_everywhere(name: str) -> None:
    assert pairs(Check("t", ("x",), name)) == [("t", "Mac"), ("t", "Dev Container")]


def test_one_place_and_its_prefix() -> None:
    (cell,) = build_matrix([Check("t", ("pytest", "-q"), "dev container")], [MAC, BOX])
    assert cell.argv == ("docker", "exec", "app", "pytest", "-q")


def test_without_environments_it_runs_here() -> None:
    assert pairs(Check("t", ("x",)), places=()) == [("t", "native")]


def test_one_name_with_a_command_for_each_place() -> None:
    found = pairs(Check("t", ("x",), "Mac"), Check("t", ("y",), "Dev Container"))
    assert found == [("t", "Mac"), ("t", "Dev Container")]


@pytest.mark.parametrize(
    ("check", "result"),
    [
        (Check("t", ("x",), "Linux"), "names the environment 'Linux'.*one of Mac, Dev Container"),
        (Check("t", ()), "has no command"),
        (Check("t", (" ",)), "has no command"),
        (Check(" ", ("x",)), "has no name"),
        (Check("t", ("x", "a\0b")), "has a NUL"),
        (Check("t", ("x",), "", 0, 0.0), "timeout 0"),
        (Check("t", ("x",), "", 0, -1.0), "timeout -1"),
        (Check("t", ("x",), "", 0, inf), "timeout inf"),
        (Check("t", ("x",), "", 0, nan), "timeout nan"),
    ],
)
def test_refused(check: Check, result: str) -> None:
    with pytest.raises(SourceError, match=result):
        pairs(check)


def test_two_of_one_name_are_refused() -> None:
    with pytest.raises(SourceError, match="rename one of them"):
        pairs(Check("unit tests", ("x",)), Check("Unit-Tests", ("y",)))


def test_names() -> None:
    assert {normalize_name(each) for each in ("Unit Tests", "unit_tests", "**unit-tests**")} == {
        "unit tests"
    }
