"""plan.yaml at the door, and a project's own checks and environments beside a plan's."""

import msgspec
import pytest

from interlock.delivery.checks.records import Check, Environment
from interlock.delivery.plan.plan import Plan
from interlock.delivery.plan.yaml import (
    CheckText,
    EnvironmentText,
    add_project_checks,
    read_yaml_plan,
)
from interlock.system.errors import SourceError


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "p.yaml: the file is empty"),
        ("- a\n", "p.yaml:1: a plan: expected `object`, got `array`"),
        ("just words\n", "p.yaml:1: a plan: expected `object`, got `str`"),
        ("titel: x\n", "p.yaml:1: 'titel' is not a field here; did you mean 'title'?"),
        ("tasks:\n- id: 1\n  size: 2\n", "p.yaml:3: 'size' is not a field here; use id, title"),
        ("phases:\n- tasks:\n  - name: x\n", "p.yaml:3: 'name' is not a field here"),
        ("tasks:\n- title: x\n", "p.yaml:2: tasks[0]: object missing required field `id`"),
        ("tasks:\n- id: 1\n  criteria:\n  - GET /: works\n", "p.yaml:4: a colon made this a field"),
        ("a: &a [x]\nb: *a\n", "p.yaml:1: anchors and aliases"),
        ("title: !!python/name:os.system x\n", "p.yaml:1: tags"),
        ("title: a\ntitle: b\n", "p.yaml:2: 'title' is written twice"),
        ("phases:\n- id: one two\n", "p.yaml:2: the phase 'one two' needs an id of one word"),
        ("title: [" * 60, "p.yaml:1: nested deeper"),
    ],
)
def test_what_is_wrong_and_where(text: str, problem: str) -> None:
    with pytest.raises(SourceError) as raised:
        read_yaml_plan(text, "p.yaml")
    assert str(raised.value).startswith(problem)


def test_ids_stay_as_they_are_written() -> None:
    plan = read_yaml_plan("tasks:\n- id: 1.10\n- id: 007\n  blocked_by: [1.10]\n- id: yes\n")
    assert [task.id for task in plan.tasks] == ["1.10", "007", "yes"]
    assert plan.tasks[1].blocked_by == ("1.10",)
    assert [task.line for task in plan.tasks] == [2, 3, 5]


def test_empty_fields_are_no_fields() -> None:
    plan = read_yaml_plan("title:\nphases:\ntasks:\n- id: 1\n  criteria:\n  blocked_by: none\n")
    assert plan.title == ""
    assert plan.tasks[0].criteria == plan.tasks[0].blocked_by == ()


def test_a_check_that_cannot_be_run_is_remarked_upon_with_its_line() -> None:
    plan = read_yaml_plan(
        "checks:\n- {name: a, command: x, exit_code: 2, timeout: 5m}\n"
        "- {name: b, command: x && y}\n"
        "- {name: c, command: x, exit_code: 900}\nenvironments:\n- {name: 'a,b'}\n- {name: all}\n"
    )
    (check,) = plan.checks
    assert (check.command, check.exit_code, check.timeout, check.line) == (("x",), 2, 300.0, 2)
    assert plan.environments == ()
    assert sorted(remark.line for remark in plan.remarks) == [3, 4, 6, 7]


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
    merged = add_project_checks(PLAN, checks, places)
    assert [(each.name, each.command, each.environment) for each in merged.checks] == [
        ("Lint", ("ruff", "check"), "Box"),
        ("Lint", ("ruff", "check"), "Mac"),
        ("Old", ("old",), ""),
        ("Tests", ("pytest",), ""),
    ]
    assert (merged.checks[2].exit_code, merged.checks[2].timeout) == (1, 120.0)
    assert merged.environments == (Environment("Mac", ("ssh", "mac")), Environment("Box"))


def test_nothing_to_add_changes_nothing() -> None:
    assert add_project_checks(PLAN, (), ()) == PLAN


def test_a_wrong_line_of_the_project_names_the_file() -> None:
    with pytest.raises(
        SourceError, match=r"^interlock.toml: the command 'a && b' uses '&&', which needs a shell"
    ):
        add_project_checks(PLAN, [CheckText("x", "a && b")], ())
    with pytest.raises(SourceError, match=r"^interlock.toml: a check has no name"):
        add_project_checks(PLAN, [CheckText(" ", "a")], ())
    with pytest.raises(SourceError, match=r"^interlock.toml: 'any' cannot name"):
        add_project_checks(PLAN, (), [EnvironmentText("any")])
