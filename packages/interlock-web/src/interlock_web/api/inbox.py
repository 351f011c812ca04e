"""Questions that wait for a person, and their answers, over the API."""

from collections.abc import Sequence
from typing import Annotated, Any, Final

import msgspec
from litestar import Request
from litestar.params import Parameter

from interlock.api.inbox import Question, SavedAnswer, find_user, read_inbox
from interlock.api.project import Project
from interlock.system.errors import NotFoundError, StateError
from interlock_web.api.routes import reading, writing
from interlock_web.callers import find_caller

_Id = Annotated[str, Parameter(description="The question's id.", max_length=80)]


class QuestionRecord(msgspec.Struct, frozen=True, kw_only=True):
    """A question that waits for a person."""

    question_id: str
    version: str
    """Send it with the answer: one to a question that has changed is refused."""
    kind: str
    """`gate`, `query`, `permission`, or what is asked about a run, such as `budget`."""
    run_id: int
    case_id: str
    """Empty if it is about the run itself."""
    step: str
    asked_at: float
    due_at: float
    """Until when it takes an answer; 0 if it waits for ever."""
    summary: str
    prompt: str
    options: tuple[str, ...]
    """The decisions that it takes, if they are known."""
    answer_saved: bool
    """Whether an answer is saved that the run has not taken yet."""
    family: tuple[str, ...]
    """Other questions that one answer settles together with it."""


class Inbox(msgspec.Struct, frozen=True):
    questions: list[QuestionRecord]


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """What a person says."""

    decision: str
    version: str
    """As the question had it when it was looked at."""
    note: str = ""
    fields: dict[str, Any] = {}
    """Further fields of the answer."""
    family: bool | None = None
    """Whether it counts for all questions of the family; by default, the circuit says so."""
    by: str = ""
    """Who answers, where no token says it."""


class AnswerReceipt(msgspec.Struct, frozen=True, kw_only=True):
    """An answer that was checked and saved."""

    question_id: str
    run_id: int
    by: str
    also: tuple[str, ...]
    """Other questions that it settles, too."""
    taken_now: bool
    """Whether a process is at work that takes it now."""
    then: str
    """What happens next, in a sentence."""


@reading("/inbox", "What waits for a person", sync_to_thread=True)
def list_inbox(
    project: Project,
    run: Annotated[int, Parameter(ge=0, le=2**53 - 1, description="Only of this run.")] = 0,
) -> Inbox:
    """The questions that are open, oldest first."""
    found = _read_questions(project)
    return Inbox([each for each in found if run in (0, each.run_id)])


@reading("/inbox/{question_id:str}", "One question", sync_to_thread=True)
def show_question(project: Project, question_id: _Id) -> QuestionRecord:
    """A question that is open, in full."""
    return _find_question(project, question_id)


@writing(
    "/inbox/{question_id:str}/answer",
    "Answer a question",
    scopes=("answer",),
    status=201,
    sync_to_thread=True,
)
def answer_question(
    project: Project, request: Request[Any, Any, Any], question_id: _Id, data: Answer
) -> AnswerReceipt:
    """Answer in the name of the token. The first answer counts; one that comes too late, or to a
    question that has changed, is refused."""
    # One that is not open any more is refused below, with the word of who settled it.
    seen = {each.question_id: each.version for each in _read_questions(project)}
    if seen.get(question_id, data.version) != data.version:
        raise StateError(
            f"question {question_id} is not as you saw it; look at it again, nothing was saved"
        )
    by = find_caller(request).name or data.by or find_user()
    saved: SavedAnswer = project.answer(
        question_id,
        data.decision,
        by=by,
        note=data.note,
        fields=data.fields,
        group=data.family,
    )
    return AnswerReceipt(
        question_id=str(saved.question_id),
        run_id=saved.run_id,
        by=by,
        also=tuple(map(str, saved.also)),
        taken_now=saved.taken_now,
        then=saved.then,
    )


def _find_question(project: Project, question_id: str) -> QuestionRecord:
    found = [each for each in _read_questions(project) if each.question_id == question_id]
    if not found:
        raise NotFoundError(f"question {question_id[:80]} is not open; /api/v1/inbox lists them")
    return found[0]


def _read_questions(project: Project) -> list[QuestionRecord]:
    if not project.has_database:
        return []
    questions, groups = read_inbox(project.db)
    families: dict[int | str, Sequence[int]] = {
        number: group.question_ids for group in groups for number in group.question_ids
    }
    return [_describe(each, families.get(each.question_id, ())) for each in questions]


def _describe(question: Question, family: Sequence[int]) -> QuestionRecord:
    return QuestionRecord(
        question_id=str(question.question_id),
        version=question.version,
        kind=question.kind,
        run_id=question.run_id,
        case_id=question.case_id,
        step=question.step,
        asked_at=question.asked_at,
        due_at=question.due_at,
        summary=question.summary,
        prompt=question.prompt,
        options=question.options,
        answer_saved=question.answer_saved,
        family=tuple(str(each) for each in family if each != question.question_id),
    )


HANDLERS: Final = (list_inbox, show_question, answer_question)
