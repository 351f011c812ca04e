"""Test what past decisions give: open points, guidance of humans, the latest inspection."""

from typing import Any

from delivery_tests.briefs import CIRCUIT
from interlock.engine.case import OPEN, Decision
from interlock_delivery.open_tasks import PastDecision
from interlock_delivery.steps import read_rule_tags
from interlock_delivery.task_context import find_guidance, find_last_answer, find_open_points

TAGS = read_rule_tags(CIRCUIT)


def past(step: str, rule: str, signal: str = "artifact", **answer: Any) -> PastDecision:
    decision = Decision(step, 1, signal, OPEN, "IMPLEMENT", rule)
    return PastDecision(decision, answer, TAGS.get(rule, {}))


def test_a_judge_takes_back_only_its_own_points() -> None:
    story = [
        past("REVIEW", "rework-review", text="odd names"),
        past("CHECK", "failing", summary="red"),
        past("CHECK", "checked"),
    ]
    assert [(point.by, point.text) for point in find_open_points(story)] == [
        ("critic", "odd names")
    ]
    assert find_open_points([*story, past("REVIEW", "reviewed")]) == ()


def test_what_humans_said_in_order() -> None:
    result = [
        past("CLARIFY", "clarified", decision="answer", text="one"),
        past("INFRA_GATE", "retry", decision="retry", text="two"),
        past("INFRA_GATE", "retry", decision="retry"),
        past("REVIEW", "rework-review", text="not a human"),
    ]
    assert find_guidance(result) == ("one", "two")


def test_the_latest_look_is_one_that_came_to_something() -> None:
    story = [
        past("CHECK", "failing", snapshot="a"),
        past("CHECK", "attempt-lost", signal="timeout", reason="late"),
    ]
    assert find_last_answer(story, "CHECK", "PROVE") == {"snapshot": "a"}
    assert find_last_answer([], "CHECK") == {}
