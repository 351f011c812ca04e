"""Questions that wait for a person, and their answers, over the API."""

from collections.abc import Iterator
from typing import Annotated, Any, Final

import msgspec
from litestar import Request
from litestar.params import Parameter

from interlock.api.inbox import (
    AnswerRequest,
    Question,
    SavedAnswer,
    find_user,
    give_answer,
    read_inbox,
)
from interlock.api.project import Project
from interlock.system.errors import NotFoundError
from interlock_web.api.routes import reading, writing
from interlock_web.callers import find_caller

_Id = Annotated[str, Parameter(description="The question's id.", max_length=80)]


class OpenQuestion(msgspec.Struct, frozen=True):
    """A question that waits for a person."""

    question: Question
    version: str
    """Send it with the answer: one to a question that has changed is refused."""
    summary: str
    family: tuple[int, ...]
    """Other questions that one answer settles together with it."""


class Inbox(msgspec.Struct, frozen=True):
    questions: list[OpenQuestion]


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """An answer to a question."""

    decision: str
    version: str
    """The version of the question that the answerer saw."""
    note: str = ""
    fields: dict[str, Any] = {}
    """Further fields of the answer."""
    family: bool | None = None
    """True if it counts for all questions of the family; by default, the circuit decides."""
    by: str = ""
    """The answerer's name, where no token gives it."""


@reading("/inbox", "What waits for a person", sync_to_thread=True)
def list_inbox(
    project: Project,
    run: Annotated[int, Parameter(ge=0, le=2**53 - 1, description="Only of this run.")] = 0,
) -> Inbox:
    """List the open questions, oldest first."""
    found = _list_questions(project)
    return Inbox([each for each in found if run in (0, each.question.run_id)])


@reading("/inbox/{question_id:str}", "One question", sync_to_thread=True)
def show_question(project: Project, question_id: _Id) -> OpenQuestion:
    """Show an open question in full."""
    for each in _list_questions(project):
        if str(each.question.question_id) == question_id:
            return each
    raise NotFoundError(f"question {question_id[:80]} is not open; /api/v1/inbox lists them")


@writing(
    "/inbox/{question_id:str}/answer",
    "Answer a question",
    scopes=("answer",),
    status=201,
    sync_to_thread=True,
)
def answer_question(
    project: Project, request: Request[Any, Any, Any], question_id: _Id, data: Answer
) -> SavedAnswer:
    """Answer in the name of the token. The first answer counts; one that comes too late, or to a
    question that has changed, is refused."""
    caller = find_caller(request).name
    given = AnswerRequest(
        question=question_id,
        decision=data.decision,
        message=data.note,
        fields=data.fields,
        by=caller or data.by,
        user=find_user(),
        family=data.family,
        version=data.version,
    )
    at = project.clock.now() if project.clock else None
    return give_answer(project.db, project.settings, given, at)


def _list_questions(project: Project) -> Iterator[OpenQuestion]:
    if not project.has_database:
        return
    questions, groups = read_inbox(project.db)
    families = {number: group.question_ids for group in groups for number in group.question_ids}
    for each in questions:
        alike = families.get(each.question_id, ()) if isinstance(each.question_id, int) else ()
        family = tuple(number for number in alike if number != each.question_id)
        yield OpenQuestion(each, each.version, each.summary, family)


HANDLERS: Final = (list_inbox, show_question, answer_question)
