"""Test plan files that are not text or too large, and texts that are slow to read."""

import os
from pathlib import Path

import pytest

from interlock.system.errors import SourceError
from interlock_delivery.plan import MOST, read_plan
from interlock_delivery.plan.plan import Plan


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"# P\n\xff\xfe\n", ":2: this is not UTF-8; save the plan as UTF-8"),
        (
            "# P\n".encode("utf-16"),
            ":1: there is a NUL byte, so this is not text; save it as UTF-8",
        ),
        (b"# P\n\nx\0y", ":3: there is a NUL byte, so this is not text; save it as UTF-8"),
        (
            b"#" * (MOST + 1),
            " is larger than the 10,000,000 bytes a plan may have; split it",
        ),
    ],
    ids=["latin", "utf-16", "nul", "large"],
)
def test_no_text_or_too_much_of_it(tmp_path: Path, content: bytes, problem: str) -> None:
    file = tmp_path / "plan.md"
    file.write_bytes(content)
    with pytest.raises(SourceError) as raised:
        read_plan(file)
    assert str(raised.value) == f"{file}{problem}"


def test_no_file(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "loop").symlink_to("loop")
    for name, problem in (
        ("gone.md", "does not exist; name the file that holds the plan"),
        (".", "is a folder; name the file that holds the plan"),
        ("pipe", "is not a regular file; name the file that holds the plan"),
        ("loop", "cannot be read: Too many levels of symbolic links"),
        ("n" * 300, "cannot be read: File name too long"),
    ):
        with pytest.raises(SourceError) as raised:
            read_plan(tmp_path / name)
        assert str(raised.value) == f"{tmp_path / name} {problem}"


@pytest.mark.parametrize(
    "piece",
    [
        *(
            "#",
            "# ",
            "*",
            "`",
            "```\n",
            "|",
            "| a ",
            "- ",
            "[",
            "<!--",
            "\t",
            " ",
            "**Work**:",
            "\r",
        ),
        *(
            "# Task 1: a\n",
            "## Phase 1\n",
            "- [ ] a\n",
            "\\|",
            "a.",
            "~~~\n",
            "Work: x\n",
            "a, ",
            "((",
        ),
    ],
)
def test_a_lot_of_anything_is_read_in_one_go(tmp_path: Path, piece: str) -> None:
    """Test that no part of the reader is slower than linear."""
    heads = [
        "# P\n## Verification Commands\n|Check|Command|\n|-|-|\n",
        "# Task 1: A\n**Criteria**: ",
    ]
    if not piece.endswith(("\n", "\r")):  # else only the first line differs
        heads += ["# Task ", "# Task 1: A\n**Blocked By**: ", "# Task 1: A\n**Files**: "]
    file = tmp_path / "plan.md"
    for head in heads:
        file.write_text(head + piece * (200_000 // len(piece)), encoding="utf-8")
        assert isinstance(read_plan(file), Plan)
