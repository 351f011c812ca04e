"""Names taken apart."""

import pytest

from interlock_rca.analyst.names import extract_words, find_subject, split_name, strip_qualifiers


@pytest.mark.parametrize(
    ("name", "last"),
    [
        ("box.LidTest", "LidTest"),
        ("tests/test_lid.py::test_open[a-1]", "test_open"),
        ("opens(int)", "opens"),
        ("Box#open", "open"),
        ("", ""),
    ],
)
def test_last_part(name: str, last: str) -> None:
    assert strip_qualifiers(name) == last


def test_words_of_a_name() -> None:
    assert split_name("box.HTTPLidTest2") == {"http", "lid", "test", "2"}
    assert split_name("tests/test_lid.py::test_opens_lid") == {"test", "opens", "lid"}


def test_words_of_a_text() -> None:
    assert extract_words("error: class KitchenLid of log4x-box is shut") == {
        *("kitchenlid", "kitchen", "lid", "log4x", "log", "box", "shut")
    }


@pytest.mark.parametrize(
    "name", ["a.LidTest", "TestLid", "LidTests", "LidIT", "test_Lid", "Lid_spec"]
)
def test_what_a_test_is_of(name: str) -> None:
    assert find_subject(name) == "Lid"
