"""Verbs of the human gate: inbox shows what waits, answer gives an answer to one question."""

from pathlib import Path
from typing import Annotated

import msgspec
import typer

from interlock.cli.door import app
from interlock.cli.show import Db, Json, counted, document, say, table
from interlock.system.errors import StateError


@app.command()
def inbox(
    number: Annotated[
        str | None, typer.Argument(metavar="ID", help="Show this question whole.")
    ] = None,
    db: Db = None,
    json: Json = False,
) -> None:
    """The questions that wait for a human, in all runs."""
    from interlock.api.questions import CUT, rows, shown, waiting
    from interlock.journal.database import reading
    from interlock.rca.review import reviews_of
    from interlock.runtime.settings import database

    path = database(Path(), db)
    with reading(path) as connection:
        questions = waiting(connection, path)
        runs = {each.run_id for each in questions}
        reviews = [each for run_id in sorted(runs) for each in reviews_of(connection, run_id)]
    if number is not None:
        questions = [each for each in questions if str(each.question_id) == number]
        reviews = [each for each in reviews if number in map(str, each.question_ids)]
        if not questions:
            raise StateError(f"question {number} is not open; 'interlock inbox' lists them")
    if json:
        document(msgspec.to_builtins({"questions": questions, "reviews": reviews}))
        return
    if number is not None:
        for line in shown(questions[0]):
            say(line)
        return
    if not questions:
        say("nothing waits for a human")
    lines = rows(questions, reviews)
    table(("ID", "RUN", "CASE", "STEP", "SINCE", "QUESTION"), lines)
    cut = [line[0] for line in lines if str(line[-1]).endswith(CUT)]
    if cut:
        say(f"'interlock inbox {cut[0]}' shows a question whole")
    saved = [each for each in questions if each.answer_saved]
    if saved:
        ids = ", ".join(str(each.question_id) for each in saved)
        say(f"answered, and taken when 'interlock resume {saved[0].run_id}' runs: {ids}")


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
        typer.Option("--set", metavar="FIELD=VALUE", help="More fields of the answer."),
    ] = None,
    by: Annotated[
        str, typer.Option("--by", metavar="NAME", help="Who answers; default the user name.")
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
    """Answer a question. The run takes it when it works, or when it is resumed."""
    from interlock.api.answering import AnswerRequest, give, given_fields, user
    from interlock.runtime.settings import database

    fields = given_fields(sets or ())
    path = database(Path(), db)
    given = AnswerRequest(number, decision, message, fields, by, user(), family)
    found = give(path, given)
    if json:
        document(found)
        return
    kin = len(found.also)
    also = f" and to {counted(kin, 'other', 'others')} of its family" if kin else ""
    say(f"saved the answer to question {found.question_id}{also}; {found.then}")
