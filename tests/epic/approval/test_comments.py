"""What one comment is taken for: a corpus, tables for the rules, and laws for every approval."""

import re
import string
import sys
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock.epic.approval import comments
from interlock.epic.approval.comments import (
    APPROVE,
    UNCLEAR,
    CommentDecision,
    read_comment,
)
from interlock.signals.comments import LONGEST

CORPUS = Path(__file__).parent / "comments" / "corpus.jsonl"
"""Ways in which people write, and the one decision that the rules give each."""


class Noted(msgspec.Struct, frozen=True):
    want: CommentDecision
    comment: str


def _noted() -> list[Noted]:
    lines = CORPUS.read_text(encoding="utf-8").split("\n")
    return [msgspec.json.decode(line, type=Noted) for line in lines if line]


NOTED = _noted()
APPROVALS = [each.comment for each in NOTED if each.want is APPROVE]
PLAIN = [text for text in APPROVALS if re.fullmatch(r"[\w ,.!'-]+", text)]
"""Approvals in one line of words: whatever is put into them is read."""


def _fault(want: CommentDecision, found: CommentDecision) -> str:
    if found is APPROVE:
        return "FALSE APPROVAL"
    return "not understood" if found is UNCLEAR else "taken the wrong way"


def test_corpus() -> None:
    report = []
    for each in NOTED:
        found = read_comment(each.comment)
        if found.decision is not each.want:
            fault = _fault(each.want, found.decision)
            visible = f"{each.comment!r:.100}: {found.decision}, {found.why}; wanted {each.want}"
            report.append(f"{fault}: {visible}")
    right = len(NOTED) - len(report)
    assert not report, "\n".join([f"{right} of {len(NOTED)} right", *sorted(report)])


def test_corpus_has_every_decision_and_no_comment_twice() -> None:
    wanted = [each.want for each in NOTED]
    assert all(wanted.count(each) >= 20 for each in comments.CAUTION)
    assert len({each.comment for each in NOTED}) == len(NOTED) >= 3500


def _decide(comment: str, request_id: str = "") -> str:
    return read_comment(comment, request_id).decision.value


