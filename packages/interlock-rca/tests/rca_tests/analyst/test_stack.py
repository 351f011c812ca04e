"""Stack traces of many languages: each kind of line, chains of causes, and lines that are none.

Whose code a frame is, by where it lies and how it is named.

Frames and words are found in whichever part a tool wrote them.
"""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock_rca.analyst.similarity import compare_failures, extract_traits
from interlock_rca.analyst.stack import (
    MAX_LINES,
    Frame,
    extract_message,
    filter_own_frames,
    find_frames,
    find_owner,
    is_test_name,
    read_frame,
    read_frames,
    read_traces,
)
from interlock_rca.analyst.triage import triage_failure
from interlock_rca.records import Failure
from rca_tests.analyst.failing import FAILURES


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


@pytest.mark.parametrize(
    ("frame", "whose"),
    [
        (Frame("box.Lid", "open", "Lid.java"), "product"),
        (Frame("box.LidTest", "opens", "LidTest.java"), "test"),
        (Frame("box.TestLid", "opens", "TestLid.java"), "test"),
        (Frame("box.LidTest$Inner", "opens", "LidTest.java"), "test"),
        (Frame("box.Latest", "open", "Latest.java"), "product"),
        (Frame("box.Unit", "open", "Unit.java"), "product"),
        (Frame("java.util.List", "of", "List.java"), "library"),
        (Frame("org.junit.Assert", "fail", "Assert.java"), "library"),
        (Frame("", "open", "/b/src/box/lid.py"), "product"),
        (Frame("", "test_open", "/b/tests/test_lid.py"), "test"),
        (Frame("", "opens", "/b/src/lid.spec.ts"), "test"),
        (Frame("", "TestOpen", "/b/lid_test.go"), "test"),
        (Frame("", "run", "/usr/lib/python3.11/unittest/case.py"), "library"),
        (Frame("", "run", "/b/.venv/lib/python3.12/site-packages/kit/run.py"), "library"),
        (Frame("", "run", "/b/node_modules/kit/run.js"), "library"),
        (Frame("", "run", "node:internal/process"), "library"),
        (Frame("testing", "tRunner", "/usr/local/go/src/testing/testing.go"), "library"),
        (Frame("", "run", "/home/u/.cargo/registry/src/kit/run.rs"), "library"),
    ],
)
def test_owner(frame: Frame, whose: str) -> None:
    assert find_owner(frame) == whose


def test_the_makers_of_a_library_own_it() -> None:
    frame = Frame("org.mockito.Answers", "get", "Answers.java")
    assert find_owner(frame, "box.LidTest") == "library"
    assert find_owner(frame, "org.mockito.AnswersTest") == "product"
    assert find_owner(frame, "org.mockitoplus.AnswersTest") == "product"
    assert find_owner(Frame("java.util.List"), "org.mockito.AnswersTest") == "library"


def test_frames_of_ones_own() -> None:
    lid, test, list_ = Frame("box.Lid"), Frame("box.LidTest"), Frame("java.util.List")
    assert filter_own_frames([list_, lid, test]) == (lid, test)


@pytest.mark.parametrize(
    ("name", "is_test"),
    [
        ("box.LidTest", True),
        ("box.Lid", False),
        ("src/test/java/box/LidTest.java", True),
        ("src/main/java/box/Lid.java", False),
        ("lib/lid_spec.rb", True),
        ("lid_test.go", True),
        ("test_lid.py", True),
        ("lid.go", False),
        ("latest.go", False),
    ],
)
def test_names_of_tests(name: str, is_test: bool) -> None:
    assert is_test_name(name) is is_test


JAVA = (
    "a.OddError: lid is shut\n\tat box.Lid.open(Lid.java:3)\nCaused by: a.Rust: hinge\n\t... 2 more"
)


def test_frames_of_the_stack_or_else_of_the_message() -> None:
    of_stack = find_frames(Failure(id="1", stack=JAVA, message="at x (y.js:1:2)"))
    assert [frame.function for frame in of_stack] == ["open"]
    assert find_frames(Failure(id="1", message=JAVA)) == of_stack


@pytest.mark.parametrize(
    ("kind", "message", "stack", "words"),
    [
        ("a.OddError", "lid is shut", JAVA, "lid is shut\nCaused by: a.Rust: hinge"),
        ("a.OddError", "", "a.OddError\n\tat box.Lid.open(Lid.java:3)", ""),
        (
            "",
            "Failed",
            "=== RUN TestLid\n    lid_test.go:4: Lids() = 3, want 2",
            "Failed\nlid_test.go:4: Lids() = 3, want 2",
        ),
        (
            "",
            "lid.spec.ts:3:5 opens",
            "  Error: no lid\n   > 3 | open()\n  at lid.spec.ts:3:9",
            "lid.spec.ts:3:5 opens\nError: no lid",
        ),
        (
            "",
            "assert 3 == 2",
            "def test():\n>   assert f() == 2\nE   assert 3 == 2\nE    +  f()",
            "assert 3 == 2\n+  f()",
        ),
        ("Error", "lids", "Error: other lids\n    at open (lid.js:1:2)", "lids"),
    ],
    ids=["java", "bare", "go", "playwright", "pytest", "repeated"],
)
def test_words(kind: str, message: str, stack: str, words: str) -> None:
    assert extract_message(Failure(id="1", type=kind, message=message, stack=stack)) == words


def browsed(test: str) -> Failure:
    """As browser tests report: the message says which test, the body what happened."""
    body = f"  [chrome] > {test}\n\n    Error: locator.click: Timeout 30000ms exceeded.\n"
    return Failure(
        id=test, test_name=test, message=f"{test}:1", stack=f"{body}    waiting for locator('#lid')"
    )


def test_a_message_that_names_only_the_test_hides_nothing() -> None:
    assert triage_failure(browsed("a.spec.ts")).category == "automation"
    assert (
        compare_failures(
            extract_traits(browsed("a.spec.ts")), extract_traits(browsed("b.spec.ts"))
        ).score
        > 0.5
    )


@given(FAILURES)
def test_any_failure(failure: Failure) -> None:
    assert extract_message(failure).startswith(failure.message)
