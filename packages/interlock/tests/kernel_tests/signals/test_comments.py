"""Human comments: a table of real ways to write, the rules, and laws that nothing else approves."""

import re
import sys
from pathlib import Path

import msgspec
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from interlock.signals.comments import (
    APPROVE,
    CAUTION,
    LONGEST,
    UNCLEAR,
    CommentDecision,
    read_comment,
)

TABLE = Path(__file__).with_name("comments.jsonl")
REQUEST = "w-7"
APPROVALS = (
    "/approve",
    "/APPROVE",
    "   /approve",
    "/approve.",
    "/approve!!!",
    "/approve thanks",
    "/approve\n\nThank you!",
    "Well done.\n/approve",
    "/approve @bob",
    "@bob\n/approve",
    "/approve @org/team, great work",
    "/approve w-7",
    "/approve #w-7 🎉",
    "/approve :tada: 👍🏽",
    "approve",
    "Approved.",
    "LGTM 🚀",
    "ship it!",
    "Thanks, approved @bob",
    "@bob LGTM",
    "> the question\n\n/approve",
    "```\nrm -rf /\n```\n/approve",
    "<!-- hidden -->\n/approve",
    "<pre>no</pre>\n/approve",
    "/approve\r\n",
    "\ufeff/approve",
)
UNCLEAR_ONES = (
    "",
    "> /approve",
    "```\n/approve\n```",
    "    /approve",
    "<code>/approve</code>",
    "<!-- /approve -->",
    "`/approve`",
    "- /approve",
    "> the question\n/approve",
    "LGTM\n> The plan\nbut not the third part",
    "thanks /approve",
    "/approve\n/approve",
    "/approve LGTM",
    "/approve thanks, great work",
    "/approve thanks Bob",
    "/approve w-8",
    "/approve 👎",
    "/approve?",
    "/approve...",
    "/approve <code>x</code> not yet",
    "/approve <code>not yet",
    "<!-- hidden --> not yet\n\n/approve",
    "<pre>a</pre> not yet\n\n/approve",
    "<code>a</code> <code>b</code> not yet\n\n/approve",
    "<!-- a\nb --> not yet\n\n/approve",
    "@bob <!-- a\nb --> not yet\n\n/approve",
    "LGTM <pre>",
    "LGTM <!-- not yet",
    "/approved",
    "/lgtm",
    "approve...",
    "approve?",
    "~~approve~~",
    "**approve**",
    '"approve"',
    "not approved",
    "@bob approve",
    "@bob: approved",
    "@bob's LGTM",
    "ship\nit",
    "ship🚀it",
    "appr🎉ove",
    "\u017fhip it",
    "/approve\u00a0",
    "/approve\u200b",
    "/\u0430pprove",
    "/approve\rno",
    "approve\x00",
    "approve \x01",
    "genehmigt",
    "yes",
    "+1",
    "👍",
    "looks good to me",
    "x" * (LONGEST + 1),
    f"/approve{' ' * LONGEST}",
)
OTHERS = {
    "/revise rename it": ("REVISE", "rename it"),
    "/Revise: rename it": ("REVISE", "rename it"),
    "Please:\n/revise\n- a\n- b": ("REVISE", "Please:\n\n- a\n- b"),
    "/revise\n```py\nx\n```\n": ("REVISE", "```py\nx\n```"),
    "/discuss the table": ("DISCUSS", "the table"),
    "/halt": ("HALT", ""),
    "/HALT!": ("HALT", "!"),
    "/defer until Monday": ("DEFER", "until Monday"),
    "/approve\n/halt now": ("HALT", "now"),
    "/defer\n/discuss": ("DISCUSS", ""),
    "/discuss\n/revise": ("REVISE", ""),
    "/halt\n/revise": ("HALT", ""),
    "> /approve\n\n/defer": ("DEFER", "> /approve"),
    "/halt <code>": ("HALT", "<code>"),
}


class Row(msgspec.Struct, frozen=True):
    """One comment of the table, and the decision that the rules give it."""

    want: CommentDecision
    comment: str