COMMANDS = {
    "/approve": "APPROVE",
    "/APPROVE": "APPROVE",
    "   /approve": "APPROVE",
    "/approve thanks, great work": "APPROVE",
    "/approve thanks Bob": "APPROVE",
    "/approve @bob": "APPROVE",
    "/approve #w-7": "APPROVE",
    "/approve w-7": "APPROVE",
    "/approve w-8": "UNCLEAR",
    "/approve Staging": "UNCLEAR",
    "/approve thanks Later": "UNCLEAR",
    "/approve the first half": "UNCLEAR",
    "/approve if CI is green": "UNCLEAR",
    "/approve?": "UNCLEAR",
    "/approve...": "UNCLEAR",
    "/approve\nthe old plan": "UNCLEAR",
    "/approve\nThe retry logic is neat.": "APPROVE",
    "/approve\n\nI checked the migration on staging.": "APPROVE",
    "/approve\n\nUnless Bob objects.": "UNCLEAR",
    "/approve\n\nI did not test it.": "UNCLEAR",
    "/approve\n\nIs that enough?": "UNCLEAR",
    "/approve\n\nFor story 1.": "UNCLEAR",
    "/approve\n\naber nicht die Datenbank": "UNCLEAR",
    "/approve\n\nfür die Datenbank": "UNCLEAR",
    "/lgtm": "UNCLEAR",
    "/aprove": "UNCLEAR",
    "/approve\n/lgtm": "UNCLEAR",
    "/halt\n/lgtm": "HALT",
    "/approve\n/defer": "DEFER",
    "/defer\n/discuss": "DISCUSS",
    "/discuss\n/revise": "REVISE",
    "/revise\n/halt": "HALT",
    "please /approve": "UNCLEAR",
    "- /approve": "UNCLEAR",
    "- /halt": "HALT",
    "> /halt\n\n/approve": "APPROVE",
    "> quoted\n/approve": "UNCLEAR",
    "> quoted\n/halt": "HALT",
    "```\n/halt\n```\n/approve": "APPROVE",
    "    /approve": "UNCLEAR",
    "`/approve`": "UNCLEAR",
    "<!-- /approve -->": "UNCLEAR",
    "/approve/foo": "UNCLEAR",
    "/approve\n\n    but not story 2": "UNCLEAR",
    "/halt\n\n    log": "HALT",
}
WORDS = {
    "Approved": "APPROVE",
    "Hi team, @ann: approved": "UNCLEAR",
    "Hi team, @ann, approved w-7. Thanks! 🎉": "APPROVE",
    "LGTM for request w-7": "APPROVE",
    "LGTM w-8": "UNCLEAR",
    "> Is the plan good?\n\nYes, I approve this plan now.": "APPROVE",
    "yes": "UNCLEAR",
    "ok": "UNCLEAR",
    "go": "UNCLEAR",
    "+1": "UNCLEAR",
    "👍": "UNCLEAR",
    "LGTM 🙃": "UNCLEAR",
    "LGTM, yes": "UNCLEAR",
    "LGTM, but the tests fail": "UNCLEAR",
    "LGTM. The docs are clear.": "UNCLEAR",
    "LGTM if CI is green": "UNCLEAR",
    "LGTM and": "UNCLEAR",
    "Approved:\n> only story 1": "UNCLEAR",
    "approved.txt": "UNCLEAR",
    "Genehmigt": "UNCLEAR",
    "Approve this.": "APPROVE",
    "@bob approve this": "UNCLEAR",
    "Approve this, thanks": "UNCLEAR",
    "please approve": "UNCLEAR",
    "@bob approved": "UNCLEAR",
    "@bob, approved": "APPROVE",
    "LGTM\n> The plan\nexcept the third part": "UNCLEAR",
    "LGTM\n\n    except the third part": "UNCLEAR",
    "LGTM\n\n```\nlog\n```": "APPROVE",
    "LGTM\n\nOn second thought, as Bob wrote:\n> no": "UNCLEAR",
    "No.": "REVISE",
    "No, the title is wrong.": "REVISE",
    "no objections": "UNCLEAR",
    "Thanks, but no": "UNCLEAR",
    "Thanks! Please rename the table.": "REVISE",
    "This needs a rollback plan.": "REVISE",
    "You must split story 2.": "REVISE",
    "needs approval by Bob": "UNCLEAR",
    "Fix the title": "REVISE",
    "Fix approved": "UNCLEAR",
    "Update looks good": "UNCLEAR",
    "Correct.": "UNCLEAR",
    "Please correct the title": "REVISE",
    "No - approved": "UNCLEAR",
    "use /approve to approve": "UNCLEAR",
    "Please fix the title. Approved.": "UNCLEAR",
    "Please change the title, then it is approved.": "REVISE",
    "Stop!": "HALT",
    "No, stop.": "HALT",
    "Please do not proceed.": "HALT",
    "Stop the second story": "UNCLEAR",
    "LGTM. Stop.": "UNCLEAR",
    "Not now, thanks": "DEFER",
    "Let's postpone this": "DEFER",
    "Postpone it or stop": "UNCLEAR",
    "Let's talk": "DISCUSS",
    "Why Redis?": "DISCUSS",
    "@ann can we use Postgres?": "DISCUSS",
    "LGTM?": "UNCLEAR",
    "Why Redis? And why now?": "UNCLEAR",
}


@pytest.mark.parametrize("table", [COMMANDS, WORDS], ids=["commands", "words"])
def test_rules(table: dict[str, str]) -> None:
    assert {text: _decide(text, "W-7") for text in table} == table


def test_notes_are_the_humans_own_words() -> None:
    comment = "> Is it good?\n\nNo.\r\nPlease rename `foo`.\n\n```\nlog\n```\nThanks"
    assert read_comment(comment).notes == "No.\nPlease rename `foo`.\nThanks"
    assert read_comment("/revise the title\nand the rest").notes == "the title\nand the rest"
    assert read_comment("LGTM, thanks").notes == ""


def test_evidence_names_the_place() -> None:
    (span,) = read_comment("Thanks! **Approved**.").evidence
    assert (span.start, span.end, span.kind) == (10, 18, "approve")
    (span,) = read_comment("I will wait").evidence
    assert span.kind == comments.DOUBT


# Laws


def _table_words() -> set[str]:
    tables = (comments.POLITENESS, comments.YES, comments.VOTE, *comments.PHRASES.values())
    return set(re.findall(r"[a-z']+", " ".join(form for table in tables for form in table)))


KNOWN = _table_words() | set("abcdefghijklmnopqrstuvwxyz")
LETTERS = st.one_of(
    st.text(string.ascii_letters, min_size=1, max_size=12),
    st.text(st.characters(categories=["L"]), min_size=1, max_size=6),
)
UNKNOWN_WORDS = LETTERS.filter(lambda word: word.lower() not in KNOWN)
SENTENCES = st.builds(
    lambda before, word, after: " ".join([*before, word, *after]),
    st.lists(st.sampled_from(sorted(KNOWN)), max_size=3),
    UNKNOWN_WORDS,
    st.lists(st.sampled_from(sorted(KNOWN)), max_size=3),
)


