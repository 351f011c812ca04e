"""Test that names of folders and branches are safe and never shared."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock.system.errors import SourceError
from interlock_delivery.worktrees.names import folder_name, format_path

IDS = st.text(alphabet="aAbB01-._/#é\n ", min_size=1, max_size=12) | st.text(min_size=1)


@given(st.lists(IDS, unique=True, min_size=2, max_size=20))
def test_two_ids_never_share_a_folder(ids: list[str]) -> None:
    names = [folder_name(task_id) for task_id in ids]
    assert len(set(names)) == len(ids)
    assert len({name.lower() for name in names}) == len(ids)


@given(IDS)
def test_a_name_is_plain_and_does_not_change(task_id: str) -> None:
    name = folder_name(task_id)
    assert re.fullmatch(r"[a-z0-9][a-z0-9-]{0,59}", name)
    assert folder_name(task_id) == name


def test_a_name_made_of_an_id_is_not_the_id_of_another() -> None:
    assert folder_name("task-1") == "task-1"
    made = folder_name("Task/1")
    assert made.startswith("task-1-")
    assert folder_name(made) != made


@pytest.mark.parametrize("task_id", ["", "x" * 1_001])
def test_an_id_without_measure_is_refused(task_id: str) -> None:
    with pytest.raises(SourceError, match="a task id has"):
        folder_name(task_id)


def test_bytes_that_are_no_text_are_written_out() -> None:
    assert format_path(b"caf\xe9") == "caf\\xe9"
