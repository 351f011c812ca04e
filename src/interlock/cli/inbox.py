"""Verbs of the human gate: inbox shows what waits, answer gives an answer to one question."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import msgspec
import typer

from interlock.cli import queries
from interlock.cli.door import app
from interlock.cli.show import Db, Json, clock_time, counted, document, say, table
from interlock.core.errors import StateError

if TYPE_CHECKING:
    from interlock.casework.review import Review
    from interlock.cli.answering import Given
    from interlock.store.history import Question
    from interlock.store.standstill import Asked


@app.command()
def inbox(db: Db = None, json: Json = False) -> None:
    """The questions that wait for a human, in all runs."""
    from interlock import wiring
    from interlock.casework.review import reviews_of
    from interlock.store.database import reading
    from interlock.store.history import open_questions
    from interlock.store.standstill import open_inquiries

    path = wiring.database(Path(), db)
    with reading(path) as connection:
        questions, inquiries = open_questions(connection), open_inquiries(connection)
        asked = queries.waiting(connection, path)
        runs = {each.run_id for each in questions}
        reviews = [each for run_id in sorted(runs) for each in reviews_of(connection, run_id)]
    folder = wiring.answers_folder(path)
    waiting: list[Question | Asked] = [*questions, *inquiries]
    saved = {each.question_id: (folder / f"{each.question_id}.json").exists() for each in waiting}
    if json:
        fields = [
            {**msgspec.to_builtins(each), "answer_saved": saved[each.question_id]}
            for each in questions
        ]
        more = [
            {**msgspec.to_builtins(each), "answer_saved": saved[each.question_id]}
            for each in inquiries
        ]
        told = {"questions": fields, "reviews": msgspec.to_builtins(reviews)}
        document(told | {"inquiries": more, "queries": msgspec.to_builtins(asked)})
        return
    if not waiting and not asked:
        say("nothing waits for a human")
    rows = [*_rows(questions, reviews), *queries.rows(asked), *map(_row, inquiries)]
    table(("ID", "RUN", "CASE", "STEP", "SINCE", "QUESTION"), rows)
    answered = [each for each in waiting if saved[each.question_id]]
    if answered:
        ids = ", ".join(str(each.question_id) for each in answered)
        say(f"answered, and taken when 'interlock resume {answered[0].run_id}' runs: {ids}")


def _rows(questions: "list[Question]", reviews: "list[Review]") -> Iterator[tuple[object, ...]]:
    """A row per question; questions that one answer settles share theirs."""
    first = {each.question_ids[0]: each for each in reviews}
    others = {number for each in reviews for number in each.question_ids[1:]}
    for each in questions:
        if each.question_id in others:
            continue
        review = first.get(each.question_id)
        more = len(review.question_ids) - 1 if review else 0
        about = review.about if review else " ".join(each.prompt.split())
        yield (
            *(each.question_id, each.run_id, f"{each.case_id} +{more}" if more else each.case_id),
            *(each.step, clock_time(each.asked_at), about[:60]),
        )


def _row(asked: "Asked") -> tuple[object, ...]:
    """A row for a question about a run itself."""
    since = clock_time(asked.asked_at)
    return (asked.question_id, asked.run_id, "-", asked.kind, since, asked.about)


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
    from interlock import wiring
    from interlock.cli.answering import Given, given_fields, numbered, refuse_strangers, user
    from interlock.dispatch.query import is_query

    path = wiring.database(Path(), db)
    if is_query(number):
        refuse_strangers("query", by, user())
        queries.reply(path, number, decision, message, by or user(), json=json)
        return
    fields = given_fields(sets or ())
    given = Given(numbered(number), decision, message, fields, by, user(), family)
    _save(path, given, json=json)


def _save(path: Path, given: "Given", *, json: bool) -> None:
    """Leave an answer to a question, and to those of its family, where the run finds it."""
    from interlock import wiring
    from interlock.cli.answering import Late, note_late, prepared
    from interlock.dispatch.human import HumanAnswer, leave_answer
    from interlock.store.database import reading, told_plainly
    from interlock.store.lock import writer_of

    question_id, by = given.question_id, given.by or given.user
    with reading(path) as connection:
        found = prepared(connection, given)
    if isinstance(found, Late):
        note_late(path, found, given)
        raise StateError(f"{found.sentence}; the answer changes nothing, and is kept as refused")
    folder = wiring.answers_folder(path)
    with told_plainly(folder):
        for each in (question_id, *found.also):
            leave_answer(folder, HumanAnswer(each, by, found.data, found.run_id))
    working = writer_of(path) is not None
    if json:
        told = {"question_id": question_id, "run_id": found.run_id, "taken_now": working}
        document(told | {"also": list(found.also)})
        return
    resume = f"'interlock resume {found.run_id}' goes on with it"
    then = "the running process takes it" if working else resume
    kin = len(found.also)
    also = f" and to {counted(kin, 'other', 'others')} of its family" if kin else ""
    say(f"saved the answer to question {question_id}{also}; {then}")
