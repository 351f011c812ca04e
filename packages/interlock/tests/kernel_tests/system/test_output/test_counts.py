"""Console lines: what is taken off, and that no line is too long."""

import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock.system.test_output.counts import read_lines, strip_console
from interlock.system.text import strip_colours


@pytest.mark.parametrize(
    ("line", "left"),
    [
        ("2024-01-02T03:04:05.1234567Z   indented", "  indented"),
        ("[INFO] [error] both", "both"),
        ("    [junit] \tat x", "\tat x"),
        ("\x1b[1;31mred\x1b[0m  ", "red"),
        ("\x1b]0;title\x07text", "text"),
        ("nothing 2024-01-02T03:04:05Z", "nothing 2024-01-02T03:04:05Z"),
        ("", ""),
    ],
)
def test_bare(line: str, left: str) -> None:
    assert strip_console(line) == left


@given(st.text(alphabet="\x1b[]0;m\x07ab"))
def test_plain_leaves_no_colour(text: str) -> None:
    assert "\x1b[31m" not in strip_colours(f"{text} \x1b[31mx")


@given(st.lists(st.text(alphabet="ab \0é"), min_size=1))
def test_lines_are_numbered_as_line_ends_say(lines: list[str]) -> None:
    text = "".join(f"{line}\n" for line in lines)
    assert list(read_lines(io.BytesIO(text.encode()))) == lines


def test_a_line_without_end_is_cut() -> None:
    file = io.BytesIO(b"a" * 1_000_000 + b"\nb\n" + b"\xff\xfe\0")
    assert list(read_lines(file, limit=10)) == ["a" * 10, "b", "\ufffd\ufffd\0"]