@given(
    st.sampled_from(PLAIN),
    SENTENCES,
    st.sampled_from([" ", ". ", ", ", " and ", " - ", "\n", "\n\n"]),
    st.booleans(),
)
def test_no_approval_is_found_inside_a_longer_text(
    text: str, more: str, gap: str, first: bool
) -> None:
    if not text.startswith(" "):
        longer = f"{more}{gap}{text}" if first else f"{text}{gap}{more}"
        assert _decide(longer) != "APPROVE"


WRAPPERS = {
    "quote": lambda text: "\n".join(f"> {line}" for line in text.split("\n")),
    "fence": lambda text: f"```\n{text}\n```",
    "open fence": lambda text: f"~~~text\n{text}",
    "indented": lambda text: "x\n\n" + "\n".join(f"    {line}" for line in text.split("\n")),
    "hidden": lambda text: f"<!--\n{text}\n-->",
    "pre": lambda text: f"<pre>\n{text}\n</pre>",
    "struck": lambda text: f"~~{text}~~",
    "code": lambda text: f"`{text}`",
    "said by others": lambda text: f'"{text}"',
    "asked": lambda text: f"{text.rstrip()}?",
    "trailing off": lambda text: f"{text.rstrip()}...",
}


INLINE = ("struck", "code", "said by others", "asked", "trailing off")


@given(st.sampled_from(APPROVALS), st.sampled_from(sorted(WRAPPERS)))
def test_what_is_not_said_plainly_never_approves(text: str, wrapper: str) -> None:
    spans_lines = "\n" in text and wrapper in INLINE
    if not spans_lines and not any(mark in text for mark in ("```", "<!--", "\ufeff")):
        assert _decide(WRAPPERS[wrapper](text)) != "APPROVE", WRAPPERS[wrapper](text)


ODD = "\u200b\u200d\u2060\u00ad\u202e\u2066\u00a0\u2028\u0435\u043e\u0131\uff41\u0301\x00\x1b🙃❌"


@given(st.sampled_from(PLAIN), st.sampled_from(ODD), st.integers(0, 80), st.booleans())
def test_odd_characters_never_approve(text: str, odd: str, at: int, instead: bool) -> None:
    at = min(at, len(text))
    assert _decide(text[:at] + odd + text[at + instead :]) != "APPROVE"


@given(st.sampled_from(PLAIN), st.sampled_from(["upper", "lower", "title"]))
def test_case_does_not_matter(text: str, change: str) -> None:
    if "'" not in text:
        assert _decide(getattr(text, change)()) == "APPROVE"


@given(st.sampled_from(NOTED))
def test_line_ends_and_blanks_around_do_not_matter(noted: Noted) -> None:
    unix = noted.comment.replace("\r\n", "\n")
    if not unix.startswith(("\ufeff", " ", "\t")):
        forms = (unix, unix.replace("\n", "\r\n"), f"{unix}\n\n", f"\n\n{unix}  ")
        assert {_decide(form) for form in forms} == {noted.want.value}


@given(st.text(max_size=400))
def test_any_text_is_read_and_evidence_lies_inside(text: str) -> None:
    reading = read_comment(text)
    assert all(0 <= span.start <= span.end <= len(text) for span in reading.evidence)


# Hostile input


def test_a_comment_longer_than_github_accepts_is_not_read() -> None:
    reading = read_comment("LGTM " * 200_000)
    assert (reading.decision, "65,536 characters" in reading.why) == (UNCLEAR, True)


PIECES = (
    *(
        "LGTM. ",
        "approved ",
        "> q\n",
        "> q\nlazy\n",
        "```\n",
        "`",
        '"',
        "~~",
        "<",
        "<!--",
        "[",
        "](",
    ),
    *(
        "not ",
        "if ",
        "please ",
        "go ahead please ",
        "thanks ",
        "\n",
        "\n\n",
        "- ",
        "    x\n",
        "...",
    ),
    *("_", "*", "**a", ":", "/approve\n", "/approve ", "@a ", "needs a ", "no, ", "\nOn Mon, "),
)


def _count_steps(text: str) -> int:
    """Lines of Python that reading takes."""
    count, before = 0, sys.gettrace()

    def trace(frame: object, event: str, arg: object) -> object:
        nonlocal count
        count += event == "line"
        return trace

    sys.settrace(trace)  # type: ignore[arg-type]
    try:
        read_comment(text)
    finally:
        sys.settrace(before)
    return count


def test_the_work_grows_with_the_length_and_no_faster() -> None:
    small = {piece: _count_steps(piece * (LONGEST // 8 // len(piece))) for piece in PIECES}
    large = {piece: _count_steps(piece * (LONGEST // len(piece))) for piece in PIECES}
    assert [each for each in PIECES if large[each] > 12 * small[each] + 2_000] == []
