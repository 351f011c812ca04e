"""Tests that assert less than before: counted by test in Python, by file elsewhere."""

import pytest

from interlock.delivery.diff_findings.weakened import find_weakened_tests

TWO = "def test_a():\n    assert f(1) == 2\n    assert f(2) == 3\n\n\ndef test_b():\n    check(1)\n"


def found(before: str, after: str, name: str = "tests/test_f.py") -> list[str]:
    return [each.sentence for each in find_weakened_tests({name: before}, {name: after})]


@pytest.mark.parametrize(
    ("after", "sentences"),
    [
        (TWO, []),
        (TWO.replace("    assert f(2) == 3\n", ""), ["test_a makes 1 assertion; it made 2 before"]),
        (
            TWO.replace("assert f(1) == 2", "f(1)").replace("assert f(2) == 3", "pass"),
            ["test_a makes no assertion any more; it made 2 before"],
        ),
        (
            TWO.replace("f(2) == 3", "True"),
            ["test_a makes 1 assertion; it made 2 before"],
        ),
        (TWO.partition("def test_b")[0], ["test_b is gone"]),
        ("def test_a(:\n", ["its tests cannot be read any more"]),
        (TWO + "\n\ndef test_c():\n    f(1)\n", []),
    ],
)
def test_python_is_compared_test_by_test(after: str, sentences: list[str]) -> None:
    assert found(TWO, after) == sentences


def test_a_helper_that_asserts_no_more_weakens_those_who_call_it() -> None:
    before = "def same(x):\n    assert x == 1\n\n\ndef test_a():\n    same(f())\n"
    after = before.replace("assert x == 1", "return x")
    assert found(before, after) == ["test_a makes no assertion any more; it made 1 before"]


def test_what_was_moved_is_not_weaker() -> None:
    assert find_weakened_tests({"tests/test_f.py": TWO}, {"tests/unit/test_f.py": TWO}) == ()
    class_ = "class TestAll:\n" + "".join(f"    {line}\n" for line in TWO.splitlines())
    assert found(TWO, class_) == []


@pytest.mark.parametrize(
    ("name", "text", "claim"),
    [
        ("app.test.js", "test('a', () => {\n  f(1);\n  expect(f(1)).toBe(2);\n});\n", "expect("),
        (
            "f_test.go",
            "func TestA(t *testing.T) {\n\tif f(1) != 2 {\n\t\tt.Fatal()\n\t}\n}\n",
            "t.F",
        ),
        ("FTest.java", "@Test void a() {\n  assertEquals(2, f(1));\n}\n", "assertEquals"),
    ],
)
def test_elsewhere_the_assertions_of_a_file_are_counted(name: str, text: str, claim: str) -> None:
    lines = [line for line in text.splitlines() if claim not in line]
    assert found(text, text, name) == []
    (sentence,) = found(text, "\n".join(lines), name)
    assert "assertions; they made" in sentence
    moved = find_weakened_tests({name: text}, {name: "\n".join(lines), f"more/{name}": text})
    assert moved == ()
