"""References to a log are held against its lines."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock.rca.sources.git.evidence import LogLines
from interlock.rca.sources.git.evidence_refs import Pointer

LOG = LogLines("start\nconnection  refused\tby peer\n\nend")


@pytest.mark.parametrize(
    ("first", "last", "words", "verdict", "why"),
    [
        (1, 0, "", "found", "line 1 of the log"),
        (4, 0, "", "found", "line 4 of the log"),
        (5, 0, "", "missing", "the log has only 4 lines"),
        (-1, 0, "", "missing", "the log has only 4 lines"),
        (1, 5, "", "missing", "the log has only 4 lines"),
        (1, 2, "refused by", "found", "line 1 of the log"),
        (2, 0, "connection refused by peer", "found", "line 2 of the log"),
        (1, 0, '"refused by peer" it says', "found", "it is line 2 of the log"),
        (1, 0, '"never said"', "missing", "these words are not in the log: never said"),
        (2, 0, "it can't be, won't be", "found", "line 2 of the log; what is said of it does not"),
        (0, 0, "refused by", "found", "line 2 of the log"),
        (0, 0, "never said", "missing", "these words are not in the log: never said"),
    ],
)
def test_lines_and_words(first: int, last: int, words: str, verdict: str, why: str) -> None:
    found = LOG.check(Pointer(kind="log", first=first, last=last, words=words))
    assert found.verdict == verdict
    assert found.why.startswith(why)


@given(st.text(max_size=200), st.integers(-1, 300), st.integers(0, 300), st.text(max_size=50))
def test_a_line_is_found_only_if_the_log_has_it(
    text: str, first: int, last: int, words: str
) -> None:
    found = LogLines(text).check(Pointer(kind="log", first=first, last=last, words=words))
    if found.verdict == "found" and first:
        assert 0 < first <= len(text.split("\n"))
