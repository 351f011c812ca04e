"""Whose code a frame is, by where it lies and how it is named."""

import pytest

from interlock.rca.analyst.stack import Frame, looks_tested, own_frames, owner, product_frames


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
    assert owner(frame) == whose


def test_the_makers_of_a_library_own_it() -> None:
    frame = Frame("org.mockito.Answers", "get", "Answers.java")
    assert owner(frame, "box.LidTest") == "library"
    assert owner(frame, "org.mockito.AnswersTest") == "product"
    assert owner(frame, "org.mockitoplus.AnswersTest") == "product"
    assert owner(Frame("java.util.List"), "org.mockito.AnswersTest") == "library"


def test_frames_of_ones_own() -> None:
    lid, test, list_ = Frame("box.Lid"), Frame("box.LidTest"), Frame("java.util.List")
    assert own_frames([list_, lid, test]) == (lid, test)
    assert product_frames([list_, lid, test]) == (lid,)


@pytest.mark.parametrize(
    ("name", "is_test"),
    [
        ("box.LidTest", True),
        ("box.Lid", False),
        ("src/test/java/box/LidTest.java", True),
        ("src/main/java/box/Lid.java", False),
        ("lib/lid_spec.rb", True),
    ],
)
def test_names_of_tests(name: str, is_test: bool) -> None:
    assert looks_tested(name) is is_test
