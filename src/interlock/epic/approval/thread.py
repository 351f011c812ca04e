"""What a whole issue decides: its comments, its `approved` label, and whether it was closed.

Bots, our own account, people without the right to answer and comments from before the request do
not count. The last comment of each person counts, and of several people the most cautious one.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final

import msgspec

from interlock.epic.approval.comments import (
    CAUTION,
    DOUBT,
    CommentDecision,
    CommentReading,
    read_comment,
)
from interlock.signals.comments import find_reply_marks, has_own_marker
from interlock.system.github_comments import UNKNOWN_EDITOR, Author, Comment

APPROVED_LABEL: Final = "approved"
TRUSTED: Final = frozenset({"OWNER", "MEMBER", "COLLABORATOR"})
"""Associations that give the right to answer, where nothing better is known."""
CLOSED: Final = "closed"
"""Marks our reply to an issue that was closed without an answer."""
_AFTER: Final = 1.0
_BEFORE: Final = -1.0


MayAnswer = Callable[[Author], bool]


class LabelEvent(msgspec.Struct, frozen=True):
    """A label was set or removed."""

    label: str
    actor: Author
    at: float
    on: bool = True


class Thread(msgspec.Struct, frozen=True):
    """What an issue has that can be an answer."""

    comments: tuple[Comment, ...] = ()
    labels: tuple[LabelEvent, ...] = ()
    closed: bool = False


class Request(msgspec.Struct, frozen=True):
    """What was asked, when, and under whose account."""

    request_id: str
    at: float
    own: str = ""


class JudgedComment(msgspec.Struct, frozen=True):
    """A comment and what it is taken for."""

    comment: Comment
    reading: CommentReading

    @property
    def mark(self) -> str:
        """Identifies the comment in our reply. After an edit it differs: we may reply again."""
        return f"{self.comment.comment_id}@{self.comment.at:.0f}"


class ThreadState(msgspec.Struct, frozen=True):
    """The answer and who gave it, or which comments to reply to."""

    judged: tuple[JudgedComment, ...]
    answer: CommentReading | None = None
    answered_by: str = ""
    unclear: tuple[JudgedComment, ...] = ()
    """Unclear comments that have no reply of ours yet; none once there is an answer."""
    is_closed_unanswered: bool = False
    held_back: tuple[JudgedComment, ...] = ()
    """Approvals that an unclear comment holds back, and that have no reply of ours yet."""
    doubter: str = ""
    """Who wrote that comment."""


class CommentRecord(msgspec.Struct, frozen=True):
    """A comment as a line of a JSONL file has it."""

    id: str | int
    author: Author
    comment: str
    created_after_request: bool
    labels: tuple[str | dict[str, Any], ...] = ()
    edited_by: str = ""


def may_answer(allowed: Iterable[str] = ()) -> MayAnswer:
    """Those on the list; without one, those whose association gives the right."""
    names = {name.lower().lstrip("@") for name in allowed}
    if names:
        return lambda author: author.login.lower() in names
    return lambda author: author.association.upper() in TRUSTED


def read_thread(thread: Thread, request: Request, may: MayAnswer) -> ThreadState:
    """The answer, if there is one, and how every comment is read."""
    ordered = sorted(thread.comments, key=lambda comment: comment.at)
    judged = tuple(
        JudgedComment(comment, judge_comment(comment, request, may)) for comment in ordered
    )
    counted = [entry for entry in judged if entry.reading.decision is not CommentDecision.IGNORED]
    last = {entry.comment.author.login.lower(): entry for entry in counted}
    answer, by = _find_answer([*last.values()], _find_label(thread.labels, request, may))
    if answer is not None and answer.decision is not CommentDecision.UNCLEAR:
        return ThreadState(judged, answer, by)
    replied = _find_replied(thread.comments, request)
    unclear = tuple(
        entry
        for entry in counted
        if entry.reading.decision is CommentDecision.UNCLEAR and entry.mark not in replied
    )
    held_back = tuple(
        entry
        for entry in last.values()
        if by and entry.reading.decision is CommentDecision.APPROVE and entry.mark not in replied
    )
    is_closed = thread.closed and CLOSED not in replied
    return ThreadState(judged, None, "", unclear, is_closed, held_back, by)


def judge_comment(comment: Comment, request: Request, may: MayAnswer) -> CommentReading:
    """How one comment is read, by who wrote it and when, and by its words."""
    reason = find_ignore_reason(comment, request, may)
    if reason:
        return CommentReading(CommentDecision.IGNORED, reason)
    reading = read_comment(comment.body, request.request_id)
    editor, author = comment.edited_by.lower(), comment.author.login.lower()
    if editor in ("", author):
        return reading
    if editor != UNKNOWN_EDITOR:
        why = f"{comment.edited_by} edited it, not its author"
        return CommentReading(CommentDecision.UNCLEAR, why)
    if reading.decision is CommentDecision.APPROVE:
        why = "it was edited, and GitHub does not say by whom"
        return CommentReading(CommentDecision.UNCLEAR, why)
    return reading


def find_ignore_reason(comment: Comment, request: Request, may: MayAnswer) -> str:
    """Why a comment cannot be an answer whatever it says; empty if it can."""
    author = comment.author
    if has_own_marker(comment.body):
        return "it carries our own marker"
    if author.is_bot:
        return f"{author.login} is a bot"
    if comment.at < request.at:
        return "it is older than the request"
    if request.own and author.login.lower() == request.own.lower():
        return f"{author.login} is the account that Interlock uses; answer in the inbox instead"
    if not may(author):
        return f"{author.login} may not answer"
    return ""


def read_record(raw: bytes) -> CommentRecord | str:
    """The record on a line, or why it cannot be read."""
    try:
        return msgspec.json.decode(raw, type=CommentRecord)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        return f"{error}"


def judge_record(
    record: CommentRecord, request_id: str, own: str, may: MayAnswer
) -> CommentReading:
    """How a record would be read: its words, and the label beside them."""
    request = Request(request_id, 0.0, own)
    at = _AFTER if record.created_after_request else _BEFORE
    comment = Comment(f"{record.id}", record.author, record.comment, at, record.edited_by)
    reading = judge_comment(comment, request, may)
    events = tuple(_read_label(item, record.author, at) for item in record.labels)
    label = read_thread(Thread(labels=events), request, may).answer
    if label is None or not record.comment.strip():
        return label or reading
    if reading.decision is CommentDecision.IGNORED:
        return reading
    return min(reading, label, key=lambda other: CAUTION.index(other.decision))


def _find_replied(comments: Sequence[Comment], request: Request) -> set[str]:
    """The marks of what we replied to; if our own account is known, only its comments count."""
    own = request.own.lower()
    ours = [comment for comment in comments if not own or comment.author.login.lower() == own]
    return {mark for comment in ours for mark in find_reply_marks(comment.body)}


def _find_label(
    events: Sequence[LabelEvent], request: Request, may: MayAnswer
) -> LabelEvent | None:
    """The approving label as it is on now, set after the request by someone who may."""
    named = [event for event in events if event.label.lower() == APPROVED_LABEL]
    named.sort(key=lambda event: event.at)
    if not named or not named[-1].on or named[-1].at < request.at:
        return None
    actor = named[-1].actor
    is_own = request.own and actor.login.lower() == request.own.lower()
    return None if actor.is_bot or is_own or not may(actor) else named[-1]


def _find_answer(
    last: list[JudgedComment], label: LabelEvent | None
) -> tuple[CommentReading | None, str]:
    """The most cautious reading and who gave it; one that is unclear holds an approval back."""
    readings = [
        (entry.reading, entry.comment.author.login) for entry in last if _has_weight(entry, label)
    ]
    if label is not None:
        why = f"{label.actor.login} set the label {APPROVED_LABEL}"
        readings.append((CommentReading(CommentDecision.APPROVE, why), label.actor.login))
    readings.sort(key=lambda pair: CAUTION.index(pair[0].decision))
    return readings[0] if readings else (None, "")


def _has_weight(judged: JudgedComment, label: LabelEvent | None) -> bool:
    """An unclear comment holds an approval back if it expresses doubt, or is by who set the label;
    small talk of others does not."""
    if judged.reading.decision is not CommentDecision.UNCLEAR:
        return True
    own = label is not None and label.actor.login.lower() == judged.comment.author.login.lower()
    return own or any(span.kind == DOUBT for span in judged.reading.evidence)


def _read_label(label: str | dict[str, Any], author: Author, at: float) -> LabelEvent:
    """A recorded label: a name, set by the comment's author with it, or an object that says who set
    it and when."""
    if isinstance(label, str):
        return LabelEvent(label, author, at)
    name = str(label.get("name") or label.get("label") or "")
    who = label.get("actor") or label.get("by") or label.get("set_by")
    later = label.get("after_request", label.get("set_after_request", at == _AFTER))
    if isinstance(who, dict):
        login, kind = str(who.get("login", "")), str(who.get("association", ""))
        actor = Author(login, kind, who.get("bot", False) is True)
    elif isinstance(who, str):
        actor = author if who == author.login else Author(who)
    else:
        actor = author
    on = label.get("on", True) is True
    return LabelEvent(name, actor, _AFTER if later is True else _BEFORE, on)
