"""Results in the text of broken cases."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock.rca.sources.xml_repair import case_attributes, results


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
    assert results(b"noise " + raw) == [(kind, attributes, text)]


def test_what_only_looks_alike_is_none() -> None:
    assert results(b"<failures/> <errored> < failure> failure") == []
    assert case_attributes(b"<testcases name='a'/>") is None


def test_a_case_gives_its_attributes_although_they_are_broken() -> None:
    raw = b'<testcase name="a < b" classname="C & D" time="1">'
    assert case_attributes(raw) == {"name": "a < b", "classname": "C & D", "time": "1"}


def test_hostile_text_gives_a_bounded_number_of_results() -> None:
    for raw in (b'<failure "', b"<failure a=", b"<failure ", b"<failure x", b"<failure a='<error"):
        assert len(results(raw * 50_000 + b"x" * 500_000)) <= 20


@given(st.binary(max_size=200))
def test_no_bytes_are_too_odd(raw: bytes) -> None:
    results(raw + b"<failure " + raw)
    case_attributes(b"<testcase " + raw)
