"""Whether a developer can begin: every rule, with the task that shows it."""

import msgspec
import pytest

from interlock.delivery.plan.check import assess
from interlock.delivery.plan.plan import Task

READY = Task(
    "1",
    "Keep loans",
    work="Add a table `loans` to the schema, and open it when the desk starts.",
    criteria=("`pytest` exits 0",),
    blocked_by=("0",),
    reading=("docs/a.md",),
)


def verdict(**changes: object) -> tuple[str, tuple[str, ...]]:
    found = assess(msgspec.structs.replace(READY, **changes), {"0", "1"})
    assert bool(found.reasons) == (found.verdict != "IMPLEMENTABLE")
    return found.verdict, found.missing


def test_ready() -> None:
    assert verdict() == ("IMPLEMENTABLE", ())


@pytest.mark.parametrize(
    ("changes", "missing"),
    [
        ({"work": "Loans."}, ("scope",)),
        ({"criteria": ("It works well",)}, ("criteria",)),
        ({"criteria": ()}, ("criteria",)),
        (
            {
                "work": "Members should be able to borrow books.",
                "criteria": ("A copy that is out is refused",),
            },
            ("location",),
        ),
        (
            {"work": "Add loans to `desk.py`.", "title": "Keep all loans", "reading": ()},
            ("approach",),
        ),
        ({"blocked_by": ("9",)}, ("dependencies",)),
        (
            {"work": "Make it great.", "criteria": ("Fast",), "reading": ()},
            ("scope", "criteria", "location", "approach"),
        ),
    ],
)
def test_what_can_be_worked_out_is_expanded(
    changes: dict[str, object], missing: tuple[str, ...]
) -> None:
    assert verdict(**changes) == ("NEEDS_EXPANSION", missing)


@pytest.mark.parametrize(
    "words",
    [
        "The limit is TBD.",
        "Colours: to be decided.",
        "Ask the product owner which fields are needed.",
        "It is not yet clear who may do this.",
        "Should it send mail?",
        "Open question: how long?",
        "Currency ???",
    ],
)
def test_what_the_plan_leaves_open_a_human_says(words: str) -> None:
    assert verdict(work=f"{READY.work} {words}")[0] == "NEEDS_CLARIFICATION"
    assert verdict(criteria=("`pytest` exits 0", words))[0] == "NEEDS_CLARIFICATION"


def test_code_asks_nothing() -> None:
    code = "```sql\nSELECT 1 WHERE a = ? -- TBD ??\n```\nUse `a ?? b`, or x?y=1 in the address."
    assert verdict(work=f"{READY.work}\n{code}") == ("IMPLEMENTABLE", ())


def test_with_nothing_to_go_by_a_human_is_asked() -> None:
    assert verdict(work="", criteria=())[0] == "NEEDS_CLARIFICATION"
    assert verdict(work="", criteria=("`a` exits 0",)) == ("NEEDS_EXPANSION", ("scope",))


@pytest.mark.parametrize("sign", ["`", "```\n", "a.", "a/", "- ", "?", "`a"])
def test_hostile_work_is_assessed(sign: str) -> None:
    assert assess(msgspec.structs.replace(READY, work=sign * 60_000), ()).task_id == "1"
