"""Reasons against a commit say each thing once, and places before words."""

from interlock_rca.analyst.chances import WEIGHTS
from interlock_rca.analyst.reasons import (
    CommitClue,
    build_origin_clue,
    build_subject_clue,
    build_use_clue,
    tell_clues,
)

_STACK = ("is in the stack",)
_CHANGED = "it changed a.py"


def tell(*clues: CommitClue) -> list[str]:
    return list(tell_clues(clues, WEIGHTS))


def test_what_is_known_of_one_file_is_one_sentence() -> None:
    told = tell(
        CommitClue("named by the failure", 1.0, _CHANGED, "a.py", ("is named by the failure",)),
        CommitClue("named alike", 0.5, _CHANGED, "a.py", _STACK),
        CommitClue("used by the test", 0.4, _CHANGED, "a.py", ("is used by the test's file",)),
    )
    (why,) = told
    assert why.startswith("it changed a.py, which is named by the failure, is in the stack and is")
    assert why.endswith("is used by the test's file")


def test_a_line_of_the_stack_is_not_said_to_be_in_the_stack_again() -> None:
    told = tell(
        CommitClue("wrote the break", 1.0, "it wrote the line that failed, a.py:3", "a.py"),
        CommitClue("named alike", 0.5, _CHANGED, "a.py", _STACK),
    )
    assert told == ["it wrote the line that failed, a.py:3"]


def test_a_file_that_the_test_is_named_after_is_not_said_to_be_named_like_it_too() -> None:
    alike = ("is named like the test", "shares words with the test or the message")
    told = tell(
        build_subject_clue(0.7, _CHANGED, "a.py"),
        CommitClue("named alike", 0.5, _CHANGED, "a.py", alike),
    )
    assert told == ["it changed a.py, which is what the test's file is named after"]


def test_a_file_that_the_test_is_named_after_and_uses_is_named_once() -> None:
    words = ("shares words with the test or the message",)
    told = tell(
        build_origin_clue(0.9, "a.py", ""),
        build_subject_clue(0.7, _CHANGED, "a.py"),
        build_use_clue("used by the test", 0.5, _CHANGED, "a.py"),
        CommitClue("named alike", 0.1, _CHANGED, "a.py", words),
    )
    (why,) = told
    assert why.startswith("it changed a.py, which was changed by the commit that wrote the failing")
    assert why.endswith(" test and is what the test's file is named after and uses")
    assert tell(CommitClue("named alike", 0.1, _CHANGED, "a.py", words)) == [
        f"{_CHANGED}, which {words[0]}"
    ]


def test_words_in_common_come_last_and_once() -> None:
    told = tell(
        CommitClue("parts of the name", 1.0, "it shares parts of names with the test: keel"),
        CommitClue("words of the test", 0.9, "it changed code about keel"),
        CommitClue("took back", 0.1, "it changed lines that came with the failing test"),
        CommitClue("changed what came with it", 0.1, "it changed weigh in a.py, as did …"),
        CommitClue("alters no behaviour", 0.1, "but it alters no behaviour there"),
    )
    assert told == [
        "it changed lines that came with the failing test",
        "it shares parts of names with the test: keel",
        "but it alters no behaviour there",
    ]
