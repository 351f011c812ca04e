"""Words by which a failure and a change may know each other."""

from hypothesis import given
from hypothesis import strategies as st

from interlock.rca.analyst.change_words import body_of, parts, quoted, spoken, stems

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
    assert body_of(ROWS, 11, "test_sinks[7-True]").rows == (7,)
    assert body_of(ROWS, 11, "test_sinks[holes0-True]").rows == (), "nothing tells which"
    assert body_of(ROWS, 11, "test_sinks").rows == ()


def test_a_function_begins_where_it_is_named_and_a_statement_ends_with_its_brackets() -> None:
    body = body_of(ROWS, 14)
    assert (body.first, body.last) == (13, 19)


def test_names_are_made_of_parts() -> None:
    assert parts(["truncate_lines", "maxWidth"]) == {"truncate", "line", "width"}


@given(st.binary(max_size=300), st.integers(-5, 400))
def test_any_source_has_a_body(source: bytes, line: int) -> None:
    body = body_of(source, line)
    assert body.first <= max(body.last, line)
