"""Reasons against a commit say each thing once."""

from interlock.rca.analyst.culprits import CommitClue, tell_clues

_IN_STACK = ("is in the stack",)


def test_what_is_known_of_one_file_is_one_sentence() -> None:
    told = list(
        tell_clues(
            [
                CommitClue(
                    "named by the failure",
                    1.0,
                    "it changed a.py",
                    "a.py",
                    ("is named by the failure",),
                ),
                CommitClue("named alike", 0.5, "it changed a.py", "a.py", _IN_STACK),
            ]
        )
    )
    assert told == ["it changed a.py, which is named by the failure and is in the stack"]


def test_a_line_of_the_stack_is_not_said_to_be_in_the_stack_again() -> None:
    told = list(
        tell_clues(
            [
                CommitClue("wrote the break", 1.0, "it wrote the line that failed, a.py:3", "a.py"),
                CommitClue("named alike", 0.5, "it changed a.py", "a.py", _IN_STACK),
            ]
        )
    )
    assert told == ["it wrote the line that failed, a.py:3", "it changed a.py"]
