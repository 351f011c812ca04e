"""Test plans as people write them, and the law that any text is read as a plan."""

import string
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock_delivery.plan.markdown import read_markdown
from interlock_delivery.plan.plan import Plan, Task

GOLDEN = (Path(__file__).parent / "golden" / "plan.md").read_text(encoding="utf-8")
SIGNS = string.ascii_letters + string.digits + " .,:;#*_`|<>[](){}-+!?/\\\"'&$~=é→\u2028\x85\xa0\t"
LOUD = (
    "#### Task 1-1: no task at all",
    "## Verification Commands",
    "### Phase 9: none",
    "**Work**: again",
    "Blocked By: 1-1-1",
    "**Notes**: of ours",
    "---",
    "***",
    "```",
    "~~~~",
    "```python",
    "    code",
    "\tcode",
    "<!-- a comment",
    "-->",
    "<!-- whole -->",
    "- [ ] a point",
    "| Check | Command |",
    "Words.",
    "",
    "\ufeff",
)
WORDS = st.text(SIGNS, max_size=30)
LINES = st.lists(st.one_of(st.sampled_from(LOUD), WORDS), max_size=8).map("\n".join)


def one(body: str, head: str = "#### Task 1: One") -> Task:
    (task,) = read_markdown(f"{head}\n{body}\n").tasks
    return task


def without_lines(plan: Plan) -> object:
    """Return the plan without line numbers, which blank lines and comments change."""
    facts = msgspec.to_builtins(plan)
    for each in (*facts["phases"], *facts["tasks"], *facts["checks"], *facts["environments"]):
        del each["line"]
    return facts


def codes(plan: Plan) -> list[str]:
    return [remark.code for remark in plan.remarks]


def test_the_golden_plan() -> None:
    plan = read_markdown(GOLDEN)
    assert plan.title == "A lending desk for the library"
    assert plan.overview.endswith("- No network: one SQLite file.")
    assert [phase.label for phase in plan.phases] == ["Phase 1: Loans", "Phase 2: The desk"]
    assert plan.phases[0].overview == "The smallest thing a librarian can use."
    assert [task.id for task in plan.tasks] == ["1-1-1", "1-1-2", "2-1-1", "2-1-2"]
    assert [task.phase for task in plan.tasks] == ["1", "1", "2", "2"]
    assert [GOLDEN.split("\n")[task.line - 1][:10] for task in plan.tasks] == ["#### Task "] * 4
    first, *_, last = plan.tasks
    assert first.work.startswith("Add a table `loans`")
    assert "#### Task 9-9-9" in first.work
    assert first.criteria[2] == "Opening twice raises nothing"
    assert first.reading == ("docs/catalogue.md (how copies are numbered)", "docs/decisions/*.md")
    assert first.target_files == ("lending/schema.sql", "lending/desk.py")
    assert (first.environment, last.environment) == ("Desk", "")
    assert last.blocked_by == ("1-1-2", "2-1-1")
    assert [environment.prefix for environment in plan.environments] == [
        (),
        ("docker", "compose", "exec", "app"),
    ]
    assert [(check.name, check.environment, check.exit_code) for check in plan.checks] == [
        ("Unit Tests", "", 0),
        ("Type Check", "Desk", 0),
        ("No Prints", "Desk", 1),
    ]
    assert plan.checks[2].command[2] == r"print\(|breakpoint\("
    assert plan.remarks == ()


