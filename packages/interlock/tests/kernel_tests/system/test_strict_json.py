"""Strict JSON: what is one value, and what is refused with the reason."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock.system.strict_json import LARGEST, MAX_DEPTH, Problem, read_json, read_object

DEEP = f"it is nested deeper than {MAX_DEPTH} levels"


def nested(levels: int) -> bytes:
    return b'{"a":' * (levels - 1) + b"{}" + b"}" * (levels - 1)


@pytest.mark.parametrize(
    ("content", "value"),
    [
        pytest.param(b"{}", {}, id="empty object"),
        pytest.param(b' {"a": [1, "b", null]} \n', {"a": [1, "b", None]}, id="blanks around"),
        pytest.param(b'{"a": {"x": 1}, "b": {"x": 1}}', None, id="same name in two objects"),
        pytest.param(rb'{"a\"b": 1, "a": "\"c\\"}', {'a"b': 1, "a": '"c\\'}, id="escapes"),
        pytest.param(rb'{"a": "\\u0000"}', {"a": "\\u0000"}, id="a backslash and u0000"),
        pytest.param('{"ö": "日本 🚂"}'.encode(), {"ö": "日本 🚂"}, id="not ASCII"),
        pytest.param(rb'{"a": "\ud83d\ude82"}', {"a": "🚂"}, id="surrogate pair"),
        pytest.param(b'{"a": 18446744073709551616}', {"a": 2**64}, id="beyond 64 bit"),
        pytest.param(b'{"a": -1e308}', {"a": -1e308}, id="large float"),
        pytest.param(b'\xef\xbb\xbf{"a": 1}', {"a": 1}, id="byte order mark"),
        pytest.param(nested(MAX_DEPTH), None, id="as deep as allowed"),
    ],
)
def test_taken(content: bytes, value: Any) -> None:
    assert read_json(content) == (json.loads(content) if value is None else value)


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        pytest.param(b'{"a": 1, "a": 2}', "'a' is written twice", id="name twice"),
        pytest.param(b'{"a": 1, "a": 1}', "'a' is written twice", id="name twice, same value"),
        pytest.param(b'{"x": [{"a": 1, "a": 2}]}', "'a' is written twice", id="twice inside"),
        pytest.param(rb'{"a": 1, "\u0061": 2}', "'a' is written twice", id="twice, escaped"),
        pytest.param(rb'{"a\"": 1, "a\"": 2}', "'a\"' is written twice", id="twice with a quote"),
        pytest.param(
            rb'{"a": 1, "a": "\u0022\u0022"}',
            "'a' is written twice",
            id="twice, quotes made up for",
        ),
        pytest.param(rb'{"a": "\u0000"}', "there is a NUL character in it", id="NUL escaped"),
        pytest.param(rb'{"\u0000": 1}', "there is a NUL character in it", id="NUL in a name"),
        pytest.param(rb'{"a": "\\\u0000"}', "there is a NUL character in it", id="NUL after \\"),
        pytest.param(nested(MAX_DEPTH + 1), DEEP, id="one level too deep"),
        pytest.param(b"[" * 1_000_000, DEEP, id="a million levels of lists"),
        pytest.param(nested(1_000_000), DEEP, id="a million levels of objects"),
    ],
)
def test_refused(content: bytes, reason: str) -> None:
    found = read_json(content)
    assert isinstance(found, Problem)
    assert found.sentence == reason
    assert not found.may_be_partial or "NUL" in reason


@pytest.mark.parametrize(
    "content",
    [
        pytest.param(b'{"a": NaN}', id="NaN"),
        pytest.param(b'{"a": Infinity}', id="Infinity"),
        pytest.param(b'{"a": -Infinity}', id="-Infinity"),
        pytest.param(b'{"a": 1e999}', id="out of range"),
        pytest.param(b'{"a": "\x00"}', id="NUL byte"),
        pytest.param(rb'{"a": "\ud800"}', id="lone high surrogate"),
        pytest.param(rb'{"a": "\udc00"}', id="lone low surrogate"),
        pytest.param(b'{"a": "\xff"}', id="invalid UTF-8"),
        pytest.param(b'{"a": "\xed\xa0\x80"}', id="surrogate in UTF-8"),
        pytest.param('{"a": 1}'.encode("utf-16"), id="UTF-16"),
        pytest.param(b"{} {}", id="two values"),
        pytest.param(b"{'a': 1}", id="single quotes"),
        pytest.param(b'{"a": 1,}', id="trailing comma"),
        pytest.param(b'{"a": 1', id="cut off"),
        pytest.param(b"", id="nothing"),
        pytest.param(b'{"a": ' + b"9" * 5_000 + b"}", id="5,000 digits"),
    ],
)
def test_no_json(content: bytes) -> None:
    found = read_json(content)
    assert isinstance(found, Problem)
    assert found.may_be_partial


texts = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=8)
values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=12,
).filter(lambda value: "Infinity" not in json.dumps(value))


@given(values, st.booleans())
def test_what_is_written_by_others_is_read_as_they_meant_it(value: Any, ascii_only: bool) -> None:
    assert read_json(json.dumps(value, ensure_ascii=ascii_only).encode()) == value


@given(st.binary(max_size=40) | values.map(lambda value: json.dumps(value).encode()[1:]))
def test_whatever_comes_it_is_a_value_or_a_reason(content: bytes) -> None:
    value = read_json(content)
    if not isinstance(value, Problem):
        assert json.loads(content) == value


@pytest.mark.parametrize(
    ("content", "kind", "sentence"),
    [
        (b" \n", "empty", "it is empty"),
        (b"\xef\xbb\xbf", "empty", "it is empty"),
        (b" " * (LARGEST + 1), "too-large", "it has more than 67,108,864 bytes"),
        (b'{"a": "\xff"}', "not-utf8", "it is not UTF-8: invalid start byte"),
        (b"[1]", "not-an-object", "it holds a list, not an object"),
        (b"true", "not-an-object", "it holds a boolean, not an object"),
        (b'{"a": 1,}', "invalid-json", "it is not valid JSON: "),
        (b'{"a": 1, "a": 1}', "duplicate-key", "'a' is written twice"),
        (nested(MAX_DEPTH + 1), "too-deep", DEEP),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_kind_of_fault(content: bytes, kind: str, sentence: str) -> None:
    found = read_object(content)
    assert isinstance(found, Problem)
    assert found.kind == kind
    assert found.sentence.startswith(sentence)
