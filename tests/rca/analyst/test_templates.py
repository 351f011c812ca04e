"""Templates: which lines are one message, that numbers never change, and that memory is bounded.

Lines as words: what is a value, and that giant lines are bounded.
"""

import io
import random
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock.rca.analyst.templates import (
    VALUE,
    TemplateMiner,
    read_blocks,
    split_shape,
)

WORDS = st.lists(st.sampled_from(["box", "lid", "shut", "of", "7", "x=1", "/a/b", ""]), max_size=6)

NAMED = st.tuples(
    *(st.sampled_from(words) for words in (["lid", "box"], "abcdefg", ["of"], "hijklmn", ["on"]))
)


def texts(*lines: str) -> list[str]:
    miner = TemplateMiner()
    return [miner.get_text(number) for number in miner.add_block("\n".join(lines).encode())]


def test_values_are_found_by_their_look() -> None:
    assert texts("box 7 shut after 12 ms", "box 81 shut after 3 ms") == [
        "box <*> shut after <*> ms",
        "box <*> shut after <*> ms",
    ]


def test_values_are_found_by_what_stands_beside_them() -> None:
    names = ["ann", "bob", "cid", "dan", "eve"]
    assert set(texts(*(f"greeting sent to {name} today" for name in names))) == {
        "greeting sent to <*> today"
    }
    assert len(set(texts(*(f"greeting sent to {name} today" for name in names[:4])))) == 4


def test_a_word_beside_a_value_is_one() -> None:
    assert set(texts("moved to 10.0.0.1 now", "moved to home now")) == {"moved to <*> now"}


NAMES = ["ann", "bob", "cid", "dan", "eve", "fay", "gus"]


@pytest.mark.parametrize(
    ("line", "template"),
    [
        ("gave lid of {} to friend {} today", "gave lid of <*> to friend <*> today"),
        ("box went from {0} over to {1}", "box went from <*> over to <*>"),
        ("{} gave lid back to {}", "<*> gave lid back to <*>"),
        ("[{0}.box.example] sent lid to {1}", "<*> sent lid to <*>"),
    ],
)
def test_values_that_vary_together_are_found(line: str, template: str) -> None:
    many = [f"{name}{more}" for name in NAMES for more in ("", "x", "y")]
    pairs = zip(many, [*many[5:], *many[:5]], strict=True)
    assert set(texts(*(line.format(one, two) for one, two in pairs))) == {template}


def test_states_that_vary_together_are_values() -> None:
    states = ["NEW", "IDLE", "BUSY", "DONE", "LOST"]
    lines = [f"task went from {one} to {two}" for one in states for two in states if one != two]
    assert set(texts(*lines)) == {"task went from <*> to <*>"}


def test_later_lines_are_held_against_what_was_found() -> None:
    miner = TemplateMiner()
    lines = [f"lid of {one} is on {two}" for one, two in zip(NAMES, NAMES[::-1], strict=True)]
    first = miner.add_block("\n".join(lines).encode())
    assert miner.add_block(b"lid of zoe is on yan\n") == [first[0]]
    assert len(set(first)) == 1


@pytest.mark.parametrize(
    "lines",
    [
        ["Box setting:lid.size=3", "Box setting:lid.name=ann", "Box setting:user.home=/a/b"],
        ["box opened", "box closed", "box painted", "box moved", "box cleaned", "box mended"],
        ["go from NEW to OLD", "go from NEW to RED", "go from NEW to BIG", "go from NEW to END"],
        [
            "cron started it",
            "init started it",
            "sshd started it",
            "cups started it",
            "x started it",
        ],
    ],
)
def test_other_messages_stay_apart(lines: list[str]) -> None:
    assert len(set(texts(*lines))) == len(lines)


@given(
    st.lists((WORDS | NAMED).map(" ".join), max_size=40),
    st.integers(1, 30),
    st.sampled_from([400, 1 << 20]),
)
def test_a_line_keeps_its_number(lines: list[str], size: int, memo: int) -> None:
    miner = TemplateMiner(memo_bytes=memo)
    given_numbers: dict[str, int] = {}
    for start in range(0, len(lines), size):
        part = lines[start : start + size]
        numbers = miner.add_block("".join(f"{line}\n" for line in part).encode())
        assert len(numbers) == len(part)
        for line, number in zip(part, numbers, strict=True):
            assert given_numbers.setdefault(line, number) == number
            assert miner.get_text(number) is not None


@given(st.lists(st.binary().map(lambda line: line.replace(b"\n", b"")), min_size=1))
def test_every_line_of_any_bytes_has_a_template(lines: list[bytes]) -> None:
    assert len(TemplateMiner().add_block(b"".join(line + b"\n" for line in lines))) == len(lines)


@given(st.text(alphabet="ab 01x.:-", max_size=40), st.randoms(use_true_random=False))
def test_other_digits_are_the_same_template(line: str, chance: random.Random) -> None:
    other = "".join(chance.choice("0123456789") if sign.isdigit() else sign for sign in line)
    (one, two) = TemplateMiner().add_block(f"{line}\n{other}\n".encode())
    assert one == two


def test_endless_new_lines_are_bounded() -> None:
    miner = TemplateMiner(most_templates=50, memo_bytes=10_000)
    letters = "abcdefghijklmnopqrst"
    for first in letters:
        block = "".join(f"{first}{a}{b} {b}{a}\n" for a in letters for b in letters)
        assert len(miner.add_block(block.encode())) == 400
    assert len(miner) <= 101
    assert sum(map(len, miner._memo)) <= 10_000
    assert len(miner._numbers) <= 101


def test_drawn_names_do_not_fill_the_memo_with_templates() -> None:
    chance = random.Random(1)
    lines = [f"asked for {chance.getrandbits(128):032x} again" for _ in range(1_000)]
    assert set(texts(*lines)) == {"asked for <*> again"}


@given(
    st.lists(st.binary(max_size=9).map(lambda line: line.replace(b"\n", b""))), st.integers(1, 9)
)
def test_blocks_hold_whole_lines(lines: list[bytes], size: int) -> None:
    data = b"".join(line + b"\n" for line in lines)
    blocks = list(read_blocks(io.BytesIO(data), size))
    assert b"".join(blocks) == data
    assert all(block.endswith(b"\n") for block in blocks)


def test_a_file_without_line_ends_is_one_bounded_block() -> None:
    (block,) = read_blocks(io.BytesIO(b"x" * 3_000_000))
    assert len(block) == 65_536
    assert len(TemplateMiner().add_block(block)) == 1


def test_a_giant_line_is_cut_but_counts_as_one() -> None:
    data = b"a\n" + b"x" * 3_000_000 + b"\nb\n"
    miner = TemplateMiner()
    assert sum(len(miner.add_block(block)) for block in read_blocks(io.BytesIO(data))) == 3


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
    assert " ".join(split_shape(line)) == words


@given(st.text())
def test_any_line_has_few_words_and_no_two_values_in_a_row(line: str) -> None:
    words = split_shape(line)
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
    assert len(split_shape(piece * (1_000_000 // len(piece)))) <= 100
