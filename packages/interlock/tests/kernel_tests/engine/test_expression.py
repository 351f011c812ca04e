"""Expressions: what they may say, what they read, and everything they refuse."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock.engine.expression import (
    MAX_DEPTH,
    MAX_LENGTH,
    Scope,
    parse_expression,
    shorten_value,
)
from interlock.system.errors import ExpressionError

VALUES: dict[str, Any] = {
    "n": 3,
    "t": "abc",
    "yes": True,
    "nothing": None,
    "tags": ["a", "b"],
    "deep": {"er": {"still": 7}},
}


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("n == 3 and yes", True),
        ("n > 3 or t == 'abc'", True),
        ("not yes", False),
        ("1 < n <= 3", True),
        ("'a' in tags", True),
        ("'z' not in tags", True),
        ("t in ['abc', 'def']", True),
        ("tags == ['a', 'b']", True),
        ("tags != ['a', 'b']", False),
        ("len(tags) == 2 and len(t) == 3", True),
        ("has(n) and not has(m)", True),
        ("has(deep.er.still) and not has(deep.er.more)", True),
        ("deep.er.still", 7),
        ("nothing == null and yes == true", True),
        ("n > -1", True),
        ("has(m) and m > 1", False),
        ("n == 3 or m == 1", True),
    ],
)
def test_value(text: str, value: object) -> None:
    assert parse_expression(text).evaluate(Scope(VALUES)) == value


def test_reads_and_asks_are_known_before_anything_runs() -> None:
    expression = parse_expression("has(a.b) and len(c) > 2 and d in [1, 2]")
    assert expression.reads == ("c", "d")
    assert expression.asks == ("a.b",)


def test_every_value_read_is_recorded_and_no_other() -> None:
    scope = Scope(VALUES)
    parse_expression("yes or n > 1").evaluate(scope)
    assert scope.seen == {"yes": True}
    parse_expression("has(m) or len(tags) > 1 and n == 3").evaluate(scope)
    assert scope.seen == {"yes": True, "has(m)": False, "len(tags)": 2, "n": 3}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("m > 1", "'m' is not there to be read; ask has(m) first"),
        ("deep.er.more == 1", "'deep.er.more' is not there"),
        ("len(m) > 1", "'m' is not there to be counted"),
        ("len(n) > 1", "needs a text, a list or an object"),
        ("t > 1", "compares unlike things"),
        ("1 in n", "compares unlike things"),
    ],
)
def test_what_cannot_be_read_says_which(text: str, words: str) -> None:
    with pytest.raises(ExpressionError) as caught:
        parse_expression(text).evaluate(Scope(VALUES))
    assert words in str(caught.value)


NOT_ALLOWED = [
    "f(x)",
    "__import__('os').system('true')",
    "print(x)",
    "has(x, y)",
    "has()",
    "len(x=1)",
    "lambda: x",
    "[y for y in x]",
    "{y for y in x}",
    "(y for y in x)",
    "f'{x}'",
    "(x := 1)",
    "9**9**9**9",
    "x + 1",
    "x * 1000000",
    "-x",
    "~x",
    "x[0]",
    "x['__class__']",
    "x if y else z",
    "{1: 2}",
    "{1}",
    "[x, 1]",
    "await x",
    "b'bytes'",
    "1j",
    "...",
]
UNDERSCORED = [
    "x.__class__",
    "x.__class__.__bases__",
    "x._hidden",
    "__builtins__",
    "_",
    "has(x.__dict__)",
    "len(__name__)",
]
BROKEN = ["x and", "1 if", "x;y", "x\ny", "import os", "x = 1", "`x`", "\x00", "yield x", "(", "*x"]
NO_NAME = ["().__class__", "'a'.upper", "has(1)", "has('x')", "len('abc')", "len([1])"]


@pytest.mark.parametrize("text", NOT_ALLOWED)
def test_what_could_run_code_is_not_allowed(text: str) -> None:
    with pytest.raises(ExpressionError, match=r"is not allowed in .*; use names, constants"):
        parse_expression(text)


@pytest.mark.parametrize("text", UNDERSCORED)
def test_nothing_hidden_can_be_reached(text: str) -> None:
    with pytest.raises(ExpressionError, match="names do not start with an underscore"):
        parse_expression(text)


@pytest.mark.parametrize("text", BROKEN)
def test_broken_text_is_no_expression(text: str) -> None:
    with pytest.raises(ExpressionError, match="is not an expression"):
        parse_expression(text)


@pytest.mark.parametrize("text", NO_NAME)
def test_fields_and_sizes_are_of_names_only(text: str) -> None:
    with pytest.raises(ExpressionError, match="is not a name"):
        parse_expression(text)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "must not be empty"),
        ("   ", "must not be empty"),
        ("x" * 10_000, f"at most {MAX_LENGTH} characters, not 10000"),
        ("not " * (MAX_DEPTH + 2) + "x", f"nested deeper than {MAX_DEPTH} levels"),
        ("x is 1", "write == or != instead of 'is'"),
        ("(" * 400 + "x" + ")" * 400, "is not an expression"),
    ],
)
def test_limits(text: str, words: str) -> None:
    with pytest.raises(ExpressionError) as caught:
        parse_expression(text)
    assert words in str(caught.value)


def complaint(text: str) -> str:
    try:
        return "" if parse_expression(text).text == text.strip() else "read as something else"
    except ExpressionError as error:
        return str(error)


@given(st.text(max_size=60))
def test_any_text_is_an_expression_or_a_clear_error(text: str) -> None:
    problem = complaint(text)
    assert not problem or " expression" in problem or "name" in problem


@given(st.integers(-5, 5), st.integers(-5, 5), st.booleans())
def test_agrees_with_python(a: int, b: int, c: bool) -> None:
    scope = Scope({"a": a, "b": b, "c": c})
    assert parse_expression("a < b and c or not a == b").evaluate(scope) == (
        (a < b and c) or a != b
    )


def test_large_values_are_kept_by_their_size() -> None:
    assert shorten_value("x" * 500).endswith("… (500 characters)")
    assert shorten_value(list(range(100))) == "list of 100"
    assert shorten_value({"b": 1, "a": 2}) == "object with a, b"
    assert shorten_value(["a", 1]) == ["a", 1]
