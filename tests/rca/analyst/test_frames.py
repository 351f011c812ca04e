"""Stack traces of many languages: each kind of line, chains of causes, and lines that are none."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock.rca.analyst.stack import MAX_LINES, Frame, read_frame, read_frames, read_traces


@pytest.mark.parametrize(
    ("line", "frame"),
    [
        ("\tat box.Lid.open(Lid.java:12)", Frame("box.Lid", "open", "Lid.java", 12)),
        ("\tat app//box.Lid.open(Lid.kt:12) ~[x.jar:1]", Frame("box.Lid", "open", "Lid.kt", 12)),
        ("\tat java.base/java.util.List.of(List.java)", Frame("java.util.List", "of", "List.java")),
        ("\tat box.Lid.peek(Native Method)", Frame("box.Lid", "peek")),
        ('  File "/b/lid.py", line 12, in open', Frame("", "open", "/b/lid.py", 12)),
        ('  File "/b/lid.py", line 12', Frame("", "", "/b/lid.py", 12)),
        ("tests/test_lid.py:12: in test_open", Frame("", "test_open", "tests/test_lid.py", 12)),
        ("tests/test_lid.py:12: AssertionError", Frame("", "", "tests/test_lid.py", 12)),
        ("    at Lid.open (/b/lid.js:3:14)", Frame("", "Lid.open", "/b/lid.js", 3)),
        ("    at async open (file:///b/lid.ts:3:14)", Frame("", "open", "/b/lid.ts", 3)),
        ("    at /b/lid.js:3:14", Frame("", "", "/b/lid.js", 3)),
        ("open@http://x/lid.js:3:14", Frame("", "open", "http://x/lid.js", 3)),
        ("   at Box.Lid.Open(Int32 n) in C:\\L.cs:line 7", Frame("Box.Lid", "Open", "C:/L.cs", 7)),
        ("   at Box.Lid.Open()", Frame("Box.Lid", "Open")),
        ("  # ./spec/lid_spec.rb:5:in `block in open'", Frame("", "open", "./spec/lid_spec.rb", 5)),
        ("box/lid.rb:5:in 'Lid#open'", Frame("", "Lid#open", "box/lid.rb", 5)),
        ("#0 /b/Lid.php(12): Lid->open(1)", Frame("", "Lid->open", "/b/Lid.php", 12)),
        ("#1  0x00f in Lid::open (this=0x0) at lid.cpp:12", Frame("", "Lid::open", "lid.cpp", 12)),
        ("    #2 0x4f in main /b/main.c:4:3", Frame("", "main", "/b/main.c", 4)),
        ("src/lid_test.cpp:14: Failure", Frame("", "", "src/lid_test.cpp", 14)),
        ("    lid_test.go:22: too heavy", Frame("", "", "lid_test.go", 22)),
        ("thread 'x' panicked at src/lid.rs:12:5:", Frame("", "", "src/lid.rs", 12)),
    ],
)
def test_a_frame(line: str, frame: Frame) -> None:
    assert read_frame(line) == frame


@pytest.mark.parametrize(
    "line", ["at once (really)", "File not found", "", "12:30 tea", "a" * 9999, "v1.2:3", "x.y:1:"]
)
def test_no_frame(line: str) -> None:
    assert read_frame(line) is None


def test_the_function_of_go_and_rust_stands_above() -> None:
    go = "goroutine 1 [running]:\nbox.(*Lid).Open(0xc0, 0x3)\n\t/b/lid.go:31 +0x1d\n"
    assert read_frames(go) == (Frame("box.(*Lid)", "Open", "/b/lid.go", 31),)
    rust = "   1: box::lid::open\n             at ./src/lid.rs:12:5\n"
    assert read_frames(rust) == (Frame("box.lid", "open", "./src/lid.rs", 12),)


def test_python_prints_the_innermost_last() -> None:
    text = 'Traceback:\n  File "a.py", line 1, in a\n  File "b.py", line 2, in b\nValueError: no\n'
    (trace,) = read_traces(text)
    assert (trace.type, trace.message) == ("ValueError", "no")
    assert [frame.function for frame in trace.frames] == ["b", "a"]


def test_the_root_cause_comes_first() -> None:
    java = (
        "a.OuterException: x\n\tat a.B.c(B.java:1)\n"
        "Caused by: a.InnerException: y\n\tat a.D.e(D.java:2)\n"
    )
    assert [trace.type for trace in read_traces(java)] == ["a.InnerException", "a.OuterException"]
    assert [frame.function for frame in read_frames(java)] == ["e", "c"]
    python = (
        'Traceback:\n  File "a.py", line 1, in a\nKeyError: 1\n\n'
        "During handling of the above exception, another exception occurred:\n\n"
        'Traceback:\n  File "b.py", line 2, in b\nBoxError: shut\n'
    )
    assert [trace.type for trace in read_traces(python)] == ["KeyError", "BoxError"]


def test_a_frame_counts_once() -> None:
    assert len(read_frames("\tat box.Lid.open(Lid.java:12)\n" * 90)) == 1


def test_an_endless_trace_is_read_from_both_ends() -> None:
    lines = [f"\tat box.Lid.n{number}(Lid.java:1)" for number in range(3 * MAX_LINES)]
    names = [frame.function for frame in read_frames("\n".join(lines))]
    assert (len(names), names[0], names[-1]) == (MAX_LINES, "n0", f"n{3 * MAX_LINES - 1}")


def test_a_place_is_the_same_wherever_the_code_is_checked_out() -> None:
    assert Frame("box.Lid", "open", "Lid.java", 1).place == Frame("box.Lid", "open", "", 9).place
    assert Frame("", "open", "/a/lid.py", 1).place == Frame("", "open", "/b/c/lid.py", 2).place


@given(st.text())
def test_any_text_is_read(text: str) -> None:
    assert len(read_frames(text)) <= text.count("\n") + 1


SHOWN = """\
def test_sail():
>       sail(3)

tests/test_boat.py:4:
_ _ _ _ _ _ _ _ _ _

    def sail(knots):
        def reef():
            pass
>       raise Storm(knots)
E       rig.Storm: 3

rig/sail.py:9: Storm
"""


def test_a_trace_with_its_source_is_told_from_outside_in() -> None:
    found = [(frame.file, frame.line, frame.function) for frame in read_frames(SHOWN)]
    assert found == [("rig/sail.py", 9, "sail"), ("tests/test_boat.py", 4, "test_sail")]


@pytest.mark.parametrize(("broke", "first"), [("NameError: drop", "b.py"), ("Sunk: now", "a.py")])
def test_a_handler_that_breaks_is_where_it_broke(broke: str, first: str) -> None:
    text = (
        "a.py:1: in sail\nE   ValueError: storm\n\n"
        "During handling of the above exception, another exception occurred:\n"
        f"b.py:2: in rescue\nE   {broke}\n"
    )
    assert read_frames(text)[0].file == first
