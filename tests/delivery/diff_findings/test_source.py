"""Taking a source file apart: nothing moves, nothing is lost, strings are no code."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock.delivery.diff_findings.source import split_source

TEXTS = st.text(st.sampled_from("ab \n'\"`#/*\\x"), max_size=60)


@pytest.mark.parametrize(
    ("path", "text", "code", "comments"),
    [
        ("a.py", "a = 'x # y'  # z", "a = '     '     ", "             # z"),
        ("a.py", 'f("""a\n# b""")', 'f("   \n     ")', "      \n       "),
        ("a.js", "a // 'b\nc", "a      \nc", "  // 'b\n "),
        ("a.js", "`a\n// b` + c", "` \n    ` + c", "  \n         "),
        ("a.js", "/* a\nb */ c", "    \n     c", "/* a\nb */  "),
        ("a.rs", "fn f<'a>(x: &'a str) // y", "fn f<'a>(x: &'a str)     ", " " * 21 + "// y"),
        ("a.sh", "a=${b#c} # d", "a=${b#c}    ", "         # d"),
        ("a.yaml", "a: b#c # d", "a: b#c    ", "       # d"),
        ("a.txt", "a # b", "a # b", "     "),
    ],
)
def test_examples(path: str, text: str, code: str, comments: str) -> None:
    apart = split_source(path, text)
    assert (apart.code, apart.comments) == (code, comments)


@given(st.sampled_from(["a.py", "a.js", "a.go", "A.java", "a.rs", "a.php", "a.sh"]), TEXTS)
def test_laws(path: str, text: str) -> None:
    apart = split_source(path, text)
    assert len(apart.code) == len(apart.comments) == len(text)
    for at, letter in enumerate(text):
        assert apart.code[at] in (letter, " ")
        assert apart.comments[at] in (letter, " ")
        assert (letter == "\n") == (apart.code[at] == "\n")
        assert letter in " \n" or not apart.code[at].strip() or not apart.comments[at].strip()
