"""A project's own checks and environments beside those of a plan."""

import msgspec
import pytest

from interlock.delivery.checks.records import Check, Environment
from interlock.delivery.plan.plan import Plan
from interlock.delivery.plan.yaml import CheckText, EnvironmentText, with_project
from interlock.system.errors import SourceError

PLAN = Plan(checks=(Check("Tests", ("pytest",), line=5),), environments=(Environment("Box"),))


def test_a_project_adds_and_the_plan_goes_before() -> None:
    checks = msgspec.convert(
        [
            {"name": "Tests", "command": "make test"},
            {"name": "Lint", "command": ["ruff", "check"], "environment": ["Box", "Mac"]},
            {"name": "Old", "command": "old", "exit_code": 1, "timeout": "2m"},
        ],
        list[CheckText],
    )
    places = msgspec.convert(
        [{"name": "Box", "prefix": "other"}, {"name": "Mac", "prefix": ["ssh", "mac"]}],
        list[EnvironmentText],
    )
    merged = with_project(PLAN, checks, places)
    assert [(each.name, each.command, each.environment) for each in merged.checks] == [
        ("Lint", ("ruff", "check"), "Box"),
        ("Lint", ("ruff", "check"), "Mac"),
        ("Old", ("old",), ""),
        ("Tests", ("pytest",), ""),
    ]
    assert (merged.checks[2].exit_code, merged.checks[2].timeout) == (1, 120.0)
    assert merged.environments == (Environment("Mac", ("ssh", "mac")), Environment("Box"))


def test_nothing_to_add_changes_nothing() -> None:
    assert with_project(PLAN, (), ()) == PLAN


def test_a_wrong_line_of_the_project_names_the_file() -> None:
    with pytest.raises(SourceError, match=r"^interlock.toml: the command 'a && b' needs a shell"):
        with_project(PLAN, [CheckText("x", "a && b")], ())
    with pytest.raises(SourceError, match=r"^interlock.toml: a check has no name"):
        with_project(PLAN, [CheckText(" ", "a")], ())
    with pytest.raises(SourceError, match=r"^interlock.toml: 'any' is no name"):
        with_project(PLAN, (), [EnvironmentText("any")])
