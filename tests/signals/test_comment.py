"""What comments are taken for: a corpus of our own, and laws that hold for every approval."""

import string
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.signals import comment_corpus as corpus

from interlock.epic.approval.comment import LONGEST, read_comment
from interlock.epic.approval.comment_verdict import CommentDecision


def _named(comment: str) -> str:
    return repr(comment)[:60]


@pytest.mark.parametrize("comment", corpus.APPROVE, ids=_named)
def test_a_plain_approval_is_found(comment: str) -> None:
    verdict = read_comment(comment)
    assert (verdict.outcome, verdict.evidence != ()) == (CommentDecision.APPROVE, True), verdict


@pytest.mark.parametrize("comment", corpus.NEVER, ids=_named)
def test_what_a_careful_reader_would_not_take_for_an_approval(comment: str) -> None:
    assert read_comment(comment).outcome is not CommentDecision.APPROVE


@pytest.mark.parametrize(
    ("comment", "outcome"),
    [
        *((each, CommentDecision.REVISE) for each in corpus.REVISE),
        *((each, CommentDecision.DISCUSS) for each in corpus.DISCUSS),
        *((each, CommentDecision.HALT) for each in corpus.HALT),
        *((each, CommentDecision.DEFER) for each in corpus.DEFER),
        *((each, CommentDecision.UNCLEAR) for each in corpus.UNCLEAR),
    ],
    ids=_named,
)
def test_every_other_outcome(comment: str, outcome: CommentDecision) -> None:
    verdict = read_comment(comment)
    assert verdict.outcome is outcome, verdict


def test_the_corpus_is_large_and_has_no_doubles() -> None:
    kinds = (corpus.APPROVE, corpus.REVISE, corpus.DISCUSS, corpus.HALT, corpus.DEFER)
    every = [each for kind in (*kinds, corpus.UNCLEAR, corpus.NEVER) for each in kind]
    assert len(every) >= 400
    assert sorted(each for each in set(every) if every.count(each) > 1) == []


APPROVALS = st.sampled_from(corpus.APPROVE)
SPOILERS = st.sampled_from(
    [
        "but not the third part",
        "not really",
        "if the tests pass",
        "unless Bob objects",
        "once CI is green",
        "is that right?",
        "I am not sure",
        "do not merge",
        "fix the typo",
        "however I have concerns",
        "except the last story",
        "wait",
        "stop",
        "No.",
        "never",
        "I take that back",
        "just kidding",
        "not approved",
        "why?",
        "pending review",
        "/halt",
        "the tests fail",
        "provided that legal agrees",
        "lol no",
        "I'd rather wait",
    ]
)


@given(APPROVALS, SPOILERS, st.sampled_from(["\n\n", "\n"]))
def test_a_spoiler_behind_an_approval_never_approves(text: str, spoiler: str, gap: str) -> None:
    if _closes(text):
        assert read_comment(f"{text.rstrip()}{gap}{spoiler}").outcome is not CommentDecision.APPROVE


def _closes(text: str) -> bool:
    """Whether what is added stands in the writer's own words and not in a quote or a footer."""
    tail = ("wrote:", "Original Message", "\n-- \n", "Sent from", "email is confidential", "> ")
    return not any(each in text for each in tail)


@given(APPROVALS, SPOILERS)
def test_a_spoiler_before_an_approval_never_approves(text: str, spoiler: str) -> None:
    overcome = ("EDIT", "Update", "Scratch", "now", "done", "resolved", "addressed", "green")
    if not any(word in text for word in overcome):
        assert read_comment(f"{spoiler}\n\n{text}").outcome is not CommentDecision.APPROVE


def _is_bare(text: str) -> bool:
    """Whether a doubt stuck to its end is about the approval and not about a remark beside it."""
    remark = ("block", "Optional", "nit", "later", "follow-up")
    return not any(each in text for each in ("\n", "/", *remark))


@given(
    st.sampled_from([each for each in corpus.APPROVE if _is_bare(each)]),
    st.sampled_from(["?", " ?", ", right?", " or not", " - NOT", ", not", " (if green)", " maybe"]),
)
def test_a_doubt_stuck_to_an_approval_never_approves(text: str, doubt: str) -> None:
    assert read_comment(text.rstrip(".! ") + doubt).outcome is not CommentDecision.APPROVE


PLAIN = [each for each in corpus.APPROVE if each.isascii() and "\n" not in each and "," not in each]


@given(st.sampled_from(PLAIN), st.sampled_from([str.upper, str.lower, str.title]))
def test_case_does_not_matter(text: str, change: object) -> None:
    assert callable(change)
    if "http" not in text and ":" not in text and "'" not in text:
        assert read_comment(change(text)).outcome is CommentDecision.APPROVE


EVERY = [*corpus.APPROVE, *corpus.NEVER, *corpus.REVISE, *corpus.DISCUSS, *corpus.UNCLEAR]