def read_table() -> list[Row]:
    lines = TABLE.read_text(encoding="utf-8").split("\n")
    return [msgspec.json.decode(line, type=Row) for line in lines if line]


def test_the_table() -> None:
    report = []
    for row in read_table():
        found = read_comment(row.comment)
        if found.decision is not row.want:
            fault = "FALSE APPROVAL" if found.decision is APPROVE else "wrong"
            report.append(f"{fault}: {row.comment!r:.100}: {found.decision}, not {row.want}")
    assert not report, "\n".join(sorted(report))


def test_the_table_has_every_decision_and_no_comment_twice() -> None:
    rows = read_table()
    wanted = [row.want for row in rows]
    assert min(wanted.count(each) for each in CAUTION) >= 5
    assert len({row.comment for row in rows}) == len(rows)


def test_approvals() -> None:
    assert [each for each in APPROVALS if decide(each) is not APPROVE] == []


def test_everything_else_is_unclear() -> None:
    assert [each[:80] for each in UNCLEAR_ONES if decide(each) is not UNCLEAR] == []


@pytest.mark.parametrize("comment", OTHERS)
def test_the_most_cautious_command_decides_and_the_rest_are_its_notes(comment: str) -> None:
    found = read_comment(comment, REQUEST)
    assert (found.decision.value, found.notes) == OTHERS[comment]


def decide(comment: str) -> CommentDecision:
    return read_comment(comment, REQUEST).decision


WORDS = st.text(st.characters(categories=["L", "N"]), min_size=1, max_size=12)
"""A word of any language."""
SIGNS = st.characters(min_codepoint=33, exclude_categories=["Cs"])
PLAIN = [
    text for text in APPROVALS if re.fullmatch(r"\s*[/\w][\w ,.!/-]*", text.replace("\n", " "))
]


@given(st.sampled_from(PLAIN), WORDS, st.sampled_from(" \n\t"), st.booleans())
def test_an_approval_with_any_further_word_is_unclear(
    approval: str, word: str, gap: str, before: bool
) -> None:
    assume(word.casefold() not in ("thanks", "approve", "approved", "lgtm"))
    text = f"{word}{gap}{approval}" if before else f"{approval}{gap}{word}"
    assert decide(text) is UNCLEAR


@given(st.sampled_from(PLAIN), st.data())
def test_no_sign_put_into_an_approval_is_passed_over(approval: str, data: st.DataObject) -> None:
    """Only what the white list names may stand there: a mark, an emoji or a mention."""
    at = data.draw(st.integers(0, len(approval)))
    sign = data.draw(SIGNS)
    assume(sign not in ".,!#\ufeff" and not is_emoji(sign))
    text = approval[:at] + sign + approval[at:]
    if decide(text) is APPROVE:
        assert "@" in text
        assert sign.isascii()


def is_emoji(sign: str) -> bool:
    return decide(f"/approve {sign}") is APPROVE


def test_few_signs_are_friendly() -> None:
    every = map(chr, range(33, sys.maxunicode))
    friendly = [sign for sign in every if not "\ud800" <= sign <= "\udfff" and is_emoji(sign)]
    assert len(friendly) < 60
    assert not {*friendly} & {*"👎❌🛑⛔🤔😕😡💔✋"}


@given(st.lists(st.one_of(st.sampled_from([*APPROVALS, *OTHERS, ">", "```", "<pre>"]), WORDS)))
def test_any_text_gets_a_decision_and_approves_only_without_other_words(parts: list[str]) -> None:
    text = "\n".join(parts)
    found = read_comment(text, REQUEST)
    assert found.decision in CAUTION
    assert bool(found.notes) <= (found.decision not in (APPROVE, UNCLEAR))


@pytest.mark.parametrize(
    "sign", ["/approve ", "@a ", "👍", "> ", "```\n", "<code>", "x<code>", "x<!--", "! "]
)
def test_a_lot_of_anything_is_read_in_one_go(sign: str) -> None:
    decide((sign * LONGEST)[:LONGEST])
