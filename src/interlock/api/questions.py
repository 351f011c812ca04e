"""Whatever waits for a human, as one list of one record: gates, questions about runs, queries.

Knows where each kind is kept and how it is shown. Refuses to know how they are answered
(`answering.py`).
"""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

import msgspec

from interlock.cli.show import clock_time
from interlock.engine.circuit import ARTIFACT

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from interlock.engine.circuit import Circuit
    from interlock.rca.review import Review

GATE: Final = "gate"
CUT: Final = "…"
_SHOWN: Final = 60


class Question(msgspec.Struct, frozen=True):
    """One question. What it is about the case is empty for a question about the run itself."""

    question_id: int | str
    kind: str
    """gate, query, permission; or what is asked about a run, as budget."""
    run_id: int
    case_id: str
    step: str
    asked_at: float
    prompt: str
    options: tuple[str, ...] = ()
    answer_saved: bool = False


def waiting(connection: "Connection", path: Path) -> list[Question]:
    """Everything that waits, in all runs, oldest first."""
    found = [*_gates(connection), *_inquiries(connection), *_queries(connection, path)]
    saved = [msgspec.structs.replace(each, answer_saved=_is_saved(each, path)) for each in found]
    return sorted(saved, key=lambda each: (each.asked_at, str(each.question_id).zfill(20)))


def rows(questions: Sequence[Question], reviews: "Sequence[Review]") -> list[tuple[object, ...]]:
    """A row per question; questions that one answer settles share theirs."""
    first = {each.question_ids[0]: each for each in reviews}
    others = {number for each in reviews for number in each.question_ids[1:]}
    return [
        _row(each, first.get(each.question_id) if isinstance(each.question_id, int) else None)
        for each in questions
        if each.question_id not in others
    ]


def shown(question: Question) -> list[str]:
    """A question whole, for people."""
    case = f", case {question.case_id}" if question.case_id else ""
    since = clock_time(question.asked_at)
    head = f"question {question.question_id} ({question.kind}): run {question.run_id}{case}, "
    choice = [f"answers: {', '.join(question.options)}"] if question.options else []
    saved = ["an answer is saved"] if question.answer_saved else []
    head += f"{question.step}, since {since}"
    return [head, "", question.prompt.rstrip("\n"), "", *choice, *saved]


def _row(each: Question, review: "Review | None") -> tuple[object, ...]:
    more = len(review.question_ids) - 1 if review else 0
    line = review.about if review else _line(each)
    long = len(line) > _SHOWN and each.case_id
    about = f"{line[: _SHOWN - 1]}{CUT}" if long else line
    case = f"{each.case_id} +{more}" if more else each.case_id or "-"
    return (each.question_id, each.run_id, case, each.step, clock_time(each.asked_at), about)


def _line(each: Question) -> str:
    choice = f" ({', '.join(each.options)})" if each.options and _is_query(each) else ""
    return " ".join(f"{each.prompt}{choice}".split())


def _gates(connection: "Connection") -> list[Question]:
    from interlock.journal.history import open_questions

    found = open_questions(connection)
    circuits = {run_id: _circuit(connection, run_id) for run_id in {each.run_id for each in found}}
    return [
        Question(
            *(each.question_id, GATE, each.run_id, each.case_id, each.step),
            *(each.asked_at, each.prompt, _choices(circuits[each.run_id], each.step)),
        )
        for each in found
    ]


def _circuit(connection: "Connection", run_id: int) -> "Circuit | None":
    """None if it cannot be read any more: its questions are shown all the same."""
    from interlock.api.project import open_run
    from interlock.journal.runs import find_run
    from interlock.system.errors import InterlockError

    try:
        return open_run(find_run(connection, run_id))
    except InterlockError:
        return None


def _choices(circuit: "Circuit | None", name: str) -> tuple[str, ...]:
    """The words that a gate takes, as far as its table says so."""
    step = circuit.steps.get(name) if circuit else None
    if step is None:
        return ()
    fields = [step.shape.fields.get(each) for each in ("decision", *step.shape.required)]
    words = next((each.choices for each in fields if each and each.choices), ())
    return (*map(str, words), *(each for each in step.signals if each != ARTIFACT))


def _inquiries(connection: "Connection") -> list[Question]:
    from interlock.journal.standstill import open_inquiries
    from interlock.runtime.treasury import RAISE, STOP

    return [
        Question(
            *(each.question_id, each.kind, each.run_id, "", each.kind, each.asked_at),
            *(each.about, (RAISE, STOP)),
        )
        for each in open_inquiries(connection)
    ]


def _queries(connection: "Connection", path: Path) -> list[Question]:
    from interlock.agents.query import open_queries
    from interlock.journal.history import open_dispatch_ids
    from interlock.runtime.settings import queries_folder

    return [
        Question(
            *(each.query_id, each.kind, each.run_id, each.case_id, each.step),
            *(each.asked_at, each.question, each.options),
        )
        for each in open_queries(queries_folder(path), open_dispatch_ids(connection))
    ]


def _is_saved(each: Question, path: Path) -> bool:
    from interlock.runtime.settings import answers_folder

    if _is_query(each):
        return False
    return (answers_folder(path) / f"{each.question_id}.json").exists()


def _is_query(each: Question) -> bool:
    return isinstance(each.question_id, str)
