"""What the pages about plans show is true: the example is fit, and all codes and keys are told."""

import re

from interlock_delivery.checks.records import CheckText, EnvironmentText
from interlock_delivery.plan.check import check_plan
from interlock_delivery.plan.markdown import read_markdown
from tests.world.places import ROOT

HOW_TO = (ROOT / "docs" / "howto" / "write-a-plan.md").read_text(encoding="utf-8")
FORMAT = (ROOT / "docs" / "protocols" / "plan.md").read_text(encoding="utf-8")
CODE = re.compile(r'"((?:plan|task|criteria|phase|environment|check|table|text)\.[a-z-]+)"')


def test_the_example_of_the_how_to_is_fit() -> None:
    found = re.search(r"```markdown\n(# Plan.*?)\n```", HOW_TO, re.DOTALL)
    assert found is not None
    plan = read_markdown(found[1])
    assert [task.id for task in plan.tasks] == ["1-1-1", "1-1-2"]
    assert check_plan(plan) == ()


def test_every_code_and_key_is_in_the_format() -> None:
    source = ROOT / "packages/interlock-delivery/src/interlock_delivery/plan"
    output = [CODE.findall(file.read_text(encoding="utf-8")) for file in source.glob("*.py")]
    codes = {code for found in output for code in found}
    assert len(codes) > 15
    keys = {*CheckText.__struct_fields__, *EnvironmentText.__struct_fields__}
    assert [
        word for word in sorted((codes | keys) - {"plan.json"}) if f"`{word}`" not in FORMAT
    ] == []