@pytest.mark.parametrize(
    "change",
    [
        lambda text: text.replace("\n", "\r\n"),
        lambda text: "\ufeff" + text,
        lambda text: text.replace("\n#### ", "\n## ").replace("\n### ", "\n# "),
        lambda text: text.replace("\n#### ", "\n###### ").replace("\n### ", "\n##### "),
        lambda text: text.replace("\n#### Task", "\n####Task"),
        lambda text: text.replace("**", ""),
        lambda text: text.replace("**:", ":**"),
        lambda text: text.replace("**", "__"),
        lambda text: text.replace("\n---\n", "\n"),
        lambda text: text.replace("\n---\n", "\n* * *\n"),
        lambda text: text.replace("- [ ]", "* [x]"),
        lambda text: text.replace("- [ ]", "1."),
        lambda text: text.replace("- [ ]", "-"),
        lambda text: text.replace("\n", "  \n"),
        lambda text: text.replace("#### Task 1-1-1: ", "#### **Task 1-1-1**: "),
        lambda text: text.replace("#### Task 1-1-1: ", "#### Task `1-1-1` - "),
        lambda text: text.replace("**Blocked By**: 1-1-1", "- **Depends on**: Task 1-1-1."),
        lambda text: text.replace("1-1-2, 2-1-1", "\n- 1-1-2 (lending)\n- `2-1-1`\n"),
        lambda text: text.replace("**Acceptance Criteria**:", "##### Acceptance Criteria"),
        lambda text: text.replace("**Target Files**", "**Files**"),
        lambda text: text.replace("**Environment**:\n", "**Environment**: all\n"),
        lambda text: text.replace("| Check | Environment |", "|Check|  ENVIRONMENT  |"),
        lambda text: text + "\n## Notes\n\n#hashtag\n\nThanks!\n",
        lambda text: text + "\n<!--\n#### Task 7: hidden\n-->\n",
    ],
)
def test_the_same_plan_in_other_hands(change: "object") -> None:
    assert callable(change)
    changed = change(GOLDEN)
    assert changed != GOLDEN
    assert without_lines(read_markdown(changed)) == without_lines(read_markdown(GOLDEN))


def test_fields_come_in_any_order_and_may_be_missing() -> None:
    task = one("**Environment**: Mac\n**Blocked By**: none\n**Work**: Do it.\n\nWith care.")
    assert task == Task("1", "One", work="Do it.\n\nWith care.", environment="Mac", line=1)


def test_a_heading_inside_a_fence_is_no_task() -> None:
    for fence in ("```", "~~~~", "- ```", "  ```md"):
        marks = fence.strip(" -md")
        plan = read_markdown(f"# Task 1: A\n{fence}\n# Task 2: B\n**Work**: x\n{marks}\n")
        assert [task.id for task in plan.tasks] == ["1"], fence
        assert "# Task 2: B" in plan.tasks[0].work


def test_code_within_a_line_opens_no_fence() -> None:
    plan = read_markdown("# Task 1: A\n```x``` is code\n# Task 2: B\n")
    assert [task.id for task in plan.tasks] == ["1", "2"]


def test_a_field_may_be_a_heading_as_high_as_its_task() -> None:
    task = one("#### Work\nDo.\n#### Acceptance Criteria:\n- a 1\n#### Thanks\nto all")
    assert (task.work, task.criteria) == ("Do.", ("a 1",))


def test_a_fence_in_a_list_ends_with_its_point() -> None:
    plan = read_markdown("# Task 1: A\n- do\n     ```\n     # Task 2: B\n\n# Task 3: C\n")
    assert [task.id for task in plan.tasks] == ["1", "3"]


@pytest.mark.parametrize(("mark", "code"), [("```", "fence"), ("<!--", "comment")])
def test_what_is_never_closed_is_an_error_that_names_its_line(mark: str, code: str) -> None:
    plan = read_markdown(f"# Task 1: A\n{mark}\n# Task 2: B\n")
    assert [task.id for task in plan.tasks] == ["1"]
    (remark,) = plan.remarks
    assert (remark.level, remark.code, remark.line) == ("error", f"text.unclosed-{code}", 2)


@pytest.mark.parametrize(
    ("heading", "name", "title"),
    [
        ("Task 1-1-1: Title", "1-1-1", "Title"),
        ("TASK t1:Title", "t1", "Title"),
        ("**Task 1: Title**", "1", "Title"),
        ("Task task-1.2.3 \u2014 Title: more ##", "task-1.2.3", "Title: more"),
        ("Task 3", "3", ""),
        ("Task 3 Port to C#", "3", "Port to C#"),
        ("Task [1]: Title", "[1]", "Title"),
        ("Task a b: Title", "a b", "Title"),
        ("Task: Title", "", "Title"),
        ("Task auth/1#2: Use `a: b`", "auth/1#2", "Use `a: b`"),
    ],
)
def test_headings_of_tasks(heading: str, name: str, title: str) -> None:
    task = one("", f"### {heading}")
    assert (task.id, task.title) == (name, title)


def test_a_heading_that_is_no_task_is_remarked_upon() -> None:
    plan = read_markdown("# P\n## Tasks\n## Task breakdown\n### Task 1: A\n")
    assert [task.id for task in plan.tasks] == ["1"]
    assert codes(plan) == ["task.unread"]
    assert "'Task breakdown' is not read as a task" in plan.remarks[0].sentence


