"""Lines that were meant as signals: found last first, however the text is shaped."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock.signals.grammar import SIGNAL_WORDS, find_last_lookalike

pieces = st.sampled_from(
    [
        "READY_FOR_REVIEW",
        "Audit passed",
        "a CHECKPOINT",
        "x",
        "- ",
        "```",
        "\n",
        "\n\n",
        "review",
        "PASSED",
        "é",
        "\u0410UDIT_P\u0410SSED",
        "CONFLICT",
        "FILE CONFLICT",
        ": t1",
    ]
)


@given(st.lists(pieces, max_size=30), st.integers(0, 40))
def test_short_lines_around_it_do_not_change_what_is_found(parts: list[str], count: int) -> None:
    text = "\n" + "".join(parts)
    bomb = "\n```" * count
    found = find_last_lookalike(text)
    shifted = find_last_lookalike(bomb + text + bomb)
    assert shifted == (None if found is None else (found[0], found[1] + len(bomb)))


@pytest.mark.parametrize("word", SIGNAL_WORDS)
def test_every_name_is_known_in_any_case_and_behind_marks(word: str) -> None:
    for text in (word, word.lower(), word.title(), word.replace("_", "-"), f"> **{word}**"):
        assert find_last_lookalike(f"\nx\n{text}: y\nz") == (word, 2)


def test_many_parts_of_names_hide_nothing() -> None:
    text = "\nAUDIT_PASSED - t1" + "\na PASSED" * 100
    assert find_last_lookalike(text) == ("AUDIT_PASSED", 0)


@pytest.mark.parametrize("text", ["", "\n", "\nthe AUDIT_PASSED", "\nAUDIT_PASSEDX", "\nx" * 99])
def test_other_text_is_none(text: str) -> None:
    assert find_last_lookalike(text) is None
