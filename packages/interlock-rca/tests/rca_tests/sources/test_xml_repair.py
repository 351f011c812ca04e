"""Bytes made into UTF-8 that a parser can take.

Results in the text of broken cases.
"""

import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock_rca.sources.xml_repair import (
    XmlText,
    restore_escapes,
    salvage_case_attributes,
    salvage_results,
)


def clean(raw: bytes) -> tuple[str, list[str]]:
    text = XmlText(io.BytesIO(raw), "r.xml")
    return restore_escapes(b"".join(text).decode()), text.notes


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-32"])
def test_a_file_is_read_in_the_encoding_it_is_really_in(encoding: str) -> None:
    raw = "<a b='füße'/>".encode(encoding)
    assert clean(raw)[0] == "<a b='füße'/>"


@pytest.mark.parametrize(
    ("declared", "actual", "result"),
    [
        ("ISO-8859-1", "iso-8859-1", ""),
        ("windows-1251", "windows-1251", ""),
        ("shift_jis", "shift_jis", ""),
        ("us-ascii", "utf-8", ""),
        ("UTF-16", "utf-8", "not in utf-16 as declared"),
        ("ISO-8859-1", "utf-8", "not in iso-8859-1 as declared"),
        ("rot13", "utf-8", "not in rot13 as declared"),
        ("iso-nonsense", "utf-8", "not in iso-nonsense as declared"),
    ],
)
def test_a_declaration_is_believed_only_if_it_can_be_true(
    declared: str, actual: str, result: str
) -> None:
    sign = {"shift_jis": "テスト", "windows-1251": "тест"}.get(actual, "é")
    raw = f'<?xml version="1.1" encoding="{declared}"?><a>{sign}</a>'.encode(actual)
    text, notes = clean(raw)
    assert text == f"<a>{sign}</a>"
    assert [result in note for note in notes] == ([True] if result else [])


def test_bytes_that_are_no_utf8_are_read_as_the_western_ones_and_said_once() -> None:
    text, notes = clean(b"<a>caf\xe9 \x80 " + b"x" * 200_000 + b"\xe9</a>")
    assert text.startswith("<a>café € xxx")
    assert text.endswith("é</a>")
    assert notes == ["r.xml: some bytes are not UTF-8; they were read as Windows-1252"]


def test_forbidden_signs_go_and_a_terminals_escape_comes_back() -> None:
    text, _ = clean(b"<a>\x00\x08\x1b[31mred&#27;[0m&#x1B;&#0;&#8;&#xD800;&#65;\xef\xbf\xbf</a>")
    assert text == "<a>\x1b[31mred\x1b[0m\x1b&#65;</a>"


def test_what_is_printed_before_the_first_tag_is_dropped() -> None:
    assert clean(b'Done in 3 s\n<?xml version="1.0"?>\n<a/>')[0] == "\n<a/>"
    assert clean(b"no tag at all")[0] == ""


@given(st.integers(min_value=65_500, max_value=65_560))
def test_a_reference_across_two_reads_is_one_reference(size: int) -> None:
    raw = b"<a>" + b"x" * (size - 3) + b"&#27;&#65;&amp;</a>"
    assert clean(raw)[0] == "<a>" + "x" * (size - 3) + "\x1b&#65;&amp;</a>"


@given(st.binary(max_size=300))
def test_any_bytes_become_utf8_without_forbidden_signs(raw: bytes) -> None:
    text, _ = clean(b"<a>" + raw)
    assert not set(text) & {chr(n) for n in range(32) if n not in (9, 10, 13, 27)}


@pytest.mark.parametrize(
    ("raw", "kind", "attributes", "text"),
    [
        (b'<failure message="a < b & c">x</failure>', "failure", {"message": "a < b & c"}, "x"),
        (b"<failure message='it&apos;s > 1'/>", "failure", {"message": "it's > 1"}, ""),
        (b"<error>a &lt; <![CDATA[b &lt; c]]> d</error>", "error", {}, "a < b &lt; c d"),
        (b'<failure message="no end', "failure", {"message": "no end"}, ""),
        (b"<failure>no end <b>", "failure", {}, "no end <b>"),
        (b'<x:failure message="m">t</x:failure>', "failure", {"message": "m"}, "t"),
        (b"<skipped/>", "skipped", {}, ""),
    ],
)
def test_a_result_is_found(raw: bytes, kind: str, attributes: dict[str, str], text: str) -> None:
    assert salvage_results(b"noise " + raw) == [(kind, attributes, text)]


def test_what_only_looks_alike_is_none() -> None:
    assert salvage_results(b"<failures/> <errored> < failure> failure") == []
    assert salvage_case_attributes(b"<testcases name='a'/>") is None


def test_a_case_gives_its_attributes_although_they_are_broken() -> None:
    raw = b'<testcase name="a < b" classname="C & D" time="1">'
    assert salvage_case_attributes(raw) == {"name": "a < b", "classname": "C & D", "time": "1"}


def test_hostile_text_gives_a_bounded_number_of_results() -> None:
    for raw in (b'<failure "', b"<failure a=", b"<failure ", b"<failure x", b"<failure a='<error"):
        assert len(salvage_results(raw * 50_000 + b"x" * 500_000)) <= 20


@given(st.binary(max_size=200))
def test_no_bytes_are_too_odd(raw: bytes) -> None:
    salvage_results(raw + b"<failure " + raw)
    salvage_case_attributes(b"<testcase " + raw)
