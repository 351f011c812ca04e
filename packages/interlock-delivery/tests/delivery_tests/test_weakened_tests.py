"""Test finding tests that assert less than before: by test in Python, by file elsewhere."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock_delivery.assertions import blank_text, count_assertions
from interlock_delivery.weakened_tests import find_weakened_tests

TWO = (
    "def test_a():\n    assert f(1) == 2\n    assert f(2) == 3\n\n\ndef test_b():\n    assert g()\n"
)
PRICE = "from pricing import checkout, price\n\n\ndef test_price():\n    assert price(1) == 2\n"


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
        (TWO.replace("f(2) == 3", "True"), ["test_a makes 1 assertion; it made 2 before"]),
        (TWO.partition("def test_b")[0], ["test_b is gone"]),
        ("def test_a(:\n", ["its tests cannot be read any more"]),
        (TWO + "\n\ndef test_c():\n    f(1)\n", []),
        (TWO.replace("def test_b", "@pytest.mark.skip\ndef test_b"), ["test_b is skipped"]),
        (TWO.replace("    assert g()", "    pytest.skip()\n    assert g()"), ["test_b is skipped"]),
        (
            f"pytestmark = pytest.mark.skip\n{TWO}",
            ["test_a is skipped", "test_b is skipped"],
        ),
        (
            TWO.replace("    assert g()", "    return\n    assert g()"),
            ["test_b makes no assertion any more; it made 1 before"],
        ),
    ],
)
def test_python_is_compared_test_by_test(after: str, sentences: list[str]) -> None:
    assert found(TWO, after) == sentences


ASSERTIONS = (
    "assert price(1) == 2",
    "assert not price(1)",
    "assert price",
    "assert False",
    "assert await price(1)",
    "self.assertEqual(price(1), 2)",
    "self.fail('no price')",
    "price.assert_called_once()",
    "price.assert_called_with(1)",
    "assert_that(price(1), is_(2))",
    "np.testing.assert_allclose(price(1), 2)",
    "with pytest.raises(ValueError): price(1)",
    "with pytest.warns(UserWarning): price(1)",
    "pytest.fail('no price')",
    "with self.assertRaises(ValueError): price(1)",
    "raise AssertionError('no price')",
)
NOT_ASSERTIONS = (
    "re.match('a', str(price(1)))",
    "checkout(price(2))",
    "expected()",
    "checker.validate(price(1))",
    "compare(price(1), 2)",
    "price(1)",
    "pass",
    "assert True",
    "assert 1 == 1",
    "assert 'a' in 'abc'",
    "assert 'a'.upper() == 'A'",
    "assert (price(1) == 2, 'a tuple')",
    "assert price(1) == 2 or True",
    "assert price is price",
    "self.assertTrue(True)",
    "self.assertEqual(1, 1)",
    "self.assertEqual(price, price)",
    "price.assert_called_once",
    "raise ValueError('no price')",
    "logging.warning('failed: %s', price(1))",
    "raises(ValueError)",
)


def test_what_counts_as_an_assertion_in_python() -> None:
    wrong = [each for each in ASSERTIONS if found(PRICE, replaced(each))]
    assert wrong == [], "these are assertions"
    wrong = [each for each in NOT_ASSERTIONS if not found(PRICE, replaced(each))]
    assert wrong == [], "these assert nothing"


def replaced(statement: str) -> str:
    text = PRICE.replace("assert price(1) == 2", statement)
    return text.replace("def test", "async def test") if "await" in statement else text


def test_names_that_are_imported_from_pytest() -> None:
    after = f"from pytest import raises as r\n{replaced('with r(ValueError): price(1)')}"
    assert found(PRICE, after) == []


def test_a_function_of_the_file_counts_if_it_asserts() -> None:
    before = (
        "def same(x):\n    compare(x)\n\n\ndef compare(x):\n    assert x == 1\n\n\n"
        "def test_a():\n    same(f())\n"
    )
    after = before.replace("assert x == 1", "return x")
    assert found(before, after) == ["test_a makes no assertion any more; it made 1 before"]
    hollow = "def assert_price(x):\n    print(x)\n\n\n" + replaced("assert_price(price(1))")
    assert found(PRICE, hollow) == ["test_price makes no assertion any more; it made 1 before"]


def test_a_helper_of_other_files_may_not_go_and_makes_up_for_nothing() -> None:
    head = "from tests.helpers import check_price\n"
    helped = head + replaced("check_price(1, 2)")
    assert found(helped, helped) == []
    assert found(helped, helped.replace("check_price(1, 2)", "price(1)"))
    assert found(helped, helped.replace("check_price(1, 2)", "assert price(1) == 2")) == []
    assert found(PRICE, helped), "its text is not part of the change, so nobody knows what it does"


def test_what_was_moved_is_not_weaker() -> None:
    assert find_weakened_tests({"tests/test_f.py": TWO}, {"tests/unit/test_f.py": TWO}) == ()
    class_ = "class TestAll:\n" + "".join(f"    {line}\n" for line in TWO.splitlines())
    assert found(TWO, class_) == []
    other = {"tests/test_g.py": "def test_b():\n    assert h()\n"}
    after = {"tests/test_f.py": TWO.partition("def test_b")[0], **other}
    weak = find_weakened_tests({"tests/test_f.py": TWO, **other}, after)
    assert [each.sentence for each in weak] == ["test_b is gone"]


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
    assert "0 assertions; it had" in sentence
    moved = find_weakened_tests({name: text}, {name: "\n".join(lines), f"more/{name}": text})
    assert moved == ()


COUNTS = (
    ("a.test.js", "expect(f(1)).toBe(2)", 1),
    ("a.test.ts", "await expect(f(1)).resolves.not.toThrow()", 1),
    ("a.test.js", "expect(f(1)).to.be.true", 1),
    ("a.test.js", "expect(2).toBe(f(1))", 1),
    ("a.test.js", "expect(\n  f(')')\n)\n  .toEqual({a: [1]})", 1),
    ("a.test.js", "assert.equal(f(1), 2); assert(f(1))", 2),
    ("a.test.js", "cy.get('.a').should('be.visible')", 1),
    ("a.test.js", "expect(1).toBe(1)", 0),
    ("a.test.js", "expect(true).toBeTruthy(); expect('a').toEqual('a')", 0),
    ("a.test.js", "expect(f(1))", 0),
    ("a.test.js", "assert(true); assert.equal(1, 1)", 0),
    ("a.test.js", "check(f(1)); compare(f(1), 2); expected(f(1)); 'expect(f).toBe(1)'", 0),
    ("a.test.js", "// expect(f(1)).toBe(2)\n/* expect(f(1)).toBe(2) */", 0),
    ("a_test.go", 't.Errorf("%d", x); t.Fatal(err)', 2),
    ("a_test.go", "assert.Equal(t, 2, f(1)); require.NoError(t, err)", 2),
    ("a_test.go", 't.Log(f(1)); err.Error(); check(t, f(1)); t.Run("a", run)', 0),
    ("ATest.java", "assertEquals(2, f(1)); Assertions.assertTrue(f(1));", 2),
    ("ATest.java", "assertThat(f(1)).isEqualTo(2); assertThat(f(1), is(2)); verify(f).call();", 3),
    ("ATest.java", 'fail("no"); @Test(expected = Foo.class)', 2),
    ("ATest.java", "assertTrue(true); assertEquals(1, 1); assertThat(f(1));", 0),
    ("ATest.java", "matcher.matches(f(1)); verifyAll(f(1)); failures.add(f(1));", 0),
    ("ATest.kt", "assertEquals(2, f(1))", 1),
    ("ATests.cs", "Assert.Equal(2, F(1)); F(1).Should().Be(2); Assert.Throws<E>(() => F(1));", 3),
    ("a_test.rs", "assert_eq!(f(1), 2); assert!(f(1)); assert!(true);", 2),
    ("a_spec.rb", "expect(f(1)).to eq(2)\nassert_equal(f(1), 2)", 2),
)


def test_what_counts_as_an_assertion_elsewhere() -> None:
    wrong = [row for row in COUNTS if count_assertions(row[0], row[1]) != row[2]]
    assert wrong == []


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.test.js", "it('a', () => expect(f(1)).toBe(2))"),
        ("ATest.java", "@Test void a() { assertTrue(f(1)); }"),
        ("a_test.rs", "#[test] fn a() { assert!(f(1)); }"),
    ],
)
def test_a_test_that_is_skipped_now_is_found(name: str, text: str) -> None:
    skips = {"it(": "it.skip(", "@Test": "@Test @Disabled", "#[test]": "#[test] #[ignore]"}
    after = text
    for before, now in skips.items():
        after = after.replace(before, now)
    assert found(text, after, name) == ["it has 1 skipped test; it had 0 before"]
    assert found(after, text, name) == []


@given(
    st.sampled_from(["javascript", "go", "java", "rust", "shell"]),
    st.text("a/*'\"`\\\n(#", max_size=40),
)
def test_blanking_keeps_lines_and_columns(language: str, text: str) -> None:
    blanked = blank_text(language, text)
    assert [len(line) for line in blanked.split("\n")] == [len(line) for line in text.split("\n")]


@given(st.text("asert(). x=1\n:def_'", max_size=60))
def test_any_text_is_compared_with_itself_and_with_nothing(text: str) -> None:
    for name in ("test_a.py", "a.test.js"):
        assert found(text, text, name) == []
        find_weakened_tests({name: text}, {})
