"""Stack frames of many languages, and whose they are."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock.analyst.frames import Frame, frames, own_frames


@pytest.mark.parametrize(
    ("line", "frame"),
    [
        ('  File "/srv/box/lid.py", line 12, in open', Frame("open", "/srv/box/lid.py", 12)),
        ("\tat box.Lid.open(Lid.java:12)", Frame("box.Lid.open", "Lid.java", 12)),
        (
            "\tat java.util.List.of(List.java:9)",
            Frame("java.util.List.of", "List.java", 9, own=False),
        ),
        (
            "\tat box.Lid.native(Native Method)",
            Frame("box.Lid.native", "Native Method", 0),
        ),
        (
            "   at Box.Lid.Open() in C:\\b\\Lid.cs:line 7",
            Frame("Box.Lid.Open()", "C:\\b\\Lid.cs", 7),
        ),
        ("    at Lid.open (/srv/box/lid.js:3:14)", Frame("Lid.open", "/srv/box/lid.js", 3)),
        ("    at /srv/box/lid.js:3:14", Frame("", "/srv/box/lid.js", 3)),
        (
            "    at run (/srv/node_modules/kit/run.js:3:14)",
            Frame("run", "/srv/node_modules/kit/run.js", 3, own=False),
        ),
        ("box/lid.rb:5:in `open'", Frame("open", "box/lid.rb", 5)),
        ("\t/srv/box/lid.go:31 +0x1d", Frame("", "/srv/box/lid.go", 31)),
        ("tests/test_lid.py:12: AssertionError", Frame("", "tests/test_lid.py", 12)),
        (
            '  File "/usr/lib/python3.11/unittest/case.py", line 58, in run',
            Frame("run", "/usr/lib/python3.11/unittest/case.py", 58, own=False),
        ),
    ],
)
def test_a_frame(line: str, frame: Frame) -> None:
    assert frames(f"Traceback\n{line}\nend") == [frame]
    assert own_frames(line) == ([frame] if frame.own else [])


@pytest.mark.parametrize(
    "line", ["at once (really)", "File not found", "", "12:30 tea", "a" * 9999]
)
def test_no_frame(line: str) -> None:
    assert frames(line) == []


def test_no_more_than_asked_for() -> None:
    assert len(frames("\tat box.Lid.open(Lid.java:12)\n" * 90, most=7)) == 7


@given(st.text())
def test_any_text_is_read(text: str) -> None:
    assert len(frames(text)) <= text.count("\n") + 1
