"""Lines are the same however the stream is cut, and nothing long is kept."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from interlock.system.process_tree import Lines, OutputLine

STREAM = st.lists(
    st.sampled_from([b"\n", b"\r", b"\r\n", b"\0", b"a", b"\xff", b"\x1b[0m", b"x" * 20])
    | st.binary(max_size=12)
).map(b"".join)


def all_lines(chunks: list[bytes], longest: int = 1_000) -> list[OutputLine]:
    lines = Lines(longest)
    found = [line for chunk in chunks for line in lines.feed(chunk)] + lines.end()
    assert lines.count == len(found)
    assert lines.cut == sum(line.cut for line in found)
    assert lines.end() == []
    return found


def cut_at(stream: bytes, places: list[int]) -> list[bytes]:
    marks = [0, *sorted(place % (len(stream) + 1) for place in places), len(stream)]
    return [stream[a:b] for a, b in pairwise(marks)]


@given(STREAM, st.lists(st.integers(0, 200)), st.integers(1, 30))
def test_chunks_do_not_matter(stream: bytes, places: list[int], longest: int) -> None:
    assert all_lines(cut_at(stream, places), longest) == all_lines([stream], longest)


@given(STREAM)
def test_with_room_they_are_the_lines_of_the_stream(stream: bytes) -> None:
    *whole, rest = stream.split(b"\n")
    expected = [OutputLine(text.removesuffix(b"\r")) for text in whole]
    expected += [OutputLine(rest.removesuffix(b"\r"), half=True)] if rest else []
    assert all_lines([stream]) == expected


@given(STREAM, st.lists(st.integers(0, 200)), st.integers(1, 30))
def test_none_is_longer_than_the_limit_and_a_cut_one_says_so(
    stream: bytes, places: list[int], longest: int
) -> None:
    *whole, rest = stream.split(b"\n")
    texts = [*whole, *([rest] if rest else [])]
    for line, text in zip(all_lines(cut_at(stream, places), longest), texts, strict=True):
        assert line.cut == (len(text) > longest)
        assert line.text == (text[:longest] if line.cut else text.removesuffix(b"\r"))


@given(st.binary(max_size=50), st.booleans())
def test_late_ones_are_marked(stream: bytes, late: bool) -> None:
    lines = Lines()
    assert all(line.late is late for line in lines.feed(stream, late) + lines.end(late))


def test_a_line_without_an_end_is_not_kept() -> None:
    lines = Lines(longest=10)
    for _ in range(1_000):
        assert lines.feed(b"x" * 1_000) == []
    assert len(lines._held) == 10
    assert lines.feed(b"x\nnext\n") == [OutputLine(b"x" * 10, cut=True), OutputLine(b"next")]
