"""Verbs of the human gate: inbox shows what waits, answer gives an answer to one question."""

import getpass
import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
import typer

from interlock.cli import queries
from interlock.cli.crew import Options, open_run
from interlock.cli.door import app
from interlock.cli.show import Db, Json, clock_time, counted, document, say, table
from interlock.core.errors import SourceError, StateError

if TYPE_CHECKING:
    from interlock.casework.review import Review
    from interlock.store.history import Question


@app.command()
def inbox(db: Db = None, json: Json = False) -> None:
    """The questions that wait for a human, in all runs."""
    from interlock import wiring
    from interlock.casework.review import reviews_of
    from interlock.store.database import reading
    from interlock.store.history import open_questions

    path = wiring.database(Path(), db)
    with reading(path) as connection:
        questions = open_questions(connection)
        asked = queries.waiting(connection, path)
        runs = {each.run_id for each in questions}
        reviews = [each for run_id in sorted(runs) for each in reviews_of(connection, run_id)]
    folder = wiring.answers_folder(path)
    saved = {each.question_id: (folder / f"{each.question_id}.json").exists() for each in questions}
    if json:
        fields = [
            {**msgspec.to_builtins(each), "answer_saved": saved[each.question_id]}
            for each in questions
        ]
        shown = {"questions": fields, "reviews": msgspec.to_builtins(reviews)}
        document(shown | {"queries": msgspec.to_builtins(asked)})
        return
    if not questions and not asked:
        say("nothing waits for a human")
    lines = [*_rows(questions, reviews), *queries.rows(asked)]
    table(("ID", "RUN", "CASE", "STEP", "SINCE", "QUESTION"), lines)
    answered = [each for each in questions if saved[each.question_id]]
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
    alone: Annotated[
        bool, typer.Option("--only", help="Only this question, not those of its whole family.")
    ] = False,
    db: Db = None,
    json: Json = False,
) -> None:
    """Answer a question. The run takes it when it works, or when it is resumed."""
    from interlock import wiring
    from interlock.dispatch.query import is_query

    path = wiring.database(Path(), db)
    if is_query(number):
        queries.reply(path, number, decision, message, by or user(), json=json)
        return
    data = _answer(decision, message, sets or [])
    _save(path, _numbered(number), data, by or user(), alone=alone, json=json)


def _save(
    path: Path, question_id: int, data: dict[str, Any], by: str, *, alone: bool, json: bool
) -> None:
    """Leave an answer to a gate, and to those of its family, where the run finds it."""
    from interlock import wiring
    from interlock.casework.review import reviewed_with
    from interlock.dispatch.human import HumanAnswer, leave_answer
    from interlock.store.database import reading, told_plainly
    from interlock.store.history import open_questions
    from interlock.store.lock import writer_of
    from interlock.store.runs import find_run
    from interlock.wiring.rca import unfit_review

    with reading(path) as connection:
        found = [each for each in open_questions(connection) if each.question_id == question_id]
        if not found:
            raise StateError(f"question {question_id} is not open; 'interlock inbox' lists them")
        run = find_run(connection, found[0].run_id)
        circuit = open_run(run)
        options = msgspec.convert(run.options, Options)
        _refuse_others(found[0], options)
        kin = {} if alone else reviewed_with(connection, found[0].run_id, question_id)
    problem = circuit.steps[found[0].step].shape.problem(data)
    problem = problem or unfit_review(circuit.name, options.terms, found[0].step, data)
    if problem:
        raise SourceError(f"{problem.removesuffix('.')}; nothing was saved")
    with told_plainly(wiring.answers_folder(path)):
        for each in (question_id, *kin):
            leave_answer(wiring.answers_folder(path), HumanAnswer(each, by, data))
    _say_saved(found[0], sorted(kin), working=writer_of(path) is not None, json=json)


def _say_saved(question: "Question", kin: list[int], *, working: bool, json: bool) -> None:
    number, run_id = question.question_id, question.run_id
    if json:
        document({"question_id": number, "run_id": run_id, "taken_now": working, "also": kin})
        return
    resume = f"'interlock resume {run_id}' goes on with it"
    then = "the running process takes it" if working else resume
    also = f" and to {counted(len(kin), 'other', 'others')} of its family" if kin else ""
    say(f"saved the answer to question {number}{also}; {then}")


def _numbered(word: str) -> int:
    """A question's number. A dispatch's query has two, as 12.1."""
    if not word.isascii() or not word.removeprefix("-").isdigit() or len(word) > 18:
        raise SourceError(f"{word!r} is no question's number; 'interlock inbox' lists them")
    return int(word)


def _answer(decision: str, message: str, sets: list[str]) -> dict[str, Any]:
    """The answer's fields, as the words of a command line give them."""
    from interlock.cli.words import pairs
    from interlock.core.yaml_text import read_yaml

    more = {name: read_yaml(text, "--set").value for name, text in pairs(sets, "--set").items()}
    return {"decision": decision, **({"comment": message} if message else {}), **more}


def _refuse_others(question: "Question", options: Options) -> None:
    """A question that goes to an agent, or into a file, is not answered here."""
    from interlock.core.circuit import HUMAN

    asked = options.agents.get(HUMAN, "")
    if asked == "manual":
        save = f"'interlock save {question.case_id} --run {question.run_id} -f FILE'"
        raise StateError(f"question {question.question_id} is answered by hand: {save}")
    if asked:
        raise StateError(f"question {question.question_id} goes to {asked}, not to the inbox")


def user() -> str:
    """Who sits at the terminal."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return f"user {os.getuid()}"
