"""Test findings about plans, testable criteria, and readiness of tasks."""

from pathlib import Path

import msgspec
import pytest

from interlock_delivery.checks.records import Check, Environment
from interlock_delivery.plan.check import (
    MOST_CYCLES,
    assess_task,
    check_plan,
    has_errors,
    is_placeholder,
    is_too_short,
)
from interlock_delivery.plan.markdown import read_markdown
from interlock_delivery.plan.plan import Phase, Plan, PlanFinding, Task

GOLDEN = (Path(__file__).parent / "golden" / "plan.md").read_text(encoding="utf-8")
TESTS = Check("Tests", ("pytest",))
BOXED = Check("Tests", ("pytest",), "Box")
BOX = (Environment("Box"),)


def task(name: str, *blocked_by: str, line: int = 7, **fields: object) -> Task:
    given = {"title": "T", "work": "Do it.", "criteria": ("`x` exits 0",), **fields}
    return Task(name, blocked_by=blocked_by, line=line, **given)  # type: ignore[arg-type]


def found(*tasks: Task, **fields: object) -> tuple[PlanFinding, ...]:
    given = {"title": "P", "checks": (TESTS,), **fields}
    return check_plan(Plan(tasks=tasks, **given))  # type: ignore[arg-type]


def brief(findings: tuple[PlanFinding, ...]) -> list[tuple[str, str, str]]:
    return [(finding.level, finding.code, finding.task_id) for finding in findings]


def test_the_golden_plan_is_fit() -> None:
    assert check_plan(read_markdown(GOLDEN)) == ()


@pytest.mark.parametrize(
    ("tasks", "expected"),
    [
        ([task("a"), task("b", "a")], []),
        ([], [("error", "plan.no-tasks", "")]),
        ([task("a b")], [("error", "task.illegal-id", "a b")]),
        ([task("../a")], [("error", "task.illegal-id", "../a")]),
        ([task("a" * 129)], [("error", "task.illegal-id", "a" * 129)]),
        ([task("")], [("error", "task.illegal-id", "")]),
        ([task("None")], [("error", "task.illegal-id", "None")]),
        ([task("a"), task("a", line=9)], [("error", "task.duplicate", "a")]),
        ([task("a"), task("A", line=9)], [("error", "task.look-alike", "A")]),
        ([task("a"), task("b", "c")], [("error", "task.unknown-blocker", "b")]),
        ([task("a"), task("b", "b")], [("error", "plan.cycle", "b")]),
        ([task("a", criteria=())], [("error", "criteria.missing", "a")]),
        ([task("a", criteria=("[what]",))], [("error", "criteria.placeholder", "a")]),
        ([task("a", criteria=("TBD",))], [("error", "criteria.placeholder", "a")]),
        ([task("a", criteria=("Done",))], [("warning", "criteria.short", "a")]),
        ([task("a", work="")], [("warning", "task.no-work", "a")]),
        ([task("a", title="")], [("warning", "task.no-title", "a")]),
        ([task("a", environment="Mac")], [("warning", "environment.unknown", "a")]),
        ([task("a", target_files=("../b",))], [("error", "task.file-outside", "a")]),
        ([task("a", target_files=("/etc/passwd",))], [("error", "task.file-outside", "a")]),
    ],
)
def test_tasks(tasks: list[Task], expected: list[tuple[str, str, str]]) -> None:
    findings = found(*tasks)
    assert brief(findings) == expected
    assert has_errors(findings) == any(level == "error" for level, *_ in expected)
    assert all(finding.line == tasks[-1].line for finding in findings if tasks)
    assert all(";" in finding.sentence for finding in findings), "it says what to do"


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"checks": ()}, ("error", "plan.no-checks", "")),
        ({"title": ""}, ("warning", "plan.no-title", "")),
        ({"phases": (Phase("9"),)}, ("warning", "phase.empty", "")),
        ({"checks": (TESTS, TESTS)}, ("error", "check.duplicate", "")),
        ({"checks": (TESTS, BOXED), "environments": BOX}, ("error", "check.duplicate", "")),
        ({"checks": (BOXED, TESTS), "environments": BOX}, ("error", "check.duplicate", "")),
        ({"checks": (Check("T", ("x",), "Box"),)}, ("error", "environment.unknown", "")),
        (
            {"environments": (Environment("Box"), Environment("Box"))},
            ("error", "environment.duplicate", ""),
        ),
    ],
)
def test_the_plan(fields: dict[str, object], expected: tuple[str, str, str]) -> None:
    assert brief(found(task("a"), **fields)) == [expected]


def test_untestable_tasks_can_be_allowed() -> None:
    tasks = (task("a", criteria=()), task("b", criteria=("TODO",)))
    plan = Plan(title="P", tasks=tasks, checks=(TESTS,))
    assert brief(check_plan(plan, allow_untestable=True)) == [
        ("warning", "criteria.missing", "a"),
        ("warning", "criteria.placeholder", "b"),
    ]


