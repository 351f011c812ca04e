"""Who may answer: names, steps, and speaking for others."""

import pytest

from interlock.agents.human import EVERYBODY, AnswerPolicy

POLICY = AnswerPolicy(("ann", "bob"), ("ann",), {"publish": ("bob", "cy"), "open": ()})


@pytest.mark.parametrize(
    ("step", "by", "user", "problem"),
    [
        ("review", "ann", "ann", ""),
        ("review", "bob", "ann", ""),
        ("review", "ann", "bob", "bob may not answer in the name of ann; [inbox] proxies says who"),
        ("review", "eve", "ann", "eve may not answer at review; these may: ann, bob"),
        ("review", "ann", "eve", "eve may not answer at review; these may: ann, bob"),
        ("review", "cy", "cy", "cy may not answer at review"),
        ("publish", "cy", "cy", ""),
        ("publish", "ann", "ann", "ann may not answer at publish; these may: bob, cy"),
        ("open", "eve", "eve", ""),
    ],
)
def test_who_may(step: str, by: str, user: str, problem: str) -> None:
    found = POLICY.problem(step, by, user)
    assert found.startswith(problem)
    assert bool(found) == bool(problem)


def test_without_names_everybody_may_in_any_name() -> None:
    assert EVERYBODY.problem("review", "ann", "eve") == ""
