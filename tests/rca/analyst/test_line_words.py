"""Lines as words: what is a value, and that giant lines are bounded."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock.rca.analyst.templates import VALUE, words_of


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("box 00 opened in 0.0s", "box <*> opened in <*>"),
        ("from 00.0.0.0:000 port 00", "from <*> port <*>"),
        ("at Sat Jul  0 00:00:00 0000 by me", "at <*> by me"),
        ("read /var/lib/box.txt, done", "read <*>, done"),
        ("read C:\\boxes\\lid.txt now", "read <*> now"),
        ("GET https://box.example/lid?x=y now", "GET <*> now"),
        ("size 0.0 KB free 00 MB", "size <*> free <*>"),
        ("user=ann id=0", "user=<*> id=<*>"),
        ("set \"lid\" to 'open' now", "set \"<*>\" to '<*>' now"),
        ("ids 0 0 0 end", "ids <*> end"),
        ("box_0000 and box-00 and lid", "<*> and <*> and lid"),
        ("ready: true", "ready: <*>"),
        ("names () []", "names (<*>) [<*>]"),
        ("and/or I/O stay", "and/or I/O stay"),
        ("mail.box.example:00 open", "<*> open"),
        ("from box.example/00.0.0.0:00 at lid.c:00", "from <*> at lid.c:<*>"),
        ("kill 00:com.box.lid/u0 now", "kill <*> now"),
        ('tag="my lid" in=[a] x', "tag=<*> in=<*> x"),
        ('msg="lid shut" box=00', 'msg="lid shut" box=<*>'),
        ('{"at":"0:0","msg":"lid shut","n":0,"by":"ann"}', '{at=<*> msg="lid shut" n=<*> by=<*> }'),
        ("(from box==0.0)", "(from box==<*>)"),
        ("set (0, 0, 0) {a=0, b=0} end", "set (<*>) <*> end"),
        ("", ""),
    ],
)
def test_words(line: str, words: str) -> None:
    assert " ".join(words_of(line)) == words


@given(st.text())
def test_any_line_has_few_words_and_no_two_values_in_a_row(line: str) -> None:
    words = words_of(line)
    assert len(words) <= 100
    assert not any(one == two == VALUE for one, two in pairwise(words))


@pytest.mark.parametrize(
    "piece",
    [
        "-",
        "a",
        "a.",
        "/a",
        "a/",
        "0",
        "0x",
        ":",
        "'",
        '"',
        "(",
        "a=",
        "<*>",
        "a<*>",
        '{"a":',
        "Jan 1 ",
        "\0",
    ],
)
def test_giant_lines(piece: str) -> None:
    assert len(words_of(piece * (1_000_000 // len(piece)))) <= 100