def test_nothing_can_start() -> None:
    findings = found(task("a", "b"), task("b", "a"))
    assert brief(findings) == [
        ("error", "plan.nothing-startable", ""),
        ("error", "plan.cycle", "a"),
    ]
    assert findings[1].path == ("a", "b")
    assert "a → b → a" in findings[1].sentence


def test_a_near_miss_is_named() -> None:
    (finding,) = found(task("1-auth-1"), task("b", "1-auth1"))
    assert finding.sentence.endswith("did you mean '1-auth-1'?")
    (finding,) = found(task("a", environment="mac"), environments=(Environment("Mac"),))
    assert finding.level == "error"
    assert finding.sentence.endswith("did you mean 'Mac'?")


def test_remarks_of_the_reader_are_findings() -> None:
    plan = read_markdown("# P\n## Checks\n|Check|Command|\n|-|-|\n|a|x && y|\n|b|c|\n")
    assert [finding.code for finding in check_plan(plan)] == ["plan.no-tasks", "table.row"]


def test_many_cycles_are_counted_and_a_long_one_is_shortened() -> None:
    everybody = [f"t{at}" for at in range(30)]
    findings = found(*(task(name, *everybody) for name in everybody))
    cycles = [finding for finding in findings if finding.code == "plan.cycle"]
    assert len(cycles) == MOST_CYCLES
    assert any("30 tasks are part" in finding.sentence for finding in findings)
    ring = [task(f"t{at}", f"t{(at + 1) % 5000}") for at in range(5000)]
    (cycle,) = (finding for finding in found(*ring) if finding.code == "plan.cycle")
    assert len(cycle.path) == 5000
    assert "t5 → … 4989 more … → t4995" in cycle.sentence
    assert len(cycle.sentence) < 400


def test_five_thousand_tasks_in_a_chain_are_no_problem() -> None:
    chain = [task(f"t{at}", *([f"t{at - 1}"] if at else [])) for at in range(5000)]
    assert found(*chain) == ()


def test_a_criterion_that_names_nothing_needs_some_words() -> None:
    enough = ("`pytest`", "README.md exists", "200 ms", "`make` passes", "Users can log out")
    assert not any(map(is_too_short, enough))
    assert all(map(is_too_short, ("Done", "It works", "")))


@pytest.mark.parametrize("text", ["[criterion]", "<what>", "...", "TODO", "TBD.", "[ ]", "{{x}}"])
def test_placeholders(text: str) -> None:
    assert is_placeholder(text)


@pytest.mark.parametrize("sign", ["[", "“", "`", "a.", "'", "{", "-a", "A_", "works "])
def test_hostile_text_is_judged(sign: str) -> None:
    is_too_short(sign * 50_000)
    assert not is_placeholder(sign * 50_000)


READY = Task(
    "1",
    "Keep loans",
    work="Add a table `loans` to the schema, and open it when the desk starts.",
    criteria=("`pytest` exits 0",),
    blocked_by=("0",),
    reading=("docs/a.md",),
)


def verdict(**changes: object) -> tuple[str, tuple[str, ...]]:
    found = assess_task(msgspec.structs.replace(READY, **changes), {"0", "1"})
    assert bool(found.reasons) == (found.verdict != "IMPLEMENTABLE")
    return found.verdict, found.missing


def test_ready() -> None:
    assert verdict() == ("IMPLEMENTABLE", ())


@pytest.mark.parametrize(
    ("changes", "missing"),
    [
        ({"work": "Loans."}, ("scope",)),
        ({"criteria": ("It works",)}, ("criteria",)),
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
    ["Which limit applies?", "**Who may do this?**", "`GET /a?b=1` answers 200, or 404?"],
)
def test_a_criterion_that_asks_is_for_a_human(words: str) -> None:
    assert verdict(criteria=("`pytest` exits 0", words)) == ("NEEDS_CLARIFICATION", ())


@pytest.mark.parametrize(
    "words",
    [
        "Why CSV? Because the accountant reads it.",
        "The limit is TBD.",
        "Ask the product owner which fields are needed.",
        "`SELECT 1 WHERE a = ?`",
        "Open `/a?b=1` in the browser",
    ],
)
def test_everything_else_that_is_open_is_left_to_agents(words: str) -> None:
    assert verdict(criteria=("`pytest` exits 0", words)) == ("IMPLEMENTABLE", ())
    assert verdict(work=f"{READY.work} {words} Really?") == ("IMPLEMENTABLE", ())
    assert verdict(title="Why not?") == ("IMPLEMENTABLE", ())


def test_a_task_of_which_nothing_is_said_is_expanded() -> None:
    assert verdict(work="", criteria=())[0] == "NEEDS_EXPANSION"
    assert verdict(work="", criteria=("`a` exits 0",)) == ("NEEDS_EXPANSION", ("scope",))


@pytest.mark.parametrize("sign", ["`", "```\n", "a.", "a/", "- ", "?", "`a"])
def test_hostile_work_is_assessed(sign: str) -> None:
    assert assess_task(msgspec.structs.replace(READY, work=sign * 60_000), ()).task_id == "1"