@given(st.sampled_from(EVERY))
def test_line_ends_and_blanks_around_do_not_matter(text: str) -> None:
    if len(text) < 1000 and "    " not in text:
        unix = text.replace("\r\n", "\n")
        outcomes = {
            read_comment(unix).outcome,
            read_comment(unix.replace("\n", "\r\n")).outcome,
            read_comment(f"{unix}\n\n").outcome,
            read_comment(f"\n\n{unix.removeprefix(chr(0xFEFF))}  ").outcome,
        }
        assert len(outcomes) == 1


@given(st.text(max_size=400))
def test_any_text_has_a_verdict_with_places_inside_it(text: str) -> None:
    verdict = read_comment(text)
    assert all(0 <= span.start <= span.end <= len(text) for span in verdict.evidence)


@given(st.text(alphabet=string.ascii_lowercase + " .,\n'", max_size=120))
def test_noise_does_not_approve(text: str) -> None:
    if not any(word in text for word in ("approv", "lgtm", "ship", "ahead", "proceed", "good")):
        assert read_comment(text).outcome is not CommentDecision.APPROVE


PIECES = (
    *(
        "LGTM. ",
        "approved ",
        "> q\n",
        "```\n",
        "`",
        '"',
        "~~",
        "<",
        "<!--",
        "[",
        "](",
        "not ",
        "if ",
    ),
    *("please ", "\n", "\n\n", "- ", "    x\n", "(", ", ", "...", "\u200b", "no ", "on x wrote:\n"),
    *("if you ", "we should ", "_", "*", "**a", ":", "/approve\n", "in a ", "once the a b c d "),
)


class _Steps:
    """Counts the lines of Python that reading takes; patterns count by what they are given."""

    def __init__(self) -> None:
        self.count = 0

    def __call__(self, frame: object, event: str, arg: object) -> "_Steps":
        self.count += event == "line"
        return self


def _steps(text: str) -> int:
    steps, before = _Steps(), sys.gettrace()
    sys.settrace(steps)
    try:
        read_comment(text)
    finally:
        sys.settrace(before)
    return steps.count


@pytest.mark.parametrize("piece", PIECES, ids=repr)
def test_the_work_grows_with_the_length_and_no_faster(piece: str) -> None:
    small = piece * (LONGEST // 8 // len(piece))
    large = piece * (LONGEST // len(piece))
    assert _steps(large) <= 12 * _steps(small) + 2_000


def test_a_megabyte_is_not_read() -> None:
    verdict = read_comment("LGTM " * 200_000)
    assert verdict.outcome is CommentDecision.UNCLEAR
    assert "65,536 characters" in verdict.why


def test_notes_are_the_humans_own_words() -> None:
    comment = "> Is it good?\n\nNo.\r\nPlease rename `foo`.\n\n```\nlog\n```\nThanks"
    assert read_comment(comment).notes == "No.\nPlease rename `foo`.\nThanks"
    assert read_comment("not approved").notes == ""
    assert read_comment("/revise the title\nand the rest").notes == "the title\nand the rest"


def test_this_requests_id_may_stand_beside_an_approval_and_no_other() -> None:
    for text in ("/approve w-7", "/approve #w-7", "Approved w-7", "LGTM for request w-7"):
        assert read_comment(text, "W-7").outcome is CommentDecision.APPROVE, text
        assert read_comment(text, "w-8").outcome is CommentDecision.UNCLEAR, text


def test_what_goes_on_below_a_command_narrows_it_down() -> None:
    for more in ("the old plan", "for story 1", "next month", "story 2"):
        assert read_comment(f"/approve\n{more}").outcome is CommentDecision.UNCLEAR, more
    for more in ("Great plan.", "thanks all", "The retry logic is neat."):
        assert read_comment(f"/approve\n{more}").outcome is CommentDecision.APPROVE, more


def test_another_language_is_not_read_and_never_passes() -> None:
    for text in ("Nicht approved", "pas encore LGTM", "Bitte proceed", "no está approved"):
        assert read_comment(text).outcome is CommentDecision.UNCLEAR, text
    assert read_comment("/approve\n\naber nicht die Datenbank").outcome is CommentDecision.UNCLEAR


def test_a_time_belongs_to_its_deferral() -> None:
    assert read_comment("Postpone this until January.").outcome is CommentDecision.DEFER
    assert read_comment("Please hold on until tomorrow").outcome is CommentDecision.UNCLEAR
    assert (
        read_comment("Approved, but postpone it until May.").outcome is not CommentDecision.APPROVE
    )


def test_a_bare_approve_behind_a_name_asks_for_one() -> None:
    assert read_comment("Approve this.").outcome is CommentDecision.APPROVE
    for text in ("Team, approve this.", "@bob approve this", "Hi Bob, approve it", "pls approve"):
        assert read_comment(text).outcome is CommentDecision.UNCLEAR, text
