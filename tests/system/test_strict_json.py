"""Strict JSON: what is one value, and what is refused with the reason."""

import json
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock.system.runner_strict_json import MAX_DEPTH, decode

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
        pytest.param(nested(MAX_DEPTH), None, id="as deep as allowed"),
    ],
)
def test_taken(content: bytes, value: Any) -> None:
    assert decode(content) == (json.loads(content) if value is None else value)


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
    with pytest.raises(ValueError, match=f"^{re.escape(reason)}$"):
        decode(content)


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
        pytest.param(b"\xef\xbb\xbf{}", id="byte order mark"),
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
    with pytest.raises(ValueError, match=r".+"):
        decode(content)


texts = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=8)
values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=12,
).filter(lambda value: "Infinity" not in json.dumps(value))


@given(values, st.booleans())
def test_what_is_written_by_others_is_read_as_they_meant_it(value: Any, ascii_only: bool) -> None:
    assert decode(json.dumps(value, ensure_ascii=ascii_only).encode()) == value


@given(st.binary(max_size=40) | values.map(lambda value: json.dumps(value).encode()[1:]))
def test_whatever_comes_it_is_a_value_or_a_reason(content: bytes) -> None:
    try:
        value = decode(content)
    except ValueError:
        return
    assert json.loads(content) == value
