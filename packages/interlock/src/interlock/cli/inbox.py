"""Verbs of human gates: inbox and answer."""

import time
from typing import TYPE_CHECKING, Annotated

import msgspec
import typer

from interlock.cli.app import app
from interlock.cli.options import read_fields
from interlock.cli.output import Db, Json, echo, echo_json, echo_table, open_project
from interlock.system.errors import StateError
from interlock.system.text import plural, shorten
from interlock.system.time import format_time

if TYPE_CHECKING:
    from collections.abc import Sequence

    from interlock.api.inbox import Question
    from interlock.runtime.application import QuestionGroup


@app.command()
def inbox(
    number: Annotated[
        str | None, typer.Argument(metavar="ID", help="Show this question in full.")
    ] = None,
    db: Db = None,
    json: Json = False,
) -> None:
    """List the questions that wait for a human, in all runs."""
    from interlock.api.inbox import read_inbox

    questions, groups = read_inbox(open_project(db).db)
    if number is not None:
        questions = [each for each in questions if str(each.question_id) == number]
        groups = [each for each in groups if number in map(str, each.question_ids)]
        if not questions:
            raise StateError(f"question {number} is not open; 'interlock inbox' lists them")
    if json:
        echo_json(msgspec.to_builtins({"questions": questions, "reviews": groups}))
        return
    if number is not None:
        for line in format_question(questions[0]):
            echo(line)
        return
    if not questions:
        echo("nothing waits for a human")
    rows = format_rows(questions, groups)
    echo_table(("ID", "RUN", "CASE", "STEP", "SINCE", "QUESTION"), rows)
    if any(len(each.prompt) > len(each.summary) + 1 for each in questions):
        echo(f"'interlock inbox {rows[0][0]}' shows a question in full")
    late = [each for each in questions if 0 < each.due_at <= time.time()]
    if late:
        ids = ", ".join(str(each.question_id) for each in late)
        echo(f"out of time; 'interlock resume {late[0].run_id}' continues without an answer: {ids}")
    saved = [each for each in questions if each.answer_saved]
    if saved:
        ids = ", ".join(str(each.question_id) for each in saved)
        echo(f"answered, and taken when 'interlock resume {saved[0].run_id}' runs: {ids}")


@app.command()
def answer(
    number: Annotated[str, typer.Argument(metavar="ID", help="The question, see inbox.")],
    decision: Annotated[
        str, typer.Argument(metavar="DECISION", help="For example approve, revise or reject.")
    ],
    message: Annotated[
        str, typer.Option("-m", "--message", metavar="TEXT", help="A comment.")
    ] = "",
    sets: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="FIELD=VALUE", help="Further fields of the answer."),
    ] = None,
    by: Annotated[
        str,
        typer.Option("--by", metavar="NAME", help="The person who answers; default the user name."),
    ] = "",
    family: Annotated[
        bool | None,
        typer.Option(
            "--family/--only",
            help="For all questions of its family, or only for this one. Default: as its circuit "
            "says.",
        ),
    ] = None,
    db: Db = None,
    json: Json = False,
) -> None:
    """Answer a question. The run takes it at once, or when it is resumed."""
    from interlock.api.inbox import AnswerRequest, find_user, give_answer

    project = open_project(db)
    fields = read_fields(sets or ())
    given = AnswerRequest(number, decision, message, fields, by, find_user(), family)
    found = give_answer(project.db, project.settings, given)
    if json:
        echo_json(found)
        return
    others = len(found.also)
    also = f" and to {plural(others, 'other', 'others')} of its family" if others else ""
    echo(f"saved the answer to question {found.question_id}{also}; {found.then}")


_MAX_WIDTH = 60
"""The longest question that a row shows whole."""


def format_rows(
    questions: "Sequence[Question]", groups: "Sequence[QuestionGroup]"
) -> list[tuple[object, ...]]:
    """Return a row per question; questions that one answer settles share theirs."""
    first = {each.question_ids[0]: each for each in groups}
    others = {number for each in groups for number in each.question_ids[1:]}
    return [
        _format_row(
            each, first.get(each.question_id) if isinstance(each.question_id, int) else None
        )
        for each in questions
        if each.question_id not in others
    ]


def format_question(question: "Question") -> list[str]:
    """Return the lines of a whole question."""
    case = f", case {question.case_id}" if question.case_id else ""
    since = format_time(question.asked_at)
    head = f"question {question.question_id} ({question.kind}): run {question.run_id}{case}, "
    choice = [f"answers: {', '.join(question.options)}"] if question.options else []
    saved = ["an answer is saved"] if question.answer_saved else []
    due = [f"until: {format_time(question.due_at)}"] if question.due_at else []
    head += f"{question.step}, since {since}"
    return [head, "", question.prompt.rstrip("\n"), "", *choice, *due, *saved]


def _format_row(each: "Question", group: "QuestionGroup | None") -> tuple[object, ...]:
    more = len(group.question_ids) - 1 if group else 0
    choice = f" ({', '.join(each.options)})" if each.options and each.is_query else ""
    line = group.about if group else f"{each.summary}{choice}"
    about = shorten(line, _MAX_WIDTH) if each.case_id else line
    case = f"{each.case_id} +{more}" if more else each.case_id or "-"
    return (each.question_id, each.run_id, case, each.step, format_time(each.asked_at), about)