@pytest.mark.parametrize(
    ("written", "ids"),
    [
        ("none", ()),
        ("None.", ()),
        ("n/a", ()),
        ("-", ()),
        ("", ()),
        ("<!-- ids or none -->", ()),
        ("1-1, 1-2", ("1-1", "1-2")),
        ("1-1; 1-2 and Task 1-3", ("1-1", "1-2", "1-3")),
        ("`1-1` (the schema), **1-2**", ("1-1", "1-2")),
        ("[1-1](#task-1-1), 1-1", ("1-1",)),
        ("\n- 1-1\n- 1-2", ("1-1", "1-2")),
        ("the schema task", ("the schema task",)),
    ],
)
def test_blockers(written: str, ids: tuple[str, ...]) -> None:

    assert one(f"**Blocked By**: {written}").blocked_by == ids


@pytest.mark.parametrize(
    ("written", "criteria"),
    [
        ("- [ ] a\n- [x] b", ("a", "b")),
        ("* a\n+ b\n1. c\n2) d", ("a", "b", "c", "d")),
        ("- a\n  goes on\n- b", ("a goes on", "b")),
        ("- a\ngoes on", ("a goes on",)),
        ("- a\n    - detail\n    - more\n- b", ("a; detail; more", "b")),
        ("- [ ] a\n    - [ ] its own\n- [ ] b", ("a", "its own", "b")),
        ("All of these:\n\n- a\n- b", ("a", "b")),
        ("The tests pass.\n\nThe page loads.", ("The tests pass.", "The page loads.")),
        ("- **Bold**: text", ("**Bold**: text",)),
        ("It must hold that:\n\nthe page loads", ("It must hold that:", "the page loads")),
        ("none", ()),
        ("[ ] a box", ("a box",)),
        ("- [ ] [what must be true]", ("[what must be true]",)),
    ],
)
def test_criteria(written: str, criteria: tuple[str, ...]) -> None:
    assert (
        one(f"**Acceptance Criteria**:\n\n{written}\n\n**Blocked By**: none").criteria == criteria
    )


def test_what_belongs_to_no_field_belongs_to_the_work() -> None:
    task = one(
        "Begin.\n\n**Blocked By**: none\n\n**Priority**: high\n\n**Acceptance Criteria**:\n- a 1\n"
        "\n##### Notes\n\nMind the gap."
    )
    assert task.work == "Begin.\n\n**Priority**: high\n\n##### Notes\n\nMind the gap."
    assert task.criteria == ("a 1",)


def test_a_plain_word_is_a_label_once_and_a_bold_one_twice_is_told() -> None:
    task = one("Work: do\nEnvironment: Mac\n\n**Work**:\nEnvironment: production is next.")
    assert task.environment == "Mac"
    assert task.work.endswith("Environment: production is next.")
    plan = read_markdown("# Task 1: A\n**Files**: a.py\n**Files**: b.py\n")
    assert plan.tasks[0].target_files == ("a.py", "b.py")
    assert codes(plan) == ["task.field-twice"]


def test_paths_lose_their_markup_and_files_their_notes() -> None:
    task = one(
        "**Required Reading**: `a.md` (all, twice), [The guide](docs/guide.md)\n"
        "**Files**:\n- `src/a b.py` (new)\n- src/**/*.ts - all of them"
    )
    assert task.reading == ("a.md (all, twice)", "docs/guide.md (The guide)")
    assert task.target_files == ("src/a b.py", "src/**/*.ts")


def test_a_phase_without_a_number_gets_one() -> None:
    plan = read_markdown("## Phase: Base\n## Phase Two - More\n## Phases of the moon\n")
    assert [(phase.id, phase.name) for phase in plan.phases] == [("1", "Base"), ("Two", "More")]


def test_a_plan_without_headings_is_an_overview() -> None:
    assert read_markdown("Just\nwords.") == Plan(overview="Just\nwords.")
    assert read_markdown("") == Plan()


@given(LINES)
def test_any_text_is_read_as_a_plan(text: str) -> None:
    plan = read_markdown(text)
    assert all(1 <= task.line <= text.count("\n") + 1 for task in plan.tasks)
