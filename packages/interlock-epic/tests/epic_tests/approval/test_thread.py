"""Test reading a whole issue: authors, last words, the label, closing, edits and replies."""

import pytest

from interlock.signals.comments import CommentDecision, format_reply_marker, has_own_marker
from interlock.system.github_comments import UNKNOWN_EDITOR, Author, Comment
from interlock_epic.approval.thread import (
    CLOSED,
    TRUSTED,
    LabelEvent,
    Request,
    Thread,
    ThreadState,
    may_answer,
    read_thread,
)

REQUEST = Request("w-1", 100.0, "robot")
MAY = may_answer()


def person(login: str, association: str = "MEMBER", bot: bool = False) -> Author:
    return Author(login, association, bot)


def make_comment(body: str, by: str = "ann", at: float = 200.0, edited_by: str = "") -> Comment:
    return Comment(f"{by}-{at:.0f}", person(by), body, at, edited_by)


def read(
    *comments: Comment, labels: tuple[LabelEvent, ...] = (), closed: bool = False
) -> ThreadState:
    return read_thread(Thread(comments, labels, closed), REQUEST, MAY)


def decision(state: ThreadState) -> tuple[str, str]:
    found = state.answer
    return (found.decision.value if found else "", state.answered_by)


def outcomes(state: ThreadState) -> list[str]:
    return [each.reading.decision.value for each in state.judged]


def test_one_approval_decides() -> None:
    assert decision(read(make_comment("LGTM"))) == ("APPROVE", "ann")


def test_nothing_decides_nothing() -> None:
    assert read() == ThreadState(())


@pytest.mark.parametrize(
    "comment",
    [
        Comment("1", person("ci", bot=True), "/approve", 200),
        Comment("1", person("ci[bot]"), "/approve", 200),
        Comment("1", person("eve", "NONE"), "/approve", 200),
        Comment("1", person("eve", "CONTRIBUTOR"), "/approve", 200),
        Comment("1", person("eve", "FIRST_TIME_CONTRIBUTOR"), "/halt", 200),
        Comment("1", person("", ""), "/approve", 200),
        make_comment("/approve", "robot"),
        make_comment("/approve", "ROBOT"),
        make_comment("/approve", at=99.0),
        make_comment("<!-- interlock:request w-1 -->\n/approve"),
        make_comment("/approve\n\n<!-- interlock:asked-back 7 -->"),
    ],
)
def test_those_who_do_not_count(comment: Comment) -> None:
    state = read(comment)
    assert (outcomes(state), decision(state), state.unclear) == (
        ["IGNORED"],
        ("", ""),
        (),
    )


def test_a_list_goes_before_associations() -> None:
    may = may_answer(["@Eve"])
    thread = Thread((make_comment("/halt", "ann"), make_comment("/approve", "eve")))
    assert decision(read_thread(thread, REQUEST, may)) == ("APPROVE", "eve")
    assert all(MAY(person("x", each)) for each in TRUSTED)


def test_a_quoted_marker_is_not_ours() -> None:
    assert not has_own_marker("> <!-- interlock:request w-1 -->\n\nLGTM")
    assert has_own_marker("text\n<!-- interlock:request w-1 -->")
    assert has_own_marker("> quote\n\n<!--interlock: x -->")
    assert not has_own_marker("we use interlock here")


def test_the_last_word_of_a_person_counts() -> None:
    first, second = make_comment("/revise rename it", at=200), make_comment("LGTM", at=300)
    assert decision(read(second, first)) == ("APPROVE", "ann")
    assert decision(read(make_comment("LGTM", at=200), make_comment("/halt", at=300))) == (
        "HALT",
        "ann",
    )
    assert decision(read(make_comment("LGTM", at=200), make_comment("wait", at=300))) == ("", "")


def test_of_several_people_the_most_cautious_one_counts() -> None:
    people = [
        make_comment("LGTM", "ann"),
        make_comment("/revise rename it", "bob"),
        make_comment("/defer", "cid"),
    ]
    assert decision(read(*people)) == ("REVISE", "bob")
    assert decision(read(*people, make_comment("/halt", "dan"))) == ("HALT", "dan")


def test_an_unclear_comment_holds_back_only_approvals_before_it() -> None:
    approval, doubt = make_comment("LGTM", "ann", 200), make_comment("wait", "bob", 201)
    assert decision(read(approval, doubt)) == ("", "")
    assert [each.comment for each in read(approval, doubt).unclear] == [doubt]
    again = make_comment("/approve", "ann", 202)
    assert decision(read(approval, doubt, again)) == ("APPROVE", "ann")
    assert decision(read(doubt, make_comment("/halt", "ann", 200))) == ("HALT", "ann")
    assert decision(read(doubt, make_comment("/approve", "bob", 202))) == ("APPROVE", "bob")


