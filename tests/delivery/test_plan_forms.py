"""The law of the two forms: Markdown and YAML come to the same plan, and back."""

from pathlib import Path

from hypothesis import given
from tests.delivery.plan_strategies import LINES, plans

from interlock.delivery.checks.records import Environment
from interlock.delivery.plan.markdown import read_markdown, write_markdown
from interlock.delivery.plan.plan import Plan, contents
from interlock.delivery.plan.yaml import read_yaml_plan, write_yaml_plan

GOLDEN = Path(__file__).parent / "golden"
MARKDOWN = (GOLDEN / "plan.md").read_text(encoding="utf-8")
YAML = (GOLDEN / "plan.yaml").read_text(encoding="utf-8")


def test_the_golden_plan_is_one_plan_in_both_forms() -> None:
    markdown, yaml = read_markdown(MARKDOWN), read_yaml_plan(YAML)
    assert (markdown.source_form, yaml.source_form) == ("markdown", "yaml")
    assert contents(markdown) == contents(yaml)
    assert contents(read_markdown(write_markdown(yaml))) == contents(markdown)
    assert contents(read_yaml_plan(write_yaml_plan(markdown))) == contents(markdown)


@given(plans())
def test_any_plan_comes_back_from_both_forms(raw: Plan) -> None:
    plan = contents(read_yaml_plan(write_yaml_plan(raw)))
    assert contents(read_yaml_plan(write_yaml_plan(plan))) == plan
    read = read_markdown(write_markdown(plan))
    assert contents(read) == plan
    assert read.remarks == ()


def test_dots_that_are_a_word_come_back() -> None:
    plan = Plan(environments=(Environment("Box", ("in-box", "...")),))
    assert contents(read_markdown(write_markdown(plan))) == plan


@given(LINES)
def test_whatever_is_written_a_plan_comes_out(text: str) -> None:
    assert read_markdown(text).source_form == "markdown"
