"""Text within a bound."""

from hypothesis import given
from hypothesis import strategies as st

from interlock.system.text import ClippedText, clip_text

MARK = 60
"""Room for the line that says what was cut."""


@given(st.lists(st.text(max_size=30)), st.integers(min_value=1, max_value=60))
def test_whatever_comes_head_and_tail_stay_and_no_more_than_the_bound(
    pieces: list[str], bound: int
) -> None:
    whole, kept = "".join(pieces), ClippedText(bound)
    for piece in pieces:
        kept.add(piece)
    text = kept.text()
    assert kept.truncated == (len(whole) > bound)
    assert len(text) <= bound + MARK
    if kept.truncated:
        assert text.startswith(whole[: bound // 2])
        assert text.endswith(whole[-(bound - bound // 2) :])
        assert f"[{len(whole) - bound:,} characters cut]" in text
    else:
        assert text == whole


@given(st.text(max_size=200), st.integers(min_value=1, max_value=100))
def test_pieces_and_the_whole_give_the_same(text: str, bound: int) -> None:
    kept = ClippedText(bound)
    for sign in text:
        kept.add(sign)
    assert (kept.text(), kept.truncated) == clip_text(text, bound)
