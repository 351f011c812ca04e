"""The inbox: questions with their full context, and the answers to them.

An answer names the version of the question that its giver saw, and carries the mark of a form of
ours. It is saved by the same code as `interlock answer`.
"""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Final

import msgspec
from litestar import Request, Response, get, post
from litestar.enums import RequestEncodingType
from litestar.params import Body
from litestar.response import Redirect
from litestar.template.base import csrf_token

from interlock.api.browse import CaseOverview, find_case
from interlock.api.inbox import AnswerRequest, find_user, give_answer
from interlock.api.project import Project
from interlock.api.waiting import InboxEntry, assign_keys, list_entries
from interlock.system.errors import NotFoundError, SourceError
from interlock.system.strict_json import Problem, read_json
from interlock_web.callers import find_caller
from interlock_web.case_overview import show_overview
from interlock_web.window import Window

_PER_PAGE: Final = 25
_LONGEST_NAME: Final = 80
_LONGEST_NOTE: Final = 100_000


class ShownQuestion(msgspec.Struct, frozen=True):
    """A question with the case it is about, and what a person should know of that."""

    entry: InboxEntry
    case_no: int | None
    overview: CaseOverview | None


class AnswerForm(msgspec.Struct):
    decision: str = ""
    note: str = ""
    fields: str = ""
    by: str = ""
    family: str = ""
    version: str = ""


def read_sorted_inbox(project: Project) -> list[InboxEntry]:
    """Return what waits for people, the most blocking first."""
    return list_entries(project.db) if project.has_database else []


@get("/inbox", sync_to_thread=True)
def show_inbox(
    request: Request[Any, Any, Any], window: Window, page: int = 1, saved: str = ""
) -> Response[str]:
    entries = read_sorted_inbox(window.project)
    page = max(1, min(page, 100_000))
    return window.render(
        "inbox.html",
        title="Inbox",
        path="/inbox",
        shown=_read_overviews(window.project, entries[(page - 1) * _PER_PAGE : page * _PER_PAGE]),
        total=len(entries),
        waiting=sum(each.count for each in entries),
        page=page,
        pages=max(1, -(-len(entries) // _PER_PAGE)),
        saved=saved if saved.isascii() and saved.isalnum() else "",
        **_describe_answerer(request, window),
    )


@get("/inbox/{question:str}", sync_to_thread=True)
def show_question(request: Request[Any, Any, Any], window: Window, question: str) -> Response[str]:
    entry = _find_entry(window.project, question)
    return window.render(
        "question.html",
        title=f"Question {question}",
        path="/inbox",
        shown=_read_overviews(window.project, [entry])[0],
        **_describe_answerer(request, window),
    )


# A path of its own: Litestar wraps the handlers of one path with two methods twice.
@post("/inbox/{question:str}/answer", sync_to_thread=True)
def take_answer(
    request: Request[Any, Any, Any],
    window: Window,
    question: str,
    data: Annotated[AnswerForm, Body(media_type=RequestEncodingType.URL_ENCODED)],
) -> Response[Any]:
    """Save an answer, or refuse it with a sentence."""
    if len(data.note) > _LONGEST_NOTE:
        raise SourceError(f"the comment may have at most {_LONGEST_NOTE:,} characters")
    caller = find_caller(request).name
    given = AnswerRequest(
        question=question,
        decision=data.decision.strip(),
        message=data.note.strip(),
        fields=parse_fields(data.fields),
        by=caller or data.by.strip()[:_LONGEST_NAME],
        user=caller or find_user(),
        family={"yes": True, "no": False}.get(data.family),
        version=data.version or "none",
    )
    if not given.decision:
        raise SourceError("say what you decide; nothing was saved")
    give_answer(window.project.db, window.project.settings, given)
    return Redirect(f"/inbox?saved={question}", status_code=303)


def parse_fields(text: str) -> dict[str, Any]:
    """Read further fields of an answer, `name = value` on each line; JSON values are decoded."""
    found: dict[str, Any] = {}
    for line in text.splitlines():
        name, equals, value = (part.strip() for part in line.partition("="))
        if not line.strip():
            continue
        if not equals or not name:
            raise SourceError(
                f"{line.strip()[:80]!r} is not a field; write name = value, one a line"
            )
        decoded = read_json(value.encode())
        found[name] = value if isinstance(decoded, Problem) else decoded
    return found


def list_choices(entry: InboxEntry) -> list[Mapping[str, str]]:
    """Return the decisions as buttons, each with its colour and its key."""
    keys = assign_keys(entry.question.options)
    tones = {"a": "primary", "r": "bad"}
    return [
        {"word": word, "key": keys.get(word, ""), "tone": tones.get(keys.get(word, ""), "")}
        for word in entry.question.options
    ]


def _read_overviews(project: Project, entries: Sequence[InboxEntry]) -> list[ShownQuestion]:
    if not entries:
        return []
    found = []
    with project.read() as connection:
        for entry in entries:
            asked = entry.question
            case = find_case(connection, asked.case_id, asked.run_id) if asked.case_id else None
            case_no = case.case_no if case else None
            told = None if asked.is_query else show_overview(connection, asked.run_id, case_no)
            found.append(ShownQuestion(entry, case_no, told))
    return found


def _find_entry(project: Project, question: str) -> InboxEntry:
    for entry in read_sorted_inbox(project):
        numbers = (entry.question.question_id, *(entry.also if entry.for_family else ()))
        if question in map(str, numbers):
            return entry
    raise NotFoundError(f"question {question[:40]} is not open any more; it may be answered")


def _describe_answerer(request: Request[Any, Any, Any], window: Window) -> dict[str, Any]:
    caller = find_caller(request)
    return {
        "answerer": caller.name,
        "user": find_user(),
        "may_answer": "answer" in caller.scopes,
        "mark": csrf_token({"request": request}),
        "choices": list_choices,
    }
