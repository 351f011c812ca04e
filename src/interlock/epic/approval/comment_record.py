"""One recorded comment as a line of JSON, and what it would be taken for.

Knows the record's fields and how its labels are read: plain names were set with the comment by its
author. Refuses to know files.
"""

from typing import Any, Final

import msgspec

from interlock.epic.approval.comment_thread import (
    Author,
    Comment,
    LabelEvent,
    May,
    Request,
    Thread,
    judge,
    read_thread,
)
from interlock.epic.approval.comment_verdict import CAUTION, CommentDecision, CommentReading

_AFTER: Final = 1.0
_BEFORE: Final = -1.0


class CommentRecord(msgspec.Struct, frozen=True):
    """A comment as somebody recorded it."""

    id: str | int
    author: Author
    comment: str
    created_after_request: bool
    labels: tuple[str | dict[str, Any], ...] = ()
    edited_by: str = ""


def read_record(raw: bytes) -> CommentRecord | str:
    """The record on a line, or why it is none."""
    try:
        return msgspec.json.decode(raw, type=CommentRecord)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        return f"{error}"


def verdict_of(record: CommentRecord, request_id: str, own: str, may: May) -> CommentReading:
    """What the record would be taken for: its words, and the label beside them."""
    request = Request(request_id, 0.0, own)
    at = _AFTER if record.created_after_request else _BEFORE
    comment = Comment(f"{record.id}", record.author, record.comment, at, record.edited_by)
    verdict = judge(comment, request, may)
    events = tuple(_event(each, record.author, at) for each in record.labels)
    label = read_thread(Thread(labels=events), request, may).decision
    if label is None or not record.comment.strip():
        return label or verdict
    if verdict.outcome is CommentDecision.IGNORED:
        return verdict
    return min(verdict, label, key=lambda each: CAUTION.index(each.outcome))


def _event(label: str | dict[str, Any], author: Author, at: float) -> LabelEvent:
    """A label by name, or as an object that tells who set it and when."""
    if isinstance(label, str):
        return LabelEvent(label, author, at)
    name = str(label.get("name") or label.get("label") or "")
    who = label.get("actor") or label.get("by") or label.get("set_by")
    later = label.get("after_request", label.get("set_after_request", at == _AFTER))
    on = label.get("on", True) is True
    if isinstance(who, dict):
        login, kind = str(who.get("login", "")), str(who.get("association", ""))
        actor = Author(login, kind, who.get("bot", False) is True)
    elif isinstance(who, str):
        actor = author if who == author.login else Author(who)
    else:
        actor = author
    return LabelEvent(name, actor, _AFTER if later is True else _BEFORE, on)
