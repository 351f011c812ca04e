"""What Interlock writes on an issue: the question, how to answer, and a question back.

Text only. What comes from agents is put in as it is, except that it cannot carry our marker.
"""

from typing import Final

from interlock.agents.carrier import Ask

_LONGEST_QUESTION: Final = 60_000
_HOW: Final = """\
### How to answer

Write a comment whose first line is one of these:

| command | means |
|---|---|
| `/approve` | go on |
| `/revise` and what to change | do it again, with these notes |
| `/discuss` and what about | pause; we talk first |
| `/halt` | stop the work |
| `/defer` | put it off; it can be resumed |

Plain words work too ("Approved", "LGTM", "please rename the table"), and so does the label
`approved`. A condition, a question or a doubt beside an approval makes it none. People with write
access, or those on the project's list, can answer. Reactions and closing are no answers."""


def title_of(ask: Ask) -> str:
    """A title on one line."""
    return " ".join(f"Review: {ask.case_id} - {ask.step}".split())[:200]


def body_of(ask: Ask, request_id: str) -> str:
    """The issue's body, without the marker."""
    question = ask.prompt.strip()
    if len(question) > _LONGEST_QUESTION:
        question = f"{question[:_LONGEST_QUESTION]}\n\n(cut here: it is longer)"
    question = question.replace("<!--", "&lt;!--")
    head = f"Interlock waits for a decision about `{_code(ask.case_id)}` at `{_code(ask.step)}`"
    again = f", attempt {ask.attempt}" if ask.attempt > 1 else ""
    return (
        f"{head}{again}. Request `{_code(request_id)}`.\n\n{_HOW}\n\n### The question\n\n{question}"
    )


def ask_back(login: str, why: str) -> str:
    """The question about a comment that could not be understood."""
    return (
        f"@{_code(login)}, this could not be taken for an answer: {why}. "
        "Please write a new comment that begins with `/approve`, `/revise`, `/discuss`, `/halt` "
        "or `/defer`. Until then the work waits."
    )


def ask_back_closed() -> str:
    return (
        "Closing this issue is no answer. Please write a comment that begins with `/approve`, "
        "`/revise`, `/discuss`, `/halt` or `/defer`. Until then the work waits."
    )


def _code(text: str) -> str:
    return " ".join(text.replace("`", "'").split())[:200]
