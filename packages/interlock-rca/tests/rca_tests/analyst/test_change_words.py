"""Words by which a failure and a change may know each other."""

from hypothesis import given
from hypothesis import strategies as st

from interlock_rca.analyst.change_words import (
    extract_message_words,
    find_excerpt,
    find_quotes,
    split_into_stems,
    stem_words,
)

SOURCE = b"""import keel

def test_float():
    assert keel.float() == 1

def test_sink():
    boat = keel.Boat(holes=3)
    assert boat.sinks()
"""


def test_case_and_number_do_not_tell_words_apart() -> None:
    assert stem_words(["subdomains", "Subdomain", "SUBDOMAIN"]) == {"subdomain"}


def test_words_of_assertions_tell_nothing() -> None:
    assert extract_message_words(
        "AssertionError: expect(received).toBe(expected) // Object.is equality"
    ) == {"equality"}


def test_what_is_quoted_is_found_the_longest_first() -> None:
    assert find_quotes("""assert 'Not it.' == "Not a valid one" or `ab`""") == [
        "Not a valid one",
        "Not it.",
    ]


def test_a_test_begins_where_it_is_named() -> None:
    body = find_excerpt(SOURCE, 8)
    assert (body.first, body.last) == (6, 8)
    assert {"boat", "sink", "hole"} <= body.words
    assert "float" not in body.words


ROWS = b"""import keel

@values(
    ("holes", "sinks"),
    [
        (1, False),
        (7, True),
    ],
)
def test_sinks(holes, sinks):
    assert keel.sinks(holes) == sinks

def boat(holes):
    return keel.Boat(
        name="Ada",
        crew=["Ada", "Bo"],
        sails=2,
        holes=holes,
    )
"""


def test_values_of_a_test_stand_above_it() -> None:
    assert find_excerpt(ROWS, 11, "test_sinks[7-True]").rows == (7,)
    assert find_excerpt(ROWS, 11, "test_sinks[holes0-True]").rows == (), "nothing tells which"
    assert find_excerpt(ROWS, 11, "test_sinks").rows == ()


def test_a_function_begins_where_it_is_named_and_a_statement_ends_with_its_brackets() -> None:
    body = find_excerpt(ROWS, 14)
    assert (body.first, body.last) == (13, 19)


def test_names_are_made_of_parts() -> None:
    assert split_into_stems(["truncate_lines", "maxWidth"]) == {"truncate", "line", "width"}


@given(st.binary(max_size=300), st.integers(-5, 400))
def test_any_source_has_a_body(source: bytes, line: int) -> None:
    body = find_excerpt(source, line)
    assert body.first <= max(body.last, line)