def label(
    by: str = "ann", at: float = 200.0, on: bool = True, name: str = "approved"
) -> LabelEvent:
    return LabelEvent(name, person(by), at, on)


def test_the_label_of_someone_who_may_decides() -> None:
    assert decision(read(labels=(label(),))) == ("APPROVE", "ann")
    assert decision(read(labels=(label(name="Approved"),))) == ("APPROVE", "ann")


@pytest.mark.parametrize(
    "labels",
    [
        (label("robot"),),
        (label(at=99),),
        (label(), label(at=300, on=False)),
        (label(name="needs-approval"),),
        (LabelEvent("approved", person("eve", "NONE"), 200),),
        (LabelEvent("approved", person("ci", bot=True), 200),),
        (label(at=200), LabelEvent("approved", person("eve", "NONE"), 300)),
    ],
)
def test_other_labels_are_no_answers(labels: tuple[LabelEvent, ...]) -> None:
    assert decision(read(labels=labels)) == ("", "")


def test_label_and_comment_that_differ() -> None:
    labels = (label("ann"),)
    assert decision(read(make_comment("/revise", "bob"), labels=labels)) == ("REVISE", "bob")
    assert decision(read(make_comment("👍", "ann"), labels=labels)) == ("", "")
    assert decision(read(make_comment("hm", "ann", 150), labels=labels)) == ("", "")
    assert decision(read(make_comment("hm", "bob", 150), labels=labels)) == ("APPROVE", "ann")
    assert decision(read(make_comment("hm", "bob", 201), labels=labels)) == ("", "")
    assert decision(read(make_comment("LGTM", "bob"), labels=labels)) in (
        ("APPROVE", "bob"),
        ("APPROVE", "ann"),
    )


def test_an_edit_by_another_is_unclear_and_one_by_nobody_knows_whom_cannot_approve() -> None:
    assert outcomes(read(make_comment("LGTM", edited_by="bob"))) == ["UNCLEAR"]
    assert outcomes(read(make_comment("/halt", edited_by="bob"))) == ["UNCLEAR"]
    assert outcomes(read(make_comment("LGTM", edited_by="Ann"))) == ["APPROVE"]
    assert outcomes(read(make_comment("LGTM", edited_by=UNKNOWN_EDITOR))) == ["UNCLEAR"]
    assert outcomes(read(make_comment("/halt", edited_by=UNKNOWN_EDITOR))) == ["HALT"]


def test_each_unclear_comment_gets_one_reply() -> None:
    first, second = make_comment("hm", at=150), make_comment("👍", at=200)
    state = read(second, first)
    assert [each.comment for each in state.unclear] == [first, second]
    replies = [
        make_comment(f"What?\n\n{format_reply_marker(each.mark)}", "robot", 210)
        for each in state.unclear
    ]
    assert read(first, second, *replies).unclear == ()
    third = make_comment("yes", at=220)
    assert [each.comment for each in read(first, second, *replies, third).unclear] == [third]


def test_an_unclear_comment_that_is_edited_may_get_another_reply() -> None:
    before = make_comment("👍", at=200)
    reply = make_comment(format_reply_marker(read(before).unclear[0].mark), "robot", 210)
    after = Comment(before.comment_id, before.author, "ok", 230, "ann")
    assert [each.comment for each in read(reply, after).unclear] == [after]


@pytest.mark.parametrize(
    "author", [person("ci", bot=True), person("ci[bot]"), person("eve", "NONE"), person("robot")]
)
def test_who_is_not_heard_gets_no_reply(author: Author) -> None:
    assert read(Comment("1", author, "hm", 200)).unclear == ()


def test_a_strangers_mark_does_not_silence_us() -> None:
    unclear = make_comment("👍", at=200)
    mark = format_reply_marker(read(unclear).unclear[0].mark)
    assert len(read(unclear, make_comment(mark, "eve", 210)).unclear) == 1


def test_nobody_gets_a_reply_once_it_is_decided() -> None:
    approval = make_comment("LGTM", "ann", 201)
    assert read(approval, make_comment("Interesting", "bob")).unclear == ()


def test_closing_is_unclear_and_does_not_spoil_an_approval() -> None:
    assert read(closed=True).is_closed_unanswered
    asked = make_comment(format_reply_marker(CLOSED), "robot")
    assert not read(asked, closed=True).is_closed_unanswered
    both = read(make_comment("LGTM"), closed=True)
    assert (decision(both), both.is_closed_unanswered) == (("APPROVE", "ann"), False)


def test_no_thread_of_unclear_words_decides() -> None:
    words = ("👍", "yes", "ok", "wait", "approved?", "hm", "LGTM 🙃")
    state = read(*(make_comment(word, f"p{n}", 200 + n) for n, word in enumerate(words)))
    assert decision(state) == ("", "")
    assert CommentDecision.APPROVE.value not in outcomes(state)
