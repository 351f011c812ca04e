"""Words by which a failure and a change may know each other."""

from hypothesis import given
from hypothesis import strategies as st

from interlock.analyst.culprit_words import body_of, quoted, spoken, stems

SOURCE = b"""import keel

def test_float():
    assert keel.float() == 1

def test_sink():
    boat = keel.Boat(holes=3)
    assert boat.sinks()
"""


def test_case_and_number_do_not_tell_words_apart() -> None:
    assert stems(["subdomains", "Subdomain", "SUBDOMAIN"]) == {"subdomain"}


def test_words_of_assertions_tell_nothing() -> None:
    assert spoken("AssertionError: expect(received).toBe(expected) // Object.is equality") == {
        "equality"
    }


def test_what_is_quoted_is_found_the_longest_first() -> None:
    assert quoted("""assert 'Not it.' == "Not a valid one" or `ab`""") == [
        "Not a valid one",
        "Not it.",
    ]


def test_a_test_begins_where_it_is_named() -> None:
    body = body_of(SOURCE, 8)
    assert (body.first, body.last) == (6, 8)
    assert {"boat", "sink", "hole"} <= body.words
    assert "float" not in body.words


@given(st.binary(max_size=300), st.integers(-5, 400))
def test_any_source_has_a_body(source: bytes, line: int) -> None:
    body = body_of(source, line)
    assert body.first <= max(body.last, line)
