"""Test both written forms of an epic, and texts that are not epics."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock.system.errors import SourceError
from interlock_epic.epic_file import EpicStory, EpicTask, EpicText, read_epic
from interlock_epic.status import Status

MARKDOWN = """\
# Epic 3: Boats and `more`

Status: in-progress

Some words, and a list:
- not a task

## Stories

### Story 3.1: Login #
Status: **done**

#### Acceptance Criteria
1. A sailor can log in.
2) Nobody else can.

#### Tasks / Subtasks
- [x] Task 1 (AC: 1)
  - [ ] Subtask 1.1
* [X] Task 2

```
### Story 9.9: in a fence
- [ ] no task
```

### Story 3.2: Logout
"""
YAML = """\
epic:
  id: epic-3
  title: Boats and `more`
  status: in-progress
stories:
  - id: 3-1
    title: Login
    status: completed
    acceptance_criteria: [A sailor can log in., Nobody else can.]
    tasks:
      - {text: "Task 1 (AC: 1)", done: true}
      - Subtask 1.1
      - {title: Task 2, status: done}
  - {id: 3-2, title: Logout}
"""
WANTED = EpicText(
    id="epic-3",
    title="Boats and `more`",
    status=Status.IN_PROGRESS,
    stories=(
        EpicStory(
            id="3-1",
            title="Login",
            status=Status.DONE,
            acceptance_criteria=("A sailor can log in.", "Nobody else can."),
            tasks=(
                EpicTask("Task 1 (AC: 1)", True),
                EpicTask("Subtask 1.1"),
                EpicTask("Task 2", True),
            ),
        ),
        EpicStory(id="3-2", title="Logout"),
    ),
)


def test_both_forms_say_the_same() -> None:
    assert read_epic(MARKDOWN, "docs/x.md") == WANTED
    assert read_epic(MARKDOWN.replace("\n", "\r\n"), "docs/x.md") == WANTED
    assert read_epic(YAML, "docs/x.yaml") == WANTED


def test_a_file_without_an_id_is_named_by_its_file_and_a_head_of_yaml_goes_first() -> None:
    plain = read_epic("# The sea\n## Story A-1: Waves\n", "docs/epics/sea.md")
    assert (plain.id, plain.title, plain.stories[0].id) == ("sea", "The sea", "A-1")
    headed = read_epic("---\nid: EPIC-002\nstatus: blocked\n---\n# Sea\n", "x.md")
    assert (headed.id, headed.title, headed.status) == ("EPIC-002", "Sea", Status.BLOCKED)
    assert read_epic("stories: [a, 2]\n", "some/x.yml").stories[1].id == "2"


def test_a_fence_ends_with_its_own_marks_only() -> None:
    epic = read_epic("# T\n## Story 1: a\n~~~\n```\n## Story 2: b\n~~~\n- [ ] do\n", "x.md")
    assert epic.stories == (EpicStory(id="1", title="a", tasks=(EpicTask("do"),)),)


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("", "x.md"),
        ("just words\n", "x.md"),
        ("# Epic ../x: y\n## Story 1: a\n## Story 1: b\n", "x.md"),
        ("[", "x.yaml"),
        ("stories: 7\n", "x.yaml"),
        ("stories: [{title: no id}]\n", "x.yaml"),
        ("stories: [[1]]\n", "x.yaml"),
        ("id: active\n", "x.yaml"),
        ("stories: ['a b']\n", "x.yaml"),
        ("# T\nStatus: banana\n", "x.md"),
        ("# T\n", "a b.md"),
    ],
)
def test_what_is_no_epic_is_told_with_its_file(text: str, name: str) -> None:
    with pytest.raises(SourceError, match=name.replace(".", r"\.")):
        read_epic(text, name)


@given(
    st.text(alphabet="#-[]x \n:Story1.Epic*`|é\t", max_size=200), st.sampled_from(["md", "yaml"])
)
def test_any_text_is_an_epic_or_is_told_to_be_none(text: str, ending: str) -> None:
    try:
        found = read_epic(text, f"x.{ending}")
    except SourceError:
        return
    assert found.id
    assert len({story.id for story in found.stories}) == len(found.stories)
